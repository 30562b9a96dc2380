//! The error for a status that is not a success. It omits the response's text, which may be
//! anything.

use std::time::Duration;

use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, StatusCode};
use serde_json::{Value, json};
use toolward_contract::driver::HttpCall;

use crate::api::result::{CallError, ErrorCode};
use crate::executor::AttemptReport;

/// Marks advice as text of the publisher, which neither the host nor its operator wrote.
const PUBLISHERS_ADVICE: &str = "the tool's publisher advises: ";

/// The error for a status: the driver's own code for it, or else the host's code. The message and
/// the hint quote the publisher's texts about the status, and name the publisher as their source.
/// The cause has these texts without a source.
pub(super) fn refused(
    call: &HttpCall,
    status: StatusCode,
    headers: &HeaderMap,
) -> Box<AttemptReport> {
    let header = |name: HeaderName| headers.get(name)?.to_str().ok();
    let seconds = header(RETRY_AFTER).and_then(|text| text.parse().ok());
    let kind = header(CONTENT_TYPE).unwrap_or_default();
    let mut cause = json!({ "status": status.as_u16(), "content_type": kind });
    let message = format!("the server answered {status}");
    let passing = status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error();
    let listed = call.retry_statuses.as_ref();
    let repeats = listed.map_or(passing, |listed| listed.contains(&status.as_u16()));
    let meaning = call.errors.iter().find(|one| one.status == status.as_u16());
    let own = meaning.and_then(|meaning| Some((meaning, ErrorCode::from_driver(&meaning.code)?)));
    let (mut error, retryable) = match own {
        Some((meaning, code)) => {
            if let Value::Object(fields) = &mut cause {
                for (key, text) in [("message", &meaning.message), ("hint", &meaning.hint)] {
                    let text = text.clone().map(Value::String);
                    fields.extend(text.map(|text| (key.to_owned(), text)));
                }
            }
            let message = match &meaning.message {
                Some(text) => format!("{message}, which means by the tool's publisher: {text}"),
                None => message,
            };
            let hint = meaning.hint.as_ref();
            let mut error = CallError::of_driver(code, message, Some(cause));
            error.hint = hint.map(|text| format!("{PUBLISHERS_ADVICE}{text}"));
            (error, meaning.retryable.unwrap_or(repeats))
        }
        None => {
            let code = match status {
                StatusCode::UNAUTHORIZED => ErrorCode::AUTH_REQUIRED,
                StatusCode::TOO_MANY_REQUESTS => ErrorCode::RATE_LIMITED,
                _ => ErrorCode::UPSTREAM_ERROR,
            };
            (CallError::of(code, message).with_cause(cause), repeats)
        }
    };
    error.retryable = retryable;
    error.retry_after = seconds.map(Duration::from_secs);
    Box::new(AttemptReport {
        claimed: retryable && !passing,
        failing: status.is_server_error(),
        ..AttemptReport::failed(error)
    })
}
