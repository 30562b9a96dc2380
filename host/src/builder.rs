//! Builds a [`Host`]: bundles, limits, compiler and cache, all given by the
//! embedder. Nothing is read from the environment.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolward_bundle::content::Content;
use toolward_egress::Transport;
use toolward_keyvalue::Store;
use toolward_policy::{Machine, Policy};

use crate::approval::Approver;
use crate::compile::{Broker, Cache, CompileBackend, Compiler, InProcess};
use crate::error::HostError;
use crate::host::Host;
use crate::listener::CallListener;
use crate::secrets::SecretStore;
use crate::services::Services;
use crate::shared_state::SharedState;
use crate::workspace::{self, Mapping, Workspaces};
use toolward_policy::Limits;

impl Host {
    /// A host under construction, with nothing loaded.
    pub fn builder() -> HostBuilder {
        HostBuilder::default()
    }
}

/// Collects what a [`Host`] is made of. What is not given is not there: without
/// a policy nothing is granted, without an approver no one can be asked.
#[derive(Default)]
#[must_use]
pub struct HostBuilder {
    contents: Vec<Content>,
    limits: Limits,
    policy: Policy,
    approver: Option<Arc<dyn Approver>>,
    listeners: Vec<Arc<dyn CallListener>>,
    secrets: Option<Arc<dyn SecretStore>>,
    buckets: Option<Arc<Store>>,
    transport: Option<Transport>,
    protected: Vec<(String, PathBuf)>,
    compiler: Option<Arc<dyn Compiler>>,
    cache: Option<Cache>,
    broker: Option<Broker>,
    shared_state: SharedState,
    defer_engine: bool,
}

impl HostBuilder {
    /// Loads a bundle: a verified one, or an unsigned one under work.
    pub fn bundle(mut self, content: Content) -> Self {
        self.contents.push(content);
        self
    }

    /// Sets what is granted, and to whom. Default: [`Policy::empty`], nothing.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the limits on every call. Default: [`Limits::default`]. What a
    /// policy's `[limits]` says goes on top of it.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets who asks people. Default: no one, so that what needs approval is denied.
    pub fn approver(mut self, approver: impl Approver + 'static) -> Self {
        self.approver = Some(Arc::new(approver));
        self
    }

    /// Adds one who hears of every call that ends, those that tools make included.
    /// Default: there are none, and nothing is recorded.
    pub fn listener(mut self, listener: Arc<dyn CallListener>) -> Self {
        self.listeners.push(listener);
        self
    }

    /// Sets where secrets come from. Default: there are none.
    pub fn secrets(mut self, secrets: impl SecretStore + 'static) -> Self {
        self.secrets = Some(Arc::new(secrets));
        self
    }

    /// Sets where key-value buckets are kept. Default: nowhere; opening one
    /// fails.
    pub fn buckets(mut self, buckets: Store) -> Self {
        self.buckets = Some(Arc::new(buckets));
        self
    }

    /// Sets how requests leave: resolver and TLS roots. Default: the system's.
    pub fn transport(mut self, transport: Transport) -> Self {
        self.transport = Some(transport);
        self
    }

    /// Names a directory that no workspace may contain, be, or lie in: where
    /// configuration, trust, state, the cache or keys are. `what` says for people
    /// what is there.
    pub fn protect(mut self, what: impl Into<String>, directory: impl Into<PathBuf>) -> Self {
        self.protected.push((what.into(), directory.into()));
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

    /// Has components compiled by this broker, which also keeps the cache.
    /// [`HostBuilder::compiler`] and [`HostBuilder::cache`] count no longer.
    pub fn broker(mut self, broker: Broker) -> Self {
        self.broker = Some(broker);
        self
    }

    /// Ties the host to those that were made with the same `shared_state`, and whose
    /// place it takes. Default: it is tied to none.
    pub fn shared_state(mut self, shared_state: &SharedState) -> Self {
        self.shared_state = shared_state.clone();
        self
    }

    /// Leaves the engine to be made when a driver first needs it, or by
    /// [`Host::make_engine`]: it takes some milliseconds that a program may not
    /// have while it starts. Default: it is made by [`HostBuilder::build`], which
    /// then says if it can't be.
    pub fn defer_engine(mut self) -> Self {
        self.defer_engine = true;
        self
    }

    /// Makes the host. Compiles nothing yet: see [`Host::prepare`].
    ///
    /// # Errors
    ///
    /// [`HostError`] when two bundles bring the same id, the directory of a
    /// workspace is one that guests must not reach, or the engine can't be made
    /// (unless that was [put off](HostBuilder::defer_engine)).
    pub fn build(self) -> Result<Host, HostError> {
        let workspaces = self.workspaces()?;
        let limits = self.effective_limits();
        let backend = match self.broker {
            Some(broker) => CompileBackend::Broker(broker),
            None => CompileBackend::Own {
                compiler: self.compiler.unwrap_or_else(|| Arc::new(InProcess)),
                cache: self.cache.map(Arc::new),
            },
        };
        let services = Services {
            machine: machine(&limits, &workspaces),
            workspaces,
            limits,
            policy: self.policy,
            approver: self.approver,
            listeners: self.listeners,
            secrets: self.secrets,
            buckets: self.buckets,
            transport: self
                .transport
                .unwrap_or_else(|| Transport::builder().build()),
        };
        let host = Host::build(self.contents, services, backend, self.shared_state)?;
        if !self.defer_engine {
            host.make_engine()?;
        }
        Ok(host)
    }

    /// What the host would have for drivers: which routes there are, and what the
    /// policy says of each, depends on nothing else ([`toolward_policy::routes`]).
    ///
    /// # Errors
    ///
    /// [`HostError::Workspace`], as [`HostBuilder::build`].
    pub fn machine(&self) -> Result<Machine, HostError> {
        Ok(machine(&self.effective_limits(), &self.workspaces()?))
    }

    /// The limits, with the policy's on top.
    fn effective_limits(&self) -> Limits {
        self.limits.clone().with(self.policy.limits())
    }

    /// Opens the directories of the policy's workspaces.
    fn workspaces(&self) -> Result<Workspaces, HostError> {
        let paths: Vec<String> = self
            .policy
            .workspaces()
            .iter()
            .map(|workspace| workspace.path.to_string())
            .collect();
        let mappings: Vec<Mapping<'_>> = self
            .policy
            .workspaces()
            .iter()
            .zip(&paths)
            .map(|(workspace, path)| Mapping {
                path,
                directory: &workspace.directory,
                shared: workspace.shared,
            })
            .collect();
        let protected: Vec<(&str, &Path)> = self
            .protected
            .iter()
            .map(|(what, path)| (what.as_str(), path.as_path()))
            .collect();
        workspace::check(&mappings, &protected)
    }
}

fn machine(limits: &Limits, workspaces: &Workspaces) -> Machine {
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    let machine = Machine::new(os, arch, limits.memory_bytes.maximum);
    workspaces.unusable().fold(machine, Machine::without)
}

impl std::fmt::Debug for HostBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostBuilder")
            .field("bundles", &self.contents.len())
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
