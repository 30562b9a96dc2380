//! The request of a declarative driver (`kind: http`, AIP-31): parsed and checked. The host sends
//! it, under the grant.

mod read;
mod url;

use std::collections::BTreeSet;
use std::time::Duration;

use super::response::OutputPlace;
use super::template::{BodyTemplate, SlotSource, Template};
use crate::codes;
use crate::shared;
use crate::source::FieldReader;

pub(super) use read::HttpDefaults;
pub(crate) use read::header_refusal;
pub use url::Endpoint;

/// One request, with placeholders.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct HttpCall {
    /// Path and query on the one host of the driver.
    pub endpoint: Endpoint,
    /// The method. The default is the driver's `default_method`. If that is missing, too, it is
    /// POST, or GET for a driver without `base_url`.
    pub method: Method,
    /// Header names (lower case) and values. A header of the entry replaces a header with the same
    /// name in the driver's `default_headers`.
    pub headers: Vec<(String, Template)>,
    /// The JSON body, if any. Without `body_template`, POST, PUT and PATCH send the input.
    pub body: Option<BodyTemplate>,
    /// The place of the output in the response.
    pub response: OutputPlace,
    /// The header (lower case) that gets the call's idempotency key, which all attempts share.
    pub idempotency_key_header: Option<String>,
    /// The meanings of the service's statuses, each status once.
    pub errors: Vec<StatusError>,
    /// The statuses after which the call may be repeated, unless [`StatusError::retryable`] states
    /// otherwise. With this list, a request without an answer is not repeated. `None` means the
    /// default for each status.
    pub retry_statuses: Option<Vec<u16>>,
    /// The time limit for one attempt, from 1 ms to a day.
    pub timeout: Option<Duration>,
    /// Secrets that the request needs, but that have no place in it: the host puts each where the
    /// policy states. Only a transport of tools.json has such secrets.
    pub secrets_by_policy: Vec<String>,
}

impl HttpCall {
    /// The slugs of all secrets that the request needs.
    pub fn secrets(&self) -> BTreeSet<&str> {
        let query = self.endpoint.query.iter();
        let placed = self.headers.iter().chain(query);
        let placed = placed.flat_map(|(_, value)| value.secrets());
        let by_policy = self.secrets_by_policy.iter().map(String::as_str);
        placed.chain(by_policy).collect()
    }

    /// The names of the inputs that its placeholders use.
    pub fn inputs(&self) -> BTreeSet<&str> {
        self.names(SlotSource::Input)
    }

    /// Whether the body contains the whole input.
    pub(crate) fn sends_whole_input(&self) -> bool {
        self.body
            .as_ref()
            .is_some_and(BodyTemplate::has_whole_input)
    }

    /// The names of the context members that its placeholders use.
    pub fn context(&self) -> BTreeSet<&str> {
        self.names(SlotSource::Context)
    }

    fn names(&self, source: SlotSource) -> BTreeSet<&str> {
        let url = self.endpoint.segments.iter();
        let url = url.chain(self.endpoint.query.iter().map(|(_, value)| value));
        let headers = self.headers.iter().map(|(_, value)| value);
        let body = self.body.iter().flat_map(BodyTemplate::templates);
        let all = url.chain(headers).chain(body);
        all.flat_map(|template| template.names(source)).collect()
    }
}

/// A request method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Method {
    /// GET
    #[default]
    Get,
    /// HEAD
    Head,
    /// OPTIONS
    Options,
    /// POST
    Post,
    /// PUT
    Put,
    /// PATCH
    Patch,
    /// DELETE
    Delete,
}

impl Method {
    pub(crate) const WORDS: &[(&str, Method)] = &[
        ("GET", Method::Get),
        ("HEAD", Method::Head),
        ("OPTIONS", Method::Options),
        ("POST", Method::Post),
        ("PUT", Method::Put),
        ("PATCH", Method::Patch),
        ("DELETE", Method::Delete),
    ];

    /// Reads a method in upper case.
    pub fn parse(text: &str) -> Option<Method> {
        let found = Method::WORDS.iter().find(|(word, _)| *word == text);
        found.map(|(_, method)| *method)
    }

    /// The method in upper case.
    pub fn as_str(self) -> &'static str {
        let found = Method::WORDS.iter().find(|(_, method)| *method == self);
        found.map_or("", |(word, _)| word)
    }

    /// Whether the method only reads (RFC 9110, section 9.2.1), so that `requires.network` alone
    /// allows it.
    pub fn is_safe(self) -> bool {
        matches!(self, Method::Get | Method::Head | Method::Options)
    }

    /// Whether the body is the input by default. For DELETE it is not, since the body of a DELETE
    /// has no generally defined meaning (RFC 9110, section 9.3.5).
    pub(crate) fn sends_input(self) -> bool {
        matches!(self, Method::Post | Method::Put | Method::Patch)
    }
}

/// The meaning of one status of the service, in the publisher's words. The error of the call has
/// its code, message and hint.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StatusError {
    /// The status, from 400 to 599.
    pub status: u16,
    /// A code that the tool chose.
    pub code: String,
    /// A message, in one line of at most 500 bytes.
    pub message: Option<String>,
    /// Whether the same call may succeed later. If `None`, `retry_statuses` or the default decides.
    pub retryable: Option<bool>,
    /// A hint at what to do, in one line of at most 500 bytes.
    pub hint: Option<String>,
}

/// How many bytes a message or a hint may have.
const MAX_TEXT_BYTES: usize = 500;
const MAX_CODE_BYTES: usize = 128;

/// Reads `errors`: the meanings of statuses, each status once.
fn status_errors(field: &FieldReader<'_>) -> Vec<StatusError> {
    let members = field.members().into_iter().flatten();
    let read = members.filter_map(|(key, member)| status_error(key, &member));
    read.collect()
}

/// Reads `retry_statuses`: from 400 to 599, in any order.
fn statuses(field: &FieldReader<'_>) -> Vec<u16> {
    let items = field.items().into_iter();
    let statuses = items.filter_map(|item| u16::try_from(item.integer(400..=599)?).ok());
    statuses.collect()
}

fn status_error(key: &str, member: &FieldReader<'_>) -> Option<StatusError> {
    let fits = |status: &u16| (400..=599).contains(status) && key.len() == 3;
    let Some(status) = key.parse().ok().filter(fits) else {
        let name = &member.name;
        let message = format!("expected statuses from 400 to 599 as keys, found `{name}`");
        member.note_at_key(&codes::HTTP_ERROR_INVALID, message);
        return None;
    };
    member.whole(|fields| {
        Some(StatusError {
            status,
            message: fields.read("message", sentence),
            retryable: fields.boolean("retryable"),
            hint: fields.read("hint", sentence),
            code: fields.require("code", code_of)?,
        })
    })
}

/// Reads a code: `word` or `word:word`, as in the errors of components.
fn code_of(field: &FieldReader<'_>) -> Option<String> {
    let lower = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let is_code = |found: &str| {
        let (head, tail) = found.split_once(':').unwrap_or((found, "tail"));
        found.len() <= MAX_CODE_BYTES
            && head.starts_with(|c: char| c.is_ascii_lowercase())
            && head.chars().all(lower)
            && head != "toolward"
            && !tail.is_empty()
            && tail.chars().all(|c| lower(c) || matches!(c, '.' | '-'))
    };
    let expected = "a code such as not_found or shop:sold-out";
    field.text_as(&codes::HTTP_ERROR_INVALID, expected, |found| {
        is_code(found).then(|| found.to_owned())
    })
}

fn sentence(field: &FieldReader<'_>) -> Option<String> {
    let found = field.text()?;
    if found.len() > MAX_TEXT_BYTES {
        let message = format!(
            "expected `{}` to have at most {MAX_TEXT_BYTES} bytes, found {}",
            field.name,
            found.len()
        );
        return field.refuse(&codes::TEXT_LENGTH, message);
    }
    shared::filled(field, false)
}
