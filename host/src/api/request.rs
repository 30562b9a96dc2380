//! The request of a caller: one call of one tool.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use toolward_contract::json;
use toolward_contract::tool::CONTEXT_PIN;
use toolward_ledger::record::Native;

use crate::api::approval::Approver;
use crate::api::event::Observer;
use crate::api::facts::SharedCancellation;
use crate::call_scope::CallScope;
use crate::elicitation::{Answerable, Resume};
use crate::named::Named;

/// The input of a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Input {
    /// JSON text; its size and form are checked while it is parsed.
    Text(String),
    /// A value that the caller built; checked by the same rules.
    Value(Value),
}

/// One call of one tool.
///
/// ```
/// use std::time::Duration;
/// use serde_json::json;
/// use toolward_host::Request;
///
/// let request = Request::with_value("invoice.total", json!({"month": "2026-10"}))
///     .context(json!({"tenant": "acme"}))
///     .principal("alice")
///     .timeout(Duration::from_secs(10));
/// ```
#[derive(Clone)]
#[must_use]
pub struct Request {
    pub(crate) scope: Arc<CallScope>,
    pub(crate) tool: String,
    pub(crate) input: Input,
    pub(crate) context: Option<Value>,
    /// `context.pinnedProvider`, taken out of the context.
    pub(crate) pinned_provider: Option<Value>,
    pub(crate) pinned_driver: Option<String>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) resume: Option<Box<Resume>>,
    /// The id that the caller gave it.
    pub(crate) named: Option<Box<Named>>,
    /// Whether a null may stand for an absent property of the input.
    pub(crate) null_is_absent: bool,
}

impl Request {
    /// A call of `tool` (`id`, or `id@major`) with JSON text as input.
    pub fn new(tool: impl Into<String>, input: impl Into<String>) -> Self {
        Self::with_input(tool.into(), Input::Text(input.into()))
    }

    /// A call of `tool` with a value as input.
    pub fn with_value(tool: impl Into<String>, input: Value) -> Self {
        Self::with_input(tool.into(), Input::Value(input))
    }

    /// Whether the input's JSON has fewer than `bytes` bytes. For an [`Input::Value`], also true
    /// for exactly `bytes` bytes.
    pub(crate) fn is_below(&self, bytes: usize) -> bool {
        match &self.input {
            Input::Text(text) => text.len() < bytes,
            Input::Value(value) => json::is_within(value, bytes),
        }
    }

    fn with_input(tool: String, input: Input) -> Self {
        Self {
            scope: Arc::default(),
            tool,
            input,
            context: None,
            pinned_provider: None,
            pinned_driver: None,
            timeout: None,
            resume: None,
            named: None,
            null_is_absent: false,
        }
    }

    /// Treats a null in the input as an absent property if the contract's `inputs` neither accept
    /// null for the property nor require the property. Models send such nulls. The driver gets the
    /// input without these properties; the ledger keeps the input as received. Default: such an
    /// input is refused.
    pub fn null_is_absent(mut self) -> Self {
        self.null_is_absent = true;
        self
    }

    /// Sets host-supplied state, which is checked against the contract's `contextSchema`. Take this
    /// state from the operator or embedder, never from a model's arguments.
    ///
    /// `pinnedProvider` (AIP-30) pins a driver by its id, as [`pinned_driver`](Self::pinned_driver)
    /// does. The host removes it before the schema check, and the driver does not get it.
    pub fn context(mut self, mut context: Value) -> Self {
        self.pinned_provider = context
            .as_object_mut()
            .and_then(|members| members.shift_remove(CONTEXT_PIN))
            .filter(|pin| !pin.is_null());
        self.context = Some(context);
        self
    }

    /// Sets the principal: a local user, a token's subject, an embedder's name. Each principal has
    /// separate shares, buckets, stored secrets and approvals. Default: [`LOCAL`](crate::LOCAL).
    pub fn principal(mut self, principal: impl Into<Arc<str>>) -> Self {
        self.scope_mut().principal = principal.into();
        self
    }

    /// Lets only this driver serve the call.
    pub fn pinned_driver(mut self, driver: impl Into<String>) -> Self {
        self.pinned_driver = Some(driver.into());
        self
    }

    /// Lowers the deadline. It can't be raised above the limits of contract and operator.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Gives the call an id, as an idempotency key: a UUIDv7, at most a day old and at most 5
    /// minutes ahead. Repeating the id with another input fails with
    /// [`INPUT_INVALID`](crate::ErrorCode::INPUT_INVALID).
    ///
    /// A call that repeats the id of an earlier one of the same principal and tool is decided and
    /// approved like any other. Then, instead of running, it gets the earlier call's reply, with
    /// [`CallFacts::repeats`](crate::CallFacts::repeats). It waits while the earlier call runs. The
    /// hosts of one [`SharedState`](crate::SharedState) keep the last 64 replies of each principal,
    /// at most 4 MiB, for ten minutes. After that, a repeated call that may change something ends
    /// with [`ALREADY_RUN`](crate::ErrorCode::ALREADY_RUN), and a repeated call that changes
    /// nothing runs again. If calls are [recorded](crate::HostBuilder::recorder), the host
    /// remembers the id of each call that ran, even across restarts, until the id is too old to be
    /// valid. Otherwise it remembers the last 4,096 ids of each principal until the process ends.
    ///
    /// If the driver of a call did not start, the id stays unused.
    ///
    /// ```
    /// use toolward_host::Request;
    ///
    /// let id = uuid::Uuid::now_v7().to_string();
    /// let request = Request::new("notes.append", r#"{"text": "Hello"}"#).named(id);
    /// ```
    pub fn named(mut self, id: impl Into<String>) -> Self {
        let id = id.into();
        self.named = Some(Box::new(Named { id, session: None }));
        self
    }

    /// Like [`named`](Self::named), for an id that is valid only within this session of the
    /// principal.
    pub fn named_within(mut self, id: impl Into<String>, session: impl Into<String>) -> Self {
        let (id, session) = (id.into(), Some(session.into()));
        self.named = Some(Box::new(Named { id, session }));
        self
    }

    fn scope_mut(&mut self) -> &mut CallScope {
        Arc::make_mut(&mut self.scope)
    }

    /// Sets the kinds of driver questions for which the caller can obtain answers. If the driver
    /// asks such a question, [`Reply::asked`](crate::Reply::asked) is set. Default: none.
    pub fn answerable(mut self, answerable: Answerable) -> Self {
        self.scope_mut().answerable = answerable;
        self
    }

    /// Resumes a call that asked questions, with the answers. The rest of the request must be
    /// unchanged.
    pub fn resume(mut self, resume: Resume) -> Self {
        self.resume = Some(Box::new(resume));
        self
    }

    /// Returns the reply before the driver's instance is dropped. This holds only for successful
    /// calls with a short output without blocks. The tool, and each tool that it may call, must
    /// change nothing and have risk level 0. A task of the current tokio runtime drops the
    /// instance. Until then the call counts towards
    /// [`Limits::concurrency`](crate::Limits::concurrency), so the next call may have to wait, or
    /// is refused if the host has no queue.
    ///
    /// Only drivers of `kind: component` have an instance; a nested call's instance is always
    /// dropped before its reply. Default: the instance is dropped first.
    pub fn answer_first(mut self) -> Self {
        self.scope_mut().answers_first = true;
        self
    }

    /// Sets the ids of the call in the caller's protocol, for its events and records. Nested calls
    /// have no such ids.
    ///
    /// ```
    /// use toolward_host::{Native, NativeId, Request, TraceParent};
    ///
    /// let native = Native {
    ///     call_id: NativeId::parse("7").ok(),
    ///     tool_call_id: NativeId::parse("call_7fK2").ok(),
    ///     traceparent: TraceParent::read("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").ok(),
    /// };
    /// let request = Request::new("text.stats", r#"{"text": "Hello"}"#).native(native);
    /// ```
    pub fn native(mut self, native: Native) -> Self {
        self.scope_mut().native = native;
        self
    }

    /// Sets the shared value from which the host reads the reason of a cancellation. Default: a
    /// call whose future is dropped was cancelled by its [caller](crate::Cancellation::Caller).
    pub fn cancellation(mut self, cancellation: SharedCancellation) -> Self {
        self.scope_mut().cancellation = Some(cancellation);
        self
    }

    /// Sets the approver of this call and its nested calls, instead of the host's approver.
    pub fn approver(mut self, approver: Arc<dyn Approver>) -> Self {
        self.scope_mut().approver = Some(approver);
        self
    }

    /// Sets the observer, which receives the driver's progress and log records, and the progress of
    /// compiling it.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.scope_mut().observer = Some(observer);
        self
    }
}
