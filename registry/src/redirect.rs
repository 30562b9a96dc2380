//! Where downloads may be redirected to: origins that are allowed, at addresses that anybody may reach. A redirect
//! must not make this machine connect to something in its own network.

use std::net::{IpAddr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

use crate::address::origin;
use crate::known;

/// What to do about a redirect to an address that fails the check.
pub(crate) const NOT_GLOBAL: &str = "the registry has to serve its downloads itself: only `redirects_to` of a registry on this \
     machine allows such an address";

/// Says whether a redirect may lead to an address, or what kind of address it is.
pub type AddressCheck = fn(IpAddr) -> Result<(), &'static str>;

/// The origins that downloads may be redirected to.
pub(crate) struct Redirects {
    /// At addresses that pass the check.
    pub(crate) origins: Vec<String>,
    /// At any address.
    pub(crate) local: Vec<String>,
    pub(crate) check: AddressCheck,
}

/// How a redirect is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// To where the request went, or to an origin that may have any address.
    Any,
    /// To addresses that pass the check.
    Checked,
}

impl Redirects {
    /// Whether a request to `from` may be redirected to `to`, and how. `Err` has what would be allowed, and what kind
    /// of address `to` has, if that is why it is refused.
    pub(crate) fn target(&self, from: &Url, to: &Url) -> Result<Target, (String, Option<&str>)> {
        let (own, target) = (origin(from), origin(to));
        if target == own || self.local.contains(&target) {
            return Ok(Target::Any);
        }
        if !self.origins.contains(&target) && !known::is_redirect(&own, &target) {
            return Err((format!("{own}, or an origin that is allowed"), None));
        }
        // A resolver is never asked about these.
        let literal = match to.host() {
            Some(Host::Ipv4(address)) => Some(IpAddr::V4(address)),
            Some(Host::Ipv6(address)) => Some(IpAddr::V6(address)),
            _ => None,
        };
        match literal.map(self.check) {
            Some(Err(kind)) => Err(("a global unicast address".to_owned(), Some(kind))),
            _ => Ok(Target::Checked),
        }
    }
}

/// Resolves names to those of their addresses that pass the check.
pub(crate) struct CheckedResolver(pub(crate) AddressCheck);

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let check = self.0;
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let mut allowed: Vec<SocketAddr> = Vec::new();
            let mut refused = None;
            for address in found {
                match check(address.ip()) {
                    Ok(()) => allowed.push(address),
                    Err(kind) => refused = Some(kind),
                }
            }
            match (allowed.is_empty(), refused) {
                (true, Some(kind)) => Err(AddressRefused(kind).into()),
                _ => Ok(Box::new(allowed.into_iter()) as Addrs),
            }
        })
    }
}

/// All addresses of a name are of a kind that no redirect leads to.
#[derive(Debug)]
pub(crate) struct AddressRefused(pub(crate) &'static str);

impl std::fmt::Display for AddressRefused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "an address that is {}", self.0)
    }
}

impl std::error::Error for AddressRefused {}
