//! A host that a registry names and that nobody has allowed yet. A person may be asked about it.

use std::error::Error;
use std::fmt;

use url::{Host, Url};

use crate::address::origin;
use crate::failure::Failure;
use crate::reference::{Reference, is_loopback};

/// Ends of names that are not of the public DNS (RFC 6761, RFC 6762, RFC 8375, and `internal`, which ICANN reserved).
/// A proxy would resolve them in its own network.
const PRIVATE_NAMES: [&str; 4] = ["localhost", "local", "internal", "home.arpa"];

/// What a registry wants a host for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostRole {
    /// Credentials are sent there, and a token comes back.
    TokenServer,
    /// Downloads are redirected there, without credentials.
    Downloads,
}

/// A host that a registry names, and that neither a setting nor the list of known hosts allows: a name in the public
/// DNS, reached by https. It is the [source](Error::source) of a failure, whose text stays what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownHost {
    /// What for.
    pub role: HostRole,
    /// `https://host[:port]`, in lower-case ASCII letters, digits, dots and dashes.
    pub origin: String,
}

impl UnknownHost {
    /// The host, if a person may be asked about it: no address, no name of this machine or its network, and nothing
    /// that looks like another name when it is shown.
    #[must_use]
    pub fn of(role: HostRole, url: &Url) -> Option<Self> {
        let Some(Host::Domain(name)) = url.host() else {
            return None;
        };
        let is_below = |end: &str| {
            let above = name.strip_suffix(end);
            above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
        };
        let has_login = !url.username().is_empty() || url.password().is_some();
        let is_public = name.contains('.') && !PRIVATE_NAMES.into_iter().any(is_below);
        let port = url.port().map(|port| format!(":{port}"));
        let authority = format!("{name}{}", port.unwrap_or_default());
        let reference = format!("oci://{authority}/x").parse::<Reference>();
        let is_plain = reference.is_ok_and(|found| found.registry() == authority);
        let allowed = url.scheme() == "https" && !has_login && is_public && is_plain;
        (allowed && !is_loopback(name)).then(|| Self {
            role,
            origin: origin(url),
        })
    }

    /// The host that a failure is about, if it is the reason.
    #[must_use]
    pub fn behind<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e Self> {
        let mut error = error;
        loop {
            match error.downcast_ref() {
                Some(found) => return Some(found),
                None => error = error.source()?,
            }
        }
    }

    /// Whether the name stands for one with letters beyond ASCII (RFC 5890).
    #[must_use]
    pub fn is_encoded(&self) -> bool {
        let name = self.origin.trim_start_matches("https://");
        name.split('.').any(|label| label.starts_with("xn--"))
    }

    /// The failure with this as its reason.
    pub(crate) fn explain(found: Option<Self>, failure: Failure) -> Failure {
        let text = failure.found_text().map(str::to_owned);
        match (found, text) {
            (Some(found), Some(text)) => failure.caused_by(found).found(text),
            (Some(found), None) => failure.caused_by(found),
            (None, _) => failure,
        }
    }
}

impl fmt::Display for UnknownHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.origin)
    }
}

impl Error for UnknownHost {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_asked_about_a_host_that_is_not_a_public_name_with_https() {
        let of = |url: &str| UnknownHost::of(HostRole::Downloads, &Url::parse(url).unwrap());
        for (url, origin) in [
            ("https://blobs.example/x?y", "https://blobs.example"),
            ("https://BLOBS.example:443/", "https://blobs.example"),
            ("https://blobs.example:8443/", "https://blobs.example:8443"),
            (
                "https://bl\u{f6}bs.example/",
                "https://xn--blbs-6qa.example",
            ),
            (
                "https://blobs.localhost.example/",
                "https://blobs.localhost.example",
            ),
        ] {
            let found = of(url).unwrap();
            assert_eq!(found.origin, origin);
            assert_eq!(found.is_encoded(), origin.contains("xn--"), "{url}");
        }
        for url in [
            "http://blobs.example/",
            "https://me:word@blobs.example/",
            "https://192.0.2.1/",
            "https://127.0.0.1/",
            "https://0x7f.1/",
            "https://[2001:db8::1]/",
            "https://localhost/",
            "https://a.localhost/",
            "https://LOCALHOST./",
            "https://blobs/",
            "https://blobs.example./",
            "https://nas.local/",
            "https://registry.cluster.internal/",
            "https://a_b.example/",
            "https://a\"b.example/",
            "https://*.example/",
            "https://a..example/",
            "ftp://blobs.example/",
            "data:text/plain,x",
        ] {
            let Ok(url) = Url::parse(url) else { continue };
            let found = UnknownHost::of(HostRole::TokenServer, &url);
            assert_eq!(found, None, "{url}");
        }
    }
}
