//! Prepares a driver for its first call: compiles it or loads it from the cache, links it, finds
//! its exports. Later calls get the same result, if it is a success or a verdict: an error that the
//! component causes. After a failure of the machine, a later call tries again.

use std::ops::ControlFlow;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::{Duration, Instant};

use serde_json::json;
use toolward_bundle::component::{Component as Source, ComponentContent};
use toolward_contract::driver::Driver;
use toolward_sandbox::compile::{
    Callers, CompileBackend, CompileError, CompileReason, Component, Stage,
};
use toolward_sandbox::engine::Ready;
use toolward_sandbox::run::Prepared;
use toolward_signing::Digest;
use toolward_support::helper::lock;

use crate::api::event::{Compiling, Observer};
use crate::api::result::{CallError, ErrorClass, ErrorCode, Result};
use crate::call_scope::CallScope;
use crate::shared_state::HostEngine;

/// How often waiting calls report progress.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(250);

/// The retry-after of failures of the machine.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The largest artifact that is loaded on the thread of its call, in bytes. Loading it blocks the
/// thread for half a millisecond; waking another thread would take 0.1 ms.
const SMALL_ARTIFACT_BYTES: u64 = 2 << 20;

/// The component of a driver: its content until it is compiled, and the result.
pub(crate) struct LoadedComponent {
    driver: Arc<Driver>,
    /// The verified component, until it is compiled.
    component: Mutex<Option<Arc<Source>>>,
    pub(super) preparation: Preparation,
}

impl LoadedComponent {
    pub(crate) fn new(driver: Arc<Driver>, component: Option<Source>) -> Self {
        Self {
            driver,
            component: Mutex::new(component.map(Arc::new)),
            preparation: Preparation::default(),
        }
    }

    fn source(&self) -> Option<Arc<Source>> {
        lock(&self.component).clone()
    }
}

#[derive(Default)]
pub(super) struct Preparation {
    /// The prepared driver, or a verdict.
    pub(super) done: OnceLock<Result<Prepared, CompileError>>,
    /// Held while the driver is prepared.
    pub(super) busy: Arc<tokio::sync::Mutex<()>>,
    /// The principals whose calls wait for the driver.
    pub(super) callers: Callers,
    pub(super) stage: Mutex<Option<Stage>>,
    /// The last attempt that failed without a verdict, with its time.
    pub(super) failed: Mutex<Option<(Instant, CompileError)>>,
}

impl Preparation {
    pub(super) fn finish(&self, result: Result<Prepared, CompileError>) {
        *lock(&self.stage) = None;
        match result {
            Err(error) if !error.reason().is_verdict() => {
                tracing::warn!(%error, "a driver was not prepared; it may be later");
                *lock(&self.failed) = Some((Instant::now(), error));
            }
            result => {
                let _ = self.done.set(result);
            }
        }
    }

    /// Whether an attempt failed since `asked`. If so, its error also counts for a call that has
    /// waited since then.
    pub(super) fn failed_since(&self, asked: Instant) -> bool {
        lock(&self.failed)
            .as_ref()
            .is_some_and(|(at, _)| *at >= asked)
    }

    pub(super) fn last_failure(&self) -> CompileError {
        let failed = lock(&self.failed);
        failed.as_ref().map_or_else(
            || CompileError::new(CompileReason::Cancelled, "preparing it was cancelled"),
            |(_, error)| error.clone(),
        )
    }
}

/// Prepares all drivers of a host.
pub(crate) struct Preparer {
    pub(crate) engine: HostEngine,
    pub(crate) backend: CompileBackend,
    /// The largest component, in bytes.
    pub(crate) component_bytes: usize,
}

impl Preparer {
    /// Prepares a driver, for a call or in advance.
    pub(super) async fn prepare(
        self: &Arc<Self>,
        driver: &Arc<LoadedComponent>,
        call: Option<&CallScope>,
    ) -> Result<()> {
        let preparation = &driver.preparation;
        if preparation.done.get().is_none() {
            if let Some(call) = call {
                preparation.callers.add(&call.principal);
            }
            let asked = Instant::now();
            let observer = call.and_then(|call| call.observer.as_deref());
            // Does not run inline in two cases: a nested call runs on the stack of a guest, and
            // many drivers may be prepared in advance.
            let inline = call.is_some_and(|call| call.chain.caller().is_none());
            let ready = self.make(driver, asked, inline);
            let mut ready = std::pin::pin!(ready);
            while tokio::time::timeout(PROGRESS_INTERVAL, &mut ready)
                .await
                .is_err()
            {
                if let Some(observer) = observer {
                    self.tell(driver, observer);
                }
            }
        }
        match preparation.done.get() {
            Some(Ok(_)) => Ok(()),
            Some(Err(error)) => Err(refused(driver, error)),
            None => Err(refused(driver, &preparation.last_failure())),
        }
    }

    /// Prepares a driver, unless another call has prepared it, or has failed to since `asked`. Runs
    /// on this thread if `inline` is set and the driver loads quickly.
    async fn make(self: &Arc<Self>, driver: &Arc<LoadedComponent>, asked: Instant, inline: bool) {
        let preparation = &driver.preparation;
        let busy = preparation.busy.clone().lock_owned().await;
        if preparation.done.get().is_some() || preparation.failed_since(asked) {
            return;
        }
        if inline && let Some(prepared) = self.load_small_artifact(driver) {
            return preparation.finish(prepared);
        }
        let (host, shared) = (self.clone(), driver.clone());
        // The thread holds the lock, not the caller, since the thread continues if the caller is
        // dropped, and even if nothing drives the caller's runtime.
        let task = tokio::task::spawn_blocking(move || {
            // The engine is made here, where it blocks no worker of the runtime.
            let job = Job::new(&host);
            drop(host);
            let result = job.and_then(|job| job.run(&shared));
            shared.preparation.finish(result);
            drop(busy);
        });
        if let Err(error) = task.await {
            tracing::error!(%error, "preparing a driver failed");
            preparation.finish(Err(match error.is_panic() {
                // The compiler would panic again, so this is kept like other verdicts about the
                // component.
                true => CompileError::new(CompileReason::Crashed, "the compiler panicked"),
                false => CompileError::new(
                    CompileReason::Cancelled,
                    "preparing it was cancelled with the runtime",
                ),
            }));
        }
    }

    /// Loads the driver from the cache, if the cache has a small artifact for it and the engine has
    /// been made.
    fn load_small_artifact(
        self: &Arc<Self>,
        driver: &LoadedComponent,
    ) -> Option<Result<Prepared, CompileError>> {
        let job = Job::on(self, self.engine.made.get()?);
        let source = driver.source()?;
        // A component that is too large is refused when it is compiled.
        if job.check_size(&source).is_err() {
            return None;
        }
        // If this panics or loads nothing, another thread tries, and its result counts.
        std::panic::catch_unwind(AssertUnwindSafe(|| {
            let component =
                job.backend
                    .load_cached(&job.ready, &source.digest, SMALL_ARTIFACT_BYTES)?;
            Some(job.link(driver, &source, &component))
        }))
        .unwrap_or_default()
    }

    fn tell(&self, driver: &LoadedComponent, observer: &dyn Observer) {
        let stage = *lock(&driver.preparation.stage);
        let elapsed = match stage {
            None => return,
            Some(Stage::Waiting) => None,
            Some(Stage::Compiling(elapsed)) => Some(elapsed),
        };
        observer.compiling(&Compiling {
            driver: driver.driver.id.to_string(),
            elapsed,
            longest: self.backend.longest(),
        });
    }
}

/// The part of a [`Preparer`] that a preparing thread keeps. It does not hold the host itself,
/// since dropping the host cancels compiling.
struct Job {
    host: Weak<Preparer>,
    ready: Arc<Ready>,
    backend: CompileBackend,
    component_bytes: usize,
}

impl Job {
    fn new(host: &Arc<Preparer>) -> Result<Self, CompileError> {
        let ready = host
            .engine
            .get()
            .map_err(|error| CompileError::new(CompileReason::Unavailable, error.to_string()))?;
        Ok(Self::on(host, ready))
    }

    fn on(host: &Arc<Preparer>, ready: &Arc<Ready>) -> Self {
        Self {
            host: Arc::downgrade(host),
            ready: ready.clone(),
            backend: host.backend.clone(),
            component_bytes: host.component_bytes,
        }
    }

    fn run(self, driver: &LoadedComponent) -> Result<Prepared, CompileError> {
        let source = driver
            .source()
            .ok_or_else(|| CompileError::new(CompileReason::Invalid, "it has no component"))?;
        self.check_size(&source)?;
        let component = match self.cached(&source) {
            Some(component) => component,
            None => {
                let wasm = source.read();
                let wasm =
                    wasm.map_err(|problem| CompileError::new(CompileReason::Changed, problem))?;
                self.load(driver, &source.digest, &wasm)?
            }
        };
        self.link(driver, &source, &component)
    }

    fn check_size(&self, source: &Source) -> Result<(), CompileError> {
        let (allowed, size) = (self.component_bytes, source.surface.size);
        match size > allowed as u64 {
            true => Err(CompileError::new(
                CompileReason::TooLarge,
                format!("its component has {size} bytes; the limit `component_bytes` is {allowed}"),
            )),
            false => Ok(()),
        }
    }

    /// Loads an unread component from the cache, so that it need not be read.
    fn cached(&self, source: &Source) -> Option<Component> {
        match source.content {
            ComponentContent::Unread(_) => {
                self.backend
                    .load_cached(&self.ready, &source.digest, u64::MAX)
            }
            ComponentContent::Bytes(_) => None,
        }
    }

    /// Links a loaded component, and finds its exports.
    fn link(
        &self,
        driver: &LoadedComponent,
        source: &Source,
        component: &Component,
    ) -> Result<Prepared, CompileError> {
        if self.host.strong_count() == 0 {
            return Err(CompileError::new(
                CompileReason::Cancelled,
                "its host has gone",
            ));
        }
        let targets = driver.driver.implements.iter().map(|entry| &entry.world);
        let instance_bytes = source.surface.instance_bytes;
        let functions = &source.functions;
        let prepared = Prepared::link(&self.ready, component, targets, functions, instance_bytes)?;
        *lock(&driver.component) = None;
        Ok(prepared)
    }

    fn load(
        &self,
        driver: &LoadedComponent,
        digest: &Digest,
        wasm: &[u8],
    ) -> Result<Component, CompileError> {
        let mut watch = |stage| {
            *lock(&driver.preparation.stage) = Some(stage);
            match self.host.strong_count() {
                0 => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        };
        self.backend.load(
            &self.ready,
            digest,
            wasm,
            &driver.preparation.callers,
            &mut watch,
        )
    }
}

pub(super) fn refused(driver: &LoadedComponent, error: &CompileError) -> CallError {
    let reason = error.reason();
    let call = CallError::new(
        ErrorCode::UPSTREAM_ERROR,
        ErrorClass::DependencyUnavailable,
        format!("the driver `{}` can't be used: {error}", driver.driver.id),
    )
    .with_cause(json!({ "code": reason.code() }));
    match reason {
        CompileReason::Invalid | CompileReason::Crashed => {
            call.with_hint("report this to the driver's publisher")
        }
        CompileReason::Changed => call.with_hint(
            "try again; if it lasts, install the bundle again: `toolward install SOURCE`",
        ),
        reason if reason.is_verdict() => call.with_hint(
            "report this to the driver's publisher, or raise the host's limit on compiling",
        ),
        _ => call
            .with_retry_after(RETRY_AFTER)
            .with_hint("try again; if it lasts, start the host again"),
    }
}
