//! Names to addresses, once per connection. What is answered is checked by the
//! caller.

use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::pin::Pin;
use std::sync::Arc;

use super::shares::FairPermit;

/// The answer of a [`Resolve`].
pub type Resolving<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// A source of addresses.
///
/// ```
/// use std::net::ToSocketAddrs;
/// use std::sync::Arc;
/// use toolward_egress::{LookupPermit, Resolve, Resolving, SystemResolver, TransportSettings};
///
/// /// Asks the system for all names but its own.
/// struct Hosts;
///
/// impl Resolve for Hosts {
///     fn resolve<'a>(&'a self, host: &'a str, permit: LookupPermit) -> Resolving<'a> {
///         match host {
///             "api.internal" => Box::pin(async { Ok(vec![[10, 0, 0, 7].into()]) }),
///             _ => SystemResolver.resolve(host, permit),
///         }
///     }
/// }
///
/// let resolver = Arc::new(Hosts);
/// let transport = TransportSettings { resolver, ..TransportSettings::default() }.build();
/// ```
pub trait Resolve: Send + Sync + 'static {
    /// All addresses of `host`, a name in ASCII, in the order to try them. What is at work longer than the future, such as
    /// a thread, keeps the permit to its end.
    fn resolve<'a>(&'a self, host: &'a str, permit: LookupPermit) -> Resolving<'a>;
}

/// What a lookup holds of the lookups that its host, its route and its caller may have
/// at once. Given back with its last clone.
#[derive(Clone)]
pub struct LookupPermit {
    pub(super) _shares: Arc<[FairPermit; 2]>,
}

/// Lookups at once. One that hangs cannot be cancelled and holds a thread.
pub(crate) const MAX_LOOKUPS: usize = 64;

/// The system's own resolver (`getaddrinfo`), on the runtime's blocking threads.
#[derive(Debug, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str, permit: LookupPermit) -> Resolving<'a> {
        let host = host.to_owned();
        let lookup = move || {
            // Held by the thread, which outlives a caller that gives up.
            let _permit = permit;
            let answers = (host.as_str(), 0).to_socket_addrs()?;
            Ok(answers.map(|answer| answer.ip()).collect())
        };
        Box::pin(async move {
            let ended = tokio::task::spawn_blocking(lookup).await;
            ended.map_err(io::Error::other)?
        })
    }
}
