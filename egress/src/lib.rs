//! Outgoing HTTP under rules: hosts, addresses, headers, secrets, sizes, time.
//!
//! A [`Transport`] is the network access of one Toolward host. An [`Egress`] is the access of one
//! route (a contract and its driver), and a [`Call`] the access of one call. [`Call::send`] checks
//! the request's head before it resolves a name, and every address before it connects. If no rule
//! allows a request, it is refused with a stable code, and nothing is sent.
//!
//! Redirects are not followed; a caller can send another request under the same rules. Cookies are
//! not stored, bodies not decompressed, and proxies not used.
//!
//! Without the feature `network` (on by default), everything exists except the code that connects:
//! no [`Transport`] can be created.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::{Duration, Instant};
//! use toolward_egress::{NoSecrets, Rules, Timeouts, TransportSettings};
//! use toolward_policy::CallLimits;
//!
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//! # runtime.block_on(async {
//! let egress = TransportSettings::default().build().egress("acme", Arc::new(Rules::default()));
//! let deadline = Instant::now() + Duration::from_secs(30);
//! let call = egress.call(CallLimits::default(), deadline, None, Arc::new(NoSecrets));
//! let request = http::Request::get("https://api.example/").body(String::new())?;
//! let refused = call.send(request, Timeouts::default()).await;
//! assert_eq!(refused.map_err(|error| error.code()).err(), Some("host-not-granted"));
//! # Ok::<(), http::Error>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![cfg_attr(
    not(feature = "network"),
    expect(dead_code, reason = "requests are checked where they are sent")
)]

pub mod address;
pub mod authority;
pub mod headers;
pub mod target;

mod call;
mod call_state;
mod error;
mod meter;
#[cfg(feature = "network")]
mod network;
#[cfg(not(feature = "network"))]
#[path = "absent.rs"]
mod network;
mod rules;
mod secret;

pub use call::Call;
pub use call_state::Timeouts;
pub use error::{
    BoxError, Denied, Error, Limit, LimitKind, NetworkError, NetworkKind, Rule, SecretError,
    SecretProblem, Stage, Timeout,
};
pub use meter::{Meter, Usage};
pub use network::{Egress, ResponseBody, Transport};
#[cfg(feature = "network")]
pub use network::{
    LookupPermit, Resolve, Resolving, RootsError, SystemResolver, TransportSettings,
};
pub use rules::{Rules, RulesError};
pub use secret::{NoSecrets, SecretValues, ValueError, scrub};
