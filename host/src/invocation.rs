//! What a driver gets and returns, in the host's own types. Each version of the driver
//! world converts to and from them ([`crate::sandbox::world`]); a driver without code
//! uses them, too.

use crate::api::result::Block;

/// One call, as a driver gets it.
#[derive(Debug)]
pub(crate) struct Invocation {
    /// The invocation's id.
    pub(crate) id: String,
    /// Equal for all attempts, and for all calls of one id that a caller gave.
    pub(crate) idempotency_key: String,
    pub(crate) tool: String,
    pub(crate) tool_version: String,
    /// The validated input, as JSON text.
    pub(crate) input: String,
    /// The validated context, as JSON text.
    pub(crate) context: String,
    /// Counts from 1.
    pub(crate) attempt: u32,
    /// Milliseconds until the call's deadline.
    pub(crate) remaining_ms: u64,
    /// Set if the call resumes after questions.
    pub(crate) resume: Option<Resumption>,
}

/// The answers with which a call resumes.
#[derive(Debug)]
pub(crate) struct Resumption {
    /// The driver's own state, unchanged.
    pub(crate) state: Vec<u8>,
    pub(crate) answers: Vec<QuestionAnswer>,
    /// Why an answer does not fit its question, for a driver that may ask again.
    pub(crate) rejected: Option<String>,
}

/// The reply to one question.
#[derive(Debug)]
pub(crate) struct QuestionAnswer {
    pub(crate) key: String,
    pub(crate) reply: QuestionReply,
}

/// An answer, or why there is none.
#[derive(Debug)]
pub(crate) enum QuestionReply {
    /// JSON text.
    Accepted(String),
    Declined,
    Cancelled,
}

/// What a driver returns if it does not fail.
#[derive(Debug)]
pub(crate) enum Returned {
    Done(DriverOutput),
    NeedsInput(InputRequest),
}

/// A driver's output, unchecked.
#[derive(Debug)]
pub(crate) struct DriverOutput {
    /// JSON text.
    pub(crate) structured: String,
    pub(crate) content: Vec<Block>,
    /// Bytes of the blocks beside their content, in the world's own types. They count
    /// as memory of the call.
    pub(crate) lifted_bytes: u64,
}

/// A driver's error, in its own words.
#[derive(Debug)]
pub(crate) struct DriverError {
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) retryable: bool,
    pub(crate) retry_after_ms: Option<u64>,
    /// Usually JSON text.
    pub(crate) cause: Option<String>,
}

/// Questions of a driver, unchecked.
#[derive(Debug)]
pub(crate) struct InputRequest {
    pub(crate) questions: Vec<DriverQuestion>,
    pub(crate) state: Vec<u8>,
}

/// One question of a driver.
#[derive(Debug)]
pub(crate) struct DriverQuestion {
    pub(crate) key: String,
    pub(crate) ask: DriverAsk,
}

/// What a driver asks for.
#[derive(Debug)]
pub(crate) enum DriverAsk {
    Form {
        message: String,
        /// JSON text.
        schema: String,
    },
    /// Parameters of MCP `sampling/createMessage`, as JSON text.
    Sample(String),
    Roots,
}

/// A call of another tool that a driver asks for.
#[derive(Debug)]
pub(crate) struct ToolCall {
    pub(crate) tool: String,
    /// JSON text.
    pub(crate) input: String,
    pub(crate) timeout_ms: Option<u64>,
}
