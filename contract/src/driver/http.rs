//! The request of a declarative driver (`kind: http`, AIP-31): parsed and checked. The host makes it, under the grant.

mod base_url;
mod defaults;
mod endpoint;
mod entry;
mod errors;
mod headers;
mod hints;
mod method;
mod query;

use std::collections::BTreeSet;
use std::time::Duration;

use super::response::Response;
use super::template::{Body, SlotSource, Template};

pub(super) use defaults::HttpDefaults;
pub use endpoint::Endpoint;
pub use errors::StatusError;
pub(crate) use headers::header_refusal;
pub use method::Method;

/// One request, with placeholders.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct HttpCall {
    /// Path and query on the one host of the driver.
    pub endpoint: Endpoint,
    /// The method. If neither the entry nor the driver says one, POST; GET for a driver without
    /// `base_url`.
    pub method: Method,
    /// Header names (lower case) and values: the driver's `default_headers`, and the entry's in
    /// the place of those of the same name.
    pub headers: Vec<(String, Template)>,
    /// The JSON body; `None`: no body. Without `body_template`, POST, PUT and PATCH send the input.
    pub body: Option<Body>,
    /// Where the output is in the response.
    pub response: Response,
    /// The header (lower case) that a fresh identifier of each call goes into.
    pub idempotency_key_header: Option<String>,
    /// What statuses of the service mean, each once.
    pub errors: Vec<StatusError>,
    /// The statuses after which the call may be repeated: all that there are. `None`: as a status says by itself.
    pub retry_statuses: Option<Vec<u16>>,
    /// The time of one request, which may be repeated; 1 ms to a day.
    pub timeout: Option<Duration>,
    /// Secrets that the request needs and that it gives no place: the host puts each where policy
    /// says. Only a transport of tools.json has any.
    pub secrets_by_policy: Vec<String>,
}

impl HttpCall {
    /// The slugs of all secrets that the request needs.
    #[must_use]
    pub fn secrets(&self) -> BTreeSet<&str> {
        let query = self.endpoint.query.iter();
        let placed = self.headers.iter().chain(query);
        let placed = placed.flat_map(|(_, value)| value.secrets());
        let by_policy = self.secrets_by_policy.iter().map(String::as_str);
        placed.chain(by_policy).collect()
    }

    /// The names of the inputs that its placeholders use.
    #[must_use]
    pub fn inputs(&self) -> BTreeSet<&str> {
        self.names(SlotSource::Input)
    }

    /// Whether a placeholder stands for the input as a whole.
    #[must_use]
    pub fn sends_whole_input(&self) -> bool {
        self.body.as_ref().is_some_and(Body::has_whole_input)
    }

    /// The names of the members of the call's context that its placeholders use.
    #[must_use]
    pub fn context(&self) -> BTreeSet<&str> {
        self.names(SlotSource::Context)
    }

    fn names(&self, source: SlotSource) -> BTreeSet<&str> {
        let url = self.endpoint.segments.iter();
        let url = url.chain(self.endpoint.query.iter().map(|(_, value)| value));
        let mut names: BTreeSet<&str> = url
            .chain(self.headers.iter().map(|(_, value)| value))
            .flat_map(|template| template.names(source))
            .collect();
        if let Some(body) = &self.body {
            body.names(source, &mut names);
        }
        names
    }
}
