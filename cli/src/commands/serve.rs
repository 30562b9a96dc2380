//! `serve`: the tools of bundles for agents, over MCP.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use super::compiling;
use clap::Args;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;
use toolward_host::{Host, LOCAL, SharedState, memory};
use toolward_mcp::principal::{Principal, Tools};
use toolward_mcp::stdio::Streams;
use toolward_mcp::{Denials, DenialsError, Service, Surface, stdio};

use crate::environment::{Colours, Environment};
use crate::failure::{self, Exit, Failure, Kind};
use crate::flags::ConfineFlags;
use crate::flags::Flagged;
use crate::output::Output;
use crate::{logging, stderr};
use toolward_operator::bundles::BundleSource;
use toolward_operator::compile_cache::CompileCache;
use toolward_operator::host_setup::HostSetup;
use toolward_operator::reload::{Watch, prepare};
use toolward_operator::{Operator, Report};

mod access;
mod listening;
mod signals;
mod surface;

use access::Access;
use signals::{Asked, Signals};
use surface::{Served, Surfaces, warn_of_names};

/// With more tools than this, they are found rather than listed.
const DEFER_ABOVE: usize = 100;
/// How long the end of the process waits for what looks for changes, which may wait
/// for somebody else's lock.
const ENDING: Duration = Duration::from_secs(1);

/// How long drivers are left alone for the sake of a client that just connects.
const HANDSHAKE: Duration = Duration::from_millis(50);

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    source: Flagged<BundleSource>,

    /// Serve many clients over HTTP at this address, an IP address and a port
    /// [default: one client, on standard input and output]
    #[arg(long, value_name = "ADDRESS")]
    http: Option<SocketAddr>,

    /// Serve one client on standard input and output, as without --http
    #[arg(long, conflicts_with = "http")]
    stdio: bool,

    #[command(flatten)]
    access: Access,

    /// Let the client ask its person for approval, and take the answer. Only for
    /// a client that shows the question and answers no question itself
    #[arg(long, conflicts_with = "no_token")]
    trust_client: bool,

    /// With more tools than this, list three that find, load and call the others
    #[arg(long, value_name = "COUNT", default_value_t = DEFER_ABOVE)]
    defer_above: usize,

    #[command(flatten)]
    setup: Flagged<HostSetup>,

    #[command(flatten)]
    cache: Flagged<CompileCache>,

    #[command(flatten)]
    confine: ConfineFlags,
}

pub(crate) fn run(
    arguments: Arguments,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    logging::start(environment, output);
    let Arguments {
        source: Flagged(source),
        setup: Flagged(setup),
        cache: Flagged(cache),
        ..
    } = arguments;
    let operator = Arc::new(Operator {
        source,
        setup,
        cache,
        environment: environment.operator.clone(),
    });
    let handed_over = environment.listen_fds.as_ref();
    let handed_over = handed_over.map(|count| listening::handed_over(count, arguments.http));
    let handed_over = handed_over.transpose()?;
    let watch = Watch::load(Arc::clone(&operator), output)?;
    let surfaces = Surfaces {
        broker: operator.broker(&compiling::command()?, output)?,
        access: Arc::new(arguments.access),
        shared_state: SharedState::new(),
        defer_above: arguments.defer_above,
        operator,
    };
    let (operator, broker, access) = (&surfaces.operator, &surfaces.broker, &surfaces.access);
    // Its program starts when the processors have less to do.
    let start = || broker.start();
    let first = || surfaces.make(watch.contents(), watch.granted(), None);
    let (started, surface) = beside(start, first);
    started?;
    let surface = surface?;
    let place = match arguments.http {
        Some(address) => Place::Http(match handed_over {
            Some(listener) => listener,
            None => listening::listen(address)?,
        }),
        None => Place::Stdio(Streams::take().map_err(|error| failure::stdio(error.into()))?),
    };
    let door = match &place {
        Place::Http(_) => Some(access.door(arguments.trust_client)?),
        Place::Stdio(_) => None,
    };
    let host = surface.host().clone();
    output.note(welcome(&surface));
    warn_of_names(&surface, output);
    let denials = denials(&operator.setup, environment, output);
    let kept_denials = denials
        .as_ref()
        .map(|denials| denials.directory().to_owned());
    let service = Service::keeping(surface, denials);
    // A confined process may not open what it reads.
    let memory = memory::Watch::new().ok();
    let setup = &operator.setup;
    let confinement = setup.kept(&host, watch.granted(), environment)?;
    let mut confinement = watch.kept(confinement)?;
    if let Some(directory) = kept_denials {
        confinement = confinement.read_write(directory);
    }
    if let Place::Http(listener) = &place {
        confinement = confinement.accept_on(listener);
    }
    let trust = &operator.source.trust;
    arguments
        .confine
        .apply(confinement, broker, trust, environment, output)?;
    if let (Some(door), Place::Http(listener)) = (&door, &place) {
        door.announce(listener, output)?;
    }
    stderr::detach()?;

    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers())
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Kind::Failed, "runtime-unavailable", error))?;
    let asked = Asked::default();
    let shutdown = asked.control.stop.clone();
    let (tell, mut without_engine) = oneshot::channel();
    // Goes on when other bundles come: their host has the same engine.
    let engine = runtime.spawn(make_engine(host.clone(), tell, shutdown.clone()));
    let buckets = host.requirements().buckets;
    let preparing = runtime.spawn(async move {
        if let Ok(true) = engine.await {
            prepare(host).await;
        }
    });
    if let Some(memory) = memory {
        runtime.spawn(give_back(memory, shutdown.clone()));
    }
    let drain = match &place {
        Place::Http(_) => access.drain(),
        Place::Stdio(_) => Duration::ZERO,
    };
    let target = Served {
        buckets,
        service: service.clone(),
        surfaces: surfaces.clone(),
    };
    let shared_state = surfaces.shared_state.clone();
    let json = output.json();
    let reports =
        Box::new(move || -> Box<dyn Report> { Box::new(Output::new(json, Colours::default())) });
    let control = asked.control.clone();
    let handle = runtime.handle();
    let following = watch.follow(target, shared_state, control, reports, handle, preparing)?;
    let served = runtime.block_on(async {
        tokio::spawn(Signals::take()?.obey(asked.clone(), drain));
        let served = async {
            match (place, door) {
                (Place::Http(listener), Some(door)) => door.serve(&service, listener, &asked).await,
                (Place::Stdio(streams), _) => {
                    let principal = local(arguments.trust_client);
                    let handler = service.connection(Some(principal));
                    let served = stdio::serve(handler, streams, shutdown.clone());
                    served.await.map_err(failure::stdio)
                }
                (Place::Http(_), None) => Ok(()),
            }
        };
        tokio::select! {
            served = served => served,
            () = asked.at_once.cancelled() => {
                tracing::warn!("told to end at once: calls that ran were cut off");
                Ok(())
            }
        }
    });
    shutdown.cancel();
    let looked = match asked.at_once.is_cancelled() {
        true => Ok(()),
        false => following.ended(ENDING),
    };
    // Guests that still run are gone with their runtime.
    runtime.shutdown_background();
    if let Ok(failure) = without_engine.try_recv() {
        return Err(failure);
    }
    served.and(looked).map(|()| Exit::Fine)
}

/// One thread more than there are cores: guests run on as many as there are cores, and
/// whatever they compute, one is left that answers clients.
fn workers() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    cores.saturating_add(1)
}

/// Gives memory that was freed back to the kernel, after a spike.
async fn give_back(mut memory: memory::Watch, shutdown: CancellationToken) {
    let pause = || tokio::time::sleep(memory::Watch::PAUSE);
    while shutdown.run_until_cancelled(pause()).await.is_some() {
        // It may take milliseconds.
        tokio::task::block_in_place(|| memory.look());
    }
}

/// Does one thing on a thread of its own, and another here meanwhile.
fn beside<A: Send, B>(there: impl FnOnce() -> A + Send, here: impl FnOnce() -> B) -> (A, B) {
    std::thread::scope(|scope| {
        let there = scope.spawn(there);
        let here = here();
        // The scope alone would end before its thread does, and who confines itself
        // must be alone.
        let there = there.join();
        (
            there.unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            here,
        )
    })
}

/// Where clients come from.
enum Place {
    Stdio(Streams),
    Http(TcpListener),
}

/// Who sits behind standard input: whoever started this process.
fn local(may_approve: bool) -> Principal {
    Principal {
        name: LOCAL.into(),
        tools: Tools::All,
        may_approve,
    }
}

/// Makes the engine; the server ends where there is none. The client waits for its
/// handshake first, and a call before that makes the engine itself. Whether it is
/// there comes back.
async fn make_engine(host: Host, tell: oneshot::Sender<Failure>, stop: CancellationToken) -> bool {
    tokio::time::sleep(HANDSHAKE).await;
    let made = spawn_blocking(move || host.make_engine()).await;
    let failure = match made {
        Ok(Ok(())) => return true,
        Ok(Err(error)) => error.into(),
        Err(error) => Failure::new(Kind::Failed, "engine-unavailable", error),
    };
    // Nobody waits for it where the server ends just now.
    let _ = tell.send(failure);
    stop.cancel();
    false
}

/// Where what people deny is kept beyond this process. Without such a place a no
/// holds as long as the process.
fn denials(setup: &HostSetup, environment: &Environment, output: &Output) -> Option<Denials> {
    // In a folder of its own: a process that keeps it writes beside what is there.
    let folder = setup.state(environment)?.join("denials");
    let opened = Denials::open(&folder);
    let refused = |error: &DenialsError| {
        let code = error.code();
        output.warning(format!(
            "what people deny is forgotten when this server ends: {error} ({code})"
        ));
    };
    opened.inspect_err(refused).ok()
}

/// How many tools: `1 tool`.
fn tools(surface: &Surface) -> String {
    match surface.tool_count() {
        1 => "1 tool".to_owned(),
        count => format!("{count} tools"),
    }
}

fn welcome(surface: &Surface) -> String {
    let mut text = format!("serving {}", tools(surface));
    let blocked: Vec<&str> = surface.blocked().map(|(_, id)| id).collect();
    if !blocked.is_empty() {
        text.push_str("; blocked by the policy: ");
        text.push_str(&blocked.join(", "));
        text.push_str(" (see `toolward policy explain TOOL`)");
    }
    text
}
