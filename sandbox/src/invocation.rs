//! What a driver gets and returns, in the host's own types. Each version of the driver
//! world converts to and from them (`world`); a driver without code
//! uses them, too.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolward_contract::tool::Tool;

use crate::result::{Block, CallError};

/// One call, as a driver gets it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Invocation {
    /// The invocation's id.
    pub id: String,
    /// Equal for all attempts, and for all calls of one id that a caller gave.
    pub idempotency_key: String,
    /// The tool's id.
    pub tool: String,
    /// The contract's version.
    pub tool_version: String,
    /// The validated input, as JSON text.
    pub input: String,
    /// The validated context, as JSON text.
    pub context: String,
    /// Counts from 1.
    pub attempt: u32,
    /// Milliseconds until the call's deadline.
    pub remaining_ms: u64,
    /// Set if the call resumes after questions.
    pub resume: Option<Resumption>,
}

/// The answers with which a call resumes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Resumption {
    /// The driver's own state, unchanged.
    pub state: Vec<u8>,
    /// One answer to each question.
    pub answers: Vec<QuestionAnswer>,
    /// Why an answer does not fit its question, for a driver that may ask again.
    pub rejected: Option<String>,
}

/// The reply to one question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QuestionAnswer {
    /// The question's key.
    pub key: String,
    /// The reply to it.
    pub reply: QuestionReply,
}

/// An answer, or why there is none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum QuestionReply {
    /// The answer, as JSON text.
    Accepted(String),
    /// The person declined.
    Declined,
    /// The person dismissed the question.
    Cancelled,
}

/// How a call, or one attempt of it, ended: from the driver, whose output and questions are not checked yet, to the
/// reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum CallEnd<O = DriverOutput, Q = InputRequest, E = CallError> {
    /// With an output.
    Done(O),
    /// With questions that must be answered first.
    Asks(Q),
    /// With an error.
    Failed(E),
}

impl<O, Q, E> From<Result<O, E>> for CallEnd<O, Q, E> {
    fn from(result: Result<O, E>) -> Self {
        result.map_or_else(Self::Failed, Self::Done)
    }
}

/// What a driver returned.
pub type DriverEnd = CallEnd<DriverOutput, InputRequest, DriverError>;

/// A driver's output, unchecked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DriverOutput {
    /// JSON text.
    pub structured: String,
    /// Blocks for people and models.
    pub content: Vec<Block>,
    /// Bytes of the blocks apart from their content, in the world's own types. They count
    /// as memory of the call.
    pub lifted_bytes: u64,
}

impl DriverOutput {
    /// An output of JSON text alone.
    #[must_use]
    pub fn new(structured: String) -> Self {
        Self {
            structured,
            content: Vec::new(),
            lifted_bytes: 0,
        }
    }

    /// The output of a driver that succeeded and returned nothing, as a service does that answers 204: null if the
    /// contract accepts it, else an empty object. If it accepts neither, null, which is then refused.
    #[must_use]
    pub fn empty(contract: &Tool) -> Self {
        let empty = Value::Object(serde_json::Map::new());
        let accepts = |value: &Value| contract.outputs.validate(value).is_ok();
        let output = match !accepts(&Value::Null) && accepts(&empty) {
            true => empty,
            false => Value::Null,
        };
        Self::new(output.to_string())
    }
}

/// A driver's error, in its own words.
#[derive(Debug)]
pub struct DriverError {
    /// The code.
    pub code: String,
    /// What happened.
    pub message: String,
    /// Whether the same call may work later.
    pub retryable: bool,
    /// How long to wait before a retry.
    pub retry_after_ms: Option<u64>,
    /// Usually JSON text.
    pub cause: Option<String>,
}

/// Questions of a driver, unchecked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InputRequest {
    /// What it asks, in order.
    pub questions: Vec<DriverQuestion>,
    /// What the driver gets back with the answers.
    pub state: Vec<u8>,
}

/// One question of a driver.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DriverQuestion {
    /// Unique among the questions asked at once.
    pub key: String,
    /// What is asked.
    pub ask: DriverAsk,
}

/// What a driver asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum DriverAsk {
    /// A form for a person.
    Form {
        /// The text for the person.
        message: String,
        /// The fields, as JSON text.
        schema: String,
    },
    /// Parameters of MCP `sampling/createMessage`, as JSON text.
    Sample(String),
    /// The caller's workspace roots.
    Roots,
}

/// A call of another tool that a driver asks for.
#[derive(Debug)]
pub struct ToolCall {
    /// `id@major` or an id.
    pub tool: String,
    /// The input, as JSON text.
    pub input: String,
    /// Milliseconds that it may take; by default what its contract allows.
    pub timeout_ms: Option<u64>,
}
