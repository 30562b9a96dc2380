//! Addresses: parses the sources that a person writes, checks which addresses may be requested,
//! compares origins, and formats addresses for display.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use url::{Host, Url};

use crate::failure::{Failure, FailureReason, quoted};
use crate::reference::{Reference, is_loopback};

/// Returns the URL of `path` at the registry of `reference`. `path` must consist of checked names.
/// Plain http is used only with this machine, and only if `plain`.
pub(crate) fn below(reference: &Reference, plain: bool, path: &str) -> Result<Url, Failure> {
    let scheme = match plain && reference.is_loopback() {
        true => "http",
        false => "https",
    };
    let text = format!("{scheme}://{}/{path}", reference.registry());
    Url::parse(&text).map_err(|error| {
        Failure::new(FailureReason::ReferenceInvalid)
            .at(reference.to_string())
            .caused_by(error)
    })
}

/// The spelling of a registry, `host[:port]`, for comparisons: without the default port of its
/// scheme. `plain` states whether plain http is used with this machine.
///
/// ```
/// use toolward_registry::bare_registry;
/// assert_eq!(bare_registry("registry.example:443", false), "registry.example");
/// assert_eq!(bare_registry("127.0.0.1:443", true), "127.0.0.1:443");
/// assert_eq!(bare_registry("127.0.0.1:80", true), "127.0.0.1");
/// ```
pub fn bare_registry(registry: &str, plain: bool) -> &str {
    registry
        .strip_suffix(default_port(registry, plain))
        .unwrap_or(registry)
}

/// All spellings of a registry: as written, and with its default port or without.
pub(crate) fn spellings(registry: &str, plain: bool) -> Vec<String> {
    let mut spellings = vec![registry.to_owned()];
    let bare = bare_registry(registry, plain);
    if bare != registry {
        spellings.push(bare.to_owned());
    } else if bare == host(registry) {
        spellings.push(format!("{bare}{}", default_port(registry, plain)));
    }
    spellings
}

fn default_port(registry: &str, plain: bool) -> &'static str {
    match plain && is_loopback(host(registry)) {
        true => ":80",
        false => ":443",
    }
}

/// The host of `host[:port]`.
fn host(registry: &str) -> &str {
    let end = match registry.find(']') {
        Some(bracket) => bracket.saturating_add(1),
        None => registry.find(':').unwrap_or(registry.len()),
    };
    registry.get(..end).unwrap_or(registry)
}

/// Checks that a URL may be fetched: it is https, or plain http on this machine if `plain`, and
/// contains no name and password.
pub(crate) fn check_scheme(url: &Url, plain: bool) -> Result<(), Failure> {
    let host = url.host_str().unwrap_or_default();
    match url.scheme() {
        _ if !url.username().is_empty() || url.password().is_some() => {
            Err(Failure::new(FailureReason::SourceInvalid)
                .at(shown(url))
                .expected("an address without name and password"))
        }
        "https" => Ok(()),
        "http" if plain && is_loopback(host) => Ok(()),
        "http" => Err(Failure::new(FailureReason::PlainHttp).at(shown(url))),
        other => Err(Failure::new(FailureReason::SourceInvalid)
            .at(shown(url))
            .expected("https")
            .found(quoted(other))),
    }
}

/// The scheme, host and port as one text, for comparisons.
pub(crate) fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

/// The IP address that a URL has instead of a name.
pub(crate) fn literal(url: &Url) -> Option<IpAddr> {
    match url.host()? {
        Host::Domain(_) => None,
        Host::Ipv4(address) => Some(address.into()),
        Host::Ipv6(address) => Some(address.into()),
    }
}

/// Whether a name is `parent` or a name below it, by whole labels.
pub(crate) fn is_within(name: &str, parent: &str) -> bool {
    let above = name.strip_suffix(parent);
    above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
}

/// An address for display: without name, password, query and fragment, which may contain secrets.
pub(crate) fn shown(url: &Url) -> String {
    let mut text = url.clone();
    text.set_query(None);
    text.set_fragment(None);
    // These calls fail only for URLs that can't have a name and password.
    let _ = text.set_username("");
    let _ = text.set_password(None);
    text.as_str().chars().take(300).collect()
}

/// A source of bundles and documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A file, or the directory of a bundle. It need not exist.
    Path(PathBuf),
    /// An `https` address, or an address on this machine in plain http, which a client may refuse.
    Web(Url),
    /// A registry.
    Registry(Reference),
}

impl Source {
    /// Reads `oci://…`, `https://…`, or `http://…` on this machine. Any text without `://` is a
    /// path.
    ///
    /// # Errors
    /// [`FailureReason::ReferenceInvalid`], [`FailureReason::DigestInvalid`],
    /// [`FailureReason::PlainHttp`]; [`FailureReason::SourceInvalid`] for an empty text, another
    /// scheme, or a web address that is not valid or has a name or a password.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let invalid = || Failure::new(FailureReason::SourceInvalid).at(quoted(text));
        if text.is_empty() || text.contains('\0') {
            return Err(invalid());
        }
        let Some((scheme, _)) = text.split_once("://") else {
            return Ok(Self::Path(text.into()));
        };
        match scheme {
            "oci" => text.parse().map(Self::Registry),
            "https" | "http" => {
                // The text is not shown, since it may contain a password.
                let url = Url::parse(text)
                    .map_err(|error| Failure::new(FailureReason::SourceInvalid).caused_by(error))?;
                check_scheme(&url, true)?;
                Ok(Self::Web(url))
            }
            _ => Err(Failure::new(FailureReason::SourceInvalid).found(quoted(scheme))),
        }
    }

    /// Whether the bytes come over the network, so that someone could withhold newer versions.
    pub fn is_remote(&self) -> bool {
        !matches!(self, Self::Path(_))
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => path.display().fmt(f),
            Self::Web(url) => f.write_str(&shown(url)),
            Self::Registry(reference) => reference.fmt(f),
        }
    }
}

#[cfg(test)]
mod address_tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_what_may_be_secret() {
        let url = Url::parse("https://name:word@host.example/a?X-Signature=s#f").unwrap();
        assert_eq!(shown(&url), "https://host.example/a");
    }

    #[test]
    fn a_registry_is_one_with_its_default_port_and_without() {
        for (registry, plain, other) in [
            ("r.example", false, "r.example:443"),
            ("r.example:443", true, "r.example"),
            ("r.example:80", true, "r.example:80"),
            ("r.example:5000", false, "r.example:5000"),
            ("[2001:db8::443]", false, "[2001:db8::443]:443"),
            ("[::1]:443", false, "[::1]"),
            ("[::1]:443", true, "[::1]:443"),
            ("localhost:80", true, "localhost"),
            ("127.0.0.1", true, "127.0.0.1:80"),
            ("127.0.0.1", false, "127.0.0.1:443"),
        ] {
            let mut both = vec![registry.to_owned(), other.to_owned()];
            both.dedup();
            assert_eq!(spellings(registry, plain), both, "{registry}");
            let bare = bare_registry(registry, plain);
            assert_eq!(bare, bare_registry(other, plain), "{registry}");
        }
    }

    #[test]
    fn plain_http_is_for_this_machine_and_only_when_allowed() {
        let code = |text: &str, plain| {
            let url = Url::parse(text).unwrap();
            check_scheme(&url, plain)
                .err()
                .map(|failure| failure.code())
        };
        assert_eq!(code("https://host.example/a", false), None);
        assert_eq!(code("http://127.0.0.1:1/a", true), None);
        assert_eq!(
            code("http://127.0.0.1:1/a", false),
            Some("plain-http-refused")
        );
        assert_eq!(
            code("http://host.example/a", true),
            Some("plain-http-refused")
        );
        assert_eq!(code("ftp://host.example/a", true), Some("source-invalid"));
        assert_eq!(
            code("https://a:b@host.example/a", true),
            Some("source-invalid")
        );
        let remote: Reference = "oci://host.example/a".parse().unwrap();
        assert_eq!(below(&remote, true, "v2/").unwrap().scheme(), "https");
    }
}

#[cfg(test)]
mod source_tests {
    use super::*;

    #[test]
    fn a_source_is_told_by_its_scheme() {
        let parse = |text: &str| Source::parse(text);
        assert_eq!(
            parse("./x.toolbundle").unwrap(),
            Source::Path("./x.toolbundle".into())
        );
        assert!(matches!(
            parse("oci://a.example/b:1").unwrap(),
            Source::Registry(_)
        ));
        let web = parse("https://a.example/x.toolbundle?token=hunter2").unwrap();
        assert!(web.is_remote() && !web.to_string().contains("hunter2"));
        for (text, code) in [
            ("http://a.example/x", "plain-http-refused"),
            ("ftp://a.example/x", "source-invalid"),
            ("https://me:hunter2@a.example/x", "source-invalid"),
            ("https://", "source-invalid"),
            ("oci://A.example/x", "reference-invalid"),
            ("", "source-invalid"),
        ] {
            let failure = parse(text).expect_err(text);
            assert_eq!(failure.code(), code, "{text}");
            assert!(!format!("{failure:?}").contains("hunter2"));
        }
    }
}
