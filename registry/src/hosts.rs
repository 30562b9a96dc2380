//! The other hosts that a registry may use. Downloads are redirected only to allowed origins, at
//! addresses that pass a check, so that a redirect can't make this machine connect to its own
//! network. The token servers and download hosts of the best-known public registries are built in,
//! so they need no setting. A person may be asked about any other host with a public name.

use std::error::Error;
use std::net::{IpAddr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::Url;

use crate::address::{is_within, literal, origin, shown};
use crate::failure::Failure;
use crate::reference::{Reference, is_loopback};

/// The hint for a redirect to an address that fails the check.
pub(crate) const NOT_GLOBAL: &str = "the registry has to serve its downloads itself: only `redirects_to` of a registry on this \
     machine allows such an address";

/// A function that checks whether a redirect may lead to an address. The error is the kind of a
/// refused address.
pub type AddressCheck = fn(IpAddr) -> Result<(), &'static str>;

/// The origins to which downloads may be redirected.
pub(crate) struct Redirects {
    /// At addresses that pass the check.
    pub(crate) origins: Vec<String>,
    /// At any address.
    pub(crate) local: Vec<String>,
    pub(crate) check: AddressCheck,
}

/// How to follow a redirect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RedirectTarget {
    /// To the origin of the request, or to an origin that may have any address.
    Any,
    /// To addresses that pass the check.
    Checked,
}

impl Redirects {
    /// Whether a request to `from` may be redirected to `to`, and how. The error describes the
    /// allowed targets, and has the kind of `to`'s address if that is why the redirect is refused.
    pub(crate) fn target(
        &self,
        from: &Url,
        to: &Url,
    ) -> Result<RedirectTarget, (String, Option<&str>)> {
        let (own, target) = (origin(from), origin(to));
        if target == own || self.local.contains(&target) {
            return Ok(RedirectTarget::Any);
        }
        // IP addresses in the URL are not resolved, so they are checked here.
        let refused = literal(to).and_then(|address| (self.check)(address).err());
        let allowed = self.origins.contains(&target) || is_redirect(&own, &target);
        match refused {
            // No setting can allow such an address, unless the registry is on this machine.
            Some(kind) if allowed || !from.host_str().is_some_and(is_loopback) => {
                Err(("a global unicast address".to_owned(), Some(kind)))
            }
            _ if allowed => Ok(RedirectTarget::Checked),
            _ => Err((format!("{own}, or an origin that is allowed"), None)),
        }
    }
}

/// Resolves names, and returns only addresses that pass the check.
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

/// The error if no address of a name passes the check; contains the kind of address.
#[derive(Debug, thiserror::Error)]
#[error("an address that is {0}")]
pub(crate) struct AddressRefused(pub(crate) &'static str);

/// The hosts of a public registry, as its operator publishes them for firewalls: `host[:port]`, the
/// origin of its token server if that differs, and the origins to which it redirects downloads. A
/// row allows credentials for that registry to go to its token server; they never go to a download
/// host.
type KnownRegistry = (&'static str, Option<&'static str>, &'static [&'static str]);

const KNOWN: &[KnownRegistry] = &[
    (
        "registry-1.docker.io",
        Some("https://auth.docker.io"),
        &[
            "https://production.cloudflare.docker.com",
            "https://production.cloudfront.docker.com",
            "https://docker-images-prod.6aa30f8b08e16409b46e0173d6de2f56.r2.cloudflarestorage.com",
        ],
    ),
    (
        "ghcr.io",
        None,
        &["https://pkg-containers.githubusercontent.com"],
    ),
    (
        "quay.io",
        None,
        &[
            "https://cdn.quay.io",
            "https://cdn01.quay.io",
            "https://cdn02.quay.io",
            "https://cdn03.quay.io",
            "https://cdn04.quay.io",
            "https://cdn05.quay.io",
            "https://cdn06.quay.io",
        ],
    ),
    (
        "registry.gitlab.com",
        Some("https://gitlab.com"),
        &["https://cdn.registry.gitlab-static.net"],
    ),
];

fn known(registry: &str) -> Option<&'static KnownRegistry> {
    KNOWN.iter().find(|(known, ..)| *known == registry)
}

/// Whether this is the token server of that registry.
pub(crate) fn is_realm(registry: &str, origin: &str) -> bool {
    known(registry).is_some_and(|(_, realm, _)| *realm == Some(origin))
}

/// Whether the registry at `own`, an origin, redirects downloads to `origin`.
fn is_redirect(own: &str, origin: &str) -> bool {
    let registry = own.strip_prefix("https://");
    let known = registry.and_then(known);
    known.is_some_and(|(.., redirects)| redirects.contains(&origin))
}

/// Endings of names outside the public DNS (RFC 6761, RFC 6762, RFC 8375, and `internal`, which
/// ICANN reserved). A proxy would resolve them in its own network.
const PRIVATE_NAMES: [&str; 4] = ["localhost", "local", "internal", "home.arpa"];

/// The purpose of a host that a registry names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostRole {
    /// Credentials are sent there, and a token comes back.
    TokenServer,
    /// Downloads are redirected there, without credentials.
    Downloads,
}

/// A host that a registry names, but that neither a setting nor the list of known hosts allows. It
/// has a name in the public DNS and is reached by https. An unknown host is added to a failure as
/// the failure's [source](Error::source), and does not change the text of the failure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{origin}")]
pub struct UnknownHost {
    /// The purpose of the host.
    pub role: HostRole,
    /// `https://host[:port]`, in lower-case ASCII letters, digits, dots and dashes.
    pub origin: String,
}

impl UnknownHost {
    /// The host, if a person may be asked about it. It must have a name in the public DNS, of
    /// letters, digits, dots and dashes, and must be reached by https, without name and password.
    pub fn of(role: HostRole, url: &Url) -> Option<Self> {
        let name = url.domain()?;
        let has_login = !url.username().is_empty() || url.password().is_some();
        let is_private = PRIVATE_NAMES.into_iter().any(|end| is_within(name, end));
        let is_public = name.contains('.') && !is_private;
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

    /// The unknown host behind a failure, if there is one.
    pub fn behind<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e Self> {
        let mut causes = std::iter::successors(Some(error), |error| (*error).source());
        causes.find_map(|cause| cause.downcast_ref())
    }

    /// Whether the name is the ASCII form of an internationalised name (RFC 5890).
    pub fn is_encoded(&self) -> bool {
        let name = self.origin.trim_start_matches("https://");
        name.split('.').any(|label| label.starts_with("xn--"))
    }

    /// Adds the address that was found to the failure. If a person may be asked about the host, the
    /// host becomes the failure's source.
    pub(crate) fn explain(role: HostRole, url: &Url, failure: Failure) -> Failure {
        let failure = match Self::of(role, url) {
            Some(found) => failure.caused_by(found),
            None => failure,
        };
        failure.found(shown(url))
    }
}

#[cfg(test)]
mod redirect_tests {
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

#[cfg(test)]
mod known_tests {
    use super::*;

    #[test]
    fn a_known_pair_is_exact_and_https() {
        assert!(is_realm("registry-1.docker.io", "https://auth.docker.io"));
        assert!(is_redirect(
            "https://ghcr.io",
            "https://pkg-containers.githubusercontent.com"
        ));
        for (registry, origin) in [
            ("registry-1.docker.io", "http://auth.docker.io"),
            ("registry-1.docker.io", "https://auth.docker.io:444"),
            ("registry-1.docker.io", "https://x.auth.docker.io"),
            ("ghcr.io", "https://auth.docker.io"),
            ("registry-1.docker.io:5000", "https://auth.docker.io"),
            ("", ""),
        ] {
            assert!(!is_realm(registry, origin), "{registry} {origin}");
        }
        let host = "https://pkg-containers.githubusercontent.com";
        for own in [
            "http://ghcr.io",
            "https://ghcr.io:444",
            "https://x.ghcr.io",
            "",
        ] {
            assert!(!is_redirect(own, host), "{own}");
        }
        assert!(!is_redirect("https://ghcr.io", "https://cdn.quay.io"));
    }

    #[test]
    fn every_row_is_an_origin_with_https_and_no_port() {
        for (_, realm, redirects) in KNOWN {
            for origin in realm.iter().chain(*redirects) {
                let url = url::Url::parse(origin).unwrap();
                assert_eq!(crate::address::origin(&url), *origin);
                assert!(url.scheme() == "https" && url.port().is_none(), "{origin}");
            }
        }
    }
}

#[cfg(test)]
mod unknown_host_tests {
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
