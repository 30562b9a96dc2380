//! Builds a [`Host`] from the embedder's bundles, limits, compiler and cache. Reads nothing from
//! the environment.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use toolward_bundle::content::Content;
use toolward_contract::driver::Driver;
use toolward_egress::Transport;
use toolward_ledger::Recorder;
use toolward_ledger::record::{Hash, Hex};
use toolward_policy::{Limits, Machine, Policy};
use toolward_sandbox::compile::{Broker, Cache, CompileBackend, Compiler, InProcess};
use toolward_sandbox::engine::EngineProfile;
use toolward_sandbox::error::HostError;
use toolward_sandbox::files::workspaces::{self, Mapping, Workspaces};
use toolward_state::Buckets;

use super::{Host, Inner};
use crate::api::approval::Approver;
use crate::api::facts::CallListener;
use crate::catalogue::{Catalogue, WithheldTool};
use crate::executor::component::Preparer;
use crate::executor::{Executor, Executors, MakeExecutor};
use crate::recording::Recording;
use crate::secrets::SecretStore;
use crate::services::Services;
use crate::shared_state::{HostEngine, SharedState};
use crate::tape::Tape;

impl Host {
    /// Starts to build a host.
    pub fn builder() -> HostBuilder {
        HostBuilder::default()
    }
}

/// Builds a [`Host`]. The defaults grant nothing: without a policy, drivers have no grants; without
/// an approver, calls that need approval are denied.
///
/// ```
/// use std::time::Duration;
/// use toolward_host::{Host, HostError, Limits};
/// use toolward_policy::Policy;
///
/// let mut limits = Limits::default();
/// limits.timeout.maximum = Duration::from_secs(5);
/// limits.memory_bytes.maximum = 32 << 20;
/// let built = Host::builder()
///     .policy(Policy::empty())
///     .limits(limits)
///     .protect("the keys", "/etc/example/keys")
///     .build();
/// if let Err(error @ HostError::Workspace { .. }) = &built {
///     eprintln!("{error} ({}): {:?}", error.code(), error.hint());
/// }
/// ```
#[derive(Default)]
#[must_use]
pub struct HostBuilder {
    contents: Vec<Content>,
    withheld: Vec<WithheldTool>,
    services: Services,
    recorder: Option<Arc<dyn Recorder>>,
    queues_ended: bool,
    policy_digest: Option<Hash>,
    protected: Vec<(String, PathBuf)>,
    compiler: Option<Arc<dyn Compiler>>,
    cache: Option<Cache>,
    broker: Option<Broker>,
    executors: HashMap<String, MakeExecutor>,
    shared_state: SharedState,
    defer_engine: bool,
}

impl HostBuilder {
    /// Loads a bundle: a verified one, or an unsigned one in development.
    pub fn bundle(mut self, content: Content) -> Self {
        self.contents.push(content);
        self
    }

    /// Names tools that are known but not loaded, such as the tools of a revoked bundle. Calls to
    /// them end with [`WithheldTool::refusal`]. A named tool that is loaded is served nevertheless.
    /// Default: none.
    pub fn withheld(mut self, tools: impl IntoIterator<Item = WithheldTool>) -> Self {
        self.withheld.extend(tools);
        self
    }

    /// Sets what is granted, and to whom. Default: [`Policy::empty`], nothing.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.services.policy = policy;
        self
    }

    /// Sets the limits on every call. Default: [`Limits::default`]. A policy's
    /// `[limits]` override them.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.services.limits = limits;
        self
    }

    /// Sets the approver, which asks people. Default: calls that need approval are denied.
    pub fn approver(mut self, approver: impl Approver + 'static) -> Self {
        self.services.approver = Some(Arc::new(approver));
        self
    }

    /// Adds a listener for calls, nested ones included. Default: none.
    pub fn listener(mut self, listener: Arc<dyn CallListener>) -> Self {
        self.services.listeners.push(listener);
        self
    }

    /// Records calls, nested ones included: the start of a call that changes something is on the
    /// disk before its driver starts, and its end before the reply. The end of any other call is
    /// recorded soon afterwards. If a start can't be recorded, the call ends with
    /// [`ErrorCode::UNRECORDED`](crate::ErrorCode::UNRECORDED). Default: none.
    pub fn recorder(mut self, recorder: Arc<dyn Recorder>) -> Self {
        self.recorder = Some(recorder);
        self
    }

    /// Replies without waiting until the end of a call that changes something is on the disk.
    pub fn queue_ended_rows(mut self) -> Self {
        self.queues_ended = true;
        self
    }

    /// Sets the digest of the policy's text, which the ledger records.
    pub fn policy_digest(mut self, digest: [u8; 32]) -> Self {
        self.policy_digest = Some(Hex(digest));
        self
    }

    /// Answers calls from a tape: no driver starts, and none is compiled. A call that was not
    /// recorded ends with [`ErrorCode::NO_ROUTE`](crate::ErrorCode::NO_ROUTE). The current policy,
    /// schemas, limits and redaction apply, but no one is asked for approval. Default: none.
    pub fn replaying(mut self, tape: &Tape) -> Self {
        self.services.tape = Some(tape.clone());
        self
    }

    /// Sets the store of secrets. Default: no secrets.
    pub fn secrets(mut self, secrets: impl SecretStore + 'static) -> Self {
        self.services.secrets = Some(Arc::new(secrets));
        self
    }

    /// Sets the key-value buckets. Default: none; opening a bucket fails.
    pub fn buckets(mut self, buckets: impl Buckets + 'static) -> Self {
        self.services.buckets = Some(Arc::new(buckets));
        self
    }

    /// Sets the resolver and TLS roots of outgoing requests. Default: the system's.
    pub fn transport(mut self, transport: Transport) -> Self {
        self.services.transport = Some(transport);
        self
    }

    /// Protects a directory from workspaces: no workspace may contain the directory, be the
    /// directory, or be inside it. Meant for configuration, trust, state, caches and keys. `what`
    /// describes the directory in messages.
    pub fn protect(mut self, what: impl Into<String>, directory: impl Into<PathBuf>) -> Self {
        self.protected.push((what.into(), directory.into()));
        self
    }

    /// Sets the compiler of components. Default: [`InProcess`].
    pub fn compiler(mut self, compiler: impl Compiler + 'static) -> Self {
        self.compiler = Some(Arc::new(compiler));
        self
    }

    /// Keeps compiled drivers in this cache. Default: each host compiles them again.
    pub fn cache(mut self, cache: Cache) -> Self {
        self.cache = Some(cache);
        self
    }

    /// Has components compiled by this broker, which also keeps the cache. Overrides
    /// [`HostBuilder::compiler`] and [`HostBuilder::cache`].
    pub fn broker(mut self, broker: Broker) -> Self {
        self.broker = Some(broker);
        self
    }

    /// Runs drivers of a kind that this crate does not run itself (`builtin`, for example) with the
    /// executors that `make` returns. Default: no route has such a driver, and the programs of
    /// `[[exec]]` can't be called.
    pub fn executor(
        mut self,
        kind: impl Into<String>,
        make: impl Fn(&Arc<Driver>) -> Arc<dyn Executor> + Send + Sync + 'static,
    ) -> Self {
        self.executors.insert(kind.into(), Box::new(make));
        self
    }

    /// Shares withdrawals, admission, engine and other state with the hosts of the same
    /// `shared_state`, which this host replaces. Default: a separate state.
    pub fn shared_state(mut self, shared_state: &SharedState) -> Self {
        self.shared_state = shared_state.clone();
        self
    }

    /// Defers making the engine, which takes some milliseconds, until the first driver needs it or
    /// [`Host::make_engine`] is called. Default: [`HostBuilder::build`] makes the engine, and fails
    /// if the engine can't be made.
    pub fn defer_engine(mut self) -> Self {
        self.defer_engine = true;
        self
    }

    /// Makes the host. Compiles nothing yet: see [`Host::prepare`].
    ///
    /// # Errors
    ///
    /// [`HostError`] when two bundles have a tool or a driver of the same id; when a workspace
    /// overlaps another workspace (unless both are shared) or a directory that guests must not
    /// reach; or when the engine can't be made (unless it is
    /// [deferred](HostBuilder::defer_engine)).
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
            machine: machine(&limits, &workspaces, &self.executors),
            workspaces,
            limits,
            events: self.shared_state.shared.events.clone(),
            recording: self.recorder.map(|recorder| Recording {
                recorder,
                waits_for_end: !self.queues_ended,
                policy: self.policy_digest,
            }),
            transport: self.services.transport.or_else(Transport::system),
            ..self.services
        };
        let shared_state = self.shared_state;
        let admission = shared_state.admission(&services.limits);
        let preparer = Arc::new(Preparer {
            engine: HostEngine {
                shared_state: shared_state.clone(),
                admission: admission.clone(),
                profile: EngineProfile::for_limits(&services.limits),
                made: OnceLock::new(),
            },
            backend,
            component_bytes: services.limits.component_bytes,
        });
        let executors = Executors {
            preparer: preparer.clone(),
            turns: shared_state.shared.turns.clone(),
            forms: shared_state.shared.forms.clone(),
            tape: services.tape.clone(),
            others: self.executors,
        };
        let catalogue = Catalogue::build(
            self.contents,
            self.withheld,
            &services,
            &shared_state,
            (&*admission, &executors),
        )?;
        let host = Host {
            inner: Arc::new(Inner {
                preparer,
                services: Arc::new(services),
                catalogue,
                admission,
                shared_state,
            }),
        };
        if !self.defer_engine {
            host.make_engine()?;
        }
        Ok(host)
    }

    /// The properties of this machine that drivers need. With bundles and policy they determine the
    /// routes and their decisions ([`toolward_policy::routes`]).
    ///
    /// # Errors
    ///
    /// [`HostError::Workspace`], as for [`HostBuilder::build`].
    pub fn machine(&self) -> Result<Machine, HostError> {
        Ok(machine(
            &self.effective_limits(),
            &self.workspaces()?,
            &self.executors,
        ))
    }

    /// The limits, overridden by the policy's limits.
    fn effective_limits(&self) -> Limits {
        let limits = self.services.limits.clone();
        limits.with(&self.services.policy.tables().limits)
    }

    /// Opens the directories of the policy's workspaces.
    fn workspaces(&self) -> Result<Workspaces, HostError> {
        let tables = self.services.policy.tables();
        let workspaces = tables.workspaces.iter();
        let named = workspaces.map(|workspace| (workspace.path.to_string(), workspace));
        let named: Vec<_> = named.collect();
        let mappings = named.iter().map(|(path, workspace)| Mapping {
            path,
            directory: &workspace.directory,
            shared: workspace.shared,
        });
        let mappings: Vec<Mapping<'_>> = mappings.collect();
        let given = self.protected.iter();
        let given = given.map(|(what, path)| (what.as_str(), path.as_path()));
        // A guest that could write to a program's directory would decide what runs.
        let programs = tables.execs.iter().flat_map(|rule| {
            let interpreter = rule.interpreter.as_ref();
            let interpreter = interpreter.map(|interpreter| interpreter.path.as_str());
            let paths = interpreter.into_iter().chain([rule.command.as_str()]);
            paths.map(|path| ("a program of an [[exec]]", Path::new(path)))
        });
        let protected: Vec<(&str, &Path)> = given.chain(programs).collect();
        workspaces::check(&mappings, &protected)
    }
}

fn machine(
    limits: &Limits,
    workspaces: &Workspaces,
    executors: &HashMap<String, MakeExecutor>,
) -> Machine {
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    let machine = Machine::new(os, arch, limits.memory_bytes.maximum).running(executors.keys());
    workspaces.unusable().fold(machine, Machine::without)
}
