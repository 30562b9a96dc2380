//! Turns the bytes of a component into code that can be instantiated. Either loads an earlier
//! result from the cache, or compiles the bytes, in a separate process if the embedder uses a
//! broker.

mod artifact;
pub mod broker;
mod cache;
mod limits;
mod worker;

use std::fmt;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use toolward_signing::Digest;
use toolward_support::helper::lock;
use wasmtime::Engine;
pub use wasmtime::component::Component;

pub use broker::{Broker, BrokerBuilder, BrokerCommand};
pub use cache::Cache;
pub use limits::{Ahead, CompileCost, CompileError, CompileLimits, CompileReason};

use self::artifact::Claim;
use crate::engine::{EngineProfile, Ready, compiling_engine};

/// Compiles components. The input is hostile, and wasmtime does not treat a costly compilation as a
/// vulnerability, so an implementation must bound the cost. [`Broker`] does this; implement this
/// trait to bound it in another way.
///
/// ```
/// use toolward_sandbox::compile::{CompileError, CompileReason, Compiler, InProcess};
/// use toolward_sandbox::engine::EngineProfile;
///
/// /// Refuses large components.
/// #[derive(Debug)]
/// struct Small;
///
/// impl Compiler for Small {
///     fn compile(&self, wasm: &[u8], profile: &EngineProfile) -> Result<Vec<u8>, CompileError> {
///         if wasm.len() > 8 << 20 {
///             let message = "a component of more than 8 MiB";
///             return Err(CompileError::new(CompileReason::TooLarge, message));
///         }
///         InProcess.compile(wasm, profile)
///     }
/// }
/// ```
pub trait Compiler: fmt::Debug + Send + Sync {
    /// Compiles a component to an artifact (native code) for engines of `profile`.
    ///
    /// # Errors
    ///
    /// When the bytes are not a component that this engine accepts, or compiling them would cost
    /// too much.
    fn compile(&self, wasm: &[u8], profile: &EngineProfile) -> Result<Vec<u8>, CompileError>;
}

/// Compiles in this process. Only the component's size is bounded
/// ([`toolward_policy::Limits::component_bytes`]).
#[derive(Debug, Clone, Copy, Default)]
pub struct InProcess;

impl Compiler for InProcess {
    fn compile(&self, wasm: &[u8], profile: &EngineProfile) -> Result<Vec<u8>, CompileError> {
        compiling_engine(profile.layout())
            .map_err(|error| CompileError::unavailable(error.to_string()))?
            .precompile_component(wasm)
            .map_err(|error| CompileError::new(CompileReason::Invalid, format!("{error:#}")))
    }
}

/// The progress of compiling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The component waits to be compiled.
    Waiting,
    /// The component has been compiling for this long.
    Compiling(Duration),
}

/// Called repeatedly with the progress of compiling. `Break` cancels compiling.
pub type Watch<'a> = dyn FnMut(Stage) -> ControlFlow<()> + 'a;

/// The principals whose calls wait for a component.
#[derive(Debug, Default)]
pub struct Callers(Mutex<Vec<Arc<str>>>);

impl Callers {
    /// Adds a principal, unless it is in the list already.
    pub fn add(&self, principal: &str) {
        let mut callers = lock(&self.0);
        if !callers.iter().any(|caller| **caller == *principal) {
            callers.push(principal.into());
        }
    }

    fn now(&self) -> Vec<Arc<str>> {
        lock(&self.0).clone()
    }
}

/// The compiler of a host, and its cache.
#[derive(Debug, Clone)]
pub enum CompileBackend {
    /// A compiler of the embedder, usually in this process. This process also writes the cache.
    Own {
        /// The compiler.
        compiler: Arc<dyn Compiler>,
        /// The cache, if results are kept.
        cache: Option<Arc<Cache>>,
    },
    /// The broker. Only the broker writes the cache.
    Broker(Broker),
}

impl CompileBackend {
    /// The wall-clock limit on compiling one component, if there is a limit.
    pub fn longest(&self) -> Option<Duration> {
        match self {
            Self::Own { .. } => None,
            Self::Broker(broker) => Some(broker.limits().wall),
        }
    }

    /// Loads a component if the cache has a genuine (correctly signed) artifact of at most
    /// `most_bytes`. Returns `None` otherwise, and also if loading fails. After `None`, call
    /// [`Self::load`], which loads or compiles the component, or returns the error.
    pub fn load_cached(
        &self,
        ready: &Ready,
        digest: &Digest,
        most_bytes: u64,
    ) -> Option<Component> {
        let (engine, claim) = (&ready.engine, claim(ready, digest));
        let cached = match self {
            Self::Own { cache, .. } => cache.as_ref()?.get(engine, claim, most_bytes),
            Self::Broker(broker) => broker.cached(engine, claim, most_bytes),
        };
        cached?.ok()
    }

    /// Loads a component into an engine: from the cache if it has a genuine artifact, and otherwise
    /// by compiling and caching it.
    pub fn load(
        &self,
        ready: &Ready,
        digest: &Digest,
        wasm: &[u8],
        callers: &Callers,
        watch: &mut Watch<'_>,
    ) -> Result<Component, CompileError> {
        let claim = claim(ready, digest);
        match self {
            Self::Own { compiler, cache } => own(ready, &**compiler, cache.as_deref(), claim, wasm),
            Self::Broker(broker) => broker.load(&ready.engine, claim, wasm, callers, watch),
        }
    }
}

fn claim<'a>(ready: &'a Ready, component: &'a Digest) -> Claim<'a> {
    let engine = &ready.engine_hash;
    Claim { component, engine }
}

fn own(
    Ready {
        engine, profile, ..
    }: &Ready,
    compiler: &dyn Compiler,
    cache: Option<&Cache>,
    claim: Claim<'_>,
    wasm: &[u8],
) -> Result<Component, CompileError> {
    if let Some(cache) = cache
        && let Some(loaded) = verdict(cache.get(engine, claim, u64::MAX))
    {
        return loaded;
    }
    let bytes = compiler.compile(wasm, profile)?;
    if let Some(cache) = cache {
        // This is not fatal: without the cache, only the next start is slower.
        if let Err(error) = cache.put(claim, &bytes, &artifact::facts(wasm)) {
            tracing::warn!(%error, "the compiled driver was not cached");
        }
    }
    from_own_bytes(engine, &bytes)
}

fn from_own_bytes(engine: &Engine, bytes: &[u8]) -> Result<Component, CompileError> {
    artifact::from_own_bytes(engine, bytes).map_err(|error| refused(&error))
}

/// Returns the component from the cache, or an error that is a verdict on it: compiling it again
/// would not help. `None` if the cache has no artifact, or if this machine could not load the
/// artifact; then the component is compiled.
fn verdict(
    cached: Option<Result<Component, CompileError>>,
) -> Option<Result<Component, CompileError>> {
    match cached {
        Some(Err(error)) if !error.reason().is_verdict() => {
            tracing::warn!(%error, "a cached driver was not loaded");
            None
        }
        cached => cached,
    }
}

/// The error if the engine does not load code that was compiled for it. The error is a verdict on
/// the component (for example, about more tables than the pool allows), unless a system call
/// failed.
fn refused(error: &wasmtime::Error) -> CompileError {
    let system = error.is::<wasmtime::OutOfMemory>()
        || error
            .chain()
            .any(|cause| cause.is::<std::io::Error>() || cause.is::<rustix::io::Errno>());
    let (reason, what) = match system {
        true => (CompileReason::Unavailable, "could not be loaded"),
        false => (CompileReason::Invalid, "is refused by the engine"),
    };
    CompileError::new(reason, format!("its compiled code {what}: {error:#}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wasmtime::error::Context as _;

    #[test]
    fn only_a_failure_of_the_system_is_no_verdict() {
        let reason = |error| refused(&error).reason();
        let failed = || std::io::Error::from(std::io::ErrorKind::OutOfMemory);
        assert_eq!(
            reason(wasmtime::Error::msg("too many tables")),
            CompileReason::Invalid
        );
        assert_eq!(
            reason(wasmtime::Error::from(failed())),
            CompileReason::Unavailable
        );
        let wrapped = Err::<(), _>(failed()).context("mapping it").unwrap_err();
        assert_eq!(reason(wrapped), CompileReason::Unavailable);
        assert_eq!(
            reason(wasmtime::Error::from(rustix::io::Errno::NOMEM)),
            CompileReason::Unavailable
        );
    }
}
