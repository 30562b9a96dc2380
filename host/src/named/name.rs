//! The checked id of a call, and the keys derived from it: in memory, in the ledger and for
//! drivers.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use toolward_ledger::Given;
use toolward_ledger::record::{Hex, Invocation, Tool};
use toolward_state::CallId;
use uuid::{Builder, Uuid, Variant};

use crate::api::result::{CallError, Result, invalid_arguments};
use crate::digest;
use crate::elicitation::{Answer, Resume};

/// The highest age of an id. A ledger keeps ids for longer, so an id expires before it is
/// forgotten.
const MAX_AGE: Duration = Duration::from_hours(24);
/// How far an id may be in the future, since clocks differ.
const MAX_AHEAD: Duration = Duration::from_mins(5);

/// The id that a request gives, unchecked.
#[derive(Debug, Clone)]
pub(crate) struct Named {
    pub(crate) id: String,
    /// The session that the id is bound to, if any.
    pub(crate) session: Option<String>,
}

/// An id that was checked, with the properties of its call.
pub(crate) struct CallName {
    principal: String,
    /// The principal, with the session that the id is bound to, if any.
    scope: String,
    tool: String,
    id: Uuid,
    /// The id of this part of the call. Each resumption is a separate part and runs once.
    part: Uuid,
    /// A digest of the caller's input, context and answers.
    input: [u8; 32],
}

impl Named {
    /// Checks the id of a call of this tool (`id@major`), with this input and with the context that
    /// the caller brought.
    ///
    /// # Errors
    /// [`INPUT_INVALID`](crate::ErrorCode::INPUT_INVALID) if the id is not a UUIDv7 that is at most
    /// a day old and at most 5 minutes ahead.
    pub(crate) fn check(
        &self,
        principal: &str,
        tool: &str,
        (input, context): (&Value, Option<&Value>),
        resume: Option<&Resume>,
    ) -> Result<CallName> {
        let id = read(&self.id, SystemTime::now())?;
        let (answers, round) = match resume {
            None => (Value::Null, 0),
            Some(resume) => (answers(resume), resume.asked.round),
        };
        let session = self.session.as_deref().unwrap_or_default();
        let given = json!([input, context, answers]);
        Ok(CallName {
            principal: principal.to_owned(),
            // Without colons in the session, session and principal can't be confused.
            scope: format!("{}:{principal}", session.replace(':', "_")),
            tool: tool.to_owned(),
            id,
            part: part(id, round),
            input: *digest::value(&given).as_bytes(),
        })
    }
}

impl CallName {
    /// The key of the call in the state.
    pub(super) fn new_call(&self) -> CallId {
        CallId {
            principal: *blake3::hash(self.principal.as_bytes()).as_bytes(),
            id: self.key(),
            input: self.input,
            call: Uuid::now_v7().into_bytes(),
        }
    }

    fn key(&self) -> [u8; 32] {
        *blake3::hash(&message([&self.scope, &self.tool], self.part)).as_bytes()
    }

    /// The id in the form that the ledger stores.
    ///
    /// # Errors
    /// An internal error of the host.
    pub(crate) fn given(&self) -> Result<Given> {
        let tool = Tool::parse(&self.tool).or_else(|_| Tool::parse(&unfit(&self.tool)));
        Ok(Given {
            principal: Arc::from(self.scope.as_str()),
            tool: tool.map_err(|error| CallError::internal(error.to_string()))?,
            id: Invocation::from_bytes(*self.part.as_bytes()),
            input: Hex(self.input),
        })
    }

    /// The text whose keyed hash is a driver's idempotency key: principal, tool, driver and id. A
    /// service learns neither the id nor that two drivers serve the same call.
    pub(super) fn for_driver(&self, driver: &str) -> Vec<u8> {
        message([&self.scope, &self.tool, driver], self.id)
    }
}

/// Reads a UUIDv7 (RFC 9562, section 5.7) that is at most a day old and at most 5 minutes ahead.
fn read(text: &str, now: SystemTime) -> Result<Uuid> {
    let is_v7 = |uuid: &Uuid| uuid.get_version_num() == 7 && uuid.get_variant() == Variant::RFC4122;
    let uuid = Uuid::try_parse(text).ok().filter(is_v7);
    let Some(uuid) = uuid.filter(|_| text.len() == 36) else {
        return Err(refused(
            "expected the call's id to be a UUIDv7, 36 characters with dashes",
        ));
    };
    let [a, b, c, d, e, f, ..] = *uuid.as_bytes();
    let made = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
    let made = UNIX_EPOCH.checked_add(Duration::from_millis(made));
    match made.map(|made| now.duration_since(made)) {
        Some(Ok(age)) if age <= MAX_AGE => Ok(uuid),
        Some(Err(ahead)) if ahead.duration() <= MAX_AHEAD => Ok(uuid),
        Some(Ok(_)) => Err(refused("the call's id is more than a day old")),
        Some(Err(_)) | None => Err(refused("the call's id is more than 5 minutes ahead")),
    }
}

fn refused(message: &str) -> CallError {
    invalid_arguments(message).with_hint(
        "make a new UUIDv7 for each call that is not a repetition, by a clock that is right",
    )
}

/// The answers of a call that resumes, as a value.
fn answers(resume: &Resume) -> Value {
    let answers = resume.answers.iter().map(|(key, answer)| match answer {
        Answer::Accepted(value) => json!([key, "accepted", value]),
        Answer::Declined => json!([key, "declined"]),
        Answer::Cancelled => json!([key, "cancelled"]),
    });
    json!([resume.asked.invocation, answers.collect::<Vec<_>>()])
}

/// The id of a part of the call: the id itself for the first part, and a derived id for each
/// resumption.
fn part(id: Uuid, round: u32) -> Uuid {
    match round {
        0 => id,
        round => {
            let mut hasher = blake3::Hasher::new_derive_key("toolward resumptions of a call 1");
            hasher.update(id.as_bytes());
            hasher.update(&round.to_le_bytes());
            custom(hasher.finalize().as_bytes())
        }
    }
}

/// A UUIDv8 of the hash's first bytes.
pub(super) fn custom(hash: &[u8; 32]) -> Uuid {
    let first = hash.first_chunk().copied().unwrap_or_default();
    Builder::from_custom_bytes(first).into_uuid()
}

/// Joins texts, each with its length, and an id.
fn message<const N: usize>(texts: [&str; N], id: Uuid) -> Vec<u8> {
    let mut message = Vec::with_capacity(256);
    for text in texts {
        message.extend_from_slice(&(text.len() as u64).to_le_bytes());
        message.extend_from_slice(text.as_bytes());
    }
    message.extend_from_slice(id.as_bytes());
    message
}

/// The name in the ledger of a tool whose own name does not have the form that records require.
fn unfit(tool: &str) -> String {
    format!("unfit.{}@0", blake3::hash(tool.as_bytes()).to_hex())
}

#[cfg(test)]
mod tests;
