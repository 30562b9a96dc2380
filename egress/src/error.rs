//! Why a request was refused, or what ended it. Codes are stable; no text ever
//! holds a secret's value.

use std::fmt;

/// Any error of a body.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// What ended a request, or kept it from being sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A rule refused it.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// It went over a limit of the call.
    #[error(transparent)]
    Limit(#[from] Limit),
    /// It took too long.
    #[error(transparent)]
    Timeout(#[from] Timeout),
    /// The network or the server failed it.
    #[error(transparent)]
    Network(#[from] Network),
    /// A secret could not be put in.
    #[error(transparent)]
    Secret(#[from] SecretError),
}

impl Error {
    /// The stable kebab-case code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Error::Denied(denied) => denied.rule.code(),
            Error::Limit(limit) => limit.kind.code(),
            Error::Timeout(timeout) => timeout.stage.code(),
            Error::Network(network) => network.kind.code(),
            Error::Secret(secret) => secret.problem.code(),
        }
    }
}

/// A request that a rule refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denied {
    /// The rule.
    pub rule: Rule,
    /// What it refused: a host, a header's name, a secret's name. Untrusted
    /// text, shortened.
    pub subject: String,
}

/// Characters of a subject that are kept: it comes from the guest.
const MAX_SUBJECT_CHARS: usize = 256;

impl Denied {
    pub(crate) fn new(rule: Rule, subject: impl AsRef<str>) -> Denied {
        let subject = subject.as_ref().chars().take(MAX_SUBJECT_CHARS).collect();
        Denied { rule, subject }
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?}", self.rule.message(), self.subject)
    }
}

impl std::error::Error for Denied {}

/// Declares an enum with one kebab-case code and one sentence for each variant.
macro_rules! coded {
    ($(#[$outer:meta])* $name:ident { $($(#[$inner:meta])* $variant:ident = $code:literal, $message:literal;)+ }) => {
        $(#[$outer])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name { $($(#[$inner])* $variant,)+ }

        impl $name {
            /// All of them.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// The stable kebab-case code.
            #[must_use]
            pub fn code(self) -> &'static str {
                match self { $($name::$variant => $code,)+ }
            }

            /// What it means, in one sentence without a final stop.
            #[must_use]
            pub fn message(self) -> &'static str {
                match self { $($name::$variant => $message,)+ }
            }
        }
    };
}

coded! {
    /// The rule that refused a request.
    Rule {
        /// The URI has no scheme or no authority.
        NotAbsolute = "uri-not-absolute", "expected an absolute URI with scheme and host";
        /// The scheme is neither `https` nor `http`.
        Scheme = "scheme-unknown", "expected https, or http where policy allows it";
        /// `http` where no rule for the host allows it.
        PlainHttp = "plain-http-not-granted", "plain http is not granted for this host";
        /// `user@` or `user:password@` before the host.
        Userinfo = "authority-userinfo", "expected an authority without user and password";
        /// The host is empty, or no DNS name and no address.
        Host = "authority-host", "expected a host name or an address";
        /// An address in a form that different readers read differently.
        AddressForm = "authority-address-form", "expected four decimal parts, or a plain IPv6 address in brackets";
        /// The port is not a number from 1 to 65535, without leading zeros.
        Port = "authority-port", "expected a port from 1 to 65535";
        /// No rule names the host with this port.
        HostNotGranted = "host-not-granted", "this host and port are not granted";
        /// CONNECT, TRACE, or a method that no rule could grant.
        MethodForbidden = "method-forbidden", "this method is never sent";
        /// A method that changes things, to a host that is granted for reading.
        UnsafeMethod = "method-not-granted", "only GET, HEAD and OPTIONS are granted for this host";
        /// The path or query is not in origin form.
        Target = "target-invalid", "expected a path that starts with `/`, in printable ASCII, without fragment";
        /// A header that the host itself sets, or that no client may.
        HeaderForbidden = "header-forbidden", "this header is set by the host or never sent";
        /// A header value with bytes that readers disagree about.
        HeaderValue = "header-value", "expected a header value in printable ASCII";
        /// `authorization` or `cookie`, neither granted nor made of a placeholder.
        CredentialHeader = "credential-header-not-granted", "this header passes only with a bound secret's placeholder, or where policy grants it";
        /// `content-length` does not agree with itself or with the body.
        ContentLength = "content-length", "expected one content-length that agrees with the body";
        /// A body on GET, HEAD or OPTIONS.
        BodyOnSafeMethod = "body-on-safe-method", "GET, HEAD and OPTIONS are sent without a body";
        /// Trailers after a request's body.
        Trailers = "request-trailers", "trailers are never sent";
        /// The name resolves to an address that is not granted.
        Address = "address-not-granted", "the host's address is not globally reachable, and policy does not name it";
        /// A placeholder in the URI.
        SecretInUri = "secret-in-uri", "a secret never goes into a URI";
        /// A placeholder in a header that it is not tied to, or not in the form asked for.
        SecretInHeader = "secret-in-header", "a secret goes only into the header that policy ties it to, alone or after a scheme such as `Bearer`";
        /// A placeholder in a body.
        SecretInBody = "secret-in-body", "a secret never goes into a body";
        /// A placeholder on its way to another origin.
        SecretOrigin = "secret-origin", "policy ties this secret to another origin";
        /// A placeholder with a method that policy does not tie it to.
        SecretMethod = "secret-method", "policy ties this secret to other methods";
        /// A placeholder with a path outside its prefix, or one that could lead outside.
        SecretPath = "secret-path", "policy ties this secret to another path";
        /// A part of a resource asked for where a secret is tied to: its value,
        /// echoed in parts, could not be found.
        SecretRange = "secret-range", "no part of a resource is asked for from an origin that policy ties a secret to: ask for all of it, without `range` and `if-range`";
        /// A response that could hide a secret from the search for it.
        SecretResponse = "secret-response", "expected a whole response without content-encoding, since this origin may know a secret";
    }
}

impl Rule {
    /// Whether it protects a secret.
    #[must_use]
    pub fn is_about_secret(self) -> bool {
        use Rule::{
            SecretInBody, SecretInHeader, SecretInUri, SecretMethod, SecretOrigin, SecretPath,
            SecretRange, SecretResponse,
        };
        matches!(
            self,
            SecretInUri
                | SecretInHeader
                | SecretInBody
                | SecretOrigin
                | SecretMethod
                | SecretPath
                | SecretRange
                | SecretResponse
        )
    }

    /// Whether the request was well formed and asked for more than is granted;
    /// `false`: no grant allows it.
    #[must_use]
    pub fn is_about_grant(self) -> bool {
        use Rule::{
            Address, CredentialHeader, HostNotGranted, MethodForbidden, PlainHttp, UnsafeMethod,
        };
        let granted = matches!(
            self,
            Address
                | CredentialHeader
                | HostNotGranted
                | MethodForbidden
                | PlainHttp
                | UnsafeMethod
        );
        granted || (self.is_about_secret() && self != Rule::SecretResponse)
    }
}

/// A limit of the call that a request went over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// Which one.
    pub kind: LimitKind,
    /// What it would have taken, as far as that is known.
    pub used: u64,
    /// What is allowed.
    pub allowed: u64,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Limit {
            kind,
            used,
            allowed,
        } = self;
        write!(f, "{}: {used} of {allowed}", kind.message())
    }
}

impl std::error::Error for Limit {}

coded! {
    /// Which limit.
    LimitKind {
        /// Requests in flight in one call.
        RequestsAtOnce = "requests-at-once", "too many requests in flight in this call";
        /// Requests of one call, or of the call that it is nested in.
        RequestsTotal = "requests-total", "too many requests in this call";
        /// Bytes of one request body.
        RequestBodyBytes = "request-body-bytes", "the request body is too large";
        /// Bytes of one response body.
        ResponseBodyBytes = "response-body-bytes", "the response body is too large";
        /// Bytes of all requests and responses of a call, heads included.
        TotalBytes = "total-bytes", "too much traffic in this call";
        /// Bytes of a request's target and headers.
        RequestHeadBytes = "request-head-bytes", "the request's headers are too large";
        /// Bytes, or number, of a response's headers.
        ResponseHeadBytes = "response-head-bytes", "the response's headers are too large or too many";
    }
}

/// A request that took too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeout {
    /// Where it stood.
    pub stage: Stage,
    /// Whether it was the deadline of the whole call.
    pub deadline: bool,
}

impl fmt::Display for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whose = if self.deadline {
            " (the call's deadline)"
        } else {
            ""
        };
        write!(f, "{}{whose}", self.stage.message())
    }
}

impl std::error::Error for Timeout {}

coded! {
    /// Where a request stood when its time was up.
    Stage {
        /// Waiting for a free connection slot of the host.
        Queue = "timeout-queue", "no connection became free in time";
        /// Resolving the name.
        Resolve = "timeout-resolve", "the name was not resolved in time";
        /// Connecting.
        Connect = "timeout-connect", "the connection was not made in time";
        /// Agreeing on TLS.
        Tls = "timeout-tls", "the TLS handshake was not finished in time";
        /// Reading the guest's body before it is sent.
        RequestBody = "timeout-request-body", "the request body was not finished in time";
        /// Waiting for the response's head.
        FirstByte = "timeout-first-byte", "the response did not begin in time";
        /// Waiting for more of the response.
        BetweenBytes = "timeout-between-bytes", "the response did not go on in time";
    }
}

/// A failure of the network or the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    /// What failed.
    pub kind: NetworkKind,
    /// More about it, for people.
    pub detail: String,
}

impl Network {
    pub(crate) fn new(kind: NetworkKind, detail: impl fmt::Display) -> Network {
        let detail = detail.to_string().chars().take(MAX_SUBJECT_CHARS).collect();
        Network { kind, detail }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.message(), self.detail)
    }
}

impl std::error::Error for Network {}

coded! {
    /// What failed.
    NetworkKind {
        /// The name has no address, or could not be resolved.
        Dns = "dns", "the host's name could not be resolved";
        /// No address of the host took the connection.
        Connect = "connect", "the host could not be connected to";
        /// The connection ended before the response did.
        Terminated = "terminated", "the connection ended before the response did";
        /// There are no roots to trust, or they could not be read.
        TlsRoots = "tls-roots", "no certificate authorities could be loaded";
        /// The server's certificate is not valid for the host.
        TlsCertificate = "tls-certificate", "the server's certificate is not valid";
        /// The TLS handshake failed otherwise.
        TlsProtocol = "tls-protocol", "the TLS handshake failed";
        /// What the server sent is not an HTTP/1.1 response.
        HttpProtocol = "http-protocol", "the server's response is not valid HTTP/1.1";
        /// The guest's body failed.
        RequestBody = "request-body", "the request body failed";
    }
}

/// A secret that could not be put in; nothing was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretError {
    /// The secret's name.
    pub slug: String,
    /// What is wrong.
    pub problem: SecretProblem,
    /// More about it, for people. Never the value.
    pub detail: String,
}

impl fmt::Display for SecretError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:?})", self.problem.message(), self.slug)?;
        if self.detail.is_empty() {
            return Ok(());
        }
        write!(f, ": {}", self.detail)
    }
}

impl std::error::Error for SecretError {}

coded! {
    /// What is wrong with a secret.
    SecretProblem {
        /// Its source has no value.
        Unavailable = "secret-unavailable", "the secret has no value";
        /// It is so short that it occurs in responses by chance.
        TooShort = "secret-too-short", "expected a secret of at least 8 bytes";
        /// Its bytes cannot stand in a header.
        NotAHeaderValue = "secret-not-a-header-value", "expected a secret of printable ASCII without spaces around it";
        /// To look for it, beside those that are looked for already, would take too much memory.
        TooMuchMemory = "secret-too-much-memory", "expected secrets that take less memory to be looked for in responses";
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
    fn a_subject_is_shortened() {
        let denied = Denied::new(Rule::Host, "é".repeat(10_000));
        assert_eq!(denied.subject.chars().count(), MAX_SUBJECT_CHARS);
    }
}
