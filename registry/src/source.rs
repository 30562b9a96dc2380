//! Where something comes from, as a person writes it.

use std::fmt;
use std::path::PathBuf;

use url::Url;

use crate::address::{check_scheme, shown};
use crate::failure::{Failure, Reason};
use crate::reference::Reference;
use crate::text::quoted;

/// A source of bundles and documents.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// A file, or a directory with a bundle in it. Whether it is there was not looked at.
    Path(PathBuf),
    /// An `https` address, or one in plain http on this machine: a client decides whether it takes that.
    Web(Url),
    /// A registry.
    Registry(Reference),
}

impl Source {
    /// Reads `oci://…`, `https://…`, or else a path.
    ///
    /// # Errors
    /// [`Reason::ReferenceInvalid`], [`Reason::DigestInvalid`], [`Reason::PlainHttp`],
    /// [`Reason::SourceInvalid`] for other schemes.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let invalid = || Failure::new(Reason::SourceInvalid).at(quoted(text));
        if text.is_empty() || text.contains('\0') {
            return Err(invalid());
        }
        let Some((scheme, _)) = text.split_once("://") else {
            return Ok(Self::Path(text.into()));
        };
        match scheme {
            "oci" => text.parse().map(Self::Registry),
            "https" | "http" => {
                // Not shown: it may have a password in it.
                let url = Url::parse(text)
                    .map_err(|error| Failure::new(Reason::SourceInvalid).caused_by(error))?;
                check_scheme(&url, true)?;
                Ok(Self::Web(url))
            }
            _ => Err(Failure::new(Reason::SourceInvalid).found(quoted(scheme))),
        }
    }

    /// Whether the bytes come over the network, where somebody may hold back newer ones.
    #[must_use]
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
mod tests {
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
