//! The proxy for requests, and the hosts that are reached without it. The proxy is used only with
//! `CONNECT`, so TLS ends at the origin.

use std::fmt;
use std::net::IpAddr;

use url::Url;

use crate::address::{is_within, literal};
use crate::failure::{Failure, FailureReason};
use crate::reference::is_loopback;

/// How long the list of exceptions may be, in bytes.
const MAX_EXCEPTIONS: usize = 64 * 1024;

/// A proxy for `https`. Requests to this machine don't go through the proxy; only these may use
/// plain http.
///
/// ```
/// use toolward_registry::Proxy;
///
/// let proxy = Proxy::parse("http://ci:word@proxy.example:3128", "corp.example,10.0.0.7:5000").unwrap();
/// let covers = |url: &str| proxy.covers(&url.parse().unwrap());
/// assert!(covers("https://registry.example/v2/"));
/// assert!(!covers("https://registry.corp.example/v2/"));
/// assert!(covers("https://notcorp.example/v2/"));
/// assert_eq!(proxy.to_string(), "proxy.example:3128");
/// ```
#[derive(Clone)]
pub struct Proxy {
    /// May contain a name and a password.
    url: Url,
    exceptions: Vec<Exception>,
}

/// A host that is reached without the proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Exception {
    host: ExceptedHost,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum ExceptedHost {
    All,
    /// The name and all names below it, by whole labels.
    Below(String),
    Address(IpAddr),
}

impl Proxy {
    /// Reads a proxy. `address` is `http://HOST:PORT`, `https://HOST:PORT` or `HOST:PORT`,
    /// optionally with a name and a password. `exceptions` has the form of `NO_PROXY`: `*`, or a
    /// comma-separated list of names and addresses, each with an optional port. A name includes all
    /// names below it.
    ///
    /// # Errors
    /// [`FailureReason::ProxyInvalid`], which contains no part of `address`.
    pub fn parse(address: &str, exceptions: &str) -> Result<Self, Failure> {
        let invalid = || {
            Failure::new(FailureReason::ProxyInvalid)
                .expected("http://HOST:PORT or https://HOST:PORT, without a path")
        };
        let text = match address.contains("://") {
            true => address.to_owned(),
            false => format!("http://{address}"),
        };
        // The parser's error is dropped, since it might quote the password.
        let url = Url::parse(&text).map_err(|_| invalid())?;
        let plain = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        if !matches!(url.scheme(), "http" | "https") || !has_plain_host(&url) || !plain {
            return Err(invalid());
        }
        if exceptions.len() > MAX_EXCEPTIONS {
            return Err(
                Failure::new(FailureReason::ProxyInvalid).expected("at most 64 KiB of exceptions")
            );
        }
        let exceptions = exceptions
            .split([',', ' ', '\t'])
            .filter(|one| !one.is_empty());
        Ok(Self {
            url,
            exceptions: exceptions.map(Exception::parse).collect(),
        })
    }

    /// Whether a request to this address goes through the proxy.
    pub fn covers(&self, url: &Url) -> bool {
        let loopback = url.host_str().is_some_and(is_loopback);
        url.scheme() == "https" && !loopback && !self.exceptions.iter().any(|one| one.is(url))
    }

    /// The proxy in the form that `reqwest` takes.
    pub(crate) fn intercept(&self) -> reqwest::Proxy {
        let proxy = self.clone();
        reqwest::Proxy::custom(move |url| proxy.covers(url).then(|| proxy.url.clone()))
    }
}

/// Whether the host is an IP address or a name of letters, digits, dots, hyphens and underscores.
/// The connector parses the proxy's address again by narrower rules, and would connect without a
/// proxy if that failed.
fn has_plain_host(url: &Url) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    let has_plain_name = url.domain().is_some_and(|name| name.bytes().all(is_plain));
    has_plain_name || literal(url).is_some()
}

impl Exception {
    fn parse(text: &str) -> Self {
        if text == "*" {
            let host = ExceptedHost::All;
            return Self { host, port: None };
        }
        let text = text.to_ascii_lowercase();
        let bare = text.trim_start_matches('[').trim_end_matches(']');
        // A plain address has no port, but an IPv6 address has colons.
        let (host, port) = match bare.parse::<IpAddr>() {
            Ok(_) => (bare, None),
            Err(_) => match text.rsplit_once(':') {
                Some((host, port)) if port.parse::<u16>().is_ok() => (host, port.parse().ok()),
                _ => (text.as_str(), None),
            },
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let host = match host.parse() {
            Ok(address) => ExceptedHost::Address(address),
            Err(_) => {
                let name = host.strip_prefix("*.").unwrap_or(host);
                ExceptedHost::Below(name.trim_matches('.').to_owned())
            }
        };
        Self { host, port }
    }

    fn is(&self, url: &Url) -> bool {
        if self.port.is_some() && self.port != url.port_or_known_default() {
            return false;
        }
        match &self.host {
            ExceptedHost::All => true,
            ExceptedHost::Below(name) => {
                let host = url.domain().map(|host| host.trim_end_matches('.'));
                !name.is_empty() && host.is_some_and(|host| is_within(host, name))
            }
            ExceptedHost::Address(address) => literal(url) == Some(*address),
        }
    }
}

/// Host and port, without name and password.
impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self.url.host_str().unwrap_or_default();
        let port = self.url.port_or_known_default().unwrap_or_default();
        write!(f, "{host}:{port}")
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy")
            .field("address", &self.to_string())
            .field("exceptions", &self.exceptions)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covers(exceptions: &str, url: &str) -> bool {
        let proxy = Proxy::parse("proxy.example:3128", exceptions).unwrap();
        proxy.covers(&Url::parse(url).unwrap())
    }

    #[test]
    fn exceptions_hold_for_whole_labels() {
        for exceptions in [
            "a.example",
            ".a.example",
            "*.a.example",
            "x, A.Example ,y",
            "*",
        ] {
            assert!(!covers(exceptions, "https://a.example/"), "{exceptions}");
            assert!(!covers(exceptions, "https://b.a.example/"), "{exceptions}");
            assert!(!covers(exceptions, "https://a.example./"), "{exceptions}");
        }
        for exceptions in [
            "",
            ",",
            ".",
            "a.example.b",
            "xa.example",
            "a.example:444",
            "e",
        ] {
            assert!(covers(exceptions, "https://a.example/"), "{exceptions}");
        }
        assert!(covers("a.example", "https://ba.example/"));
        assert!(!covers("a.example:444", "https://a.example:444/"));
    }

    #[test]
    fn exceptions_hold_for_addresses() {
        assert!(!covers("10.0.0.7", "https://10.0.0.7/"));
        assert!(!covers("10.0.0.7:5000", "https://10.0.0.7:5000/"));
        assert!(covers("10.0.0.7:5000", "https://10.0.0.7/"));
        assert!(covers("0.7", "https://10.0.0.7/"));
        for written in ["2001:db8::1", "[2001:db8::1]", "[2001:db8::1]:443"] {
            assert!(!covers(written, "https://[2001:db8::1]/"), "{written}");
        }
    }

    #[test]
    fn this_machine_and_plain_http_are_reached_directly() {
        for url in [
            "https://127.0.0.1:1/",
            "https://localhost/",
            "https://[::1]/",
            "http://a.example/",
        ] {
            assert!(!covers("", url), "{url}");
        }
    }

    #[test]
    fn an_address_that_is_not_one_is_refused_without_being_shown() {
        for address in [
            "socks5://ci:hunter2@proxy.example",
            "http://ci:hunter2@proxy.example/path",
            "http://ci:hunter2@",
            "http://ci:hunter2@proxy.example:99999",
            "file:///hunter2",
            "http://${HUNTER2}:3128",
            "\"hunter2.example\"",
            "http://hunter2`x:3128",
        ] {
            let failure = Proxy::parse(address, "").unwrap_err();
            assert_eq!(failure.code(), "registry-proxy-invalid", "{address}");
            let told = format!("{failure} {failure:?}");
            assert!(!told.contains("hunter2"), "{told}");
        }
        let proxy = Proxy::parse("http://ci:hunter2@proxy.example:3128", "").unwrap();
        let told = format!("{proxy} {proxy:?}");
        assert!(
            !told.contains("hunter2") && told.contains("proxy.example:3128"),
            "{told}"
        );
    }
}
