//! The errors of requests: refusals, and failures. Codes are stable, and no text ever contains a
//! secret's value.

use std::fmt;

use toolward_contract::capability::Class;
use toolward_policy::LimitName;
use toolward_support::report::codes;

/// Any error of a body.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

codes! {
    /// What ended a request, or kept it from being sent.
    ///
    /// ```
    /// use toolward_egress::{Denied, Error, Limit, NetworkError, SecretError, Timeout};
    ///
    /// fn explain(error: &Error) -> String {
    ///     match error {
    ///         Error::Denied(Denied { rule, subject }) => format!("{}: {subject:?}", rule.message()),
    ///         Error::Limit(Limit { used, allowed, .. }) => format!("{used} of {allowed}"),
    ///         Error::Timeout(Timeout { stage, .. }) => stage.message().to_owned(),
    ///         Error::Network(NetworkError { kind, detail }) => format!("{}: {detail}", kind.message()),
    ///         Error::Secret(SecretError { slug, .. }) => format!("{slug} can't be sent"),
    ///         _ => error.code().to_owned(),
    ///     }
    /// }
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub enum Error: Error {
        Denied(inner: Denied) -> (inner.rule.code());
        Limit(inner: Limit) -> (inner.kind.code());
        Timeout(inner: Timeout) -> (inner.stage.code());
        Network(inner: NetworkError) -> (inner.kind.code());
        Secret(inner: SecretError) -> (inner.problem.code());
    }
}

/// The error of a request that a rule refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {subject:?}", .rule.message())]
pub struct Denied {
    /// The rule.
    pub rule: Rule,
    /// The refused part: a host, a header's name, a secret's name. Untrusted, shortened text.
    pub subject: String,
}

/// The most characters of a subject or a detail, which may come from the guest or a server.
const MAX_SUBJECT_CHARS: usize = 256;

impl Denied {
    pub(crate) fn new(rule: Rule, subject: impl AsRef<str>) -> Denied {
        let subject = subject.as_ref().chars().take(MAX_SUBJECT_CHARS).collect();
        Denied { rule, subject }
    }
}

codes! {
    /// The rule that refused a request.
    pub enum Rule {
        NotAbsolute = "uri-not-absolute", "expected an absolute URI with scheme and host";
        Scheme = "scheme-unknown", "expected https, or http where policy allows it";
        PlainHttp = "plain-http-not-granted", "plain http is not granted for this host";
        Userinfo = "authority-userinfo", "expected an authority without user and password";
        /// The host is empty, or neither a DNS name nor an address.
        Host = "authority-host", "expected a host name or an address";
        /// An address in a form that different readers read differently.
        AddressForm = "authority-address-form", "expected four decimal parts, or a plain IPv6 address in brackets";
        /// The port is not a number from 1 to 65535, or has leading zeros.
        Port = "authority-port", "expected a port from 1 to 65535";
        HostNotGranted = "host-not-granted", "this host and port are not granted";
        /// CONNECT, TRACE, or a method that no rule could grant.
        MethodForbidden = "method-forbidden", "this method is never sent";
        UnsafeMethod = "method-not-granted", "only GET, HEAD and OPTIONS are granted for this host";
        Target = "target-invalid", "expected a path that starts with `/`, in printable ASCII, without fragment";
        HeaderForbidden = "header-forbidden", "this header is set by the host or never sent";
        /// A header value with bytes that readers disagree about.
        HeaderValue = "header-value", "expected a header value in printable ASCII";
        /// `authorization` or `cookie`, neither granted nor made of a placeholder.
        CredentialHeader = "credential-header-not-granted", "this header passes only with a bound secret's placeholder, or where policy grants it";
        ContentLength = "content-length", "expected one content-length that agrees with the body";
        BodyOnSafeMethod = "body-on-safe-method", "GET, HEAD and OPTIONS are sent without a body";
        Trailers = "request-trailers", "trailers are never sent";
        Address = "address-not-granted", "the host's address is not globally reachable, and policy does not name it";
        SecretInUri = "secret-in-uri", "in a URI, a secret may only be the whole value of the parameter that policy ties it to";
        SecretInHeader = "secret-in-header", "a secret goes only into the header that policy ties it to, alone or after a scheme such as `Bearer`";
        SecretInBody = "secret-in-body", "a secret never goes into a body";
        SecretOrigin = "secret-origin", "policy ties this secret to another origin";
        SecretMethod = "secret-method", "policy ties this secret to other methods";
        /// The request has a placeholder, and its path is outside the path prefix of the secret, or
        /// could lead outside.
        SecretPath = "secret-path", "policy ties this secret to another path";
        /// The guest requests a part of a resource from an origin that may know a secret. The value
        /// could be echoed in parts, which could not be found.
        SecretRange = "secret-range", "policy ties a secret to this origin: ask for the whole resource, without `range` and `if-range`";
        SecretResponse = "secret-response", "expected a whole response without content-encoding, since this origin may know a secret";
    }
}

impl Rule {
    /// The class of the violation: the network if the request exceeded the grant or has a method
    /// that is never granted, secrets if the rule protects secrets. `None` for other invalid
    /// requests.
    pub fn violated_class(self) -> Option<&'static Class> {
        use Rule::*;
        match self {
            Address | CredentialHeader | HostNotGranted | MethodForbidden | PlainHttp
            | UnsafeMethod => Some(&Class::Network),
            SecretInBody | SecretInHeader | SecretInUri | SecretMethod | SecretOrigin
            | SecretPath | SecretRange | SecretResponse => Some(&Class::Secret),
            AddressForm | BodyOnSafeMethod | ContentLength | HeaderForbidden | HeaderValue
            | Host | NotAbsolute | Port | Scheme | Target | Trailers | Userinfo => None,
        }
    }
}

/// A limit of the call that a request exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{}: {used} of {allowed}", .kind.message())]
pub struct Limit {
    /// The exceeded limit.
    pub kind: LimitKind,
    /// The amount that would have been used, as far as it is known.
    pub used: u64,
    /// The allowed amount.
    pub allowed: u64,
}

impl Limit {
    /// Fails if more than the allowed amount is used.
    pub(crate) fn check(kind: LimitKind, used: u64, allowed: u64) -> Result<(), Limit> {
        let over = Limit {
            kind,
            used,
            allowed,
        };
        if used > allowed { Err(over) } else { Ok(()) }
    }
}

codes! {
    /// Which limit.
    pub enum LimitKind {
        RequestsAtOnce = "requests-at-once", "too many requests in flight in this call";
        /// Requests of one call, or of the call that it is nested in.
        RequestsTotal = "requests-total", "too many requests in this call";
        RequestBodyBytes = "request-body-bytes", "the request body is too large";
        ResponseBodyBytes = "response-body-bytes", "the response body is too large";
        /// Bytes of all requests and responses of a call, heads included.
        TotalBytes = "total-bytes", "too much traffic in this call";
        RequestHeadBytes = "request-head-bytes", "the request's headers are too large";
        ResponseHeadBytes = "response-head-bytes", "the response's headers are too large or too many";
    }
}

impl LimitKind {
    /// The name of the enforced limit in the table of limits.
    pub const fn limit(self) -> LimitName {
        match self {
            Self::RequestsAtOnce => LimitName::HttpRequests,
            Self::RequestsTotal => LimitName::HttpRequestsTotal,
            Self::RequestBodyBytes | Self::ResponseBodyBytes => LimitName::HttpBody,
            Self::RequestHeadBytes | Self::ResponseHeadBytes => LimitName::HttpHead,
            Self::TotalBytes => LimitName::Egress,
        }
    }
}

/// A request that took too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{}{}", .stage.message(), if *.deadline { " (the call's deadline)" } else { "" })]
pub struct Timeout {
    /// The stage in which the time ran out.
    pub stage: Stage,
    /// Whether the time ran out because of the deadline of the whole call.
    pub deadline: bool,
}

codes! {
    /// The stage in which a request's time ran out.
    pub enum Stage {
        /// Waiting for a free connection slot of the host.
        Queue = "timeout-queue", "no connection became free in time";
        Resolve = "timeout-resolve", "the name was not resolved in time";
        Connect = "timeout-connect", "the connection was not made in time";
        Tls = "timeout-tls", "the TLS handshake was not finished in time";
        /// Reading the guest's body before it is sent.
        RequestBody = "timeout-request-body", "the request body was not finished in time";
        FirstByte = "timeout-first-byte", "the response did not begin in time";
        BetweenBytes = "timeout-between-bytes", "the response did not go on in time";
    }
}

/// A failure of the network or the server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {detail}", .kind.message())]
pub struct NetworkError {
    /// The kind of the failure.
    pub kind: NetworkKind,
    /// Details for people.
    pub detail: String,
}

impl NetworkError {
    pub(crate) fn new(kind: NetworkKind, detail: impl fmt::Display) -> NetworkError {
        let detail = detail.to_string().chars().take(MAX_SUBJECT_CHARS).collect();
        NetworkError { kind, detail }
    }
}

codes! {
    /// What failed.
    pub enum NetworkKind {
        /// The name has no address, or could not be resolved.
        Dns = "dns", "the host's name could not be resolved";
        Connect = "connect", "the host could not be connected to";
        Terminated = "terminated", "the connection ended before the response did";
        TlsRoots = "tls-roots", "no certificate authorities could be loaded";
        TlsCertificate = "tls-certificate", "the server's certificate is not valid";
        TlsProtocol = "tls-protocol", "the TLS handshake failed";
        HttpProtocol = "http-protocol", "the server's response is not valid HTTP/1.1";
        RequestBody = "request-body", "the driver did not supply the whole request body";
    }
}

/// The error of a secret that could not be injected. Nothing was sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} ({slug:?}){}{detail}", .problem.message(), if .detail.is_empty() { "" } else { ": " })]
pub struct SecretError {
    /// The secret's name.
    pub slug: String,
    /// The problem.
    pub problem: SecretProblem,
    /// Details for people, never the value.
    pub detail: String,
}

impl SecretError {
    pub(crate) fn new(slug: &str, problem: SecretProblem, detail: String) -> SecretError {
        let slug = slug.to_owned();
        SecretError {
            slug,
            problem,
            detail,
        }
    }
}

codes! {
    /// What is wrong with a secret.
    pub enum SecretProblem {
        Unavailable = "secret-unavailable", "the secret has no value";
        /// The value is so short that it could occur in responses by chance.
        TooShort = "secret-too-short", "expected a secret of at least 8 bytes";
        NotAHeaderValue = "secret-not-a-header-value", "expected a secret of printable ASCII without spaces around it";
        /// Searching responses for this value, in addition to the call's other values, would take
        /// too much memory.
        TooMuchMemory = "secret-too-much-memory", "searching responses for the call's secrets takes too much memory";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_kebab_case() {
        let mut codes: Vec<&str> = Rule::ALL.iter().map(|rule| rule.code()).collect();
        codes.extend(LimitKind::ALL.iter().map(|kind| kind.code()));
        codes.extend(Stage::ALL.iter().map(|stage| stage.code()));
        codes.extend(NetworkKind::ALL.iter().map(|kind| kind.code()));
        codes.extend(SecretProblem::ALL.iter().map(|problem| problem.code()));
        let count = codes.len();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), count);
        let kebab = |b: u8| b.is_ascii_lowercase() || b == b'-';
        assert!(codes.iter().all(|code| code.bytes().all(kebab)));
    }

    #[test]
    fn a_refusal_is_a_violation_of_the_class_that_its_code_names() {
        for rule in Rule::ALL {
            let (code, class) = (rule.code(), rule.violated_class());
            let is_secret = class == Some(&Class::Secret);
            assert_eq!(is_secret, code.starts_with("secret-"), "{code}");
            if code.ends_with("-not-granted") {
                assert_eq!(class, Some(&Class::Network), "{code}");
            }
        }
        assert_eq!(
            Rule::MethodForbidden.violated_class(),
            Some(&Class::Network)
        );
        assert_eq!(Rule::HeaderForbidden.violated_class(), None);
    }

    #[test]
    fn a_subject_is_shortened() {
        let denied = Denied::new(Rule::Host, "é".repeat(10_000));
        assert_eq!(denied.subject.chars().count(), MAX_SUBJECT_CHARS);
    }
}
