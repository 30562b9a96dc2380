//! Granted hosts that lead to addresses which are not globally reachable: calls of them are refused until a grant names
//! the address.

use std::net::{IpAddr, ToSocketAddrs as _};
use std::sync::mpsc::channel;
use std::time::Duration;

use toolward_policy::Route;

use super::PolicyReview;

/// How long all names of a tool are looked up. What is not found by then is not reported.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(3);

const HTTPS_PORT: u16 = 443;

/// A granted host with an address that its grant does not name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InternalAddress {
    /// The host, as granted.
    pub host: String,
    /// Its address.
    pub address: IpAddr,
    /// What kind of address that is, such as `private (RFC 1918)`.
    pub kind: &'static str,
}

impl InternalAddress {
    /// The key for the tool's `[[grant]]`.
    #[must_use]
    pub fn line(&self) -> String {
        format!("addresses = [\"{}\"]", self.address)
    }
}

impl std::fmt::Display for InternalAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (host, address, kind, line) = (&self.host, self.address, self.kind, self.line());
        write!(
            f,
            "{host} is at {address}, {kind}: requests are refused until its [[grant]] has `{line}`"
        )
    }
}

impl PolicyReview {
    /// The hosts of a route that have such an address here and now. Looks names up, for a few seconds at most.
    #[must_use]
    pub fn internal_addresses(&self, route: &Route<'_>) -> Vec<InternalAddress> {
        let hosts = route.decision.grant().into_iter();
        let hosts: Vec<_> = hosts.flat_map(|grant| grant.network().to_vec()).collect();
        if hosts.is_empty() {
            return Vec::new();
        }
        let (sender, found) = channel();
        // A lookup can't be ended: the thread is left behind at the timeout.
        let lookup = std::thread::Builder::new().spawn(move || {
            let mut internal = Vec::new();
            for granted in hosts {
                let name = granted.host.host();
                let port = granted.host.port().unwrap_or(HTTPS_PORT);
                let Ok(all) = (name.trim_matches(['[', ']']), port).to_socket_addrs() else {
                    continue;
                };
                let refused = all.map(|socket| socket.ip()).find_map(|address| {
                    let kind = toolward_egress::address::check(address, &granted.addresses);
                    Some((address, kind.err()?))
                });
                internal.extend(refused.map(|(address, kind)| InternalAddress {
                    host: granted.host.to_string(),
                    address,
                    kind,
                }));
            }
            // Nobody may wait any more.
            let _ = sender.send(internal);
        });
        match lookup {
            Ok(_) => found.recv_timeout(LOOKUP_TIMEOUT).unwrap_or_default(),
            Err(_) => Vec::new(),
        }
    }
}
