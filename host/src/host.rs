//! The host: takes a request through the stages, one after the other, and
//! always gives a reply.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use toolward_bundle::content::Content;
use toolward_contract::driver::DriverKind;
use toolward_policy::Decision;
use wasmtime::Engine;
use wasmtime::component::Linker;

use crate::admission::Admission;
use crate::approval;
use crate::checks::{self, Checks};
use crate::compile::{self, Cache, Compiler};
use crate::dispatch;
use crate::error::HostError;
use crate::grant;
use crate::lineage::CallTools;
use crate::registry::{Catalogue, LoadedDriver, ToolEntry};
use crate::request::Request;
use crate::resolve::{self, Resolved};
use crate::result::{CallError, Captured, ErrorClass, ErrorCode, Metadata, Output, Reply};
use crate::sandbox::engine::EngineProfile;
use crate::sandbox::run::Prepared;
use crate::sandbox::v0_1;
use crate::services::Services;
use crate::validate::{self, Call, Validated};

/// Runs the tools of bundles. Cheap to clone; clones share everything.
///
/// Calls need a tokio runtime with its timer enabled.
#[derive(Clone)]
pub struct Host {
    inner: Arc<Inner>,
}

struct Inner {
    profile: EngineProfile,
    engine: Engine,
    linker: Linker<crate::sandbox::State>,
    compiler: Arc<dyn Compiler>,
    cache: Option<Cache>,
    services: Arc<Services>,
    catalogue: Catalogue,
    admission: Admission,
    checks: Checks,
}

/// One tool as a catalogue shows it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ToolInfo {
    /// Its contract. Untrusted text.
    pub contract: Arc<toolward_contract::tool::Tool>,
    /// Who published it; `dev:<dir>` for an unsigned bundle.
    pub publisher: String,
    /// BLAKE3 of its bundle's manifest, 64 hex digits.
    pub bundle: String,
    /// The drivers that may serve it, best first, with what was decided about
    /// each.
    pub drivers: Vec<(String, Decision)>,
}

impl Host {
    pub(crate) fn build(
        contents: Vec<Content>,
        services: Services,
        compiler: Arc<dyn Compiler>,
        cache: Option<Cache>,
    ) -> Result<Self, HostError> {
        let catalogue = Catalogue::build(contents, &services)?;
        let profile = EngineProfile::for_limits(&services.limits);
        let engine = profile.engine()?;
        let linker =
            v0_1::linker(&engine).map_err(|error| HostError::Engine(format!("{error:#}")))?;
        let admission = Admission::new(&services.limits);
        Ok(Self {
            inner: Arc::new(Inner {
                profile,
                engine,
                linker,
                compiler,
                cache,
                services: Arc::new(services),
                catalogue,
                admission,
                checks: Checks::new(),
            }),
        })
    }

    /// The tools of this host, by id and major version.
    pub fn tools(&self) -> impl Iterator<Item = ToolInfo> + '_ {
        self.inner.catalogue.tools().map(|entry| info(entry))
    }

    /// The tool that a call of `name` would reach.
    pub fn tool(&self, name: &str) -> Option<ToolInfo> {
        self.inner.catalogue.find(name).map(|entry| info(entry))
    }

    /// Calls a tool. Always gives a reply: what goes wrong is in it.
    ///
    /// Dropping the future cancels the call: the guest is gone with it.
    pub async fn call(&self, request: Request) -> Reply {
        let started = Instant::now();
        let mut metadata = Metadata {
            invocation: uuid::Uuid::now_v7().to_string(),
            ..Metadata::default()
        };
        let mut captured = Captured::default();
        let result = self.stages(request, &mut metadata, &mut captured).await;
        metadata.milliseconds = micros(started.elapsed());
        Reply {
            result,
            metadata,
            captured,
        }
    }

    /// The stages. Each takes what only the one before it makes.
    async fn stages(
        &self,
        request: Request,
        metadata: &mut Metadata,
        captured: &mut Captured,
    ) -> Result<Output, CallError> {
        let inner = &*self.inner;
        metadata.tool.clone_from(&request.tool);
        let resolved = resolve::resolve(&inner.catalogue, &request)?;
        metadata.tool.clone_from(&resolved.tool.full_id);
        metadata.publisher = Some(resolved.tool.publisher.clone());

        let validated = self.validated(resolved, request).await?;
        let driver = validated.driver();
        metadata.driver = Some(driver.driver.id.to_string());
        metadata.bundle = Some(driver.bundle.clone());

        let granted = grant::apply(validated)?;
        let approver = inner.services.approver.as_ref();
        let approved = approval::obtain(granted, approver, &metadata.invocation).await?;
        let prepared = match driver.driver.kind {
            DriverKind::Component => Some(self.prepared(&driver).await?),
            _ => None,
        };
        dispatch::start(
            approved,
            dispatch::Means {
                host: self.inner.clone(),
                services: &inner.services,
                admission: &inner.admission,
                checks: &inner.checks,
                prepared,
            },
            metadata,
            captured,
        )
        .await
    }

    /// Validates at once, or, where it may take long, on another thread: the
    /// schema is the publisher's, and nothing can interrupt the check.
    async fn validated(
        &self,
        resolved: Resolved,
        request: Request,
    ) -> Result<Validated<Call>, CallError> {
        let inner = &self.inner;
        if request.is_below(checks::short_bytes(&resolved.tool.contract.inputs)) {
            return validate::validate(resolved, request, &inner.services.limits);
        }
        let longest = inner.services.limits.timeout;
        let allowed = request.timeout.unwrap_or(longest).min(longest);
        let started = Instant::now();
        let deadline = started.checked_add(allowed).unwrap_or(started);
        let host = self.clone();
        inner
            .checks
            .run(
                deadline,
                || dispatch::timed_out(allowed, started.elapsed()),
                move || validate::validate(resolved, request, &host.inner.services.limits),
            )
            .await
    }

    /// Compiles the drivers of all tools, or takes them from the cache, so that
    /// no later call waits for it. Returns the drivers that could not be, with
    /// the reason.
    pub async fn prepare(&self) -> Vec<(String, CallError)> {
        let mut failed = Vec::new();
        for tool in self.inner.catalogue.tools() {
            for route in &tool.routes {
                if !route.is_open() || route.driver.driver.kind != DriverKind::Component {
                    continue;
                }
                if let Err(error) = self.prepared(&route.driver).await {
                    failed.push((route.driver.driver.id.to_string(), error));
                }
            }
        }
        failed
    }

    /// The driver, ready to be instantiated. Compiled at most once: a driver
    /// that does not compile never will.
    async fn prepared<'a>(&self, driver: &'a Arc<LoadedDriver>) -> Result<&'a Prepared, CallError> {
        if driver.prepared.get().is_none() {
            let preparing = driver.preparing.clone().lock_owned().await;
            let (host, shared) = (self.clone(), driver.clone());
            // The thread holds the lock, not the caller: it goes on if the caller
            // goes away, and even if nobody drives the caller's runtime.
            let task = tokio::task::spawn_blocking(move || {
                shared.prepared.get_or_init(|| host.inner.prepare(&shared));
                drop(preparing);
            });
            if let Err(error) = task.await {
                tracing::error!(%error, "preparing a driver was broken off");
                if error.is_panic() {
                    // It would again: a verdict on the driver, kept like others.
                    let _ = driver.prepared.set(Err("the compiler panicked".to_owned()));
                }
            }
        }
        let problem = match driver.prepared.get() {
            Some(Ok(prepared)) => return Ok(prepared),
            Some(Err(problem)) => problem,
            None => "preparing it was broken off",
        };
        Err(CallError::new(
            ErrorCode::UPSTREAM_ERROR,
            ErrorClass::DependencyUnavailable,
            format!("the driver `{}` can't be used: {problem}", driver.driver.id),
        )
        .with_hint("report this to the driver's publisher"))
    }
}

impl CallTools for Inner {
    fn call_tool(self: Arc<Self>, request: Request) -> Pin<Box<dyn Future<Output = Reply> + Send>> {
        Box::pin(async move { Host { inner: self }.call(request).await })
    }
}

impl Inner {
    fn prepare(&self, driver: &LoadedDriver) -> Result<Prepared, String> {
        let (Some(digest), Some(wasm)) = (driver.digest, driver.wasm()) else {
            return Err("it has no component".to_owned());
        };
        let allowed = self.services.limits.component_bytes;
        if wasm.len() > allowed {
            return Err(format!(
                "its component has {} bytes; the limit `component_bytes` is {allowed}",
                wasm.len()
            ));
        }
        let component = compile::load(
            &self.engine,
            &self.profile,
            &*self.compiler,
            self.cache.as_ref(),
            &digest,
            &wasm,
        )
        .map_err(|error| error.to_string())?;
        let pre = self
            .linker
            .instantiate_pre(&component)
            .map_err(|error| format!("it asks for what this host does not have: {error:#}"))?;
        let pre = v0_1::DriverPre::new(pre)
            .map_err(|error| format!("it does not export `{}`: {error:#}", v0_1::EXPORT))?;
        driver.drop_wasm();
        Ok(Prepared::new(pre))
    }
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host")
            .field("limits", &self.inner.services.limits)
            .field("tools", &self.inner.catalogue.tools().count())
            .finish_non_exhaustive()
    }
}

fn info(entry: &ToolEntry) -> ToolInfo {
    ToolInfo {
        contract: entry.contract.clone(),
        publisher: entry.publisher.clone(),
        bundle: entry.bundle.clone(),
        drivers: entry
            .routes
            .iter()
            .map(|route| (route.driver.driver.id.to_string(), route.decision.clone()))
            .collect(),
    }
}

fn micros(duration: std::time::Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}
