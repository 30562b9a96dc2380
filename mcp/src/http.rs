//! MCP over streamable HTTP: decides who may connect, finds the principal of each request, and
//! limits the number, size and duration of requests. It does not interpret messages.

mod batch;
mod body;
mod client_headers;
mod concurrency;
mod connection;
mod connections;
mod guard;
mod host_header;
#[cfg(feature = "metrics")]
pub mod metrics;
mod responses;
mod serving;
mod sessions;
pub mod tokens;

pub use responses::REJECTIONS;
pub use serving::{Ended, bind, check, serve};
pub(crate) use sessions::calling;

use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use tokio_util::sync::CancellationToken;
use toolward_host::SharedState;
use toolward_support::report::codes;

use crate::principal::Principal;

/// The path of messages.
pub const PATH: &str = "/mcp";

/// The same path as some clients and proxies write it.
const PATH_WITH_SLASH: &str = "/mcp/";

/// The path of the liveness check. It needs no token, and reveals only that the server is alive.
pub const HEALTH_PATH: &str = "/healthz";

/// The path of the readiness check, for proxies. It answers 200, or 503 once the server drains. It
/// needs no token, and reveals nothing but this status.
pub const READY_PATH: &str = "/readyz";

/// How the server is set up.
///
/// ```
/// use std::sync::Arc;
/// use toolward_mcp::http::tokens::{self, Tokens};
/// use toolward_mcp::http::{Authentication, Settings};
/// use toolward_mcp::principal::{Principal, Tools};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (secret, hash) = tokens::generate()?;
/// let alice = Principal { name: "alice".into(), tools: Tools::All, may_approve: false };
/// let tokens = Arc::new(Tokens::single(hash, alice));
/// let mut settings = Settings::new(Authentication::Required(tokens));
/// settings.hosts.push("tools.example".to_owned());
/// settings.limits.requests = 8;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Settings {
    /// Who may call.
    pub authentication: Authentication,
    /// Names that a request may carry as `Host` besides the address itself: `name` with any port,
    /// or `name:port`. Required if clients can't use the address as the name, for example with
    /// `0.0.0.0`.
    pub hosts: Vec<String>,
    /// Origins that a request may carry as `Origin`: `https://name` or `https://name:port`. Origins
    /// of this machine need not be listed if the address is a loopback address and a token is
    /// required. A request from any other page is refused. `null` and `vscode-webview://*` stand
    /// for pages whose author is unknown, and can be allowed only if a token is required.
    pub origins: Vec<String>,
    /// Limits on connections, sessions and requests.
    pub limits: HttpLimits,
    /// The caller cancels this token some time before shutdown, to give proxies and clients time to
    /// go elsewhere. From then on [`READY_PATH`] answers 503, and each connection closes after its
    /// next answer. New connections and requests are still accepted.
    pub draining: CancellationToken,
    /// The shared state of the hosts that run the calls. With it, results that clients have not
    /// read count in the memory of all calls (`memory_total`). When that memory is full, the
    /// slowest reader is disconnected.
    pub shared_state: Option<SharedState>,
}

impl Settings {
    /// The defaults, with this authentication.
    #[must_use]
    pub fn new(authentication: Authentication) -> Self {
        Self {
            authentication,
            hosts: Vec::new(),
            origins: Vec::new(),
            limits: HttpLimits::default(),
            draining: CancellationToken::new(),
            shared_state: None,
        }
    }
}

/// Who may call.
#[derive(Clone)]
pub enum Authentication {
    /// Each request needs a token that this authenticator knows. [`tokens::Tokens`] is such an
    /// authenticator.
    Required(Arc<dyn Authenticate>),
    /// Every process of this machine may call, as this principal. Allowed on loopback addresses
    /// only.
    Loopback(Principal),
}

impl fmt::Debug for Authentication {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Required(_) => formatter.write_str("Required"),
            Self::Loopback(principal) => {
                formatter.debug_tuple("Loopback").field(principal).finish()
            }
        }
    }
}

/// Limits of the HTTP server. What a call may use is limited by the host.
///
/// ```
/// let limits = toolward_mcp::http::HttpLimits {
///     connections_per_address: 512,
///     ..Default::default()
/// };
/// assert_eq!(limits.connections, 512);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpLimits {
    /// Connections at once. A further connection replaces a connection that has not shown a valid
    /// token. If there is none to replace, the further connection gets status 503 and is closed.
    pub connections: usize,
    /// Connections at once from one address. All loopback addresses count as one address, and so
    /// does a /64 network of IPv6. Behind a proxy all clients have one address, so set this limit
    /// as high as `connections` there.
    pub connections_per_address: usize,
    /// Connections that one principal may keep open for further requests. A connection counts for
    /// the principal of its first token. Beyond this limit a connection is closed after its first
    /// answer.
    pub connections_per_principal: usize,
    /// How long a connection may stay without a valid token, once half of `connections` or half of
    /// `connections_per_address` is taken.
    pub newcomer_within: Duration,
    /// Requests of one principal at once, unless its token sets another number. A further request
    /// gets status 429.
    pub requests: usize,
    /// Streams at once on which one principal listens for changes.
    pub streams: usize,
    /// Sessions of one principal at once, in the session era. The principal's session that was idle
    /// longest makes room for another; if none is idle, the new session is refused.
    pub sessions: usize,
    /// Sessions of all principals at once. Beyond this limit the session that was idle longest
    /// makes room: among the principal's own sessions, or, if the principal has none, among all. If
    /// none of these is idle, the new session is refused.
    pub sessions_in_all: usize,
    /// How long a session may be idle: without a request, a running call or an open stream.
    pub session_idle: Duration,
    /// Bytes of one request's body. A tool's input is limited to 1 MiB already; the rest is room
    /// for escapes, and for answers to a tool's questions.
    pub body: usize,
    /// Bytes of memory that requests may take together while they are parsed and handled, estimated
    /// from their bytes and values. An additional quarter of this amount is for bodies that are
    /// being read, and for answers to the server's questions. One principal may take at most half
    /// of the free memory.
    pub memory: usize,
    /// How long a request's head may take, and how long a connection may be idle. Stops
    /// clients that send one byte now and then.
    pub head_within: Duration,
    /// How long a request's body may take.
    pub body_within: Duration,
    /// How long a client may leave what is sent to it unread.
    pub read_within: Duration,
    /// How long a call of the session era continues after its connection has ended, because the
    /// client may come back for the result. After that the call is cancelled. In the stateless era
    /// a call is cancelled at once.
    pub resume_within: Duration,
    /// How long calls may take to finish when the server is shut down.
    pub finish_within: Duration,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            connections: 512,
            connections_per_address: 256,
            connections_per_principal: 128,
            newcomer_within: Duration::from_secs(2),
            requests: 32,
            streams: 16,
            sessions: 32,
            sessions_in_all: 1024,
            session_idle: Duration::from_secs(30 * 60),
            body: crate::messages::MAX_MESSAGE_BYTES,
            memory: 512 * 1024 * 1024,
            head_within: Duration::from_secs(15),
            body_within: Duration::from_secs(30),
            read_within: Duration::from_secs(30),
            resume_within: Duration::from_secs(5),
            finish_within: Duration::from_secs(30),
        }
    }
}

/// The future that [`Authenticate::authenticate`] returns.
pub type Authenticating<'a> = Pin<Box<dyn Future<Output = Result<Identity, Refusal>> + Send + 'a>>;

/// Finds the principal of a request by its bearer token. An implementation must keep tokens secret:
/// it must not log them or pass them on. [`tokens::Tokens`] implements this trait.
///
/// ```
/// use toolward_mcp::http::{Authenticate, Authenticating, Identity, Refusal};
/// use toolward_mcp::principal::{Principal, Tools};
///
/// /// Asks the identity provider of a company.
/// struct Company;
///
/// impl Company {
///     async fn user_of(&self, _token: &str) -> Option<String> {
///         None
///     }
/// }
///
/// impl Authenticate for Company {
///     fn authenticate<'a>(&'a self, token: Option<&'a str>) -> Authenticating<'a> {
///         Box::pin(async move {
///             let token = token.ok_or(Refusal::Missing)?;
///             let user = self.user_of(token).await.ok_or(Refusal::Unknown)?;
///             Ok(Identity {
///                 principal: Principal { name: user.into(), tools: Tools::All, may_approve: false },
///                 requests: None,
///             })
///         })
///     }
/// }
/// ```
pub trait Authenticate: Send + Sync + 'static {
    /// Returns the principal of a token. `token` is `None` if the request carries no token.
    ///
    /// # Errors
    ///
    /// [`Refusal`] if the token is missing, unknown or expired.
    fn authenticate<'a>(&'a self, token: Option<&'a str>) -> Authenticating<'a>;

    /// Returns the value of `WWW-Authenticate` for a refused request (RFC 6750 section 3). Override
    /// it for a scheme that also names where to get a token.
    fn challenge(&self, refusal: Refusal) -> HeaderValue {
        HeaderValue::from_static(match refusal {
            Refusal::Missing => "Bearer realm=\"toolward\"",
            Refusal::Unknown => "Bearer realm=\"toolward\", error=\"invalid_token\"",
            Refusal::Expired => {
                "Bearer realm=\"toolward\", error=\"invalid_token\", error_description=\"expired\""
            }
        })
    }
}

/// A principal, and how many requests it may have in flight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The principal.
    pub principal: Principal,
    /// How many requests it may have in flight; `None` for the server's default.
    pub requests: Option<usize>,
}

codes! {
    /// Why a request has no principal.
    pub enum Refusal {
        /// The request has no token, or several.
        Missing = "token-missing",
            "expected one header `Authorization: Bearer` with a token that the server's operator gives";
        Unknown = "token-unknown", "this token is not known; ask the server's operator for one";
        Expired = "token-expired", "this token has expired; ask the server's operator for another";
    }
}

codes! {
    /// Starting the server, or reading its tokens, failed.
    #[derive(Debug)]
    pub enum HttpError: Error {
        Listener(source: std::io::Error) = "http-listener", "the listening socket can't be used",
            ("the listening socket can't be used: {source}")
            => "name an address of this machine and a port that is free";
        OpenAddress(address: SocketAddr) = "http-open-address" ["2"], "`--no-token` on an address that other machines reach",
            ("`{address}` can be reached from other machines, where calls without a token are refused")
            => "serve on 127.0.0.1 or [::1], or give tokens";
        OpenOrigin(origin: String) = "http-open-origin" ["2"], "`--no-token` with an `--allow-origin` that any page can have",
            ("the origin `{origin}` can be any page, and calls without a token are served")
            => "leave out the origin, or give tokens";
        NoHosts(address: SocketAddr) = "http-no-hosts" ["2"],
            "the address of `serve --http` is `0.0.0.0` or `[::]`, and no `--allow-host` was given",
            ("clients can't name `{address}` as their host, and no host names are allowed")
            => "name each host by which clients reach the server: `--allow-host NAME`";
        Name { found: String, expected: &'static str } = "http-name-invalid" ["2"],
            "an `--allow-host` or `--allow-origin` is invalid", ("`{found}` is no {expected}")
            => "a host is `name` or `name:port`, an origin `https://name`, `https://name:port`, \
                `null` or `vscode-webview://*`";
        /// `action` is `read` or `written`.
        TokenFile { path: PathBuf, action: &'static str, source: std::io::Error } = "token-file-unusable" ["2"],
            "the file of tokens can't be read or written",
            ("the token file {} can't be {action}: {source}", path.display())
            => "name a file that you may read, in a directory that is there";
        TokenFileUnsafe { path: PathBuf, problem: String } = "token-file-unsafe" ["2"],
            "users other than its owner may read or change the file of tokens",
            ("the token file {} {problem}", path.display())
            => "give the file to the user who runs the server, and set its mode to 0600";
        /// `line` counts from 1.
        Tokens { problem: String, line: Option<usize> } = "token-file-invalid" ["2"], "the file of tokens is invalid",
            ("the token file{} {problem}", line.map(|line| format!(", line {line},")).unwrap_or_default())
            => "see the book's page on serving over HTTP for the file's form";
        Token { problem: String } = "token-invalid" ["2"], "`mcp token` got an invalid name or tool",
            ("the new token {problem}")
            => "a name is up to 64 of a-z, 0-9, `-`, `_` and `.`; a tool is `id`, `id@major`, \
                `prefix.*` or `*`";
        TokenKnown { path: PathBuf, name: String } = "token-known" ["2"],
            "the file of tokens has an entry of this name already",
            ("the token file {} has a token of `{name}`", path.display())
            => "choose another name, or remove the entry from the file if its token should no longer be \
                valid";
        Random(source: getrandom::Error) = "random-unavailable", "the system gives no random bytes for a token",
            ("the system gives no random bytes: {source}");
    }
}
