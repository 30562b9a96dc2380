//! The host: takes a request through the stages, in order, and always returns a reply.

mod builder;
mod stages;

use std::pin::pin;
use std::sync::Arc;

use serde_json::Value;
use toolward_sandbox::error::HostError;
use toolward_sandbox::invocation::CallEnd;
use tracing::Instrument;

use crate::admission::Admission;
use crate::api::event::EventFilter;
use crate::api::facts::RefusedCall;
use crate::api::request::Request;
use crate::api::result::{CallError, ErrorClass, ErrorCode, Reply};
use crate::catalogue::{Catalogue, ToolFacts, WithheldTool};
use crate::elicitation::{Asked, OpenForm, OpenForms};
use crate::events::Events;
use crate::executor::component::Preparer;
use crate::imports::{BoxFuture, CallTools};
use crate::pipeline::call_record::CallRecord;
use crate::services::Services;
use crate::shared_state::SharedState;
pub use builder::HostBuilder;

/// Runs the tools of bundles. Cheap to clone; clones share everything.
///
/// Calls need a tokio runtime with its timer enabled.
///
/// ```no_run
/// use toolward_bundle::content::Content;
/// use toolward_host::{Host, HostError, Request};
///
/// async fn words(content: Content) -> Result<Option<u64>, HostError> {
///     let host = Host::builder().bundle(content).build()?;
///     // Compiles ahead of the first call.
///     for (driver, error) in host.prepare().await {
///         eprintln!("{driver}: {error}");
///     }
///     let reply = host.call(Request::new("text.stats", r#"{"text": "Hello"}"#)).await;
///     Ok(reply.result.ok().and_then(|output| output.structured["words"].as_u64()))
/// }
/// ```
#[derive(Clone)]
pub struct Host {
    inner: Arc<Inner>,
}

struct Inner {
    preparer: Arc<Preparer>,
    services: Arc<Services>,
    catalogue: Catalogue,
    admission: Arc<Admission>,
    shared_state: SharedState,
}

impl Host {
    /// The state that this host shares with the hosts that replace it.
    pub fn shared_state(&self) -> &SharedState {
        &self.inner.shared_state
    }

    /// The tools of this host, by id and major version.
    pub fn tools(&self) -> impl Iterator<Item = &ToolFacts> {
        self.inner.catalogue.tools().map(|tool| &**tool)
    }

    /// The grants of all drivers that policy lets run.
    pub(crate) fn grants(&self) -> impl Iterator<Item = &toolward_policy::Grant> {
        let routes = self.inner.catalogue.tools().flat_map(|tool| &tool.drivers);
        routes.filter_map(|route| Some(&route.access.as_ref()?.grant))
    }

    /// The tool that a call with this name would reach.
    pub fn tool(&self, name: &str) -> Option<&ToolFacts> {
        let found = self.inner.catalogue.find(name).map(|tool| &**tool);
        found.filter(|tool| tool.is_served())
    }

    /// The tools that this host knows but does not serve: tools given to
    /// [`HostBuilder::withheld`](crate::HostBuilder::withheld), and tools that were
    /// [withdrawn](Host::withdraw).
    pub fn withheld(&self) -> impl Iterator<Item = WithheldTool> + '_ {
        self.inner.catalogue.withheld()
    }

    /// Whether a driver of the tool is ready. A call by such a driver does not wait until it is
    /// compiled.
    pub fn is_ready(&self, name: &str) -> bool {
        let tool = self.inner.catalogue.find(name);
        tool.is_some_and(|tool| tool.open_drivers().any(|route| route.is_ready()))
    }

    /// Withdraws the bundle with this manifest digest (64 hex digits). Its tools disappear from
    /// [`Host::tools`]. Calls that use its tools or drivers end with
    /// [`ErrorCode::WITHDRAWN`](crate::ErrorCode::WITHDRAWN) and `reason`: new calls, and calls
    /// that wait for a person or a slot. Running calls finish. Applies to all hosts of the same
    /// [`SharedState`]. Returns false if no such bundle was served.
    pub fn withdraw(&self, bundle: &str, reason: &str) -> bool {
        self.inner.shared_state.withdraw(bundle, reason)
    }

    /// The manifest digests of the bundles whose tools are served.
    pub fn bundles(&self) -> impl Iterator<Item = &str> {
        self.inner.catalogue.bundles()
    }

    /// Returns a reader of events from now on. It gets the events of all calls, nested calls
    /// included, of this host and of all hosts of the same [`SharedState`]. A reader that lags
    /// loses events and gets their number; it never delays a call. Without a reader a call costs an
    /// atomic load for each event.
    ///
    /// ```
    /// use toolward_host::{CallEventKind, EventFilter, Heard, Host, Request};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), toolward_host::HostError> {
    /// let host = Host::builder().build()?;
    /// let mut events = host.events(EventFilter::principal("alice"));
    /// host.call(Request::new("text.stats", "{}").principal("alice")).await;
    /// let mut heard = Vec::new();
    /// while let Some(Heard::Event(event)) = events.try_next() {
    ///     if let CallEventKind::Failed { code, .. } = &event.kind {
    ///         assert_eq!(*code, "not_found");
    ///     }
    ///     heard.push(event.kind.class());
    /// }
    /// assert_eq!(
    ///     heard,
    ///     ["tool.invocation.planned", "tool.result.created", "tool.invocation.failed"]
    /// );
    /// # Ok(())
    /// # }
    /// ```
    pub fn events(&self, filter: EventFilter) -> Events {
        self.inner.shared_state.events(filter)
    }

    /// Calls a tool by a request or a boxed request. Always returns a reply; errors are in the
    /// reply.
    ///
    /// Dropping the future cancels the call and ends the guest.
    pub fn call<R: Into<Box<Request>>>(
        &self,
        request: R,
    ) -> impl Future<Output = Reply> + Send + use<'_, R> {
        // Returned and not awaited: a future around this one would need memory for its arguments,
        // too.
        self.carry_out(request.into())
    }

    async fn carry_out(&self, request: Box<Request>) -> Reply {
        let mut record = CallRecord::new(&request, &self.inner.services);
        // Without a subscriber the span is disabled: nothing is formatted or allocated.
        let span = tracing::debug_span!(
            "call",
            invocation = record.facts.invocation,
            tool = request.tool,
        );
        // If the request answers a form, that form closes when the call ends, unless the call asks
        // again.
        let forms = &self.inner.shared_state.shared.forms;
        let answered = request.resume.as_ref().map(|resume| {
            let invocation = &resume.asked.invocation;
            OpenForms::opened(forms, &request.scope.principal, invocation)
        });
        let ended = {
            // Pinned in place: the future is large, and `instrument` would move it.
            let stages = pin!(self.stages(request, &mut record));
            stages.instrument(span).await
        };
        let (result, asked, form) = match ended.unwrap_or_else(CallEnd::Failed) {
            CallEnd::Done(output) => (Ok(output), None, None),
            CallEnd::Asks((asked, form)) => {
                record.yields(asked.questions.len());
                (Err(input_required(&asked.tool_id)), Some(asked), form)
            }
            CallEnd::Failed(error) => (Err(error), None, None),
        };
        let (metadata, captured) = record.end(&result).await;
        if asked.is_some() {
            answered.into_iter().chain(form).for_each(OpenForm::keep);
        }
        Reply {
            result,
            metadata,
            captured,
            asked,
        }
    }

    /// Records a call that ended before it reached this host, in the same way as a call that this
    /// host refuses: as a row in the ledger, as events, and at each listener. A program that
    /// forwards calls for others reports each call that it answers itself.
    ///
    /// The row is queued, and this method waits only while the queue is full. Many refusals of one
    /// principal are counted together.
    pub async fn refused(&self, call: RefusedCall<'_>) {
        let request = Request::with_value(call.name, Value::Null)
            .principal(call.principal)
            .native(call.native.clone());
        let mut record = CallRecord::new(&request, &self.inner.services);
        let tool = call.tool.and_then(|name| self.inner.catalogue.find(name));
        if let Some(tool) = tool {
            record.resolved(tool);
        }
        record.enter(call.stage(tool.is_some()));
        record.end(&Err(call.error.clone())).await;
    }

    /// Closes the form of a call that no one will resume. While the form is open, for at most ten
    /// minutes, no other call can ask the same principal through a driver of `kind: form`.
    pub fn give_up(&self, asked: &Asked) {
        let forms = &self.inner.shared_state.shared.forms;
        forms.close(&asked.principal, &asked.invocation);
    }

    /// Creates the engine now, if it was [deferred](crate::HostBuilder::defer_engine). Takes some
    /// milliseconds on the calling thread.
    ///
    /// # Errors
    ///
    /// [`HostError::Engine`]. In that case calls fail, too, and each call tries again to create the
    /// engine.
    pub fn make_engine(&self) -> Result<(), HostError> {
        if self.replays() {
            return Ok(());
        }
        self.inner.preparer.engine.get().map(drop)
    }

    /// Whether calls are answered from a [tape](crate::Tape), so that no driver runs.
    pub fn replays(&self) -> bool {
        self.inner.services.tape.is_some()
    }

    /// Compiles the drivers that policy lets run, or loads them from the cache, so that later calls
    /// don't wait for that. Returns the drivers that failed, with the reason.
    pub async fn prepare(&self) -> Vec<(String, CallError)> {
        let mut failed = Vec::new();
        for tool in self.inner.catalogue.tools() {
            for route in &tool.drivers {
                if route.is_open()
                    && let Some(executor) = &route.executor
                    && let Err(error) = executor.prepare(None).await
                {
                    failed.push((route.id.to_string(), error));
                }
            }
        }
        failed
    }
}

impl CallTools for Inner {
    fn call_tool(self: Arc<Self>, call: Request) -> BoxFuture<'static, Reply> {
        let call = Box::new(call);
        Box::pin(async move { Host { inner: self }.call(call).await })
    }
}

fn input_required(tool: &str) -> CallError {
    CallError::new(
        ErrorCode::INPUT_REQUIRED,
        ErrorClass::SetupRequired,
        format!("`{tool}` asks questions before it continues"),
    )
    .with_hint("answer its questions, and resume the call")
}
