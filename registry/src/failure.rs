//! Why something failed: a stable code, what was expected, found, where, and what to do. One type for the
//! crate. No secret and no query of an address is ever put into one.

use std::borrow::Cow;
use std::fmt;

use serde::ser::{Serialize, SerializeStruct, Serializer};
use toolward_signing::Refusal;

/// A failure. What was pulled is not kept, except the part of a blob that a later attempt resumes.
#[derive(Clone, PartialEq, Eq)]
pub struct Failure(Box<Parts>);

#[derive(Clone, PartialEq, Eq)]
struct Parts {
    cause: Cause,
    place: Option<String>,
    expected: Option<Cow<'static, str>>,
    found: Option<String>,
    hint: Option<String>,
}

#[derive(Clone, PartialEq, Eq)]
enum Cause {
    Here(Reason),
    /// From reading or verifying the bundle: its own code is told.
    Signing(Refusal),
}

impl Failure {
    pub(crate) fn new(reason: Reason) -> Self {
        Self(Box::new(Parts {
            cause: Cause::Here(reason),
            place: None,
            expected: None,
            found: None,
            hint: None,
        }))
    }

    pub(crate) fn at(mut self, place: impl Into<String>) -> Self {
        self.0.place.get_or_insert_with(|| place.into());
        self
    }

    pub(crate) fn expected(mut self, expected: impl Into<Cow<'static, str>>) -> Self {
        self.0.expected = Some(expected.into());
        self
    }

    pub(crate) fn found(mut self, found: impl Into<String>) -> Self {
        self.0.found = Some(found.into());
        self
    }

    pub(crate) fn hinted(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    pub(crate) fn io(place: impl Into<String>, error: &std::io::Error) -> Self {
        Self::new(Reason::Io).at(place).found(error.to_string())
    }

    /// A part of the work that ended by a panic.
    pub(crate) fn panicked(error: impl fmt::Display) -> Self {
        Self::new(Reason::Failed).found(error.to_string())
    }

    /// Why, unless it is a refusal of the bundle itself.
    #[must_use]
    pub fn reason(&self) -> Option<Reason> {
        match &self.0.cause {
            Cause::Here(reason) => Some(*reason),
            Cause::Signing(_) => None,
        }
    }

    /// The refusal, if the bundle or its envelope was refused.
    #[must_use]
    pub fn refusal(&self) -> Option<&Refusal> {
        match &self.0.cause {
            Cause::Here(_) => None,
            Cause::Signing(refusal) => Some(refusal),
        }
    }

    /// The stable kebab-case code, e.g. `blob-differs`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match &self.0.cause {
            Cause::Here(reason) => reason.code(),
            Cause::Signing(refusal) => refusal.code(),
        }
    }

    /// One sentence, the same for each failure with this code.
    #[must_use]
    pub fn message(&self) -> &'static str {
        match &self.0.cause {
            Cause::Here(reason) => reason.message(),
            Cause::Signing(refusal) => refusal.message(),
        }
    }

    /// Where: a reference, an address without its query, a file.
    #[must_use]
    pub fn place(&self) -> Option<&str> {
        let own = self.0.place.as_deref();
        own.or_else(|| self.refusal().and_then(Refusal::place))
    }

    /// What was expected.
    #[must_use]
    pub fn expected_text(&self) -> Option<&str> {
        let own = self.0.expected.as_deref();
        own.or_else(|| self.refusal().and_then(Refusal::expected_text))
    }

    /// What was found instead.
    #[must_use]
    pub fn found_text(&self) -> Option<&str> {
        let own = self.0.found.as_deref();
        own.or_else(|| self.refusal().and_then(Refusal::found_text))
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        let general = match &self.0.cause {
            Cause::Here(reason) => Some(reason.hint()),
            Cause::Signing(refusal) => refusal.hint(),
        };
        self.0.hint.as_deref().or(general)
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self(Box::new(Parts {
            cause: Cause::Signing(refusal),
            place: None,
            expected: None,
            found: None,
            hint: None,
        }))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())?;
        if let Some(place) = self.place() {
            write!(f, " ({place})")?;
        }
        match (self.expected_text(), self.found_text()) {
            (Some(expected), Some(found)) => write!(f, ": expected {expected}, found {found}"),
            (Some(expected), None) => write!(f, ": expected {expected}"),
            (None, Some(found)) => write!(f, ": found {found}"),
            (None, None) => Ok(()),
        }
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}] {self}", self.code())
    }
}

impl std::error::Error for Failure {}

impl Serialize for Failure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Failure", 6)?;
        fields.serialize_field("code", self.code())?;
        fields.serialize_field("message", self.message())?;
        fields.serialize_field("place", &self.place())?;
        fields.serialize_field("expected", &self.expected_text())?;
        fields.serialize_field("found", &self.found_text())?;
        fields.serialize_field("hint", &self.hint())?;
        fields.end()
    }
}

/// Declares the reasons with code, message and hint.
macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $message:literal, $hint:literal;)*) => {
        /// Why something failed. The codes are stable.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Reason {
            $($(#[$doc])* $name,)*
        }

        impl Reason {
            /// All reasons.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The stable kebab-case code.
            #[must_use]
            pub const fn code(self) -> &'static str {
                match self { $(Self::$name => $code,)* }
            }

            /// One sentence.
            #[must_use]
            pub const fn message(self) -> &'static str {
                match self { $(Self::$name => $message,)* }
            }

            /// What to do, in general.
            #[must_use]
            pub const fn hint(self) -> &'static str {
                match self { $(Self::$name => $hint,)* }
            }
        }
    };
}

reasons! {
    /// A reference breaks its grammar.
    ReferenceInvalid = "reference-invalid", "this is not a reference to a registry",
        "write it like oci://registry.example/team/tools:1.2.3";
    /// A reference without tag and digest where one is needed.
    ReferenceIncomplete = "reference-incomplete", "the reference names no version",
        "add a tag, such as `:1.2.3`, or a digest, `@sha256:…`";
    /// A digest that is no SHA-256 in lower case.
    DigestInvalid = "registry-digest-invalid", "this is not a digest as registries have it",
        "ask the publisher for the bundle's digest";
    /// A source that is neither a file nor an address that is supported.
    SourceInvalid = "source-invalid", "this source is not supported",
        "give a path, `https://…` or `oci://…`";
    /// A setting of the client that can't work.
    ClientInvalid = "registry-client-invalid", "the settings for registries are wrong",
        "correct the setting that is named";
    /// Plain http to something else than this machine.
    PlainHttp = "plain-http-refused", "plain http is for this machine only",
        "use https; a certificate authority of your own can be added";
    /// No connection, or it broke too often.
    Unreachable = "registry-unreachable", "the registry can't be reached",
        "check the address, the network and the certificate authority, then try again";
    /// It took longer than allowed.
    Timeout = "registry-timeout", "the registry took too long",
        "try again, or allow more time";
    /// 429 or 503 until the time was up.
    Busy = "registry-busy", "the registry has no time for this now",
        "try again later";
    /// Another answer than the protocol has.
    Failed = "registry-failed", "the registry did not do what was asked",
        "look at the status; the registry's operator can tell more";
    /// 404.
    NotFound = "registry-not-found", "the registry does not have this",
        "check repository, tag and digest";
    /// 401 and no credentials.
    CredentialsNeeded = "registry-credentials-needed", "the registry wants credentials, and none are set for it",
        "log in, and name the file that has the credentials of this registry";
    /// 401 or 403 with credentials.
    CredentialsRefused = "registry-credentials-refused", "the registry refuses access",
        "check user name, password and permissions for this repository";
    /// The credentials file can't be read, or is wrong.
    CredentialsInvalid = "registry-credentials-invalid", "the credentials can't be used",
        "each entry of `auths` has `auth`, or `username` and `password`";
    /// A credential helper failed.
    CredentialHelper = "registry-credential-helper", "the credential helper failed",
        "run the helper by hand to see why, or use a file with `auths`";
    /// The registry asks that credentials be sent to somebody else.
    RealmRefused = "registry-realm-refused", "the registry wants credentials sent to somewhere else",
        "if that is known to be right, allow this realm for this registry";
    /// The registry points elsewhere.
    RedirectRefused = "registry-redirect-refused", "the registry redirects to somewhere else",
        "if that is known to be right, allow downloads from this host";
    /// Not what the protocol says, or too much of it.
    ResponseInvalid = "registry-response-invalid", "the registry's answer makes no sense",
        "check that the address is that of a registry";
    /// A document larger than it may be.
    ResponseTooLarge = "registry-response-too-large", "the answer is larger than it may be",
        "check that the address is right";
    /// The manifest's bytes have another digest.
    ManifestDiffers = "registry-manifest-differs", "the registry serves another manifest than the one named",
        "do not use this registry for this bundle; tell the publisher";
    /// A manifest that isn't of the artifact's form.
    ManifestInvalid = "registry-manifest-invalid", "the manifest in the registry is wrong",
        "push it again with `toolward push`";
    /// An artifact of another type.
    ArtifactUnsupported = "registry-artifact-unsupported", "this artifact is something else",
        "check repository and tag";
    /// The manifest announces a blob that is too large.
    BlobTooLarge = "blob-too-large", "the artifact is larger than it may be",
        "nothing was downloaded; an envelope has at most 768 KiB, an archive 512 MiB";
    /// The blob's bytes have another digest.
    BlobDiffers = "blob-differs", "the registry serves another blob than the one named",
        "do not use this registry for this bundle; tell the publisher";
    /// The blob is shorter than the manifest says.
    BlobTruncated = "blob-truncated", "the registry serves less of the blob than the manifest says",
        "try again; if it stays so, the registry's copy is broken";
    /// The blob is longer than the manifest says.
    BlobEndless = "blob-endless", "the registry serves more of the blob than the manifest says",
        "do not use this registry for this bundle; tell the publisher";
    /// What shall be pushed is not signed, or signed for something else.
    NotPublishable = "registry-not-publishable", "this can't be pushed",
        "sign it first: `toolward sign`";
    /// Attachments that can't be what they say.
    AttachmentInvalid = "registry-attachment-invalid", "an attachment is wrong",
        "it has to be a signed document of its kind; others are passed over";
    /// The operating system reported an error.
    Io = "registry-io", "a file could not be read or written",
        "check the path and its permissions";
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_code_is_kebab_case_and_used_once_also_beside_those_of_signing() {
        let mut seen: HashSet<_> = toolward_signing::ErrorKind::ALL
            .iter()
            .map(|reason| reason.code())
            .collect();
        for reason in Reason::ALL {
            let code = reason.code();
            assert!(seen.insert(code), "{code} comes twice");
            assert!(code.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'));
            assert!(!reason.message().is_empty() && !reason.hint().is_empty());
        }
    }
}
