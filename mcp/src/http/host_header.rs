//! The host names that requests may use. Stops DNS rebinding, where a web page resolves
//! its own name to this machine.

use std::net::{IpAddr, SocketAddr};

use http::header::{HOST, ORIGIN};
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderMap, HeaderName};

use super::responses::HttpRejection;
use super::{Authentication, HttpError, Settings};

/// Names that only processes of this machine can use.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// A name, and the port if it is restricted to one.
#[derive(Debug, PartialEq, Eq)]
struct Name {
    host: String,
    port: Option<u16>,
}

impl Name {
    /// `name`, `name:port`, `[::1]`, `[::1]:port`.
    fn parse(text: &str) -> Option<Self> {
        let authority = Authority::try_from(text).ok()?;
        let host = authority.host();
        // The library would ignore a user, or a port of more than 16 bits, so both are refused
        // here.
        let port = match text.strip_prefix(host)? {
            "" => None,
            rest => Some(rest.strip_prefix(':')?.parse().ok()?),
        };
        let host = host
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
            .unwrap_or(host);
        (!host.is_empty()).then(|| Self {
            host: host.to_ascii_lowercase(),
            port,
        })
    }

    fn admits(&self, other: &Self) -> bool {
        self.host == other.host && (self.port.is_none() || self.port == other.port)
    }

    /// Parses a name to allow. It must be one host: patterns are refused.
    fn of_one_host(text: &str) -> Option<Self> {
        Self::parse(text).filter(|name| is_one_host(&name.host))
    }
}

/// Whether it is an address or a name of letters, digits, `-`, `_` and `.`.
fn is_one_host(host: &str) -> bool {
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    host.parse::<IpAddr>().is_ok() || host.bytes().all(is_of_name)
}

/// The origin of sandboxed pages and local files.
const OPAQUE: &str = "null";

/// The scheme of an editor's pages, each of which has a random name.
const EDITOR_SCHEME: &str = "vscode-webview";

/// An origin (RFC 6454): its port is always known.
#[derive(Debug, PartialEq, Eq)]
struct Origin {
    scheme: &'static str,
    host: String,
    port: u16,
}

impl Origin {
    fn parse(text: &str) -> Option<Self> {
        if text == OPAQUE {
            return Some(Self {
                scheme: OPAQUE,
                host: String::new(),
                port: 0,
            });
        }
        let (scheme, rest) = text.split_once("://")?;
        let (scheme, port) = match scheme {
            EDITOR_SCHEME => (EDITOR_SCHEME, 0),
            "http" => ("http", 80),
            "https" => ("https", 443),
            _ => return None,
        };
        let name = Name::parse(rest)?;
        Some(Self {
            scheme,
            host: name.host,
            port: name.port.unwrap_or(port),
        })
    }

    /// Parses an origin to allow: one origin, or any page of an editor.
    fn to_allow(text: &str) -> Option<Self> {
        Self::parse(text).filter(|origin| {
            let any_editor = origin.scheme == EDITOR_SCHEME && origin.host == "*";
            any_editor || is_one_host(&origin.host)
        })
    }

    /// Whether it names the server from which a page came.
    fn is_named(&self) -> bool {
        !matches!(self.scheme, OPAQUE | EDITOR_SCHEME)
    }

    /// Whether it is the origin of this server. `host` is the server's name in the request's `Host`
    /// header; `port` is the port on which the server listens.
    fn is_of(&self, host: &str, port: u16) -> bool {
        self.scheme == "http" && self.host == host && self.port == port
    }

    fn admits(&self, other: &Self) -> bool {
        let any_editor = self.scheme == EDITOR_SCHEME && self.host == "*";
        self == other || (any_editor && other.scheme == EDITOR_SCHEME)
    }
}

/// The hosts and origins that requests may name.
#[derive(Debug)]
pub(super) struct AllowedNames {
    hosts: Vec<Name>,
    origins: Vec<Origin>,
    /// Whether pages of this machine may call although their origins are not listed. That is safe
    /// if only this machine reaches the server and a page needs a token. Without tokens, a page of
    /// any local server could call and read the answer.
    local_pages: bool,
    /// The port of the server.
    port: u16,
}

impl AllowedNames {
    /// Collects the names of an address and the names that the settings add. Fails if the settings
    /// are not allowed at this address.
    pub(super) fn new(address: SocketAddr, settings: &Settings) -> Result<Self, HttpError> {
        let ip = address.ip().to_canonical();
        let is_open = matches!(settings.authentication, Authentication::Loopback(_));
        if is_open && !ip.is_loopback() {
            return Err(HttpError::OpenAddress(address));
        }
        let named = |host: &str| Name {
            host: host.to_owned(),
            port: None,
        };
        let mut hosts = if ip.is_loopback() {
            LOOPBACK.map(named).into()
        } else if ip.is_unspecified() {
            Vec::new()
        } else {
            vec![named(&ip.to_string())]
        };
        let invalid = |found: &str, expected| HttpError::Name {
            found: found.to_owned(),
            expected,
        };
        for host in &settings.hosts {
            let name = Name::of_one_host(host);
            hosts.push(name.ok_or_else(|| invalid(host, "host"))?);
        }
        if hosts.is_empty() {
            return Err(HttpError::NoHosts(address));
        }
        let origins = settings.origins.iter().map(|origin| {
            let allowed = Origin::to_allow(origin);
            allowed.ok_or_else(|| invalid(origin, "origin"))
        });
        let origins = origins.collect::<Result<Vec<_>, _>>()?;
        if is_open
            && let Some((_, origin)) = origins
                .iter()
                .zip(&settings.origins)
                .find(|(origin, _)| !origin.is_named())
        {
            return Err(HttpError::OpenOrigin(origin.clone()));
        }
        Ok(Self {
            hosts,
            origins,
            local_pages: ip.is_loopback() && !is_open,
            port: address.port(),
        })
    }

    /// Refuses a request for another name, or from a page of another origin.
    pub(super) fn check(&self, parts: &Parts) -> Result<(), HttpRejection> {
        // If a request also names a host in its target, that host counts (RFC 9112 section 3.2.2).
        // Both hosts must be allowed.
        let host = single(&parts.headers, &HOST)
            .map_err(|()| HttpRejection::NoHost)?
            .ok_or(HttpRejection::NoHost)?;
        let target = parts.uri.authority().map(Authority::as_str);
        for name in [Some(host), target].into_iter().flatten() {
            let name = Name::parse(name).ok_or(HttpRejection::Host)?;
            if !self.hosts.iter().any(|allowed| allowed.admits(&name)) {
                return Err(HttpRejection::Host);
            }
        }
        let origin = single(&parts.headers, &ORIGIN).map_err(|()| HttpRejection::Origin)?;
        let Some(origin) = origin else {
            return Ok(());
        };
        let origin = Origin::parse(origin).ok_or(HttpRejection::Origin)?;
        let here = self.local_pages && origin.is_named() && is_loopback(&origin.host);
        // The server shows no page, so its own origin comes only from clients that are not pages.
        let own = Name::parse(host).is_some_and(|name| origin.is_of(&name.host, self.port));
        match here || own || self.origins.iter().any(|allowed| allowed.admits(&origin)) {
            true => Ok(()),
            false => Err(HttpRejection::Origin),
        }
    }
}

fn is_loopback(host: &str) -> bool {
    LOOPBACK.contains(&host)
        || host
            .parse::<IpAddr>()
            .is_ok_and(|ip| ip.to_canonical().is_loopback())
}

/// Returns the only value of a header, as text. Fails if the header has several values, or if the
/// value is not text.
pub(super) fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, ()> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() {
        return Err(());
    }
    first
        .map(|value| value.to_str().map_err(|_| ()))
        .transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::tokens::Tokens;
    use std::sync::Arc;

    fn names(address: &str, hosts: &[&str], origins: &[&str]) -> Result<AllowedNames, HttpError> {
        let mut settings = Settings::new(Authentication::Required(Arc::new(Tokens::default())));
        settings.hosts = hosts.iter().map(ToString::to_string).collect();
        settings.origins = origins.iter().map(ToString::to_string).collect();
        AllowedNames::new(address.parse().unwrap(), &settings)
    }

    fn checked(
        names: &AllowedNames,
        uri: &str,
        headers: &[(&str, &str)],
    ) -> Result<(), HttpRejection> {
        let mut request = http::Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        names.check(&request.body(()).unwrap().into_parts().0)
    }

    #[test]
    fn on_loopback_only_this_machines_names_are_answered_to() {
        let names = names("127.0.0.1:8000", &[], &[]).unwrap();
        for host in [
            "localhost",
            "LOCALHOST:8000",
            "127.0.0.1:1",
            "[::1]:8000",
            "[::1]",
        ] {
            assert_eq!(checked(&names, "/mcp", &[("host", host)]), Ok(()), "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:8000",
            "localhost.evil.example",
            "evil@localhost",
            "localhost:99999",
            "localhost:",
            "localhost:8000:1",
            "127.0.0.2",
            "127.0.0.1.",
            "",
            "::1",
            "[::1",
            "0x7f.1",
        ] {
            assert_eq!(
                checked(&names, "/mcp", &[("host", host)]),
                Err(HttpRejection::Host),
                "{host}"
            );
        }
        assert_eq!(checked(&names, "/mcp", &[]), Err(HttpRejection::NoHost));
        assert_eq!(
            checked(
                &names,
                "/mcp",
                &[("host", "localhost"), ("host", "localhost")]
            ),
            Err(HttpRejection::NoHost)
        );
        assert_eq!(
            checked(&names, "http://evil.example/mcp", &[("host", "localhost")]),
            Err(HttpRejection::Host)
        );
    }

    #[test]
    fn pages_from_elsewhere_are_refused() {
        let local = names("127.0.0.1:8000", &[], &[]).unwrap();
        let host = ("host", "localhost");
        for origin in [
            "http://localhost:6274",
            "http://127.0.0.1",
            "https://[::1]:9",
        ] {
            assert_eq!(checked(&local, "/", &[host, ("origin", origin)]), Ok(()));
        }
        for origin in [
            "http://evil.example",
            "http://localhost.evil.example",
            "http://localhost@evil.example",
            "null",
            "",
            "file://",
            "localhost",
            "http://localhost/path",
        ] {
            assert_eq!(
                checked(&local, "/", &[host, ("origin", origin)]),
                Err(HttpRejection::Origin),
                "{origin}"
            );
        }

        let public = names("0.0.0.0:8000", &["tools.example"], &["https://app.example"]).unwrap();
        let host = ("host", "tools.example:443");
        for (origin, allowed) in [
            ("https://app.example", true),
            ("https://app.example:443", true),
            ("https://app.example:444", false),
            ("http://app.example", false),
            ("http://localhost", false),
            ("http://tools.example:8000", true),
            ("http://tools.example:443", false),
        ] {
            assert_eq!(
                checked(&public, "/", &[host, ("origin", origin)]).is_ok(),
                allowed,
                "{origin}"
            );
        }
    }

    #[test]
    fn an_address_without_a_name_needs_names() {
        assert_eq!(
            names("0.0.0.0:80", &[], &[]).unwrap_err().code(),
            "http-no-hosts"
        );
        assert!(names("0.0.0.0:80", &["tools.example"], &[]).is_ok());
        let own = names("192.0.2.7:80", &[], &[]).unwrap();
        assert_eq!(checked(&own, "/", &[("host", "192.0.2.7:80")]), Ok(()));
        assert_eq!(
            checked(&own, "/", &[("host", "localhost")]),
            Err(HttpRejection::Host)
        );
    }

    #[test]
    fn what_is_no_name_can_not_be_allowed() {
        for host in ["", "https://tools.example", "a b", "*", "*.example", "*:80"] {
            let error = names("127.0.0.1:80", &[host], &[]).map(|_| ());
            assert_eq!(error.unwrap_err().code(), "http-name-invalid", "{host}");
        }
        for origin in [
            "",
            "tools.example",
            "*",
            "ftp://a",
            "https://*",
            "https://*.example",
            "https://app.example:*",
            "https://app.example/*",
            "*://app.example",
            "vscode-webview://a*",
        ] {
            assert_eq!(
                names("127.0.0.1:80", &[], &[origin]).unwrap_err().code(),
                "http-name-invalid",
                "{origin}"
            );
        }
    }
}
