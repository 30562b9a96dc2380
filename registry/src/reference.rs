//! `oci://host[:port]/repository[:tag][@sha256:…]`: the address of an artifact. Each part has only
//! one spelling, and a missing part is not filled in.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use crate::digest::BlobDigest;
use crate::failure::{Failure, FailureReason, quoted};

/// How long a repository's name may be, in bytes (the distribution specification, "Pulling
/// manifests").
const MAX_REPOSITORY: usize = 255;
/// How long a tag may be, in bytes (the same section).
const MAX_TAG: usize = 128;

/// A repository in a registry, with or without a version.
///
/// ```
/// let reference: toolward_registry::Reference = "oci://registry.example/team/tools:1.2.3".parse()?;
/// assert_eq!(reference.host(), "registry.example");
/// assert_eq!(reference.repository(), "team/tools");
/// assert_eq!(reference.tag(), Some("1.2.3"));
/// # Ok::<(), toolward_registry::Failure>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reference {
    host: String,
    port: Option<u16>,
    repository: String,
    tag: Option<String>,
    digest: Option<BlobDigest>,
}

impl Reference {
    /// The host: a name in lower case, an IPv4 address, or an IPv6 address in brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Host and port as written, as credential files name a registry.
    pub fn registry(&self) -> String {
        match self.port {
            Some(port) => format!("{}:{port}", self.host),
            None => self.host.clone(),
        }
    }

    /// The repository, without a leading slash.
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// The tag.
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// The digest of the OCI manifest. If it exists, the tag is not requested.
    pub fn digest(&self) -> Option<BlobDigest> {
        self.digest
    }

    /// The same repository at another tag, without a digest.
    ///
    /// # Errors
    /// [`FailureReason::ReferenceInvalid`] if `tag` is not a valid tag.
    pub fn with_tag(&self, tag: &str) -> Result<Self, Failure> {
        check_tag(tag)?;
        Ok(Self {
            tag: Some(tag.to_owned()),
            digest: None,
            ..self.clone()
        })
    }

    /// The same reference with a digest, which fixes its target.
    #[must_use]
    pub fn with_digest(&self, digest: BlobDigest) -> Self {
        Self {
            digest: Some(digest),
            ..self.clone()
        }
    }

    /// The repository alone.
    #[must_use]
    pub fn without_version(&self) -> Self {
        Self {
            tag: None,
            digest: None,
            ..self.clone()
        }
    }

    /// The repository alone, in the spelling for comparing sources: without https's default port.
    /// If the registry is on this machine, the port stays, since the registry may use plain http.
    #[must_use]
    pub fn bare_repository(&self) -> Self {
        let port = self.port.filter(|port| *port != 443 || self.is_loopback());
        Self {
            port,
            ..self.without_version()
        }
    }

    /// Whether the host is this machine: `localhost`, or an address of the loopback range.
    pub fn is_loopback(&self) -> bool {
        is_loopback(&self.host)
    }

    /// The version for requests: the digest, or otherwise the tag.
    pub(crate) fn version(&self) -> Result<String, Failure> {
        match (&self.digest, &self.tag) {
            (Some(digest), _) => Ok(digest.to_string()),
            (None, Some(tag)) => Ok(tag.clone()),
            (None, None) => {
                Err(Failure::new(FailureReason::ReferenceIncomplete).at(self.to_string()))
            }
        }
    }
}

/// Whether the host of an address is this machine.
pub(crate) fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "oci://{}/{}", self.registry(), self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        if let Some(digest) = &self.digest {
            write!(f, "@{digest}")?;
        }
        Ok(())
    }
}

impl FromStr for Reference {
    type Err = Failure;

    /// # Errors
    /// [`FailureReason::ReferenceInvalid`], [`FailureReason::DigestInvalid`].
    fn from_str(text: &str) -> Result<Self, Failure> {
        parse(text).map_err(|failure| failure.at(quoted(text)))
    }
}

fn parse(text: &str) -> Result<Reference, Failure> {
    let rest = text
        .strip_prefix("oci://")
        .ok_or_else(|| invalid().expected("`oci://` at the beginning"))?;
    let (authority, path) = rest.split_once('/').ok_or_else(|| {
        invalid().expected("a repository after the host: `oci://HOST/REPOSITORY`")
    })?;
    let (host, port) = split_authority(authority)?;
    let (path, digest) = match path.split_once('@') {
        Some((path, digest)) => (path, Some(digest.parse()?)),
        None => (path, None),
    };
    let (repository, tag) = match path.split_once(':') {
        Some((repository, tag)) => {
            check_tag(tag)?;
            (repository, Some(tag.to_owned()))
        }
        None => (path, None),
    };
    check_repository(repository)?;
    Ok(Reference {
        host,
        port,
        repository: repository.to_owned(),
        tag,
        digest,
    })
}

fn invalid() -> Failure {
    Failure::new(FailureReason::ReferenceInvalid)
}

fn split_authority(authority: &str) -> Result<(String, Option<u16>), Failure> {
    let (host, port) = if authority.starts_with('[') {
        match authority.split_once(']') {
            Some((host, "")) => (format!("{host}]"), None),
            Some((host, port)) => (format!("{host}]"), port.strip_prefix(':').or(Some(""))),
            None => (authority.to_owned(), None),
        }
    } else {
        match authority.split_once(':') {
            Some((host, port)) => (host.to_owned(), Some(port)),
            None => (authority.to_owned(), None),
        }
    };
    let port = port
        .map(|port| {
            let number = port.parse::<u16>().ok();
            number
                .filter(|number| *number != 0 && number.to_string() == port)
                .ok_or_else(|| {
                    invalid()
                        .expected("a port from 1 to 65535")
                        .found(quoted(port))
                })
        })
        .transpose()?;
    if !host_is_valid(&host) {
        return Err(invalid()
            .expected("a host name in lower-case letters, digits, dots and dashes, or an address")
            .found(quoted(&host)));
    }
    Ok((host, port))
}

fn host_is_valid(host: &str) -> bool {
    if let Some(bare) = host.strip_prefix('[') {
        // Only the canonical spelling is valid. An IPv4-mapped address is not valid.
        return bare.strip_suffix(']').is_some_and(|bare| {
            bare.parse::<Ipv6Addr>()
                .is_ok_and(|ip| ip.to_string() == bare && ip.to_ipv4_mapped().is_none())
        });
    }
    let label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
    };
    if host.len() > 253 || !host.split('.').all(label) {
        return false;
    }
    // A host whose last label is a number would be read as an IPv4 address, which has several
    // spellings. Only the canonical one is valid.
    let last = host.rsplit('.').next().unwrap_or_default();
    let numeric = last.starts_with(|first: char| first.is_ascii_digit())
        && (last.bytes().all(|byte| byte.is_ascii_digit()) || last.starts_with("0x"));
    !numeric
        || host
            .parse::<Ipv4Addr>()
            .is_ok_and(|ip| ip.to_string() == host)
}

/// `[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*` between slashes (the distribution specification).
fn check_repository(repository: &str) -> Result<(), Failure> {
    let segment = |segment: &str| {
        let separators = segment
            .split(|character: char| character.is_ascii_lowercase() || character.is_ascii_digit());
        let allowed = |separator: &str| {
            matches!(separator, "" | "." | "_" | "__") || separator.bytes().all(|byte| byte == b'-')
        };
        let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
        edge(segment.as_bytes().first())
            && edge(segment.as_bytes().last())
            && separators.into_iter().all(allowed)
    };
    if repository.len() <= MAX_REPOSITORY && repository.split('/').all(segment) {
        return Ok(());
    }
    Err(invalid()
        .expected(
            "a repository of lower-case letters and digits, with `.`, `_`, `-` or `/` between them",
        )
        .found(quoted(repository)))
}

fn check_tag(tag: &str) -> Result<(), Failure> {
    let valid = tag.len() <= MAX_TAG
        && tag
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-'))
        && tag
            .bytes()
            .next()
            .is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if valid {
        return Ok(());
    }
    Err(invalid()
        .expected("a tag of 1 to 128 letters, digits, `_`, `.` and `-`")
        .found(quoted(tag)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_reads_back_as_it_was_written() {
        let digest = format!("sha256:{}", "ab".repeat(32));
        for text in [
            "oci://registry.example/tools",
            "oci://registry.example:5000/team/text-stats:1.2.3",
            "oci://127.0.0.1:5000/a/b__c/d-e--f.g_h:latest",
            "oci://[::1]:5000/a",
            "oci://localhost/a:_x",
            &format!("oci://registry.example/tools@{digest}"),
            &format!("oci://registry.example/tools:1@{digest}"),
        ] {
            let reference: Reference = text.parse().expect(text);
            assert_eq!(reference.to_string(), text);
        }
    }

    #[test]
    fn anything_else_is_refused_and_nothing_is_filled_in() {
        for text in [
            "",
            "registry.example/tools:1",
            "docker://registry.example/tools",
            "OCI://registry.example/tools",
            "oci://registry.example",
            "oci://registry.example/",
            "oci:///tools",
            "oci://user:secret@registry.example/tools",
            "oci://Registry.example/tools",
            "oci://registry..example/tools",
            "oci://-registry.example/tools",
            "oci://registry.example./tools",
            "oci://registry.example:/tools",
            "oci://registry.example:0/tools",
            "oci://registry.example:080/tools",
            "oci://registry.example:65536/tools",
            "oci://127.0.0.01/tools",
            "oci://127.1/tools",
            "oci://0x7f000001/tools",
            "oci://2130706433/tools",
            "oci://[::ffff:127.0.0.1]/tools",
            "oci://[0:0::1]/tools",
            "oci://[::1/tools",
            "oci://registry.example/Tools",
            "oci://registry.example//tools",
            "oci://registry.example/tools/",
            "oci://registry.example/../tools",
            "oci://registry.example/a..b",
            "oci://registry.example/a___b",
            "oci://registry.example/-a",
            "oci://registry.example/tools?x=1",
            "oci://registry.example/tools#x",
            "oci://registry.example/tools%2f",
            "oci://registry.example/tools:",
            "oci://registry.example/tools:.x",
            "oci://registry.example/tools:a:b",
            "oci://registry.example/tools:a/b",
            "oci://registry.example/tools:1@",
            "oci://registry.example/tools@sha512:00",
            " oci://registry.example/tools",
            "oci://registry.example/tools\n",
        ] {
            let failure = text.parse::<Reference>().expect_err(text);
            let digest = text.contains('@') && !text.contains("user");
            let code = if digest {
                "registry-digest-invalid"
            } else {
                "reference-invalid"
            };
            assert_eq!(failure.code(), code, "{text}");
            assert!(failure.hint().is_some());
        }
        let long = format!("oci://registry.example/{}", "a".repeat(256));
        assert!(long.parse::<Reference>().is_err());
        let long = format!("oci://registry.example/a:{}", "a".repeat(129));
        assert!(long.parse::<Reference>().is_err());
    }

    #[test]
    fn only_this_machine_is_loopback() {
        let loopback = |text: &str| text.parse::<Reference>().unwrap().is_loopback();
        assert!(loopback("oci://127.0.0.1:1/a") && loopback("oci://127.8.9.1/a"));
        assert!(loopback("oci://[::1]/a") && loopback("oci://localhost:5000/a"));
        assert!(!loopback("oci://localhost.example/a") && !loopback("oci://10.0.0.1/a"));
        assert!(!loopback("oci://127.0.0.1.example/a"));
    }

    #[test]
    fn a_reference_without_a_version_says_so() {
        let reference: Reference = "oci://registry.example/tools".parse().unwrap();
        assert_eq!(
            reference.version().unwrap_err().code(),
            "reference-incomplete"
        );
        let tagged = reference.with_tag("1").unwrap();
        assert_eq!(tagged.version().unwrap(), "1");
        assert!(reference.with_tag("../x").is_err());
    }
}
