//! Where a declarative driver's output is in the JSON response, and taking it out. Not its validation.

mod json_path;
mod read;

use serde_json::{Map, Value};
use toolward_report::codes;

use crate::json::{self, JsonError, Limits};

pub use json_path::JsonPath;

/// Where the output is in a JSON response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Response {
    /// The whole body.
    #[default]
    Whole,
    /// What `response_extract` selects.
    Extract(JsonPath),
    /// The part that a JSON pointer names.
    Pointer(String),
    /// An object made of parts: output name and JSON pointer.
    Outputs(Vec<(String, String)>),
}

/// Why a response holds no output.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExtractError {
    /// The response has nothing at the place of the output.
    #[error("expected the output at {pointer} of the response, found nothing there")]
    Missing {
        /// The JSON pointer, or the path.
        pointer: String,
    },
    /// The output is larger than it may be.
    #[error("in the output: {0}")]
    Limit(JsonError),
    /// A path looks at more values than a document may have.
    #[error("expected a path that looks at no more than {allowed} values, found one that does")]
    TooManySteps {
        /// The limit.
        allowed: usize,
    },
}

codes! {
    for ExtractError {
        Self::Missing { .. } = "http-response-missing";
        Self::Limit(error) = (error.code());
        Self::TooManySteps { .. } = "http-response-too-many";
    }
}

impl Response {
    /// The output in a response's parsed body; null stands for a response without one. An output of
    /// [`Response::Outputs`] that is not there is absent: whether it may be is the contract's to say.
    ///
    /// # Errors
    /// Nothing where [`Response::Pointer`] or [`Response::Extract`] points, or an output beyond
    /// `limits`: several outputs may name the same part, which is therefore counted before it is
    /// copied.
    pub fn extract(&self, body: &Value, limits: &Limits) -> Result<Value, ExtractError> {
        let output = match self {
            Response::Whole => body,
            Response::Pointer(pointer) => {
                body.pointer(pointer).ok_or_else(|| ExtractError::Missing {
                    pointer: pointer.clone(),
                })?
            }
            Response::Extract(path) => return path.select(body, limits),
            Response::Outputs(parts) => return outputs(parts, body, limits),
        };
        json::check(output, limits).map_err(ExtractError::Limit)?;
        Ok(output.clone())
    }
}

fn outputs(
    parts: &[(String, String)],
    body: &Value,
    limits: &Limits,
) -> Result<Value, ExtractError> {
    let mut output = Map::new();
    let mut left = inner(limits);
    for (name, pointer) in parts {
        if let Some(part) = body.pointer(pointer) {
            output.insert(name.clone(), copied(part, &mut left)?);
        }
    }
    let output = Value::Object(output);
    json::check(&output, limits).map_err(ExtractError::Limit)?;
    Ok(output)
}

/// The limits of what stands one level deeper.
fn inner(limits: &Limits) -> Limits {
    Limits {
        depth: limits.depth.saturating_sub(1),
        ..*limits
    }
}

/// A copy of a part, counted before it is made.
fn copied(part: &Value, left: &mut Limits) -> Result<Value, ExtractError> {
    let spent = json::measure(part, left).map_err(ExtractError::Limit)?;
    left.bytes = left.bytes.saturating_sub(spent.bytes);
    left.values = left.values.saturating_sub(spent.values);
    Ok(part.clone())
}
