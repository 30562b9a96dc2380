//! Compiling in separate processes. The host's process starts a *broker* before it handles guests
//! and before it confines itself. Only the broker writes the cache and has the key that signs
//! artifacts (compiled components). For each component, the broker starts a *worker*, a process
//! with limits and without files or network. The host's process sends the bytes of components, and
//! accepts only artifacts that verify.
//!
//! Broker and worker are programs of the embedder, usually the embedder's own program with another
//! argument. The broker calls [`run_broker`] first in `main`, and the worker [`run_worker`].

mod frame;
mod job;
mod link;
mod permits;
mod serve;

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, OnceLock};

use toolward_signing::Digest;
use toolward_signing::key::PublicKey;
use toolward_support::helper::{self, frames::send, lock};
use wasmtime::Engine;
use wasmtime::component::Component;

use self::frame::{Made, PROTOCOL, Request, Start};
use self::link::Link;
use self::permits::Permits;
use super::artifact::Claim;
use super::cache::{Cache, Shelf};
use super::limits::{Ahead, CompileCost, CompileError, CompileLimits, Result};
pub use super::worker::run_worker;
use super::{Callers, Watch};
use crate::engine::finds_written_pages;
use crate::engine::{EngineHash, compiling_engine};
use crate::error::HostError;
use crate::limiter::MemoryLayout;
use crate::turns::cores;
pub use serve::run_broker;

/// The most requests for one component. A second request is needed if another process made room in
/// the cache, and removed the artifact before this process opened it.
const ATTEMPTS: usize = 2;

/// The program of broker and worker, with the arguments for each.
#[derive(Debug, Clone)]
pub struct BrokerCommand {
    /// The full path of the program.
    pub program: PathBuf,
    /// The arguments with which the program calls [`run_broker`].
    pub broker: Vec<OsString>,
    /// The arguments with which the program calls [`run_worker`].
    pub worker: Vec<OsString>,
}

/// A connection to a broker. Cheap to clone; dropping the last clone ends the broker and all its
/// workers.
///
/// The broker and its workers are usually the same program, started with other arguments:
///
/// ```no_run
/// use toolward_sandbox::compile::broker::{run_broker, run_worker};
/// use toolward_sandbox::compile::{Broker, BrokerCommand, CompileLimits};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// match std::env::args().nth(1).as_deref() {
///     Some("broker") => return Ok(run_broker()?),
///     Some("worker") => return Ok(run_worker()?),
///     _ => {}
/// }
/// let broker = Broker::builder(BrokerCommand {
///     program: std::env::current_exe()?,
///     broker: vec!["broker".into()],
///     worker: vec!["worker".into()],
/// })
/// .cache("/var/cache/example/drivers")
/// .limits(CompileLimits { cpu_seconds: 60, ..CompileLimits::default() })
/// .start()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Broker {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// Empty until the broker is started.
    link: OnceLock<Link>,
    starting: Mutex<()>,
    settings: BrokerBuilder,
    shelf: Option<Shelf>,
    /// The engine of the facts, and the key that verifies them; `None` if either is missing.
    facts: OnceLock<Option<(EngineHash, PublicKey)>>,
    permits: Permits,
}

/// Collects the settings with which a [`Broker`] is started.
#[derive(Debug)]
#[must_use]
pub struct BrokerBuilder {
    command: BrokerCommand,
    cache: Option<PathBuf>,
    /// The most bytes of compiled drivers in the cache, see [`Cache::limit`]. Default:
    /// [`Cache::DEFAULT_LIMIT_BYTES`].
    pub cache_limit: u64,
    /// The most that compiling one component may cost.
    pub limits: CompileLimits,
    /// The most components that are compiled at once. Default: one less than the machine has cores,
    /// and at least one.
    pub workers: NonZeroUsize,
    /// The size of the largest component. Default: the default of
    /// [`toolward_policy::Limits::component_bytes`].
    pub component_bytes: usize,
}

impl BrokerBuilder {
    /// Keeps compiled drivers in this directory, which only the broker writes to. Default: no
    /// cache; each host compiles the drivers again.
    pub fn cache(mut self, directory: impl Into<PathBuf>) -> Self {
        self.cache = Some(directory.into());
        self
    }

    /// Sets the most that compiling one component may cost.
    pub fn limits(mut self, limits: CompileLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Starts the broker: [`BrokerBuilder::open`] and [`Broker::start`] in one.
    ///
    /// # Errors
    ///
    /// The errors of both.
    pub fn start(self) -> Result<Broker, HostError> {
        let broker = self.open()?;
        broker.start()?;
        Ok(broker)
    }

    /// Opens the cache, but does not start the broker. A host can be built with this broker while
    /// [`Broker::start`] runs on another thread.
    ///
    /// # Errors
    ///
    /// [`HostError::Cache`] when the cache directory can't be used safely, [`HostError::Broker`]
    /// when the cache's path can't be made absolute.
    pub fn open(self) -> Result<Broker, HostError> {
        // Opens `/proc/self/pagemap` now: a process that confines itself once its helpers run can't
        // open it later, and an engine that is created later needs it.
        finds_written_pages();
        // The paths are made absolute, since the broker has another working directory.
        let cache = self.cache.as_ref().map(std::path::absolute);
        let cache = cache
            .transpose()
            .map_err(|error| cannot_start(&self.command, error))?;
        let shelf = cache.map(Shelf::open).transpose()?;
        Ok(Broker {
            inner: Arc::new(Inner {
                link: OnceLock::new(),
                starting: Mutex::default(),
                permits: Permits::new(self.workers.get()),
                settings: self,
                shelf,
                facts: OnceLock::new(),
            }),
        })
    }
}

fn cannot_start(command: &BrokerCommand, source: std::io::Error) -> HostError {
    HostError::Broker {
        program: command.program.clone(),
        source,
    }
}

impl Broker {
    /// A broker to be started with `command`.
    pub fn builder(command: BrokerCommand) -> BrokerBuilder {
        BrokerBuilder {
            command,
            cache: None,
            cache_limit: Cache::DEFAULT_LIMIT_BYTES,
            limits: CompileLimits::default(),
            workers: NonZeroUsize::new(cores().saturating_sub(1)).unwrap_or(NonZeroUsize::MIN),
            component_bytes: toolward_policy::Limits::default().component_bytes,
        }
    }

    /// Starts the broker if it is not running. Call it before any guest runs and before the process
    /// confines itself. Does not wait until the broker is ready: if its program starts but can't
    /// serve, the first component fails with the reason. Without a started broker, no component can
    /// be loaded.
    ///
    /// # Errors
    ///
    /// [`HostError::Broker`] when the program can't be started.
    pub fn start(&self) -> Result<(), HostError> {
        let inner = &*self.inner;
        let _starting = lock(&inner.starting);
        if inner.link.get().is_none() {
            let link = inner.start()?;
            let _ = inner.link.set(link);
        }
        Ok(())
    }

    /// The most that compiling one component may cost.
    pub fn limits(&self) -> CompileLimits {
        self.inner.settings.limits
    }

    /// The directory of artifacts in the cache. A confined process must still be able to read it.
    pub fn artifacts(&self) -> Option<PathBuf> {
        self.inner.shelf.as_ref().map(Shelf::artifacts)
    }

    /// The directory of the cache.
    pub fn directory(&self) -> Option<&Path> {
        self.inner.shelf.as_ref().map(Shelf::directory)
    }

    /// The facts about a component that were recorded when it was compiled into the cache, see
    /// [`Surface::from_facts`](toolward_bundle::component::Surface::from_facts). Their signature is
    /// verified; the compiled code is not read. The broker need not be started: the first call reads
    /// the cache's key. `None` if the cache has no facts, or had no key then.
    pub fn facts(&self, component: &Digest) -> Option<Arc<[u8]>> {
        let inner = &*self.inner;
        let shelf = inner.shelf.as_ref()?;
        let known = inner.facts.get_or_init(|| {
            let engine = compiling_engine(MemoryLayout::Pooled).ok()?;
            Some((EngineHash::of(&engine), shelf.public_key()?))
        });
        let (engine, public) = known.as_ref()?;
        shelf
            .facts(Claim { component, engine }, public)
            .map(Arc::from)
    }

    /// The broker's last report that drivers are not cached, for example because the disk is full.
    /// `None` if the broker has not reported this. The report stays even if later drivers are
    /// cached. A driver that is not cached is compiled again by the next host.
    pub fn not_kept(&self) -> Option<String> {
        self.inner.link.get().and_then(Link::not_kept)
    }

    /// Compiles a component into the cache before its first use, and waits for the result.
    ///
    /// # Errors
    ///
    /// [`CompileError`]; a verdict on the component, or a failure that may pass.
    pub fn compile(&self, wasm: &[u8]) -> Result<()> {
        self.compile_for(wasm, &mut self.inner.settings.limits.most())
    }

    /// Compiles a component like [`Self::compile`], within the rest of a budget. Subtracts the cost
    /// from the budget, even if compiling fails. A component that is in the cache costs nothing.
    ///
    /// # Errors
    ///
    /// The errors of [`Self::compile`]; a budget that is too small is not an error.
    pub fn compile_within(&self, wasm: &[u8], left: &mut CompileCost) -> Result<Ahead> {
        let budget = *left;
        match self.compile_for(wasm, left) {
            Ok(()) => Ok(Ahead::Compiled),
            Err(error) if self.inner.settings.limits.are_above(budget, error.reason()) => {
                Ok(Ahead::OverBudget)
            }
            Err(error) => Err(error),
        }
    }

    fn compile_for(&self, wasm: &[u8], left: &mut CompileCost) -> Result<()> {
        let engine = compiling_engine(MemoryLayout::Pooled)
            .map_err(|error| CompileError::unavailable(format!("{error:#}")))?;
        let engine = EngineHash::of(&engine);
        let component = Digest::of(wasm);
        let claim = Claim {
            component: &component,
            engine: &engine,
        };
        let mut watch = |_| ControlFlow::Continue(());
        let _permit = self.inner.permits.take(&Callers::default(), &mut watch)?;
        self.inner
            .link()?
            .compile(claim, wasm, left, &mut watch)
            .map(drop)
    }

    /// The component compiled for `engine`, see [`Cache::get`].
    pub(super) fn cached(
        &self,
        engine: &Engine,
        claim: Claim<'_>,
        most_bytes: u64,
    ) -> Option<Result<Component>> {
        let public = self.inner.link.get()?.public()?;
        let shelf = self.inner.shelf.as_ref()?;
        shelf.get(engine, claim, &public, most_bytes)
    }

    /// Loads a component from the cache, or lets the broker compile it.
    pub(super) fn load(
        &self,
        engine: &Engine,
        claim: Claim<'_>,
        wasm: &[u8],
        callers: &Callers,
        watch: &mut Watch<'_>,
    ) -> Result<Component> {
        let inner = &*self.inner;
        let link = inner.link()?;
        let cached = || self.cached(engine, claim, u64::MAX);
        if let Some(loaded) = super::verdict(cached()) {
            return loaded;
        }
        let _permit = inner.permits.take(callers, watch)?;
        for _ in 0..ATTEMPTS {
            match link.compile(claim, wasm, &mut inner.settings.limits.most(), watch)? {
                (Made::Cached, _) => {
                    if let Some(loaded) = cached() {
                        return loaded;
                    }
                }
                (Made::Artifact { signature }, bytes) => {
                    let signed = link.public().zip(signature.try_into().ok());
                    let holds = signed.is_some_and(|(public, signature)| {
                        claim.holds(&blake3::hash(&bytes), &signature, &public)
                    });
                    return match holds {
                        true => super::from_own_bytes(engine, &bytes),
                        false => Err(CompileError::unavailable(
                            "what the broker compiled has a wrong signature",
                        )),
                    };
                }
            }
        }
        Err(CompileError::unavailable(
            "what the broker compiled can't be read from the cache",
        ))
    }
}

impl Inner {
    fn start(&self) -> Result<Link, HostError> {
        let command = &self.settings.command;
        let fail = |error: std::io::Error| cannot_start(command, error);
        let started = helper::start(&command.program, &command.broker, Stdio::null());
        let (child, mut socket) = started.map_err(fail)?;
        let shelf = self.shelf.as_ref();
        let start = Start {
            protocol: PROTOCOL,
            program: command.program.clone().into_os_string(),
            arguments: command.worker.clone(),
            cache: shelf.map(|shelf| shelf.directory().into()),
            cache_limit: self.settings.cache_limit,
            limits: self.settings.limits,
            workers: self.settings.workers.get(),
            component_bytes: self.settings.component_bytes,
        };
        let told = send(&mut socket, &Request::Start(start), &[]);
        let known = shelf.and_then(Shelf::public_key);
        let most_open = self.settings.workers.get().saturating_add(serve::QUEUE);
        let link = Link::new(child, socket, known, self.settings.limits, most_open);
        match told {
            // A broker that has already died is reported with the first component.
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(fail(error)),
            _ => Ok(link),
        }
    }

    fn link(&self) -> Result<&Link> {
        let link = self.link.get();
        link.ok_or_else(|| CompileError::unavailable("the compile broker was not started"))
    }
}
