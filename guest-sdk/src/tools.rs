//! Calls to other tools, named in the contract's `requires.tools` and granted. Each call goes
//! through all stages of the host, with the rest of this call's limits.
//!
//! Outside a component (in a driver's own tests), only the tools of [`testing::Grants`] exist.

use alloc::string::String;
use core::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bindings::toolward::driver::tools as wit;
#[cfg(not(target_family = "wasm"))]
use crate::testing;
use crate::{Error, Reply};

/// Calls a tool and reads its structured output as an `O`.
///
/// ```
/// # use toolward_guest::{tools, Error};
/// fn words(text: &str) -> Result<u64, Error> {
///     let stats: serde_json::Value =
///         tools::call("text.stats", &serde_json::json!({"text": text}))?;
///     Ok(stats["words"].as_u64().unwrap_or(0))
/// }
/// # assert_eq!(words("a b").unwrap_err().code(), "not_found");
/// ```
///
/// # Errors
/// The errors of the called tool, `unauthorised` without a grant, `upstream_error` if the output is
/// not the JSON of an `O`.
pub fn call<O: DeserializeOwned>(tool: &str, input: &impl Serialize) -> Result<O, Error> {
    let reply = Request::new(tool, input)?.send()?;
    Ok(serde_json::from_value(reply.into_structured())?)
}

/// A call to another tool, for callers that need the whole reply or a lower deadline.
#[derive(Clone, Debug)]
pub struct Request(wit::Request);

impl Request {
    /// Creates a call of this contract id with this input.
    ///
    /// # Errors
    /// `upstream_error` if the input has no JSON form.
    pub fn new(tool: impl Into<String>, input: &impl Serialize) -> Result<Self, Error> {
        Ok(Request(wit::Request {
            tool: tool.into(),
            input: serde_json::to_string(input)?,
            timeout_ms: None,
        }))
    }

    /// Lowers the deadline for this call; it can't be raised.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.0.timeout_ms = Some(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
        self
    }

    /// Makes the call.
    ///
    /// # Errors
    /// The errors of [`call`].
    pub fn send(&self) -> Result<Reply<serde_json::Value>, Error> {
        self.answer()
    }

    #[cfg(target_family = "wasm")]
    fn answer(&self) -> Result<Reply<serde_json::Value>, Error> {
        wit::call(&self.0)
            .map_err(Error::from_raw)
            .and_then(Reply::from_raw)
    }

    #[cfg(not(target_family = "wasm"))]
    fn answer(&self) -> Result<Reply<serde_json::Value>, Error> {
        let input = serde_json::from_str(&self.0.input)?;
        testing::call_tool(&self.0.tool, input)
            .unwrap_or_else(|| {
                Err(Error::new(
                    "not_found",
                    "there are no other tools outside a host",
                ))
            })
            .map(Reply::new)
    }
}
