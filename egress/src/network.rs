//! The code that connects: the transport of a host, its routes, and the exchange of one request.
//!
//! All routes of a host share the resolver, the roots (certificate authorities), and the limit on
//! open connections. Each route has its own rules and pool.

mod connect;
mod pool;
mod request_body;
mod response_body;
mod send;
mod shares;

use std::net::{IpAddr, ToSocketAddrs};
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;
use std::{fmt, io};

use tokio::sync::Semaphore;
use toolward_support::helper::lock;

use crate::rules::Rules;
use connect::LoadedRoots;
use pool::{ConnectionPool, WaitCount};
use shares::{FairPermit, FairPermits, Holder};

pub use connect::RootsError;
pub use response_body::ResponseBody;
pub(crate) use send::send;

/// The most lookups of one route at once. If a name server never answers, each lookup holds a
/// thread.
const MAX_ROUTE_LOOKUPS: usize = 8;

/// The network access of one Toolward host. Clones share everything. It uses no proxies. Only the
/// system's resolver and the loading of the system's certificate authorities (`SSL_CERT_FILE`,
/// `SSL_CERT_DIR`) may read the environment.
#[derive(Clone)]
pub struct Transport(Arc<Inner>);

struct Inner {
    settings: TransportSettings,
    /// The certificate authorities, loaded at the first use.
    tls: OnceLock<LoadedRoots>,
    open: Arc<FairPermits>,
    /// The permits for the lookups of all routes.
    lookups: Arc<FairPermits>,
    pools: Mutex<Vec<Weak<ConnectionPool>>>,
    /// Requests that wait for a permit of this transport.
    waiting: WaitCount,
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport")
            .field("free", &self.0.open.left())
            .finish_non_exhaustive()
    }
}

/// The settings of a [`Transport`].
///
/// ```no_run
/// use std::sync::Arc;
/// use std::time::Duration;
/// use toolward_egress::{Egress, RootsError, Rules, TransportSettings};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let settings = TransportSettings {
///     ca_pem: vec![std::fs::read("/etc/example/ca.pem")?],
///     connections: 256,
///     idle_timeout: Duration::from_secs(10),
///     ..TransportSettings::default()
/// };
/// let transport = settings.build();
/// // Before the process confines itself.
/// let roots: Result<usize, RootsError> = transport.load_roots();
/// let egress: Egress = transport.egress("acme", Arc::new(Rules::default())).on_behalf_of("alice");
/// # Ok(())
/// # }
/// ```
pub struct TransportSettings {
    /// The source of addresses; by default the system's resolver.
    pub resolver: Arc<dyn Resolve>,
    /// Whether the system's certificate authorities are trusted; true by default.
    pub system_roots: bool,
    /// The contents of PEM files with further trusted authorities.
    pub ca_pem: Vec<Vec<u8>>,
    /// The most open connections, in use or idle; 1024 by default. Each connection holds a file
    /// descriptor.
    pub connections: usize,
    /// The most open connections of one route, so that no route takes all; 256 by default.
    pub connections_per_route: usize,
    /// The most idle connections that one route keeps; 8 by default.
    pub idle_connections: usize,
    /// How long an idle connection is kept; 30 s by default.
    pub idle_timeout: Duration,
}

impl Default for TransportSettings {
    fn default() -> Self {
        TransportSettings {
            resolver: Arc::new(SystemResolver),
            system_roots: true,
            ca_pem: Vec::new(),
            connections: 1024,
            connections_per_route: 256,
            idle_connections: 8,
            idle_timeout: Duration::from_secs(30),
        }
    }
}

impl TransportSettings {
    /// Creates the transport. Reads no files.
    pub fn build(self) -> Transport {
        let permits = |most: usize| FairPermits::new(most.clamp(1, Semaphore::MAX_PERMITS));
        Transport(Arc::new(Inner {
            tls: OnceLock::new(),
            open: permits(self.connections),
            lookups: permits(MAX_LOOKUPS),
            pools: Mutex::default(),
            waiting: WaitCount::default(),
            settings: self,
        }))
    }
}

impl Transport {
    /// A transport with the system's resolver and roots; `None` if the crate is built without the
    /// feature `network`.
    pub fn system() -> Option<Transport> {
        Some(TransportSettings::default().build())
    }

    /// Loads the roots now, e.g. before the process is confined, and returns their number.
    /// Otherwise the first https request loads them.
    ///
    /// # Errors
    /// If no authority was found, or if a PEM file has no certificate or an invalid one.
    pub fn load_roots(&self) -> Result<usize, RootsError> {
        let load = || connect::load(&self.0.settings);
        let loaded = self.0.tls.get_or_init(load).clone();
        loaded.map(|(_, count)| count)
    }

    /// Creates a route with `rules`, and with connections that no other route uses.
    ///
    /// A quarter of the host's permits for connections and lookups is reserved for owners that hold
    /// none. The permits of all routes of one owner count together, so an owner with more routes
    /// has no larger share.
    pub fn egress(&self, owner: &str, rules: Arc<Rules>) -> Egress {
        let (settings, waiting) = (&self.0.settings, self.0.waiting.clone());
        let pool = ConnectionPool::new(settings.idle_connections, settings.idle_timeout, waiting);
        let pool = Arc::new(pool);
        let connections = settings.connections_per_route;
        let mut pools = lock(&self.0.pools);
        pools.retain(|pool| pool.strong_count() > 0);
        pools.push(Arc::downgrade(&pool));
        let route = Route {
            open: FairPermits::new(connections.clamp(1, Semaphore::MAX_PERMITS)),
            lookups: FairPermits::new(MAX_ROUTE_LOOKUPS),
            transport: self.clone(),
            owner: Holder::Owner(owner.into()),
            rules,
            pool,
        };
        Egress {
            route: Arc::new(route),
            caller: None,
        }
    }

    /// Closes the idle connections of all routes.
    fn close_idle(&self) {
        let pools = lock(&self.0.pools);
        let alive: Vec<Arc<ConnectionPool>> = pools.iter().filter_map(Weak::upgrade).collect();
        drop(pools);
        for pool in alive {
            pool.clear();
        }
    }
}

/// The network access of one route. Clones share everything.
#[derive(Clone)]
pub struct Egress {
    route: Arc<Route>,
    caller: Option<Arc<str>>,
}

struct Route {
    transport: Transport,
    owner: Holder,
    rules: Arc<Rules>,
    pool: Arc<ConnectionPool>,
    /// The permits for the route's connections.
    open: Arc<FairPermits>,
    /// The permits for the route's lookups.
    lookups: Arc<FairPermits>,
}

impl Egress {
    /// The same route, for the calls of one principal. The open connections and lookups of the
    /// principal's calls count together, over all routes of the host. The last quarter of the
    /// connections and lookups, of a route and of the host, is reserved for principals that have
    /// none.
    pub fn on_behalf_of(&self, principal: &str) -> Egress {
        Egress {
            route: Arc::clone(&self.route),
            caller: Some(principal.into()),
        }
    }

    pub(crate) fn rules(&self) -> &Rules {
        &self.route.rules
    }

    /// The holders whose shares a permit of this route counts towards: the caller, if it is known.
    fn caller(&self) -> Vec<Holder> {
        let caller = self.caller.clone();
        caller.map(Holder::Caller).into_iter().collect()
    }

    /// The holders whose shares a permit of the transport counts towards: caller and owner.
    fn holders(&self) -> Vec<Holder> {
        let mut holders = self.caller();
        holders.push(self.route.owner.clone());
        holders
    }
}

/// The future that [`Resolve::resolve`] returns.
pub type Resolving<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// A source of addresses.
///
/// ```
/// use std::net::ToSocketAddrs;
/// use std::sync::Arc;
/// use toolward_egress::{LookupPermit, Resolve, Resolving, SystemResolver, TransportSettings};
///
/// /// Knows the address of one name, and asks the system for all others.
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
    /// Returns all addresses of `host`, a name in ASCII, in the order to try them. Work that
    /// outlives the future, such as a thread, must keep the permit until it ends.
    fn resolve<'a>(&'a self, host: &'a str, permit: LookupPermit) -> Resolving<'a>;
}

/// The permit of a lookup. It counts as a lookup of the [`Transport`] and of the route. In both, it
/// counts towards the caller's share; in the transport, also towards the share of the route's
/// owner. It is returned when its last clone is dropped.
#[derive(Clone)]
pub struct LookupPermit {
    _shares: Arc<[FairPermit; 2]>,
}

/// The most lookups at once. A hanging lookup cannot be cancelled and holds a thread.
const MAX_LOOKUPS: usize = 64;

/// The system's own resolver (`getaddrinfo`), on the runtime's blocking threads.
#[derive(Debug, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str, permit: LookupPermit) -> Resolving<'a> {
        let host = host.to_owned();
        let lookup = move || {
            // The thread holds the permit, since the thread may outlive its caller.
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
