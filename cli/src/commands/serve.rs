//! `serve`: the tools of bundles for agents, over MCP.

use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;
use toolward_host::confine::Confinement;
use toolward_host::{Host, memory};
use toolward_ledger::Pending;
use toolward_mcp::Service;
use toolward_operator::bundles::SourceKind;
use toolward_operator::recorder::StartedRecorder;
use toolward_operator::reload::{BundleWatch, prepare};
use toolward_operator::{Operator, runtime_with};

use crate::helper::{self, Programs, RecorderLog};
use crate::logging::LogFormat;
use crate::output::{Look, Notes};
use crate::prelude::*;
use crate::{logging, stderr};

#[cfg(feature = "adapters")]
mod events;
mod features;
mod http;
#[cfg(feature = "metrics")]
mod metrics;
mod process;
mod transport;

#[cfg(feature = "adapters")]
use events::{EventFile, EventFlags};
use features::{
    FeaturesBuilder, ReplayFlags, ServedFeatures, warn_of_changes, warn_of_names, welcome,
};
use http::HttpFlags;
use process::{Asked, Signals, local};
use transport::Transport;

/// If there are more tools than this, clients search for tools instead of listing all.
const DEFER_ABOVE: usize = 100;
/// How long the end of the process waits for the reloading thread, which may be waiting for a lock
/// of another process.
const RELOAD_STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// How long the process waits at its end, for each runtime, until the calls that it cuts off have
/// ended.
const CANCEL_TIMEOUT: Duration = Duration::from_millis(100);

/// How long the server still answers after the recorder has failed, and before it ends.
const LAST_ANSWERS: Duration = Duration::from_millis(500);

/// How long compiling drivers is delayed, so that a client that has just connected gets its
/// handshake first.
const HANDSHAKE_GRACE: Duration = Duration::from_millis(50);

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Serve many clients over HTTP at this address and port
    ///
    /// An IP address or localhost. [default: one client, on standard input and output]
    #[arg(long, value_name = "ADDRESS", value_parser = http::address)]
    http: Option<SocketAddr>,

    /// Serve one client on standard input and output, as without --http
    #[arg(long, conflicts_with = "http")]
    stdio: bool,

    #[command(flatten)]
    http_flags: HttpFlags,

    #[command(flatten)]
    replay_flags: ReplayFlags,

    /// Let the client ask a person for approval, and accept the client's answer
    ///
    /// Only for a client that shows each question to a person and never answers itself.
    #[arg(long, conflicts_with = "no_token")]
    trust_client: bool,

    /// If there are more tools than this, list only three tools that find, load and call the others
    #[arg(long, hide_short_help = true, value_name = "COUNT", default_value_t = DEFER_ABOVE)]
    defer_above: usize,

    #[cfg(feature = "adapters")]
    #[command(flatten)]
    events: EventFlags,

    #[cfg(feature = "metrics")]
    #[command(flatten)]
    metrics: metrics::MetricsFlags,

    /// Write the log in this format, with a line for each call that ends
    ///
    /// [default: text, without lines for calls]
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<LogFormat>,

    #[command(flatten)]
    source: Flagged<BundleSource>,

    #[command(flatten)]
    setup: Flagged<HostSetup>,

    #[command(flatten)]
    cache: Flagged<CompileCache>,

    #[command(flatten)]
    confine: ConfineFlags,
}

pub(crate) fn run(arguments: Arguments, context: &Context) -> Result<Exit> {
    logging::start(context, arguments.log_format);
    process::raise_file_limit();
    memory::turn_fast_bins_off();
    let (address, trust_client) = (arguments.http, arguments.trust_client);
    let operator = Arc::new(Operator {
        source: arguments.source.0,
        setup: arguments.setup.0,
        cache: arguments.cache.0,
        environment: context.operator.clone(),
    });
    let handed_over = context.listen_fds.as_ref();
    let handed_over = handed_over.map(|count| http::handed_over(count, address));
    let handed_over = handed_over.transpose()?;
    let replaying = arguments.replay_flags.open(&operator, address.is_some())?;
    let trust = &operator.source.trust;
    // The recorder's process starts while bundles are read.
    let log = RecorderLog {
        stderr: Stdio::inherit(),
        format: arguments.log_format,
        // If a client starts this server, it stores the log in a file that it can change.
        // Checkpoints in this file would prove nothing.
        brief: address.is_none() && arguments.log_format.is_none(),
    };
    let setup = operator.configured();
    let started = helper::start_recorder(setup, context, log)?;
    // The cache of the broker has facts about components of installed bundles. For other bundles,
    // the broker is opened later, so that a refused bundle leaves no cache.
    let broker = || operator.broker(&helper::compiler()?);
    let known = match operator.source.kind() {
        SourceKind::Installed => Some(broker()?),
        _ => None,
    };
    let watch = BundleWatch::load(Arc::clone(&operator), known.as_ref())?;
    let confinement = arguments.confine.recorded(trust, context)?;
    let begin = |started: StartedRecorder| {
        started.begin(&watch.loaded().contents, Some(watch.granted()), confinement)
    };
    let recorder = started.map(begin).transpose()?;
    #[cfg(feature = "adapters")]
    let events = arguments.events.open()?;
    #[cfg(feature = "metrics")]
    let (counted, scraped) = arguments
        .metrics
        .open(recorder.clone(), arguments.http_flags.token_files())?;
    // Denials are in a separate folder, since a confined process that may write them can write
    // everything in their folder.
    let state = operator.setup.state(context);
    let denials = state.map(|state| state.join("denials"));
    let (shared_state, not_kept) = match setup.shared_state(denials.as_deref()) {
        Ok(shared_state) => (shared_state, None),
        Err(error) => (setup.shared_state(None)?, Some(error)),
    };
    let denials = denials.filter(|_| not_kept.is_none());
    let builder = FeaturesBuilder {
        broker: known.map_or_else(broker, Ok)?,
        programs: match &replaying {
            None => Programs::start(watch.granted(), context)?,
            Some(_) => Programs::default(),
        },
        replaying,
        http: Arc::new(arguments.http_flags),
        #[cfg(feature = "metrics")]
        metrics: counted,
        recorder,
        confinement,
        #[cfg(feature = "adapters")]
        events: Arc::new(arguments.events),
        shared_state,
        defer_above: arguments.defer_above,
        operator,
    };
    // The broker's program starts while the features are made.
    let start = || builder.broker.start();
    let first = || builder.make(watch.loaded(), watch.granted(), None);
    let (started, features) = beside(start, first);
    started?;
    let features = features?;
    let transport = Transport::open(address, handed_over, &builder, trust_client)?;
    context.note(welcome(&features, builder.replaying.as_ref()));
    warn_of_names(&features, &*context.report);
    if let Some(shortage) = process::file_shortage(transport.connections()) {
        context.warning(shortage);
    }
    warn_of_changes(context);
    let trust = &builder.operator.source.trust;
    let approving = trust.approving_clients(context)?;
    if let Some(error) = not_kept {
        let what = "what people deny is forgotten when this server ends";
        context.report.warning_of(what, &error);
    }
    let server = Server {
        host: features.host().clone(),
        service: Service::new(features),
        // A confined process may not open the file that this reads.
        memory: memory::Watch::new().ok(),
        builder,
        watch,
        transport,
        trust_client,
        approving,
        #[cfg(feature = "adapters")]
        events,
        #[cfg(feature = "metrics")]
        scraped,
    };
    let confinement = server.confinement(denials.as_deref())?;
    let broker = &server.builder.broker;
    let trust = &server.builder.operator.source.trust;
    (arguments.confine).apply(confinement, broker, trust, context)?;
    if let Transport::Http(listener, http) = &server.transport {
        http.announce(listener, context)?;
    }
    #[cfg(feature = "metrics")]
    if let Some(scraped) = &server.scraped {
        context.note(scraped.announcement());
    }
    stderr::detach()?;
    server.run(context.json())
}

/// Everything that serving needs, opened before the process confines itself.
struct Server {
    builder: FeaturesBuilder,
    watch: BundleWatch,
    host: Host,
    service: Service,
    memory: Option<memory::Watch>,
    transport: Transport,
    trust_client: bool,
    /// The names of clients on standard input and output that may ask a person for approval.
    approving: Vec<String>,
    #[cfg(feature = "adapters")]
    events: Option<EventFile>,
    #[cfg(feature = "metrics")]
    scraped: Option<metrics::MetricsServer>,
}

impl Server {
    /// Returns the access that the process keeps when it confines itself.
    fn confinement(&self, denials: Option<&Path>) -> Result<Confinement> {
        let setup = self.builder.operator.configured();
        let confinement = setup.kept(&self.host, self.watch.granted())?;
        let mut confinement = self.watch.kept(confinement)?;
        if let Some(directory) = denials {
            confinement = confinement.read_write(directory);
        }
        #[cfg(feature = "metrics")]
        if let Some(scraped) = &self.scraped {
            confinement = confinement.accept_on(&scraped.listener);
        }
        Ok(match &self.transport {
            Transport::Http(listener, _) => confinement.accept_on(listener),
            Transport::Stdio(_) => confinement,
        })
    }

    /// Serves until a signal or the client ends it.
    fn run(self, json: bool) -> Result<Exit> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        // Guests compute on as many threads at once as there are cores. One more thread can always
        // answer.
        let runtime = runtime_with(cores.saturating_add(1))?;
        let stdio_runtime = match &self.transport {
            Transport::Http(..) => None,
            // For the connection and its short calls.
            Transport::Stdio(_) => Some(runtime_with(1)?),
        };
        let asked = Asked::default();
        let shutdown = asked.control.stop.clone();
        let (tell, without_engine) = oneshot::channel();
        let buckets = self.host.requirements().buckets;
        // This task continues when other bundles are loaded, since their new host uses the same
        // engine.
        let engine = runtime.spawn(make_engine(self.host.clone(), tell, shutdown.clone()));
        let host = self.host;
        let preparing = runtime.spawn(async move {
            if let Ok(true) = engine.await {
                prepare(host).await;
                toolward_support::program_pages::release();
            }
        });
        if let Some(memory) = self.memory {
            runtime.spawn(give_back(memory, shutdown.clone()));
        }
        let drain = match &self.transport {
            Transport::Http(..) => self.builder.http.drain(),
            Transport::Stdio(_) => Duration::ZERO,
        };
        let recorder = self.builder.recorder.clone();
        let (tell, without_recorder) = oneshot::channel();
        if let Some(recorder) = &recorder {
            let ended = recorder.remote().ended();
            runtime.spawn(recorder_ends(ended, tell, shutdown.clone()));
        }
        let shared_state = self.builder.shared_state.clone();
        #[cfg(feature = "adapters")]
        let events = self.events.map(|file| {
            let events = shared_state.events(toolward_host::EventFilter::all());
            file.follow(events, runtime.handle())
        });
        #[cfg(feature = "adapters")]
        let events = events.transpose()?;
        #[cfg(feature = "metrics")]
        if let Some(scraped) = self.scraped {
            runtime.spawn(scraped.serve(shared_state.clone(), shutdown.clone()));
        }
        let environment = self.builder.operator.environment.clone();
        let look = Look {
            json,
            ..Look::default()
        };
        let rounds = Box::new(move || environment.reporting(Notes::new(look)));
        let target = ServedFeatures {
            builder: self.builder,
            service: self.service.clone(),
            buckets,
        };
        let (control, handle) = (asked.control.clone(), runtime.handle());
        let watch = self.watch;
        let following = watch.follow(target, shared_state, control, rounds, handle, preparing)?;
        let served = runtime.block_on(async {
            tokio::spawn(Signals::take()?.obey(asked.clone(), drain));
            let connection = stdio_runtime.as_ref().unwrap_or(&runtime).handle();
            let local = || {
                let local = self.service.connection(Some(local(self.trust_client)));
                local.approving_clients(self.approving)
            };
            let transport = self.transport;
            tokio::select! {
                served = transport.serve(&self.service, local, &asked, connection) => served,
                () = asked.at_once.cancelled() => {
                    tracing::warn!("told to end at once: calls that ran were cut off");
                    Ok(())
                }
            }
        });
        shutdown.cancel();
        let followed = match asked.at_once.is_cancelled() {
            true => Ok(()),
            false => following.ended(RELOAD_STOP_TIMEOUT),
        };
        // Guests that still run end with their runtime, and are recorded as cancelled. Calls that
        // were moved from a connection use timers of the connection's runtime, so the connection's
        // runtime ends last.
        for runtime in [runtime].into_iter().chain(stdio_runtime) {
            runtime.shutdown_timeout(CANCEL_TIMEOUT);
        }
        // Calls that were cut off have their last events by now.
        #[cfg(feature = "adapters")]
        if let Some(events) = events {
            events.end();
        }
        let recorded = recorder.map_or(Ok(()), |recorder| recorder.close());
        for mut without in [without_engine, without_recorder] {
            if let Ok(failure) = without.try_recv() {
                return Err(failure);
            }
        }
        served.and(followed).and(recorded).map(|()| Exit::Fine)
    }
}

/// Returns freed memory to the kernel after a spike.
async fn give_back(mut memory: memory::Watch, shutdown: CancellationToken) {
    let pause = || tokio::time::sleep(memory::Watch::PAUSE);
    while shutdown.run_until_cancelled(pause()).await.is_some() {
        // Returning memory may take milliseconds.
        tokio::task::block_in_place(|| memory.look());
    }
}

/// Runs `there` on a separate thread while `here` runs on this one. If no thread can be started,
/// runs them one after the other.
fn beside<A: Send, B>(there: impl Fn() -> A + Send + Sync, here: impl FnOnce() -> B) -> (A, B) {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, &there);
        let here = here();
        // Without `join`, the scope may end slightly before the thread does. But a process that
        // confines itself must have only one thread.
        let there = match thread {
            Ok(thread) => thread.join(),
            Err(_) => Ok(there()),
        };
        (
            there.unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            here,
        )
    })
}

/// Makes the engine after the client's handshake, and returns whether it exists. A call that
/// arrives earlier makes the engine itself. If the engine can't be made, the server ends.
async fn make_engine(host: Host, tell: oneshot::Sender<Failure>, stop: CancellationToken) -> bool {
    tokio::time::sleep(HANDSHAKE_GRACE).await;
    let made = spawn_blocking(move || host.make_engine()).await;
    let failure = match made {
        Ok(Ok(())) => return true,
        Ok(Err(error)) => error.into(),
        Err(error) => Failure::failed(Code::EngineUnavailable, error),
    };
    // If the server is ending just now, no one receives this.
    let _ = tell.send(failure);
    stop.cancel();
    false
}

/// Ends the server in good order if the recorder fails.
async fn recorder_ends(ended: Pending, tell: oneshot::Sender<Failure>, stop: CancellationToken) {
    if let Err(error) = ended.await {
        // If the server is ending just now, no one receives this.
        let _ = tell.send(failed(error));
        tokio::time::sleep(LAST_ANSWERS).await;
        stop.cancel();
    }
}
