//! Builds a [`Host`]: bundles, limits, compiler and cache, all given by the
//! embedder. Nothing is read from the environment.

use std::sync::Arc;

use toolward_bundle::content::Content;

use crate::compile::{Cache, Compiler, InProcess};
use crate::error::HostError;
use crate::host::Host;
use crate::limits::Limits;

impl Host {
    /// A host under construction, with nothing loaded.
    pub fn builder() -> HostBuilder {
        HostBuilder::default()
    }
}

/// Collects what a [`Host`] is made of.
#[derive(Debug, Default)]
#[must_use]
pub struct HostBuilder {
    contents: Vec<Content>,
    limits: Limits,
    compiler: Option<Arc<dyn Compiler>>,
    cache: Option<Cache>,
}

impl HostBuilder {
    /// Loads a bundle: a verified one, or an unsigned one under work.
    pub fn bundle(mut self, content: Content) -> Self {
        self.contents.push(content);
        self
    }

    /// Sets the limits on every call. Default: [`Limits::default`].
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets who compiles components. Default: [`InProcess`].
    pub fn compiler(mut self, compiler: impl Compiler + 'static) -> Self {
        self.compiler = Some(Arc::new(compiler));
        self
    }

    /// Keeps compiled drivers here. Default: they are compiled anew by every
    /// host.
    pub fn cache(mut self, cache: Cache) -> Self {
        self.cache = Some(cache);
        self
    }

    /// Makes the host. Compiles nothing yet: see [`Host::prepare`].
    ///
    /// # Errors
    ///
    /// [`HostError`] when two bundles bring the same id, or the engine can't
    /// be made.
    pub fn build(self) -> Result<Host, HostError> {
        let compiler = self.compiler.unwrap_or_else(|| Arc::new(InProcess));
        Host::build(self.contents, self.limits, compiler, self.cache)
    }
}
