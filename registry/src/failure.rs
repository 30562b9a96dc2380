//! The crate's error type: a stable code, the expected and the found value, the place, and a hint.
//! It never contains a secret or the query of a URL.

use toolward_signing::{ErrorKind, Refusal};
use toolward_support::report::{Code, Kind, Report, codes};

/// A failure. No pulled bytes are kept, except an incomplete blob that a later attempt resumes.
pub type Failure = Report<Cause>;

/// The reason of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The registry, the network or the request.
    Registry(FailureReason),
    /// The bundle or its envelope was refused; the [`Refusal`] is the failure's source.
    Signing(ErrorKind),
}

impl Kind for Cause {
    fn row(self) -> &'static Code {
        match self {
            Self::Registry(reason) => reason.row(),
            Self::Signing(kind) => kind.row(),
        }
    }
}

impl From<FailureReason> for Cause {
    fn from(reason: FailureReason) -> Self {
        Self::Registry(reason)
    }
}

/// The failure for a refused bundle or envelope.
pub(crate) fn refused(refusal: Refusal) -> Failure {
    let cause = Cause::Signing(refusal.kind());
    refusal.under(cause)
}

/// The failure for an error of the operating system at `place`.
pub(crate) fn io_failed(place: impl Into<String>, error: std::io::Error) -> Failure {
    Failure::new(FailureReason::Io).at(place).caused_by(error)
}

/// The failure for a task that panicked.
pub(crate) fn panicked(error: tokio::task::JoinError) -> Failure {
    Failure::new(FailureReason::Failed).caused_by(error)
}

codes! {
    /// Why something failed. The codes are stable.
    pub enum FailureReason {
        ReferenceInvalid = "reference-invalid", "this is not a reference to a registry",
            "write it like oci://registry.example/team/tools:1.2.3";
        ReferenceIncomplete = "reference-incomplete", "the reference names no version",
            "add a tag, such as `:1.2.3`, or a digest, `@sha256:…`";
        DigestInvalid = "registry-digest-invalid", "this is not a digest of the form `sha256:HEX`",
            "ask the publisher for the bundle's digest";
        SourceInvalid = "source-invalid", "this source is not supported",
            "give a file or directory, `https://HOST/FILE.toolbundle`, or `oci://REGISTRY/REPOSITORY:TAG`";
        ClientInvalid = "registry-client-invalid", "the settings for registries are wrong",
            "correct the setting that is named";
        ProxyInvalid = "registry-proxy-invalid", "the proxy of `HTTPS_PROXY` can't be used",
            "set HTTPS_PROXY to http://HOST:PORT or https://HOST:PORT, or unset it";
        PlainHttp = "plain-http-refused", "plain http is for this machine only",
            "use https; you can add a certificate authority";
        /// No connection, or it broke too often.
        Unreachable = "registry-unreachable", "the registry can't be reached",
            "check the address, the network and the certificate authority, then try again";
        Timeout = "registry-timeout", "the registry took too long",
            "try again, or allow more time";
        /// 429, 502, 503 or 504 until no retry was left.
        Busy = "registry-busy", "the registry is busy",
            "try again later";
        Failed = "registry-failed", "the registry did not do what was asked",
            "look at the status; the registry's operator can tell more";
        /// 404.
        NotFound = "registry-not-found", "the server does not have this",
            "check repository, tag and digest";
        /// A login is demanded, but none is known.
        CredentialsNeeded = "registry-credentials-needed", "the registry wants credentials, and none are set for it",
            "write `username` and `password` into a `[[registry]]` of toolward.toml, or give --docker-config";
        /// 401 or 403 in any other case.
        CredentialsRefused = "registry-credentials-refused", "the registry refuses access",
            "check user name, password and permissions for this repository";
        CredentialsInvalid = "registry-credentials-invalid", "the credentials can't be used",
            "a login is a name without a colon, and a password; each entry of `auths` has `auth`, or `username` and `password`";
        CredentialHelper = "registry-credential-helper", "the credential helper failed",
            "run the helper by hand to see why, or use a file with `auths`";
        RealmRefused = "registry-realm-refused", "the registry asks to send credentials to another server",
            "if you trust this address, write it as `realm` into a `[[registry]]` of toolward.toml, or give --allow-realm";
        RedirectRefused = "registry-redirect-refused", "the registry redirects to another server",
            "if you trust this address, write it to `redirects_to` of a `[[registry]]` of toolward.toml, or give --allow-redirects-to";
        /// The answer breaks the protocol.
        ResponseInvalid = "registry-response-invalid", "the registry's answer is not valid",
            "check that the address is that of a registry";
        ResponseTooLarge = "registry-response-too-large", "the answer is larger than it may be",
            "check that the address is right";
        ManifestDiffers = "registry-manifest-differs", "the registry serves another manifest than the one named",
            "do not use this registry for this bundle; tell the publisher";
        ManifestInvalid = "registry-manifest-invalid", "the manifest in the registry is wrong",
            "push it again with `toolward publisher push`";
        ArtifactUnsupported = "registry-artifact-unsupported", "this artifact is something else",
            "check repository and tag";
        BlobTooLarge = "blob-too-large", "the artifact is larger than it may be",
            "nothing was downloaded; an envelope has at most 768 KiB, an archive 512 MiB";
        BlobDiffers = "blob-differs", "the registry serves another blob than the one named",
            "do not use this registry for this bundle; tell the publisher";
        BlobTruncated = "blob-truncated", "the registry serves less of the blob than the manifest states",
            "try again; if the error stays, the registry's copy is broken";
        BlobEndless = "blob-endless", "the registry serves more of the blob than the manifest states",
            "do not use this registry for this bundle; tell the publisher";
        /// The bundle or document is not signed, or has another digest than the reference.
        NotPublishable = "registry-not-publishable", "this can't be pushed",
            "sign it first: `toolward publisher sign`";
        AttachmentInvalid = "registry-attachment-invalid", "an attachment is wrong",
            "it must be a signed document of its kind; others are passed over";
        Io = "registry-io", "a file could not be read or written",
            "check the path and its permissions";
    }
}

/// How much of a hostile text is shown, in characters.
const MAX_CHARS: usize = 200;

/// Hostile text in quotes, shortened, with hidden characters escaped.
pub(crate) fn quoted(text: &str) -> String {
    format!(
        "`{}`",
        toolward_support::text::visible_line(text, MAX_CHARS)
    )
}

/// A number of bytes, for messages.
pub(crate) fn bytes(count: u64) -> String {
    match count {
        1 => "1 byte".to_owned(),
        count => format!("{count} bytes"),
    }
}

#[cfg(test)]
mod failure_tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_code_is_kebab_case_and_used_once_also_beside_those_of_signing() {
        let mut seen: HashSet<_> = ErrorKind::ALL.iter().map(|kind| kind.code()).collect();
        for reason in FailureReason::ALL {
            let code = reason.code();
            assert!(seen.insert(code), "{code} comes twice");
            assert!(code.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'));
            assert!(!reason.message().is_empty() && !reason.row().advice.is_empty());
        }
    }
}

#[cfg(test)]
mod text_tests {
    use super::quoted;

    #[test]
    fn hostile_text_is_shown_without_its_tricks() {
        assert_eq!(quoted("a\u{1b}[2J\u{202e}b\n"), r"`a\e[2J\u{202e}b\n`");
        assert!(quoted(&"x".repeat(10_000)).chars().count() < 240);
    }
}
