//! The values that a driver gets and returns. They have the types of the driver's world, also for
//! drivers without code.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolward_contract::tool::Tool;

use crate::result::{Block, CallError};

pub use crate::bindings::toolward::driver::tools::Request as ToolCall;
pub use crate::bindings::toolward::driver::types::{
    Answer as QuestionAnswer, Ask as DriverAsk, Form as DriverForm, InputRequest, Invocation,
    Question as DriverQuestion, Reply as QuestionReply, Resumption, ToolError as DriverError,
};

/// How a call or one of its attempts ended. The type parameters differ between stages: from the
/// unchecked output and questions of a driver, up to the reply.
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

/// The result of a driver.
pub type DriverEnd = CallEnd<DriverOutput, InputRequest, DriverError>;

/// A driver's output, unchecked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DriverOutput {
    /// JSON text.
    pub structured: String,
    /// Blocks for people and models.
    pub content: Vec<Block>,
    /// The bytes that the blocks take in the world's own types, without their content. They count
    /// as memory of the call.
    pub lifted_bytes: u64,
}

impl DriverOutput {
    /// An output of only JSON text.
    pub fn new(structured: String) -> Self {
        Self {
            structured,
            content: Vec::new(),
            lifted_bytes: 0,
        }
    }

    /// The output of a driver that succeeded and returned nothing, for example because its service
    /// answered 204. It is null if the contract accepts null, and otherwise an empty object if the
    /// contract accepts one. If the contract accepts neither, it is null, which is refused later.
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
