//! The keys of a `[[grant]]` about its network hosts: how they are read, what they give, and when
//! they give no more than the keys of an earlier grant. [`crate::HostGrant`] takes them to outgoing
//! HTTP, which enforces them.

use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;

use crate::error::{self, PolicyError, Refuse as _};
use crate::fields::{Fields, flag, list};

/// The terms on which the hosts of a rule may be reached. By default, they may be reached by https,
/// at public addresses, without headers with credentials.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostTerms {
    /// Whether `http://` passes, too.
    pub plain_http: bool,
    /// Addresses that the hosts may have although they are not public.
    pub addresses: Vec<IpNet>,
    /// Headers with credentials (`authorization`, `cookie`) that the guest may set itself; lower
    /// case.
    pub guest_headers: Vec<String>,
}

impl HostTerms {
    pub(crate) fn read(fields: &mut Fields<'_>) -> Result<Self, PolicyError> {
        Ok(Self {
            plain_http: flag(fields, "plain_http")?,
            addresses: list(fields, "addresses", read_address)?,
            guest_headers: list(fields, "guest_headers", read_guest_header)?,
        })
    }

    /// Checks terms that were built in code. The same rules apply as to a file.
    pub(crate) fn check(&self) -> Result<(), PolicyError> {
        for header in &self.guest_headers {
            if read_guest_header(header)? != *header {
                return Err(error::HEADER.expected("lower case", header));
            }
        }
        Ok(())
    }

    /// The first key whose value differs from the default.
    pub(crate) fn key(&self) -> Option<&'static str> {
        let Self {
            plain_http,
            addresses,
            guest_headers,
        } = self;
        let keys = [
            ("plain_http", *plain_http),
            ("addresses", !addresses.is_empty()),
            ("guest_headers", !guest_headers.is_empty()),
        ];
        keys.into_iter()
            .find_map(|(key, is_given)| is_given.then_some(key))
    }

    /// Whether they give no more than earlier terms. A request passes if a single rule allows all
    /// of it, so no term makes another rule stricter.
    pub(crate) fn narrow(&self, earlier: &Self) -> bool {
        let Self {
            plain_http,
            addresses,
            guest_headers,
        } = self;
        let is_known = |net: &IpNet| earlier.addresses.iter().any(|known| known.contains(net));
        (earlier.plain_http || !plain_http)
            && addresses.iter().all(is_known)
            && (guest_headers.iter()).all(|name| earlier.guest_headers.contains(name))
    }
}

impl fmt::Display for HostTerms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            plain_http,
            addresses,
            guest_headers,
        } = self;
        f.write_str(match plain_http {
            true => "by http and https",
            false => "by https",
        })?;
        if !addresses.is_empty() {
            let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
            write!(f, ", at {}, too", addresses.join(", "))?;
        }
        if !guest_headers.is_empty() {
            write!(f, ", with the guest's own {}", guest_headers.join(", "))?;
        }
        Ok(())
    }
}

/// Headers with credentials that a rule may let the guest set itself.
const GUEST_HEADERS: &[&str] = &["authorization", "cookie"];

/// Reads the name of a header that a guest may be allowed to set. Returns it in lower case.
fn read_guest_header(text: &str) -> Result<String, PolicyError> {
    let name = text.to_ascii_lowercase();
    if GUEST_HEADERS.contains(&name.as_str()) {
        return Ok(name);
    }
    Err(error::HEADER
        .expected("authorization or cookie", text)
        .hinted("other headers need no line here"))
}

/// Reads an IP address or a network in CIDR notation.
fn read_address(text: &str) -> Result<IpNet, PolicyError> {
    let alone = || text.parse::<IpAddr>().ok().map(IpNet::from);
    let network = text.parse::<IpNet>().ok().or_else(alone);
    network.map(|network| network.trunc()).ok_or_else(|| {
        error::ADDRESS.expected("an IP address or a network such as 10.0.0.0/8", text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_is_compared_and_shown() {
        let plain = HostTerms::default();
        let network = |text: &str| vec![read_address(text).unwrap()];
        let plain_http = HostTerms {
            plain_http: true,
            ..plain.clone()
        };
        let addresses = HostTerms {
            addresses: network("10.0.0.0/8"),
            ..plain.clone()
        };
        let guest_headers = HostTerms {
            guest_headers: vec!["cookie".to_owned()],
            ..plain.clone()
        };
        let narrower = HostTerms {
            addresses: network("10.1.0.0/16"),
            ..plain.clone()
        };
        assert!(narrower.narrow(&addresses) && !addresses.narrow(&narrower));
        assert_eq!(plain.key(), None);
        let wider = [
            ("plain_http", plain_http),
            ("addresses", addresses),
            ("guest_headers", guest_headers),
        ];
        for (key, wide) in &wider {
            assert!(plain.narrow(wide) && !wide.narrow(&plain), "{key}");
            assert_eq!(wide.key(), Some(*key));
            assert_ne!(wide.to_string(), plain.to_string(), "{key}");
            let others = wider.iter().filter(|(other, _)| other != key);
            for (other, wide_otherwise) in others {
                assert!(!wide.narrow(wide_otherwise), "{key}, {other}");
            }
        }
    }
}
