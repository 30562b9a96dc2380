//! MCP over streamable HTTP: who may connect, who a request comes from, and how
//! many, how large and how slow requests may be. It does not interpret messages.

mod authenticate;
mod batch;
mod body;
mod concurrency;
mod connection;
mod connections;
mod cors;
mod error;
mod guard;
mod host_header;
mod limits;
mod memory_budget;
#[cfg(feature = "metrics")]
pub mod metrics;
mod responses;
mod serving;
mod sessions;
pub mod tokens;
mod tolerance;

pub use authenticate::{Authenticate, Authenticating, Identity, Refusal};
pub use error::HttpError;
pub use limits::HttpLimits;
pub use responses::REJECTIONS;
pub use serving::{Ended, bind, check, serve};
pub(crate) use sessions::calling;

use std::fmt;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use toolward_host::SharedState;

use crate::principal::Principal;

/// The path of messages.
pub const PATH: &str = "/mcp";

/// The same path as some clients and proxies write it.
const PATH_WITH_SLASH: &str = "/mcp/";

/// The path of the liveness check. It needs no token, and tells nothing else.
pub const HEALTH_PATH: &str = "/healthz";

/// The path of the readiness check, for proxies: 200, or 503 once the server drains. It
/// needs no token, and tells nothing else.
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
    /// Names besides the address's own that a request may carry as `Host`: `name` with
    /// any port, or `name:port`. Needed where clients use another name than the address,
    /// as with `0.0.0.0`.
    pub hosts: Vec<String>,
    /// Origins that a request may carry as `Origin`: `https://name` or
    /// `https://name:port`. This machine's need not be named if a token is
    /// required. A request from any other page is refused. `null` and `vscode-webview://*` stand for pages of
    /// unknown authors and can be allowed with tokens only.
    pub origins: Vec<String>,
    /// Limits on connections, sessions and requests.
    pub limits: HttpLimits,
    /// Cancel it some time before the server is shut down. From then on [`READY_PATH`]
    /// answers 503 and each answer is the last of its connection, but connections and
    /// requests are still accepted: proxies and clients have time to go elsewhere.
    pub draining: CancellationToken,
    /// The state of the hosts that make the calls. With it, results that clients have not read count in the memory
    /// of all calls (`memory_total`); without room the slowest reader is disconnected.
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
    /// Each request needs a token that this knows; [`tokens::Tokens`] is one.
    Required(Arc<dyn Authenticate>),
    /// Every process of this machine, as this principal. On loopback addresses only.
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
