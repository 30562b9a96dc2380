//! From component bytes to something that can be instantiated: compile, or
//! take from the cache what an earlier run of this host compiled.

mod artefact;
mod cache;

use std::fmt;

use toolward_signing::Digest;
use wasmtime::Engine;
use wasmtime::component::Component;

pub use cache::Cache;

use crate::sandbox::engine::EngineProfile;

/// Compiles components. Compiling is work on hostile input: wasmtime calls
/// its cost no vulnerability, so an implementation bounds it.
pub trait Compiler: fmt::Debug + Send + Sync {
    /// Compiles a component to an artefact for engines of `profile`.
    ///
    /// # Errors
    ///
    /// When the bytes are no component that this engine takes, or compiling
    /// them would cost too much.
    fn compile(&self, wasm: &[u8], profile: &EngineProfile) -> Result<Vec<u8>, CompileError>;
}

/// Compiles in this process, bounded in nothing but the component's size
/// ([`crate::Limits::component_bytes`]).
#[derive(Debug, Clone, Copy, Default)]
pub struct InProcess;

impl Compiler for InProcess {
    fn compile(&self, wasm: &[u8], profile: &EngineProfile) -> Result<Vec<u8>, CompileError> {
        let engine = profile
            .engine()
            .map_err(|error| CompileError(error.to_string()))?;
        engine
            .precompile_component(wasm)
            .map_err(|error| CompileError(format!("{error:#}")))
    }
}

/// Why a component was not compiled.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the component does not compile: {0}")]
pub struct CompileError(pub String);

/// Loads a component into `engine`: from `cache` where it holds a genuine
/// artefact, else compiled, and then put there.
pub(crate) fn load(
    engine: &Engine,
    profile: &EngineProfile,
    compiler: &dyn Compiler,
    cache: Option<&Cache>,
    digest: &Digest,
    wasm: &[u8],
) -> Result<Component, CompileError> {
    if let Some(cache) = cache
        && let Some(component) = cache.get(engine, digest)
    {
        return Ok(component);
    }
    let bytes = compiler.compile(wasm, profile)?;
    if let Some(cache) = cache {
        // A cache that can't be written makes the next start slow, no more.
        if let Err(error) = cache.put(engine, digest, &bytes) {
            tracing::warn!(%error, "the compiled driver was not cached");
        }
    }
    artefact::from_own_bytes(engine, &bytes)
        .map_err(|error| CompileError(format!("the compiler's own output was refused: {error:#}")))
}
