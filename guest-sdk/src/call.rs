//! One call from a driver's view: the typed input, and the host's data about the call.

use alloc::format;
use alloc::string::String;
use core::time::Duration;

use serde::de::DeserializeOwned;

use crate::bindings::toolward::driver::types::Invocation;
use crate::{Error, Resume};

/// One call of one tool. The instance serves only this call, so statics are fresh in each call.
#[derive(Clone, Debug)]
pub struct Call<I> {
    /// The input, valid against the contract's `inputs`.
    pub input: I,
    id: String,
    tool: String,
    tool_version: String,
    context: String,
    attempt: u32,
    remaining: Duration,
    idempotency_key: String,
    resume: Option<Resume>,
}

impl<I: DeserializeOwned> Call<I> {
    pub(crate) fn read(raw: Invocation) -> Result<Self, Error> {
        let input = serde_json::from_str(&raw.input).map_err(|error| {
            Error::new(
                "input_invalid",
                format!("the driver's own type for the input does not fit it: {error}"),
            )
        })?;
        Ok(Call {
            input,
            id: raw.id,
            tool: raw.tool,
            tool_version: raw.tool_version,
            context: raw.context,
            attempt: raw.attempt,
            remaining: Duration::from_millis(raw.remaining_ms),
            idempotency_key: raw.idempotency_key,
            resume: raw.resume.map(Resume::from_raw),
        })
    }
}

impl<I> Call<I> {
    /// The invocation's id (UUIDv7), which stays the same over retries and questions.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The id of the called contract.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// The version of the called contract (semver).
    pub fn tool_version(&self) -> &str {
        &self.tool_version
    }

    /// The call's context, set by operator or embedder and valid against the contract's
    /// `contextSchema`. An empty object without a context.
    ///
    /// # Errors
    /// `input_invalid` if `C` does not match the context.
    pub fn context<C: DeserializeOwned>(&self) -> Result<C, Error> {
        serde_json::from_str(&self.context).map_err(|error| {
            Error::new(
                "input_invalid",
                format!("the driver's own type for the context does not fit it: {error}"),
            )
        })
    }

    /// The number of this attempt, from 1. It rises with retries, but not with questions.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The time until the deadline, measured when this attempt started.
    pub fn remaining(&self) -> Duration {
        self.remaining
    }

    /// The idempotency key, which is the same for all attempts of this driver in an invocation.
    /// Send it to upstream services that use such a key to detect repeated requests.
    pub fn idempotency_key(&self) -> &str {
        &self.idempotency_key
    }

    /// The answers, if this call follows questions of the driver.
    pub fn resume(&self) -> Option<&Resume> {
        self.resume.as_ref()
    }
}
