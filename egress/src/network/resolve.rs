//! Names to addresses, once per connection. What is answered is checked by the
//! caller.

use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::Semaphore;

use super::shares::FairPermit;

/// The answer of a [`Resolve`].
pub type Resolving<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// A source of addresses.
///
/// ```
/// use std::net::ToSocketAddrs;
/// use std::sync::Arc;
/// use toolward_egress::{LookupPermit, Resolve, Resolving, SystemResolver, Transport};
///
/// /// Asks the system for all names but its own.
/// #[derive(Default)]
/// struct Hosts(SystemResolver);
///
/// impl Resolve for Hosts {
///     fn resolve<'a>(&'a self, host: &'a str) -> Resolving<'a> {
///         match host {
///             "api.internal" => Box::pin(async { Ok(vec![[10, 0, 0, 7].into()]) }),
///             _ => self.0.resolve(host),
///         }
///     }
///
///     fn resolve_with<'a>(&'a self, host: &'a str, permit: LookupPermit) -> Resolving<'a> {
///         match host {
///             "api.internal" => self.resolve(host),
///             _ => self.0.resolve_with(host, permit),
///         }
///     }
/// }
///
/// let transport = Transport::builder().resolver(Arc::new(Hosts::default())).build();
/// ```
pub trait Resolve: Send + Sync + 'static {
    /// All addresses of `host`, a name in ASCII, in the order to try them.
    fn resolve<'a>(&'a self, host: &'a str) -> Resolving<'a>;

    /// [`Resolve::resolve`], which keeps the permit for as long as anything is at work
    /// for it. The permit is kept as long as the future, unless an implementation keeps it longer: a
    /// lookup on a thread outlives its future.
    fn resolve_with<'a>(&'a self, host: &'a str, permit: LookupPermit) -> Resolving<'a> {
        Box::pin(async move {
            let _permit = permit;
            self.resolve(host).await
        })
    }
}

/// What a lookup holds of the lookups that its host, its route and its caller may have
/// at once.
pub struct LookupPermit {
    pub(super) _shares: [FairPermit; 2],
}

/// Lookups at once. One that hangs cannot be cancelled and holds a thread.
pub(crate) const MAX_LOOKUPS: usize = 64;

/// The system's own resolver (`getaddrinfo`), on the runtime's blocking threads.
pub struct SystemResolver {
    permits: Arc<Semaphore>,
}

impl Default for SystemResolver {
    fn default() -> Self {
        let permits = Arc::new(Semaphore::new(MAX_LOOKUPS));
        SystemResolver { permits }
    }
}

impl SystemResolver {
    /// Looks a name up on a thread, which has something to hold to its end.
    fn on_a_thread<'a>(&'a self, host: &'a str, held: impl Send + 'static) -> Resolving<'a> {
        Box::pin(async move {
            let permits = Arc::clone(&self.permits);
            let permit = permits.acquire_owned().await.map_err(io::Error::other)?;
            let host = host.to_owned();
            let lookup = move || {
                // Held by the thread, which outlives a caller that gives up.
                let _held = (permit, held);
                let answers = (host.as_str(), 0).to_socket_addrs()?;
                Ok(answers.map(|answer| answer.ip()).collect())
            };
            let task = tokio::task::spawn_blocking(lookup);
            task.await.map_err(io::Error::other)?
        })
    }
}

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str) -> Resolving<'a> {
        self.on_a_thread(host, ())
    }

    fn resolve_with<'a>(&'a self, host: &'a str, permit: LookupPermit) -> Resolving<'a> {
        self.on_a_thread(host, permit)
    }
}
