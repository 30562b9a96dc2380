//! The host: takes a request through the stages, one after the other, and
//! always gives a reply.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use toolward_bundle::content::Content;
use toolward_contract::driver::DriverKind;
use toolward_policy::{Confirmed, ContextLack, Decision, Effects};

use crate::admission::Admission;
use crate::checks::{self, Checks};
use crate::compile::Workshop;
use crate::continuity::{Continuity, HostEngine};
use crate::dispatch::{self, Ended, Running};
use crate::error::HostError;
use crate::grant;
use crate::lineage::CallTools;
use crate::prepare::Preparer;
use crate::registry::{Catalogue, Icon, ToolEntry};
use crate::request::Request;
use crate::resolve::{self, Resolved};
use crate::result::{CallError, Captured, ErrorClass, ErrorCode, Metadata, Reply};
use crate::sandbox::engine::EngineProfile;
use crate::sandbox::turns::Turns;
use crate::services::Services;
use crate::validate::{self, Call, Validated};
use crate::{approval, asking};

/// Runs the tools of bundles. Cheap to clone; clones share everything.
///
/// Calls need a tokio runtime with its timer enabled.
#[derive(Clone)]
pub struct Host {
    inner: Arc<Inner>,
}

struct Inner {
    preparer: Arc<Preparer>,
    services: Arc<Services>,
    catalogue: Catalogue,
    admission: Arc<Admission>,
    checks: Arc<Checks>,
    turns: Arc<Turns>,
    continuity: Continuity,
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
    /// The drivers that may serve it, best first.
    pub drivers: Vec<DriverInfo>,
    /// Why drivers of the same publisher that name it do not serve it, for people.
    pub unserved: Vec<String>,
    /// What a call can bring about by any driver that policy lets run, the tools
    /// that it reaches included; `None` where there is no such driver, and so no
    /// call can run.
    pub effects: Option<Effects>,
    /// Why calls that bring no context of their own can't run, where the contract
    /// requires one and the operator gives none to anybody.
    pub context: Option<ContextLack>,
    /// What the operator believes of what the contract says of it.
    pub confirmed: Confirmed,
    /// Its icon, or its bundle's. Untrusted bytes.
    pub icon: Option<Icon>,
}

/// A driver that may serve a tool.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DriverInfo {
    /// Its id.
    pub id: String,
    /// Who published it: whose code runs, which may be another publisher's than the
    /// tool's.
    pub publisher: String,
    /// What was decided about it.
    pub decision: Decision,
}

impl DriverInfo {
    /// Whether policy lets it run, asked about or not.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.decision.grant().is_some()
    }
}

impl Host {
    pub(crate) fn build(
        contents: Vec<Content>,
        services: Services,
        workshop: Workshop,
        continuity: Continuity,
    ) -> Result<Self, HostError> {
        let admission = continuity.admission(&services.limits);
        let catalogue = Catalogue::build(contents, &services, &continuity, &admission)?;
        let profile = EngineProfile::for_limits(&services.limits);
        let engine = HostEngine::new(continuity.clone(), admission.clone(), profile);
        let component_bytes = services.limits.component_bytes;
        let preparer = Preparer::new(engine, workshop, component_bytes);
        Ok(Self {
            inner: Arc::new(Inner {
                preparer: Arc::new(preparer),
                services: Arc::new(services),
                catalogue,
                admission,
                checks: continuity.checks(),
                turns: continuity.turns(),
                continuity,
            }),
        })
    }

    /// The tools of this host, by id and major version.
    pub fn tools(&self) -> impl Iterator<Item = ToolInfo> + '_ {
        self.inner.catalogue.tools().map(|entry| info(entry))
    }

    /// The grants of all drivers that policy lets run.
    pub(crate) fn grants(&self) -> impl Iterator<Item = &toolward_policy::Grant> {
        let routes = self.inner.catalogue.tools().flat_map(|tool| &tool.routes);
        routes.filter_map(|route| Some(&route.access.as_ref()?.grant))
    }

    /// The tool that a call of `name` would reach.
    pub fn tool(&self, name: &str) -> Option<ToolInfo> {
        let found = self.inner.catalogue.find(name);
        let served = found.filter(|entry| entry.standing.withdrawn().is_none());
        served.map(|entry| info(entry))
    }

    /// Whether a call of this tool could start now, without waiting for a driver
    /// to be compiled.
    pub fn is_ready(&self, name: &str) -> bool {
        let tool = self.inner.catalogue.find(name);
        tool.is_some_and(|tool| tool.open_routes().any(|route| route.driver.is_ready()))
    }

    /// Serves the bundle with this manifest digest (64 hex digits) no more: its
    /// tools are gone from [`Host::tools`], and new calls of them, and by its
    /// drivers, end with [`ErrorCode::WITHDRAWN`](crate::ErrorCode::WITHDRAWN)
    /// and `reason`, and so do calls that wait for a person or for a slot. Calls
    /// that run go on. It holds for all hosts of the same [`Continuity`]. False if no
    /// such bundle was served.
    pub fn withdraw(&self, bundle: &str, reason: &str) -> bool {
        self.inner.continuity.withdraw(bundle, reason)
    }

    /// The manifest digests of the bundles of the tools that are served.
    pub fn bundles(&self) -> impl Iterator<Item = &str> {
        self.inner.catalogue.bundles()
    }

    /// Calls a tool. Always gives a reply: what goes wrong is in it.
    ///
    /// Dropping the future cancels the call: the guest is gone with it.
    pub async fn call(&self, request: Request) -> Reply {
        let resumed = request.resume.as_ref();
        let metadata = Metadata {
            invocation: match resumed {
                Some(resume) => resume.asked.invocation.clone(),
                None => uuid::Uuid::now_v7().to_string(),
            },
            ..Metadata::default()
        };
        let mut running = Running::new(&request, metadata);
        let mut captured = Captured::default();
        let ended = self
            .stages(request, &mut running.metadata, &mut captured)
            .await;
        let (result, asked) = match ended {
            Ok(Ended::Output(output)) => (Ok(output), None),
            Ok(Ended::Asked(asked)) => (Err(input_required(&asked.tool_id)), Some(asked)),
            Err(error) => (Err(error), None),
        };
        Reply {
            result,
            metadata: running.ended(),
            captured,
            asked,
        }
    }

    /// The stages. Each takes what only the one before it makes.
    async fn stages(
        &self,
        mut request: Request,
        metadata: &mut Metadata,
        captured: &mut Captured,
    ) -> Result<Ended, CallError> {
        let inner = &*self.inner;
        metadata.tool.clone_from(&request.tool);
        let observer = request.observer.clone();
        let principal = request.principal.clone();
        if let Some(resume) = &request.resume {
            request.pinned_driver = Some(resume.asked.driver.clone());
        }
        let resolved = match (
            resolve::resolve(&inner.catalogue, &request),
            &request.resume,
        ) {
            (Err(error), Some(_)) => return Err(asking::gone(error)),
            (resolved, _) => resolved?,
        };
        metadata.tool.clone_from(&resolved.tool.full_id);
        metadata.publisher = Some(resolved.tool.publisher.clone());

        let validated = self.validated(resolved, request).await?;
        let driver = validated.driver();
        metadata.driver = Some(driver.driver.id.to_string());
        metadata.driver_publisher = Some(driver.publisher.clone());
        metadata.bundle = Some(driver.bundle.clone());

        let granted = grant::apply(validated)?;
        let approver = inner.services.approver.as_ref();
        let approved = approval::obtain(granted, approver, &metadata.invocation).await?;
        let prepared = match driver.driver.kind {
            DriverKind::Component => Some(
                inner
                    .preparer
                    .prepared(&driver, Some(&principal), observer.as_deref())
                    .await?,
            ),
            _ => None,
        };
        dispatch::start(
            approved,
            dispatch::Means {
                host: self.inner.clone(),
                services: &inner.services,
                admission: &inner.admission,
                checks: &inner.checks,
                turns: &inner.turns,
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
        let (host, principal) = (self.clone(), request.principal.clone());
        inner
            .checks
            .run(
                &principal,
                deadline,
                || dispatch::timed_out(allowed, started.elapsed()),
                move || validate::validate(resolved, request, &host.inner.services.limits),
            )
            .await
    }

    /// Makes the engine now, if the host was built to make it
    /// [when it is needed](crate::HostBuilder::defer_engine). Takes some
    /// milliseconds, on the calling thread.
    ///
    /// # Errors
    ///
    /// [`HostError::Engine`]. Calls fail then, too; the next one tries again.
    pub fn make_engine(&self) -> Result<(), HostError> {
        self.inner.preparer.make_engine()
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
                if let Err(error) = self
                    .inner
                    .preparer
                    .prepared(&route.driver, None, None)
                    .await
                {
                    failed.push((route.driver.driver.id.to_string(), error));
                }
            }
        }
        failed
    }
}

impl CallTools for Inner {
    fn call_tool(self: Arc<Self>, request: Request) -> Pin<Box<dyn Future<Output = Reply> + Send>> {
        Box::pin(async move { Host { inner: self }.call(request).await })
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
            .map(|route| DriverInfo {
                id: route.driver.driver.id.to_string(),
                publisher: route.driver.publisher.clone(),
                decision: route.decision.clone(),
            })
            .collect(),
        unserved: entry.unserved.clone(),
        effects: entry.effects(),
        context: entry.context_lack(),
        confirmed: entry.confirmed(),
        icon: entry.icon.clone(),
    }
}

fn input_required(tool: &str) -> CallError {
    CallError::new(
        ErrorCode::INPUT_REQUIRED,
        ErrorClass::SetupRequired,
        format!("`{tool}` asks before it goes on"),
    )
    .with_hint("answer its questions, and go on with the call")
}
