//! What a caller asks for.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::approval::Approver;
use crate::asking::{Answerable, Resume};
use crate::lineage::Lineage;
use crate::observer::Observer;

/// The input of a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Input {
    /// JSON text; its size and form are checked while it is parsed.
    Text(String),
    /// A value that the caller built; checked by the same rules.
    Value(Value),
}

/// The principal of calls that name none: whoever runs the host's process.
pub const LOCAL: &str = "local";

/// One call of one tool.
#[derive(Clone)]
pub struct Request {
    pub(crate) principal: String,
    pub(crate) tool: String,
    pub(crate) input: Input,
    pub(crate) context: Option<Value>,
    /// `context.pinnedProvider`, which is no part of the context.
    pub(crate) pinned_provider: Option<Value>,
    pub(crate) pinned_driver: Option<String>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) observer: Option<Arc<dyn Observer>>,
    pub(crate) lineage: Lineage,
    pub(crate) answerable: Answerable,
    pub(crate) resume: Option<Box<Resume>>,
    pub(crate) approver: Option<Arc<dyn Approver>>,
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

    /// Whether the input's text has fewer than `bytes` bytes.
    pub(crate) fn is_below(&self, bytes: usize) -> bool {
        match &self.input {
            Input::Text(text) => text.len() < bytes,
            Input::Value(value) => serde_json::to_writer(Room(bytes), value).is_ok(),
        }
    }

    fn with_input(tool: String, input: Input) -> Self {
        Self {
            principal: LOCAL.to_owned(),
            tool,
            input,
            context: None,
            pinned_provider: None,
            pinned_driver: None,
            timeout: None,
            observer: None,
            lineage: Lineage::default(),
            answerable: Answerable::default(),
            resume: None,
            approver: None,
        }
    }

    /// Host-supplied state, checked against the contract's `contextSchema`.
    /// Comes from the operator or embedder, never from a model's arguments.
    ///
    /// `pinnedProvider` (AIP-30) is the host's: it pins a driver by its id, as
    /// [`pinned_driver`](Self::pinned_driver) does, and is neither checked against
    /// the schema nor handed to the driver.
    #[must_use]
    pub fn context(mut self, context: Value) -> Self {
        let mut context = context;
        self.pinned_provider = context
            .as_object_mut()
            .and_then(|members| members.shift_remove("pinnedProvider"))
            .filter(|pin| !pin.is_null());
        self.context = Some(context);
        self
    }

    /// Who calls: a local user, a token's subject, an embedder's name. Shares,
    /// buckets, stored secrets and approvals are kept apart by it. Default:
    /// [`LOCAL`].
    #[must_use]
    pub fn principal(mut self, principal: impl Into<String>) -> Self {
        self.principal = principal.into();
        self
    }

    /// Only this driver may serve the call.
    #[must_use]
    pub fn pinned_driver(mut self, driver: impl Into<String>) -> Self {
        self.pinned_driver = Some(driver.into());
        self
    }

    /// Lowers the deadline; never raises it over what contract and operator
    /// allow.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Makes it a call of a tool by a tool.
    pub(crate) fn below(mut self, lineage: Lineage) -> Self {
        self.lineage = lineage;
        self
    }

    /// Says which questions of a driver the caller can have answered. Where it asks
    /// one of them, [`Reply::asked`](crate::Reply::asked) is set. Default: none.
    #[must_use]
    pub fn answerable(mut self, answerable: Answerable) -> Self {
        self.answerable = answerable;
        self
    }

    /// Goes on with a call that asked, with the answers. All else of the request
    /// has to be as it was.
    #[must_use]
    pub fn resume(mut self, resume: Resume) -> Self {
        self.resume = Some(Box::new(resume));
        self
    }

    /// Who asks people for this call, and for those that it makes, instead of the
    /// host's own approver.
    #[must_use]
    pub fn approver(mut self, approver: Arc<dyn Approver>) -> Self {
        self.approver = Some(approver);
        self
    }

    /// Receives progress and log records while the driver runs.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self
    }
}

/// Takes so many bytes and keeps none.
struct Room(usize);

impl std::io::Write for Room {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self
            .0
            .checked_sub(bytes.len())
            .ok_or(std::io::ErrorKind::FileTooLarge)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Not the input: it may hold what no log should.
        f.debug_struct("Request")
            .field("tool", &self.tool)
            .finish_non_exhaustive()
    }
}
