//! Ids that callers give their calls, as idempotency keys: as long as an id of a principal and tool
//! is known, a call with this id does not run again.
//!
//! An id affects dispatch only: a repeated call is resolved, validated, decided and approved like
//! any other. Then it waits until the first call has ended, and gets that call's reply. The state
//! keeps replies for a while ([`NamedCalls`]). A ledger, if configured, knows ids beyond the life
//! of this process.

mod name;

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolward_sandbox::result::Limited;
use toolward_state::{
    Begun, CallEnding, CallId, Calls, Keys, MAX_REPLY_BYTES, StateError, StoredReply, detach,
    settled,
};

use crate::api::facts::CallFacts;
use crate::api::result::{CallError, ErrorCode, Origin, Output, Result, invalid_arguments};
use name::custom;
pub(crate) use name::{CallName, Named};

/// The error if a call with this id was started before and its reply is not kept.
pub(crate) fn already_run() -> CallError {
    CallError::of(ErrorCode::ALREADY_RUN,
        "a call with this id was started before, and its reply is not kept; it was not made again",
    )
    .with_hint(
        "find out what the first call did before you call again under another id: the operator's ledger has it, \
         where there is one",
    )
}

/// The error if the id was given with another input.
pub(crate) fn other_input() -> CallError {
    invalid_arguments("this id was given to a call with another input")
        .with_hint("give each call an id of its own; repeat one only to repeat its call unchanged")
}

/// The longest time for reporting the end of a call to the state.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// The calls that have ids, over all hosts that replace each other.
pub(crate) struct NamedCalls {
    pub(crate) calls: Arc<dyn Calls>,
    pub(crate) keys: Arc<dyn Keys>,
}

impl NamedCalls {
    /// The idempotency key that a driver gets.
    ///
    /// # Errors
    /// If the keys can't be used.
    pub(crate) async fn idempotency_key(
        &self,
        name: &CallName,
        driver: &str,
        deadline: Instant,
    ) -> Result<String> {
        let hash = || self.keys.id_hash(name.for_driver(driver), deadline);
        let hash = settled(deadline, hash).await.map_err(|error| {
            tracing::error!(%error, "a driver's idempotency key can't be made");
            CallError::internal(error.to_string())
        })?;
        Ok(custom(&hash).to_string())
    }

    /// Admits a call with this id. The first call runs. A later call gets the first call's reply,
    /// for which it waits at most `wait`.
    ///
    /// # Errors
    /// [`ErrorCode::ALREADY_RUN`] if the reply is not kept, [`ErrorCode::INPUT_INVALID`] for
    /// another input, [`ErrorCode::RATE_LIMITED`] if too many calls wait, and
    /// [`ErrorCode::TIMEOUT`].
    pub(crate) async fn enter(
        &self,
        name: &Arc<CallName>,
        wait: Duration,
    ) -> Result<Result<RunningCall, Box<KeptReply>>> {
        let started = Instant::now();
        let until = started.checked_add(wait).unwrap_or(started);
        let call = name.new_call();
        // If this future is dropped while it is unknown whether the call started, `running` ends
        // the call.
        let mut running = RunningCall {
            calls: self.calls.clone(),
            name: name.clone(),
            changes: false,
            dispatched: false,
            running: Some(call),
        };
        let begun = settled(until, || self.calls.begin(call, until)).await;
        if matches!(begun, Ok(Begun::New)) {
            return Ok(Ok(running));
        }
        let late = || CallError::timed_out(wait, started.elapsed());
        let begun = begun.map_err(|error| match error {
            StateError::Late => late(),
            error => {
                tracing::error!(%error, "a call of an id was not started");
                CallError::internal(error.to_string())
            }
        })?;
        running.running = None;
        match begun {
            Begun::Replied(bytes) => match KeptReply::read(&bytes) {
                Some(kept) => Ok(Err(Box::new(kept))),
                None => Err(already_run()),
            },
            Begun::New | Begun::Running => Err(late()),
            Begun::Ran => Err(already_run()),
            Begun::Differs => Err(other_input()),
            Begun::Busy(waiting) => Err(busy(waiting)),
        }
    }
}

/// The first call with an id.
pub(crate) struct RunningCall {
    calls: Arc<dyn Calls>,
    pub(crate) name: Arc<CallName>,
    /// Whether a driver that was picked for it may change something.
    pub(crate) changes: bool,
    /// Whether a driver was started.
    pub(crate) dispatched: bool,
    /// Set until the call ends.
    running: Option<CallId>,
}

impl RunningCall {
    /// Ends the call. `recorded` is whether a ledger has the id. Without a `reply`, later calls
    /// with this id get none.
    pub(crate) fn end(mut self, recorded: bool, reply: Option<StoredReply>) {
        let counts = recorded || self.dispatched;
        let remembered = self.changes && !recorded;
        self.finish(match reply {
            Some(reply) if counts => CallEnding::Replied { reply, remembered },
            None if counts && remembered => CallEnding::Ran,
            _ => CallEnding::Forgotten,
        });
    }

    fn finish(&mut self, ending: CallEnding) {
        let Some(call) = self.running.take() else {
            return;
        };
        let calls = self.calls.clone();
        let now = Instant::now();
        let deadline = now.checked_add(END_TIMEOUT).unwrap_or(now);
        // Nothing awaits this task, since it also runs when the call is dropped.
        detach(Box::pin(async move {
            let end = || calls.end(call, ending.clone(), deadline);
            if let Err(error) = settled(deadline, end).await {
                tracing::error!(%error, "the end of a call of an id is not known");
            }
        }));
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        let ran = self.dispatched && self.changes;
        self.finish(match ran {
            true => CallEnding::Ran,
            false => CallEnding::Forgotten,
        });
    }
}

fn busy(waiting: usize) -> CallError {
    CallError::of(
        ErrorCode::RATE_LIMITED,
        format!("{waiting} calls of this principal wait for the first call of their id"),
    )
    .with_retry_after(Duration::from_secs(1))
    .with_hint("wait for the reply of the first call")
}

/// A reply that was kept.
pub(crate) struct KeptReply {
    pub(crate) result: Result<Output>,
    pub(crate) source: ReplySource,
}

/// The source of a kept reply.
#[derive(Serialize, Deserialize)]
pub(crate) struct ReplySource {
    pub(crate) invocation: String,
    pub(crate) driver: Option<Arc<str>>,
    pub(crate) driver_publisher: Option<Arc<str>>,
    pub(crate) bundle: Option<Arc<str>>,
    pub(crate) origin: Option<Origin>,
}

impl KeptReply {
    /// The bytes of a result with its source. `None` if they are too many.
    pub(crate) fn write(result: &Result<Output>, facts: &CallFacts) -> Option<Arc<[u8]>> {
        let source = ReplySource {
            invocation: facts.invocation.clone(),
            driver: facts.driver.clone(),
            driver_publisher: facts.driver_publisher.clone(),
            bundle: facts.bundle.clone(),
            origin: facts.origin,
        };
        // The output or the cause comes first, as a separate document, since each may be as deep as
        // the parser allows.
        let (first, rest) = match result {
            Ok(output) => (Some(&output.structured), (None, &*output.content, source)),
            Err(error) => {
                let mut without_cause = error.clone();
                without_cause.cause = None;
                (error.cause.as_ref(), (Some(without_cause), &[][..], source))
            }
        };
        let mut bytes = Limited::new(MAX_REPLY_BYTES);
        serde_json::to_writer(&mut bytes, first.unwrap_or(&Value::Null)).ok()?;
        serde_json::to_writer(&mut bytes, &(first.is_some(), rest)).ok()?;
        Some(bytes.bytes.into())
    }

    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let mut documents = serde_json::Deserializer::from_slice(bytes);
        let first = Value::deserialize(&mut documents).ok()?;
        let (has_first, (error, content, source)): (bool, (Option<CallError>, _, ReplySource)) =
            Deserialize::deserialize(&mut documents).ok()?;
        let result = match error {
            Some(mut error) => {
                error.cause = has_first.then_some(first);
                Err(error)
            }
            None => Ok(Output {
                structured: first,
                content,
            }),
        };
        Some(Self { result, source })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;
    use toolward_policy::LimitName;
    use toolward_sandbox::exceeded::Exceeded;

    use super::*;
    use crate::api::result::{
        Annotations, Block, BlockContent, ErrorClass, ErrorCode, ResourceBody, Role,
    };

    fn kept(result: &Result<Output, CallError>) -> KeptReply {
        let facts = CallFacts {
            invocation: "i".to_owned(),
            driver: Some("notes".into()),
            origin: Some(Origin::Person),
            ..CallFacts::default()
        };
        KeptReply::read(&KeptReply::write(result, &facts).expect("small")).expect("readable")
    }

    #[test]
    fn a_reply_is_read_as_it_was() {
        let mut deep = json!(-0.1);
        (0..126).for_each(|_| deep = json!([deep]));
        let blocks = [
            BlockContent::Text {
                text: "a\u{0}ä".to_owned(),
            },
            BlockContent::Image {
                data: vec![0, 255],
                mime_type: "image/png".to_owned(),
            },
            BlockContent::ResourceLink {
                uri: "file:///a".to_owned(),
                name: "a".to_owned(),
                title: None,
                description: Some(String::new()),
                mime_type: None,
                size: Some(u64::MAX),
            },
            BlockContent::Resource {
                uri: "file:///b".to_owned(),
                mime_type: None,
                body: ResourceBody::Blob(vec![1]),
            },
        ];
        let annotations = Annotations {
            audience: vec![Role::User],
            priority: Some(0.3),
        };
        let content = blocks.map(|content| Block {
            content,
            annotations: Some(annotations.clone()),
        });
        let output = Ok(Output {
            structured: json!({"b": u64::MAX, "a": 1e300, "deep": deep}),
            content: content.to_vec(),
        });
        let read = kept(&output);
        assert_eq!(read.result, output);
        assert_eq!(read.source.driver.as_deref(), Some("notes"));
        assert_eq!(read.source.origin, Some(Origin::Person));
        assert_eq!(read.source.bundle, None);

        let error = CallError::new(ErrorCode::TIMEOUT, ErrorClass::RateLimited, "late")
            .with_retry_after(Duration::from_millis(1500))
            .with_cause(json!({"why": null}));
        let error = Err(error);
        assert_eq!(kept(&error).result, error);
        let limited = CallError::of(ErrorCode::RATE_LIMITED, "full");
        let limited = Err(limited.with_limit(Exceeded::new(LimitName::Queue, 2, 1)));
        assert_eq!(kept(&limited).result, limited);
        for cause in [Value::Null, deep] {
            let failed = CallError::of(ErrorCode::UPSTREAM_ERROR, "");
            let failed = Err(failed.with_cause(cause));
            assert_eq!(kept(&failed).result, failed);
        }
    }

    #[test]
    fn a_reply_of_4_mib_is_not_kept() {
        let output = Ok(Output {
            structured: json!("x".repeat(4 << 20)),
            content: Vec::new(),
        });
        assert!(KeptReply::write(&output, &CallFacts::default()).is_none());
    }
}
