//! MCP over streamable HTTP: who may connect, who a request comes from, and how
//! many, how large and how slow requests may be. What the messages say is none of
//! its business.

mod authenticate;
mod body;
mod concurrency;
mod connection;
mod connections;
mod error;
mod guard;
mod host_header;
mod limits;
mod memory_budget;
mod responses;
mod serving;
mod sessions;
pub mod tokens;

pub use authenticate::{Authenticate, Authenticating, Identity, Refusal};
pub use error::HttpError;
pub use limits::HttpLimits;
pub use serving::{Ended, bind, serve};
pub(crate) use sessions::calling;

use std::fmt;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::principal::Principal;

/// Where clients send their messages to.
pub const PATH: &str = "/mcp";

/// Where anybody may ask whether the server runs. The answer says nothing else.
pub const HEALTH_PATH: &str = "/healthz";

/// Where a proxy asks whether to send requests here: 200 if so, 503 once the server is
/// about to end. The answer says nothing else, and needs no token.
pub const READY_PATH: &str = "/readyz";

/// How the server is set up.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Who may call.
    pub authentication: Authentication,
    /// AllowedNames besides the address's own that a request may carry as `Host`: `name`
    /// with any port, or `name:port`. Needed where the address is no name that
    /// clients use, as `0.0.0.0` is none.
    pub hosts: Vec<String>,
    /// Origins besides this machine's that a request may carry as `Origin`:
    /// `https://name` or `https://name:port`. Without any, a request from a page
    /// on another machine is refused.
    pub origins: Vec<String>,
    /// How much at once.
    pub limits: HttpLimits,
    /// Cancelled some time before the server is shut down: from then on
    /// [`READY_PATH`] answers 503 and each answer is the last of its connection, but
    /// connections and requests are taken still. Proxies and clients have the time in
    /// between to go elsewhere.
    pub draining: CancellationToken,
}

impl Settings {
    /// Nothing but who may call; all else as it is by default.
    #[must_use]
    pub fn new(authentication: Authentication) -> Self {
        Self {
            authentication,
            hosts: Vec::new(),
            origins: Vec::new(),
            limits: HttpLimits::default(),
            draining: CancellationToken::new(),
        }
    }
}

/// Who may call.
#[derive(Clone)]
pub enum Authentication {
    /// Whoever this finds a principal for; [`tokens::Tokens`] for one.
    Required(Arc<dyn Authenticate>),
    /// Whoever reaches the address, all as this principal: on loopback addresses
    /// only, where every process of this machine is trusted.
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
