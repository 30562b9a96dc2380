//! Where downloads may be redirected to: origins that are allowed, at addresses that anybody may reach. A redirect
//! must not make this machine connect to something in its own network.

use std::net::{IpAddr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

use crate::address::origin;
use crate::known;
use crate::reference::is_loopback;

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
        // A resolver is never asked about these.
        let literal = match to.host() {
            Some(Host::Ipv4(address)) => Some(IpAddr::V4(address)),
            Some(Host::Ipv6(address)) => Some(IpAddr::V6(address)),
            _ => None,
        };
        let refused = literal.and_then(|address| (self.check)(address).err());
        let allowed = self.origins.contains(&target) || known::is_redirect(&own, &target);
        match refused {
            // Only for a registry of this machine would a setting allow it.
            Some(kind) if allowed || !from.host_str().is_some_and(is_loopback) => {
                Err(("a global unicast address".to_owned(), Some(kind)))
            }
            _ if allowed => Ok(Target::Checked),
            _ => Err((format!("{own}, or an origin that is allowed"), None)),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_no_setting_allows_is_refused_as_that() {
        let redirects = Redirects {
            origins: Vec::new(),
            local: Vec::new(),
            check: |address| match address.is_loopback() {
                true => Err("loopback"),
                false => Ok(()),
            },
        };
        let kind = |from: &str, to: &str| {
            let (from, to) = (Url::parse(from).unwrap(), Url::parse(to).unwrap());
            redirects.target(&from, &to).unwrap_err().1
        };
        let inside = "https://127.0.0.9/x";
        assert_eq!(kind("https://r.example/v2/", inside), Some("loopback"));
        assert_eq!(kind("https://127.0.0.1/v2/", inside), None);
        assert_eq!(kind("https://r.example/v2/", "https://192.0.2.1/x"), None);
    }
}
