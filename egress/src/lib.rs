//! Outgoing HTTP under rules: hosts, addresses, headers, secrets, sizes, time.
//!
//! A [`Transport`] belongs to a host, an [`Egress`] to a route (a contract and
//! its driver), a [`Call`] to one call. [`Call::send`] looks at all of a request
//! before it resolves a name, and at every address before it connects. What no
//! rule allows is refused with a stable code, and nothing is sent.
//!
//! Redirects are not followed, cookies not kept, bodies not decompressed, and
//! proxies not used: a caller sends a further request, under the same rules.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::{Duration, Instant};
//! use toolward_egress::{CallLimits, NoSecrets, Rules, Timeouts, Transport};
//!
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//! # runtime.block_on(async {
//! let egress = Transport::builder().build().egress(Arc::new(Rules::default()));
//! let limits = CallLimits::until(Instant::now() + Duration::from_secs(30));
//! let call = egress.call(limits, Arc::new(NoSecrets));
//! let request = http::Request::get("https://api.example/").body(String::new())?;
//! let refused = call.send(request, Timeouts::default()).await;
//! assert_eq!(refused.map_err(|error| error.code()).err(), Some("host-not-granted"));
//! # Ok::<(), http::Error>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod address;
pub mod authority;
pub mod headers;
pub mod target;

mod call;
mod call_limits;
mod call_state;
mod clock;
mod connect;
mod error;
mod meter;
mod origin;
mod pool;
mod request_body;
mod resolve;
mod response_body;
mod response_redactor;
mod rules;
mod secret;
mod send;
mod shares;
mod tls;
mod transport;

pub use call::Call;
pub use call_limits::CallLimits;
pub use clock::Timeouts;
pub use error::{
    BoxError, Denied, Error, Limit, LimitKind, Network, NetworkKind, Rule, SecretError,
    SecretProblem, Stage, Timeout,
};
pub use meter::{Meter, Usage};
pub use resolve::{LookupPermit, Resolve, Resolving, SystemResolver};
pub use response_body::ResponseBody;
pub use rules::{HostRule, Rules, RulesError, SecretRule};
pub use secret::{NoSecrets, SecretValues, ValueError, scrub};
pub use tls::RootsError;
pub use transport::{Egress, Transport, TransportBuilder};
