//! Fills the values of a call into the request of a declarative driver. Pure: the host adds the authority and the secrets.
//!
//! Each position is encoded for what it is, so that no value changes the request's structure: not
//! its host, not how many path segments or parameters it has, not where a header ends. What fills a
//! slot is never read as a template.

mod body;
mod headers;
mod limited;
mod url;
mod values;

use toolward_report::codes;

use super::http::{HttpCall, Method};
use super::template::Slot;
use limited::Limited;

pub use values::Values;

/// A request with the values filled in, without authority and without secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rendered {
    /// The method.
    pub method: Method,
    /// Path and query: ASCII, begins with one `/`, at most 8 KiB.
    pub path_and_query: String,
    /// Parameters of the query that are one secret each, not in `path_and_query`: name, as it
    /// stands in the URL, and slug.
    pub query_secrets: Vec<(String, String)>,
    /// Names (lower case, each once) and values; with `content-type` if there is a body.
    pub headers: Vec<(String, Vec<HeaderPiece>)>,
    /// See [`HttpCall::idempotency_key_header`].
    pub idempotency_key_header: Option<String>,
    /// The secrets that the host places by policy alone: see [`HttpCall::secrets_by_policy`].
    pub secrets_by_policy: Vec<String>,
    /// The JSON text of the body.
    pub body: Option<Vec<u8>>,
}

/// A piece of a header's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeaderPiece {
    /// Printable ASCII.
    Text(String),
    /// The secret with this slug: put in last, by the host.
    Secret(String),
}

codes! {
    /// Which rule a value broke.
    pub enum RenderErrorKind {
        InputMissing = "http-input-missing", "a placeholder has no value";
        InputType = "http-input-type", "a list, an object or null where text is needed";
        InputUnfit = "http-input-unfit", "the text would not stay in its position";
        TooLarge = "http-request-too-large", "the request would become too large";
    }
}

/// Why values make no request. Names the value and its position, never the value itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RenderError {
    kind: RenderErrorKind,
    message: String,
}

impl RenderError {
    /// Which rule was broken.
    #[must_use]
    pub fn kind(&self) -> RenderErrorKind {
        self.kind
    }

    /// Stable kebab-case code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.kind.code()
    }

    fn of(kind: RenderErrorKind, slot: &Slot, position: &str, expected: &str) -> RenderError {
        RenderError {
            kind,
            message: format!(
                "expected the {} `{}` {expected} for {position}",
                slot.source.as_str(),
                slot.path.join(".")
            ),
        }
    }

    fn unfit(slot: &Slot, position: &str, expected: &str) -> RenderError {
        let expected = format!("to have {expected}");
        RenderError::of(RenderErrorKind::InputUnfit, slot, position, &expected)
    }

    fn too_large(position: &str, limit: usize) -> RenderError {
        RenderError {
            kind: RenderErrorKind::TooLarge,
            message: format!("expected at most {limit} bytes in {position}, found more"),
        }
    }

    /// Reading a template leaves no such secret; this is for one that was put together otherwise.
    fn misplaced(slug: &str) -> RenderError {
        RenderError {
            kind: RenderErrorKind::InputUnfit,
            message: format!(
                "expected secrets only in headers and as parameters, found `{slug}` elsewhere"
            ),
        }
    }
}

impl HttpCall {
    /// The request that the values of a call make. The input is what the driver receives, `mapping`
    /// applied; `body_bytes` is how long the body may be.
    ///
    /// # Errors
    /// A value that a placeholder needs is missing, has no text, or would not stay in its
    /// position; or the request would become too large.
    pub fn render<'v>(
        &self,
        values: impl Into<Values<'v>>,
        body_bytes: usize,
    ) -> Result<Rendered, RenderError> {
        let values = values.into();
        let (path_and_query, query_secrets) = url::render(&self.endpoint, values)?;
        let mut headers = headers::render(&self.headers, values)?;
        let body = match &self.body {
            Some(body) => {
                let mut text = Limited::new(body_bytes);
                body::write(body, values, &mut text)?;
                if !headers.iter().any(|(name, _)| name == "content-type") {
                    let json = HeaderPiece::Text("application/json".to_owned());
                    headers.push(("content-type".to_owned(), vec![json]));
                }
                Some(text.bytes)
            }
            None => None,
        };
        Ok(Rendered {
            method: self.method,
            path_and_query,
            query_secrets,
            headers,
            idempotency_key_header: self.idempotency_key_header.clone(),
            secrets_by_policy: self.secrets_by_policy.clone(),
            body,
        })
    }
}
