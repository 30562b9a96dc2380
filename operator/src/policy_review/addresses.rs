//! Granted hosts that lead to addresses which are not globally reachable: calls of them are refused until a grant names
//! the address.

use std::net::{IpAddr, ToSocketAddrs as _};
use std::sync::mpsc::channel;
use std::time::Duration;

use toolward_policy::Grant;

/// How long all names of a tool are looked up. What is not found by then is not reported.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(3);

const HTTPS_PORT: u16 = 443;

/// A granted host with an address that its grant does not name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InternalAddress {
    /// The host, as granted.
    pub host: String,
    /// Its addresses that are not granted, at least one: a request needs all of them.
    pub addresses: Vec<IpAddr>,
    /// What kind of address the first is, such as `private (RFC 1918)`.
    pub kind: &'static str,
}

impl InternalAddress {
    /// The key for the tool's `[[grant]]`.
    #[must_use]
    pub fn line(&self) -> String {
        let addresses = self.addresses.iter();
        let addresses: Vec<String> = addresses.map(|one| format!("\"{one}\"")).collect();
        format!("addresses = [{}]", addresses.join(", "))
    }
}

impl std::fmt::Display for InternalAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let addresses: Vec<String> = self.addresses.iter().map(ToString::to_string).collect();
        let (host, addresses, kind, line) =
            (&self.host, addresses.join(" and "), self.kind, self.line());
        write!(
            f,
            "{host} is at {addresses}, {kind}: requests are refused until its [[grant]] has `{line}`"
        )
    }
}

impl InternalAddress {
    /// The hosts of a grant that have such an address here and now. Looks names up, for a few seconds at most.
    #[must_use]
    pub fn of(grant: &Grant) -> Vec<Self> {
        let hosts = grant.network().to_vec();
        if hosts.is_empty() {
            return Vec::new();
        }
        let (sender, found) = channel();
        // A lookup can't be ended: the thread is left behind at the timeout.
        let lookup = std::thread::Builder::new().spawn(move || {
            let mut internal = Vec::new();
            // A wildcard has no address.
            for granted in hosts.iter().filter(|one| !one.host.host().contains('*')) {
                let name = granted.host.host();
                let port = granted.host.port().unwrap_or(HTTPS_PORT);
                let Ok(all) = (name.trim_matches(['[', ']']), port).to_socket_addrs() else {
                    continue;
                };
                let mut addresses = Vec::new();
                let mut first = None;
                for address in all.map(|socket| socket.ip()) {
                    let checked = toolward_egress::address::check(address, &granted.addresses);
                    if let (Err(kind), false) = (checked, addresses.contains(&address)) {
                        addresses.push(address);
                        first.get_or_insert(kind);
                    }
                }
                internal.extend(first.map(|kind| Self {
                    host: granted.host.to_string(),
                    addresses,
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
