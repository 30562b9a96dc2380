//! What a driver gets and returns: the types of the driver's world, which a driver without code uses, too, and what
//! the host adds.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolward_contract::tool::Tool;

use crate::result::{Block, CallError};

pub use crate::bindings::toolward::driver::tools::Request as ToolCall;
pub use crate::bindings::toolward::driver::types::{
    Answer as QuestionAnswer, Ask as DriverAsk, Form as DriverForm, InputRequest, Invocation,
    Question as DriverQuestion, Reply as QuestionReply, Resumption, ToolError as DriverError,
};

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
    pub fn new(structured: String) -> Self {
        Self {
            structured,
            content: Vec::new(),
            lifted_bytes: 0,
        }
    }

    /// The output of a driver that succeeded and returned nothing, as a service does that answers 204: null if the
    /// contract accepts it, else an empty object. If it accepts neither, null, which is then refused.
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
