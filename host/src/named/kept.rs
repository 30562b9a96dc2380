//! The reply of a call that others of its id get, in the form in which it is kept.

use std::io::{self, Write};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolward_state::MAX_REPLY_BYTES;

use crate::api::facts::CallFacts;
use crate::api::result::{CallError, Origin, Output};

/// A reply that was kept.
pub(crate) struct KeptReply {
    pub(crate) result: Result<Output, CallError>,
    pub(crate) source: ReplySource,
}

/// Where a kept reply came from.
#[derive(Serialize, Deserialize)]
pub(crate) struct ReplySource {
    pub(crate) invocation: String,
    pub(crate) driver: Option<Arc<str>>,
    pub(crate) driver_publisher: Option<Arc<str>>,
    pub(crate) bundle: Option<Arc<str>>,
    pub(crate) origin: Option<Origin>,
}

impl KeptReply {
    /// The bytes of a result, with where it came from. `None` if they are too many.
    pub(crate) fn write(
        result: &Result<Output, CallError>,
        facts: &CallFacts,
    ) -> Option<Arc<[u8]>> {
        let source = ReplySource {
            invocation: facts.invocation.clone(),
            driver: facts.driver.clone(),
            driver_publisher: facts.driver_publisher.clone(),
            bundle: facts.bundle.clone(),
            origin: facts.origin,
        };
        // The output or the cause comes first, as a separate document: each may be as deep as the parser follows.
        let (first, rest) = match result {
            Ok(output) => (Some(&output.structured), (None, &*output.content, source)),
            Err(error) => {
                let without_cause = CallError {
                    cause: None,
                    ..error.clone()
                };
                (error.cause.as_ref(), (Some(without_cause), &[][..], source))
            }
        };
        let mut bytes = Bounded(Vec::new());
        serde_json::to_writer(&mut bytes, first.unwrap_or(&Value::Null)).ok()?;
        serde_json::to_writer(&mut bytes, &(first.is_some(), rest)).ok()?;
        Some(bytes.0.into())
    }

    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let mut documents = serde_json::Deserializer::from_slice(bytes);
        let first = Value::deserialize(&mut documents).ok()?;
        let (has_first, (error, content, source)): (bool, (Option<CallError>, _, ReplySource)) =
            Deserialize::deserialize(&mut documents).ok()?;
        let result = match error {
            Some(error) => Err(CallError {
                cause: has_first.then_some(first),
                ..error
            }),
            None => Ok(Output {
                structured: first,
                content,
            }),
        };
        Some(Self { result, source })
    }
}

/// Takes no more than a reply may have.
struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = self.0.len().saturating_add(bytes.len());
        if length as u64 > MAX_REPLY_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;
    use toolward_policy::LimitName;

    use super::*;
    use crate::api::result::{
        Annotations, Block, BlockContent, ErrorClass, ErrorCode, Hit, ResourceBody, Role,
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
        let limited = CallError::new(ErrorCode::RATE_LIMITED, ErrorClass::RateLimited, "full");
        let limited = Err(limited.with_limit(Hit {
            limit: LimitName::Queue,
            used: 2,
            allowed: 1,
        }));
        assert_eq!(kept(&limited).result, limited);
        for cause in [Value::Null, deep] {
            let failed = CallError::new(ErrorCode::UPSTREAM_ERROR, ErrorClass::ExecutionFailed, "");
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
