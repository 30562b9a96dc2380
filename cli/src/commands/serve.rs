//! `serve`: the tools of bundles for agents, over MCP.

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant, SystemTime};

use clap::Args;
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio_util::sync::CancellationToken;
use toolward_bundle::content::Content;
use toolward_host::{Continuity, Host, HostBuilder, LOCAL, memory};
use toolward_mcp::principal::{Principal, Tools};
use toolward_mcp::stdio::{StdioError, Streams};
use toolward_mcp::{Service, Surface, SurfaceError, stdio};
use toolward_signing::verify::{Bundle, Verified};

use super::call::{CacheFlags, Source, Whence};
use crate::config::Granted;
use crate::confinement::ConfineFlags;
use crate::environment::Environment;
use crate::failure::{Exit, Failure};
use crate::hosting::{Means, opens_buckets};
use crate::output::Output;
use crate::standing::Standing;
use crate::trust::read;
use crate::{logging, stderr};

mod access;
mod listening;
mod signals;
mod watch;

use access::Access;
use signals::{Asked, Signals};
use watch::{Believed, Configuration, Looking, Seen, Serving, Watch};

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
    source: Source,

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
    means: Means,

    #[command(flatten)]
    cache: CacheFlags,

    #[command(flatten)]
    confine: ConfineFlags,
}

pub(crate) fn run(
    arguments: Arguments,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    logging::start(environment, output);
    // What looks for changes may outlive this function, in a process that ends.
    let arguments: &'static Arguments = Box::leak(Box::new(arguments));
    let environment: &'static Environment = Box::leak(Box::new(environment.clone()));
    let source = &arguments.source;
    let handed_over = environment.listen_fds.as_ref();
    let handed_over = handed_over.map(|count| listening::handed_over(count, arguments.http));
    let handed_over = handed_over.transpose()?;
    let (began, since) = (Instant::now(), SystemTime::now());
    let granted = Granted::read(&source.trust, &arguments.means.policies, environment)?;
    let granted = Arc::new(granted);
    let continuity = Continuity::new();
    let Loaded {
        looking,
        seen,
        named,
        contents,
        ends,
    } = load(source, since, environment, output)?;
    let broker = arguments.cache.unstarted(environment, output)?;
    let means = &arguments.means;
    let shown = {
        let (continuity, broker) = (continuity.clone(), broker.clone());
        move |builder: HostBuilder, contents: &[Content], granted: &Granted| {
            // The handshake needs none.
            let builder = builder.continuity(&continuity).defer_engine();
            let host = arguments.cache.host(builder, &broker)?;
            let most = arguments.defer_above;
            let surface = Surface::new(host, contents, &granted.policy, most);
            surface.map_err(Failure::from)
        }
    };
    // Its program starts when the processors have less to do.
    let start = || broker.start();
    let first = || {
        let builder = builder(arguments, environment, &granted, &contents, None)?;
        shown(builder, &contents, &granted)
    };
    let (started, surface) = beside(start, first);
    started?;
    let surface = surface?;
    let place = match arguments.http {
        Some(address) => Place::Http(match handed_over {
            Some(listener) => listener,
            None => listening::listen(address)?,
        }),
        None => Place::Stdio(Streams::take().map_err(StdioError::from)?),
    };
    let door = match &place {
        Place::Http(_) => Some(arguments.access.door(arguments.trust_client)?),
        Place::Stdio(_) => None,
    };
    let host = surface.host().clone();
    // What is not kept can't be opened later.
    let buckets = Some(host.needs().buckets);
    output.note(welcome(&surface));
    warn_of_names(&surface, output);
    let denials = means.denials(environment, output);
    let kept_denials = denials
        .as_ref()
        .map(|denials| denials.directory().to_owned());
    let service = Service::keeping(surface, denials);
    let configuration = Configuration::new(source, means, environment, granted.clone())?;
    let looking = (looking, seen);
    let watch = Watch::new(
        source,
        environment,
        configuration,
        looking,
        named,
        contents,
        ends,
    );

    // A confined process may not open what it reads.
    let memory = memory::Watch::new().ok();
    let mut confinement = means.kept(&host, &granted, environment)?;
    confinement = watch.looking().kept(confinement)?;
    // To be read again.
    for file in &granted.files {
        confinement = confinement.read(file);
    }
    if let Some(directory) = kept_denials {
        confinement = confinement.read_write(directory);
    }
    if let Place::Http(listener) = &place {
        confinement = confinement.accept_on(listener);
    }
    arguments
        .confine
        .apply(confinement, &broker, &source.trust, environment, output)?;
    if let (Some(door), Place::Http(listener)) = (&door, &place) {
        door.announce(listener, output)?;
    }
    stderr::detach()?;

    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers())
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Exit::Failed, "runtime-unavailable", error))?;
    let asked = Asked::default();
    let shutdown = asked.shutdown.clone();
    let serving = Arc::new(Serving {
        service: service.clone(),
        continuity,
        remake: Box::new(move |contents, granted| {
            let builder = builder(arguments, environment, granted, contents, buckets)?;
            shown(builder, contents, granted)
        }),
        runtime: runtime.handle().clone(),
        json: output.json(),
        stop: shutdown.clone(),
        reload: asked.reload.clone(),
        belief: Believed::since(began),
    });
    let (tell, mut without_engine) = oneshot::channel();
    // Goes on when other bundles come: their host has the same engine.
    let engine = runtime.spawn(make_engine(host.clone(), tell, shutdown.clone()));
    let preparing = runtime.spawn(async move {
        if let Ok(true) = engine.await {
            prepare(host).await;
        }
    });
    if let Some(memory) = memory {
        runtime.spawn(give_back(memory, shutdown.clone()));
    }
    let looked = look(watch, serving.clone(), preparing)?;
    runtime.spawn(async move { serving.doubt().await });
    let served = runtime.block_on(async {
        let drain = match &place {
            Place::Http(_) => arguments.access.drain(),
            Place::Stdio(_) => Duration::ZERO,
        };
        tokio::spawn(Signals::take()?.obey(asked.clone(), drain));
        let served = async {
            match (place, door) {
                (Place::Http(listener), Some(door)) => door.serve(&service, listener, &asked).await,
                (Place::Stdio(streams), _) => {
                    let principal = local(arguments.trust_client);
                    let handler = service.connection(Some(principal));
                    let served = stdio::serve(handler, streams, shutdown.clone());
                    served.await.map_err(Failure::from)
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
        false => looked.recv_timeout(ENDING).unwrap_or(Ok(())),
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

/// Looks for changes on a thread of its own. How that ended comes back, if it does.
fn look(
    watch: Watch<'static>,
    serving: Arc<Serving>,
    preparing: JoinHandle<()>,
) -> Result<mpsc::Receiver<Result<(), Failure>>, Failure> {
    let (sender, looked) = mpsc::channel();
    let work = move || {
        let ended = watch.run(&serving, preparing);
        drop(serving);
        // Nobody may wait for it any more.
        let _ = sender.send(ended);
    };
    std::thread::Builder::new()
        .name("watch".to_owned())
        .spawn(work)
        .map_err(|error| Failure::new(Exit::Failed, "runtime-unavailable", error))?;
    Ok(looked)
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

/// A host for these bundles in the making. `buckets` says whether there are any to
/// open, if that is known.
fn builder(
    arguments: &Arguments,
    environment: &Environment,
    granted: &Granted,
    contents: &[Content],
    buckets: Option<bool>,
) -> Result<HostBuilder, Failure> {
    let (source, means) = (&arguments.source, &arguments.means);
    let buckets = buckets.unwrap_or_else(|| opens_buckets(contents, &granted.policy));
    let held = contents.to_vec();
    let builder = means.unasked(held, granted, &source.trust, environment, buckets)?;
    let builder = source.store.protect(builder, environment);
    Ok(arguments.access.protect(builder))
}

/// What is there at the start.
struct Loaded<'a> {
    looking: Looking<'a>,
    seen: Seen,
    /// The bundles that were named, verified.
    named: Vec<Verified<Bundle>>,
    /// The contents of all that are served.
    contents: Vec<Content>,
    /// When the first of them ends to hold, if that is known; if it did meanwhile,
    /// too.
    ends: Option<SystemTime>,
}

fn load<'a>(
    source: &'a Source,
    since: SystemTime,
    environment: &'a Environment,
    output: &Output,
) -> Result<Loaded<'a>, Failure> {
    // Before anything is read: what changes meanwhile is seen.
    let looking = Looking::new(source, environment)?;
    let seen = looking.look(&Seen::default(), output);
    let named = source.named(environment, output)?;
    let (contents, standing) = match source.whence() {
        Whence::Bundles => {
            let contents = named.iter().cloned().map(read).collect::<Result<_, _>>()?;
            (contents, Some(source.trust.standing(environment, output)?))
        }
        Whence::Installed => {
            let store = looking.store();
            let (contents, standing) = source.installed(store, environment, output)?;
            (contents, Some(standing))
        }
        Whence::Dev(_) => (source.contents(environment, output)?, None),
    };
    let ends = standing.and_then(|standing| {
        let standing = Standing {
            now: since,
            ..standing
        };
        standing.ends(&contents)
    });
    Ok(Loaded {
        looking,
        seen,
        named,
        contents,
        ends,
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
        Err(error) => Failure::new(Exit::Failed, "engine-unavailable", error),
    };
    // Nobody waits for it where the server ends just now.
    let _ = tell.send(failure);
    stop.cancel();
    false
}

/// Compiles what is not compiled yet, while clients connect already.
async fn prepare(host: Host) {
    for (driver, error) in host.prepare().await {
        tracing::warn!(%driver, %error, "a driver can't be compiled");
    }
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

/// Says which tools are not shown by the names that they would have.
fn warn_of_names(surface: &Surface, output: &Output) {
    for problem in surface.name_problems() {
        let (code, hint) = (problem.code(), problem.hint());
        output.warning(format!("{problem} ({code}); {hint}"));
    }
}

impl From<StdioError> for Failure {
    fn from(error: StdioError) -> Self {
        Self::new(Exit::Failed, error.code(), &error)
            .hint("start it from an MCP client: `toolward mcp config` prints the lines for one")
    }
}

impl From<SurfaceError> for Failure {
    fn from(error: SurfaceError) -> Self {
        Self::usage(error.code(), &error).hint(error.hint())
    }
}
