//! How a call ends when it does not fail: with a value, or with questions.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde::Serialize;

use crate::bindings::toolward::driver::types as wit;
use crate::{Block, Error, Questions};

/// The structured output, and content blocks that a model reads in addition to it or instead.
///
/// ```
/// use toolward_guest::{Block, Call, Error, Reply};
///
/// fn sum(call: Call<Vec<f64>>) -> Result<Reply<f64>, Error> {
///     let sum: f64 = call.input.iter().sum();
///     Ok(Reply::new(sum).block(Block::text(format!("The sum is {sum}.")).for_user()))
/// }
/// # let reply = toolward_guest::testing::invoke(sum, serde_json::json!([1, 2])).unwrap();
/// # assert_eq!(reply.blocks().len(), 1);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Reply<T> {
    structured: T,
    content: Vec<Block>,
}

impl<T> Reply<T> {
    /// A reply with this value and without blocks. The host then shows the value's JSON as text.
    pub fn new(structured: T) -> Self {
        Reply {
            structured,
            content: Vec::new(),
        }
    }

    /// Adds a content block.
    #[must_use]
    pub fn block(mut self, block: Block) -> Self {
        self.content.push(block);
        self
    }

    /// Adds a block of plain text.
    #[must_use]
    pub fn text(self, text: impl Into<String>) -> Self {
        self.block(Block::text(text))
    }

    /// The structured output.
    pub fn structured(&self) -> &T {
        &self.structured
    }

    /// The blocks, in order.
    pub fn blocks(&self) -> &[Block] {
        &self.content
    }

    /// Returns only the structured output.
    pub fn into_structured(self) -> T {
        self.structured
    }
}

impl Reply<serde_json::Value> {
    pub(crate) fn from_raw(raw: wit::ToolOutput) -> Result<Self, Error> {
        Ok(Reply {
            structured: serde_json::from_str(&raw.structured)?,
            content: raw.content.into_iter().map(Block::from_raw).collect(),
        })
    }
}

/// The result of a handler that may ask questions before it can finish.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome<T> {
    /// The call is finished.
    Done(Reply<T>),
    /// The driver needs answers, and is called again with them.
    Ask(Questions),
}

impl<T> Outcome<T> {
    /// A finished call with this value and without blocks.
    pub fn done(value: T) -> Self {
        Outcome::Done(Reply::new(value))
    }
}

impl<T> From<Reply<T>> for Outcome<T> {
    fn from(reply: Reply<T>) -> Self {
        Outcome::Done(reply)
    }
}

impl<T> From<Questions> for Outcome<T> {
    fn from(questions: Questions) -> Self {
        Outcome::Ask(questions)
    }
}

/// The types that a handler may return: any `Serialize` type, a [`Reply`] or an [`Outcome`].
pub trait IntoOutcome {
    #[doc(hidden)]
    fn into_outcome(self) -> Result<wit::Outcome, Error>;
}

impl<T: Serialize> IntoOutcome for T {
    fn into_outcome(self) -> Result<wit::Outcome, Error> {
        Reply::new(self).into_outcome()
    }
}

impl<T: Serialize> IntoOutcome for Reply<T> {
    fn into_outcome(self) -> Result<wit::Outcome, Error> {
        let structured = serde_json::to_string(&self.structured).map_err(|error| {
            Error::new("internal", format!("the output has no JSON form: {error}"))
        })?;
        Ok(wit::Outcome::Done(wit::ToolOutput {
            structured,
            content: self.content.into_iter().map(Block::into_raw).collect(),
        }))
    }
}

impl<T: Serialize> IntoOutcome for Outcome<T> {
    fn into_outcome(self) -> Result<wit::Outcome, Error> {
        match self {
            Outcome::Done(reply) => reply.into_outcome(),
            Outcome::Ask(questions) => Ok(wit::Outcome::NeedsInput(questions.into_raw()?)),
        }
    }
}
