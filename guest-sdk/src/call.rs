//! One call as a driver sees it: typed input beside what the host says of it.

use alloc::format;
use alloc::string::String;
use core::time::Duration;

use serde::de::DeserializeOwned;

use crate::bindings::toolward::driver::types::Invocation;
use crate::{Error, Resume};

/// One call of one tool. The instance that runs it serves this call only, so
/// statics start fresh each time.
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
    /// The invocation's id (UUIDv7), the same over retries and questions.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The id of the contract that is called.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// The version of the contract that is called (semver).
    pub fn tool_version(&self) -> &str {
        &self.tool_version
    }

    /// The call's context, set by operator or embedder and valid against the
    /// contract's `contextSchema`; an empty object where there is none.
    ///
    /// # Errors
    /// `input_invalid` where `C` does not fit the context.
    pub fn context<C: DeserializeOwned>(&self) -> Result<C, Error> {
        serde_json::from_str(&self.context).map_err(|error| {
            Error::new(
                "input_invalid",
                format!("the driver's own type for the context does not fit it: {error}"),
            )
        })
    }

    /// Which attempt this is, from 1. Rises with retries, not with questions.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Time to the deadline, as measured when this call started.
    pub fn remaining(&self) -> Duration {
        self.remaining
    }

    /// The same for all attempts of one invocation: send it to upstreams that
    /// can tell a repeated request by it.
    pub fn idempotency_key(&self) -> &str {
        &self.idempotency_key
    }

    /// The answers, where this call follows questions that the driver asked.
    pub fn resume(&self) -> Option<&Resume> {
        self.resume.as_ref()
    }
}
