//! Network scopes: `host`, `host:port`, `*.host`, `*`. No name is resolved.
//!
//! Only this module normalises the default port of https: `host:443` equals `host`, so that code
//! that compares patterns sees no difference. [`HostPattern::written_port`] keeps the spelling for
//! the two cases in which the pattern must not become wider: a deny of one port, and plain http.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::{Ipv4Addr, Ipv6Addr};

/// The port of an `https` address without a port.
const HTTPS_PORT: u16 = 443;

/// The scope of a network capability. Without a port, it means the default port of the scheme.
#[derive(Clone, Debug)]
pub struct HostPattern {
    pub(super) name: HostName,
    /// The port as written. Patterns with port 443 and without a port are equal.
    written_port: Option<u16>,
}

impl PartialEq for HostPattern {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for HostPattern {}

impl PartialOrd for HostPattern {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for HostPattern {
    fn cmp(&self, other: &Self) -> Ordering {
        (&self.name, self.port()).cmp(&(&other.name, other.port()))
    }
}

impl Hash for HostPattern {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.name, self.port()).hash(state);
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum HostName {
    /// `*`
    Any,
    /// `*.host`: every name below the host, but not the host itself.
    Below(String),
    /// A name, an IPv4 address, or an IPv6 address in brackets; lower case.
    Exact(String),
}

impl HostPattern {
    /// Reads `host[:port]`, `*.host[:port]` or `*[:port]`. Case is folded, and a final dot is
    /// dropped.
    ///
    /// # Errors
    /// A description of the mistake, for people.
    pub fn parse(text: &str) -> Result<HostPattern, String> {
        if text.contains("//") || text.contains(['/', '@', '?', '#']) {
            return Err(format!(
                "expected a host without scheme, user or path, found {text:?}"
            ));
        }
        let (host, port) = split_port(text)?;
        let port = port.map(read_port).transpose()?;
        let host = host.to_ascii_lowercase();
        let name = if host == "*" {
            HostName::Any
        } else if let Some(parent) = host.strip_prefix("*.") {
            let parent = dns_name(parent)?;
            if parent.parse::<Ipv4Addr>().is_ok() {
                return Err("expected a name after `*.`, found an address".to_owned());
            }
            HostName::Below(parent)
        } else if let Some(inner) = host.strip_prefix('[') {
            let inner = inner.strip_suffix(']').unwrap_or(inner);
            let address: Ipv6Addr = inner
                .parse()
                .map_err(|_| format!("expected an IPv6 address in brackets, found {text:?}"))?;
            HostName::Exact(format!("[{address}]"))
        } else {
            HostName::Exact(dns_name(&host)?)
        };
        Ok(HostPattern {
            name,
            written_port: port,
        })
    }

    /// The host without the port, as written in a capability: `*`, `*.host`, a name or an address.
    pub fn host(&self) -> String {
        match &self.name {
            HostName::Any => "*".to_owned(),
            HostName::Below(parent) => format!("*.{parent}"),
            HostName::Exact(name) => name.clone(),
        }
    }

    /// The port; `None` if none is written, which means the default port of the scheme, and for
    /// 443.
    pub fn port(&self) -> Option<u16> {
        self.written_port.filter(|port| *port != HTTPS_PORT)
    }

    /// The port as it was written, including 443.
    ///
    /// ```
    /// use toolward_contract::capability::HostPattern;
    ///
    /// let (long, short) = (HostPattern::parse("a.example:443")?, HostPattern::parse("a.example")?);
    /// assert_eq!(long, short);
    /// assert_eq!((long.written_port(), short.written_port()), (Some(443), None));
    /// # Ok::<(), String>(())
    /// ```
    pub fn written_port(&self) -> Option<u16> {
        self.written_port
    }

    /// Whether it is one host, without a wildcard.
    pub fn is_literal(&self) -> bool {
        matches!(self.name, HostName::Exact(_))
    }

    /// Whether a request to `host` and `port` falls under it. `default_port` states whether a
    /// pattern without a port applies to `port`: it applies to 443, and if plain http is allowed,
    /// to 80.
    pub fn matches(&self, host: &str, port: u16, default_port: bool) -> bool {
        let host = host.to_ascii_lowercase();
        let host = host.strip_suffix('.').unwrap_or(&host);
        let name = match &self.name {
            HostName::Any => true,
            HostName::Below(parent) => is_below(host, parent),
            HostName::Exact(name) => name == host,
        };
        name && self.port().map_or(default_port, |own| own == port)
    }

    /// Whether everything that falls under `other` falls under it.
    pub fn covers(&self, other: &HostPattern) -> bool {
        self.covers_name(other) && self.port() == other.port()
    }

    fn covers_name(&self, other: &HostPattern) -> bool {
        match (&self.name, &other.name) {
            (HostName::Any, _) => true,
            (_, HostName::Any) | (HostName::Exact(_), HostName::Below(_)) => false,
            (HostName::Below(a), HostName::Below(b)) => a == b || is_below(b, a),
            (HostName::Below(a), HostName::Exact(b)) => is_below(b, a),
            (HostName::Exact(a), HostName::Exact(b)) => a == b,
        }
    }

    /// Whether a deny of this host applies to `declared`. Without a port, the deny applies to every
    /// port. With a written port, even 443, it applies only to that port.
    pub fn overlaps(&self, declared: &HostPattern) -> bool {
        let ports = match (self.written_port(), declared.port()) {
            (None, _) => true,
            (Some(a), Some(b)) => a == b,
            // A declaration without a port means the default ports of https and http.
            (Some(a), None) => matches!(a, HTTPS_PORT | 80),
        };
        ports && (self.covers_name(declared) || declared.covers_name(self))
    }

    pub(super) fn intersect(&self, other: &HostPattern) -> Option<HostPattern> {
        let name = match self.covers_name(other) {
            true => &other.name,
            false if other.covers_name(self) => &self.name,
            false => return None,
        };
        (self.port() == other.port()).then(|| HostPattern {
            name: name.clone(),
            written_port: self.written_port.or(other.written_port),
        })
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.host())?;
        self.port().map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

fn is_below(name: &str, parent: &str) -> bool {
    // An address is not below any name. Otherwise `*.0.0.1` would match 127.0.0.1.
    let is_name = !name.starts_with('[') && name.parse::<Ipv4Addr>().is_err();
    is_name
        && name
            .strip_suffix(parent)
            .and_then(|rest| rest.strip_suffix('.'))
            .is_some_and(|rest| !rest.is_empty())
}

fn split_port(text: &str) -> Result<(&str, Option<&str>), String> {
    let Some(end) = text.rfind(']') else {
        let split = text.split_once(':');
        return Ok(split.map_or((text, None), |(host, port)| (host, Some(port))));
    };
    let (host, rest) = text.split_at(end + 1);
    match rest.strip_prefix(':') {
        None if !rest.is_empty() => Err(format!("expected `[address]:port`, found {text:?}")),
        port => Ok((host, port)),
    }
}

fn read_port(digits: &str) -> Result<u16, String> {
    let plain = !digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit());
    let port = digits.parse().ok().filter(|_| plain);
    port.ok_or_else(|| format!("expected a port from 1 to 65535, found {digits:?}"))
}

fn dns_name(text: &str) -> Result<String, String> {
    if !text.is_ascii() {
        return Err(format!(
            "expected a host in ASCII, found {text:?}; write international names in their xn-- form"
        ));
    }
    let name = text.strip_suffix('.').unwrap_or(text);
    let label = |label: &str| {
        let plain = label
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        (1..=63).contains(&label.len()) && plain && !label.starts_with('-') && !label.ends_with('-')
    };
    if name.len() > 253 || !name.split('.').all(label) {
        return Err(format!("expected a host name or address, found {text:?}"));
    }
    // `127.1`, `0x7f.1` and similar texts are addresses for some resolvers and names for others, so
    // they are refused.
    let last = name.rsplit('.').next().unwrap_or_default();
    let numeric = last.bytes().all(|b| b.is_ascii_digit()) || last.starts_with("0x");
    if numeric && name.parse::<Ipv4Addr>().is_err() {
        return Err(format!(
            "expected an IPv4 address of four decimal parts, found {text:?}"
        ));
    }
    Ok(name.to_owned())
}
