//! The crate's error type: a stable code, the expected and the found value, the place, and a hint.
//! The table of kinds defines the codes, with their meanings and hints.

use std::cell::Cell;
use std::fmt::Display;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, de};
use toolward_support::{codes, report::Report};

/// The error of this crate: the reason why something is refused.
pub type Refusal = Report<ErrorKind>;

/// The refusal for an error that the operating system reported at `place`.
pub(crate) fn io_failed(place: impl Into<String>, error: std::io::Error) -> Refusal {
    unplaced_io(error).at(place)
}

/// As [`io_failed`], for functions whose caller adds the place.
pub(crate) fn unplaced_io(error: std::io::Error) -> Refusal {
    Refusal::new(ErrorKind::Io).caused_by(error)
}

/// Converts an error of reading an archive to a refusal.
pub(crate) fn decoding(error: std::io::Error) -> Refusal {
    if error.kind() == std::io::ErrorKind::UnexpectedEof {
        Refusal::new(ErrorKind::ArchiveTruncated)
    } else if error.raw_os_error().is_some() {
        io_failed("the archive", error)
    } else {
        Refusal::new(ErrorKind::ArchiveFormat).found(error.to_string())
    }
}

/// The refusal of more than `most` bytes.
pub(crate) fn too_large(most: impl Display) -> Refusal {
    Refusal::new(ErrorKind::TooLarge).expected(format!("at most {most} bytes"))
}

thread_local! {
    /// The refusal behind this thread's last serde error. serde's errors only contain text.
    pub(crate) static REFUSED: Cell<Option<Refusal>> = const { Cell::new(None) };
}

/// Stores a refusal in [`REFUSED`] and returns a serde error for it.
pub(crate) fn refuse<E: de::Error>(refusal: Refusal) -> E {
    let error = E::custom(&refusal);
    REFUSED.set(Some(refusal));
    error
}

/// Deserializes a string with the type's `FromStr`.
pub(crate) fn from_text<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: FromStr<Err = Refusal>,
    D: Deserializer<'de>,
{
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(refuse)
}

/// Implements serde for types that are written as text.
macro_rules! impl_serde_text {
    ($($name:ty),+) => { $(
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                $crate::error::from_text(from)
            }
        }
    )+ };
}

pub(crate) use impl_serde_text;

codes! {
    /// Why something was refused. Codes are stable; new ones may be added.
    pub enum ErrorKind {
        Io = "io", "a file could not be read or written",
            "check that the path exists and that you may read or write it";
        /// Neither a directory nor a regular file.
        NotABundle = "not-a-bundle", "this is not a bundle",
            "name a bundle directory or a `.toolbundle` file";

        EnvelopeMissing = "envelope-missing", "the bundle is not signed: `manifest.dsse.json` is missing",
            "get a signed bundle from its publisher; an author signs with `toolward publisher sign`, or names a directory under work with `--dev DIR`";
        /// Not a DSSE envelope, or an envelope that exceeds a limit.
        EnvelopeInvalid = "envelope-invalid", "the file is not a DSSE envelope",
            "get it again from its publisher, who may have to sign it again";
        PayloadType = "payload-type", "the envelope is for another kind of document",
            "get it again from its publisher, who may have to pack and sign it again";
        /// Signatures of one document are to be added to another.
        EnvelopeMismatch = "envelope-mismatch", "the envelopes are over different documents",
            "have all signers sign the same file, then put the signatures together";
        UnknownPublisher = "unknown-publisher", "no publisher in the trust store signed this bundle",
            "if you know this publisher, get its document or public key from the publisher itself, and give `toolward trust add FILE --prefix ID`; `--trust-key` trusts a key for one command";
        SignatureInvalid = "signature-invalid", "a signature by a trusted key does not verify",
            "do not use this bundle: it was changed after it was signed. Tell its publisher, and get it again from there";
        WrongPublisher = "wrong-publisher", "the manifest names a publisher whose keys did not sign",
            "ask the publisher which key signs this bundle";
        /// An update of a bundle was requested, but the source has another bundle.
        WrongBundle = "wrong-bundle", "the source now has another bundle than was installed from it",
            "find out where the bundle is published now; if you want the other bundle too, install it separately";
        ThresholdNotMet = "threshold-not-met", "too few distinct keys of the publisher signed",
            "get it again when more of the publisher's key holders have signed it: `toolward publisher sign` adds a signature";
        PrefixNotGranted = "prefix-not-granted", "the publisher may not publish this id",
            "if you agree, add a prefix of the id: `toolward trust update NAME --prefix PREFIX`, or `prefixes` of its `[[publisher]]` in toolward.toml";

        ManifestMissing = "manifest-missing", "the bundle has no `manifest.toml`",
            "get a packed bundle from its publisher; an author packs a directory with `toolward pack`";
        ManifestMismatch = "manifest-mismatch", "`manifest.toml` is not the manifest that was signed",
            "do not use this bundle: it was changed after it was signed. Tell its publisher, and get it again from there";
        /// The manifest's bytes break a rule of text: encoding, characters, line ends, size.
        ManifestText = "manifest-text", "the manifest's text is not allowed",
            "do not use this bundle: its publisher has to pack it again";
        ManifestSyntax = "manifest-syntax", "the manifest is not TOML 1.0",
            "do not use this bundle: its publisher has to pack it again";
        /// A field of the manifest is missing, unknown, or has a wrong value.
        ManifestField = "manifest-field", "a field of the manifest is wrong",
            "do not use this bundle: its publisher has to pack it again";
        ManifestSchema = "manifest-schema", "the manifest has a schema that this host does not know",
            "update toolward, or ask the publisher for a bundle of schema 1";
        HostTooOld = "host-too-old", "the bundle needs a newer toolward",
            "update toolward";
        Expired = "expired", "the bundle has expired",
            "get the publisher's current release";
        NotYetValid = "not-yet-valid", "the bundle says that it was made in the future",
            "check this machine's clock";

        PathInvalid = "path-invalid", "a path is not allowed in a bundle",
            "use ASCII letters, digits, `.`, `_` and `-`, at most 8 folders deep, no leading or trailing dot, no Windows device name";
        /// Two paths differ only in case, or a path is both a file and a folder.
        PathConflict = "path-conflict", "two paths of the bundle can't exist together on every system",
            "rename one of them";
        FileMissing = "file-missing", "a file that the manifest lists is missing",
            "get the bundle again from its publisher";
        FileExtra = "file-extra", "the manifest does not list a file of the bundle",
            "remove the file, or get the bundle again from its publisher";
        /// A file is listed twice, or comes twice in an archive.
        FileDuplicate = "file-duplicate", "a file comes twice",
            "do not use this bundle: its publisher has to pack it again";
        FileType = "file-type", "only regular files are allowed in a bundle",
            "replace links, devices and pipes with the files themselves";
        SizeMismatch = "size-mismatch", "a file has another size than the manifest says",
            "do not use this bundle: it was changed after it was signed. Tell its publisher, and get it again from there";
        DigestMismatch = "digest-mismatch", "a file has another digest than the manifest says",
            "do not use this bundle: it was changed after it was signed. Tell its publisher, and get it again from there";
        TooLarge = "too-large", "this is larger than a bundle may be",
            "leave out what the tools do not need";

        ArchiveFormat = "archive-format", "the archive is not one zstd frame over a tar archive",
            "do not use this bundle: get it again from its publisher, who may have to pack it again";
        ArchiveTruncated = "archive-truncated", "the archive ends too early",
            "get the file again: the transfer was cut off";
        ArchiveHeader = "archive-header", "an entry of the archive has a header that is not allowed",
            "do not use this bundle: its publisher has to pack it again";
        ArchiveOrder = "archive-order", "the entries of the archive are not in order",
            "do not use this bundle: its publisher has to pack it again";
        ArchiveTrailingData = "archive-trailing-data", "something follows the end of the archive",
            "get the file again from its publisher";
        ArchiveRatio = "archive-ratio", "the archive expands more than a bundle may",
            "ask its publisher what is in it";

        /// A publisher document, revocation list or channel index that can't be read.
        DocumentInvalid = "document-invalid", "the signed document is not allowed",
            "get it again from its publisher; its author makes it with toolward";
        DocumentSchema = "document-schema", "the signed document has a schema that this host does not know",
            "update toolward, or ask for a document of schema 1";
        DocumentExpired = "document-expired", "the signed document has expired",
            "get the current one with `toolward trust update`; a source that offers only the expired one may be hiding the current one";
        DocumentNotYetValid = "document-not-yet-valid", "the signed document says that it was made in the future",
            "check this machine's clock";
        /// A publisher document is more than one version ahead of the document in use.
        VersionSkipped = "version-skipped", "a version is missing between the publisher document in use and this one",
            "get all documents since the one in use, and give them in order";
        Rollback = "rollback", "this is older than what was accepted before",
            "get the current release; to go back on purpose, give `--allow-rollback REASON`, which is recorded";
        Equivocation = "equivocation", "two different documents carry the same number",
            "someone shows different documents to different people: ask the publisher directly which one is genuine";
        /// A publisher document or a revocation list leaves out a revocation of its predecessor.
        RevocationDropped = "revocation-dropped", "a revocation of the previous document is missing",
            "what was revoked stays revoked: ask the publisher for a document that keeps all earlier revocations";
        ResetWithoutRevocation = "reset-without-revocation", "the document resets sequence numbers (`[[resets]]`), but revokes no further key",
            "ask the publisher for a document that also revokes a key: only such a document may have `[[resets]]`";
        RevocationForeign = "revocation-foreign", "the list revokes a key of another publisher",
            "a publisher revokes its own keys and bundles only: ask who made this list";
        /// Without the revoked keys, too few keys signed.
        KeyRevoked = "key-revoked", "a key that signed was revoked",
            "get a release that the publisher has signed with its current keys";
        /// A bundle that its publisher or the operator revoked.
        BundleRevoked = "bundle-revoked", "this release was revoked",
            "get the publisher's current release, or remove this one";
        TooOld = "too-old", "the bundle is older than the maximum age",
            "get the publisher's current release, or raise `max_age_days` in `[trust]`";
        /// A bundle from a remote source without proof that it is current.
        FreshnessUnknown = "freshness-unknown", "nothing says that this is the current release",
            "say how old releases may be: `toolward trust update PUBLISHER --max-age-days 90`, or the lines `[trust]` and `max_age_days = 90` in toolward.toml; or name the source's signed index in `[[channel]]`";
        ChannelUnlisted = "channel-unlisted", "the channel does not list this bundle",
            "get the bundle from the channel that lists it";
        ChannelMismatch = "channel-mismatch", "this is not the release that the channel lists",
            "get the release that the index names: the source mixes releases or holds one back";

        ProvenanceInvalid = "provenance-invalid", "the provenance is not allowed",
            "do not use this bundle: its publisher has to pack it again";
        ProvenanceMismatch = "provenance-mismatch", "the provenance is about another bundle",
            "its publisher has to pack and sign it again";
        ProvenanceUnsigned = "provenance-unsigned", "the provenance is not signed by the bundle's publisher",
            "its publisher has to pack it again: the first `--key` signs the provenance, and must be the publisher's own";
        /// `provenance.dsse.json` is missing, although the operator or the manifest demands it.
        ProvenanceMissing = "provenance-missing", "the bundle does not say how it was built",
            "ask the publisher for a release with provenance, or leave out `require_provenance` in `[trust]`";

        DigestInvalid = "digest-invalid", "this is not a digest",
            "write 64 lower-case hexadecimal digits, without a prefix";
        IdInvalid = "id-invalid", "this is not an id",
            "use 2 to 80 lower-case letters, digits, dashes and dots, beginning and ending with a letter or digit";
        TimeInvalid = "time-invalid", "this is not a time",
            "write it like 2026-11-21T09:30:00Z";
        KeyInvalid = "key-invalid", "this is not an Ed25519 key",
            "a public key is an SPKI PEM file (`BEGIN PUBLIC KEY`), a signing key a PKCS#8 PEM file (`BEGIN PRIVATE KEY`)";
        KeyWeak = "key-weak", "this key is weak: it would accept signatures that nobody made",
            "do not trust the source of this key; make a new one with `toolward publisher keys new`";
        PassphraseNeeded = "passphrase-needed", "the signing key is encrypted",
            "give its passphrase";
        PassphraseWrong = "passphrase-wrong", "the passphrase does not open the signing key",
            "try again";
        TrustInvalid = "trust-invalid", "the trust store is wrong",
            "each `[[publisher]]` has `name`, `keys` or `key_files`, `prefixes`, and optionally `threshold` and `actions`";
        TrustExampleKey = "trust-example-key", "the example key must not be trusted: its private half is public",
            "remove it from the trust store; to try the examples, name it with `--trust-key`";
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_code_is_kebab_case_and_used_once() {
        let mut seen = HashSet::new();
        for kind in ErrorKind::ALL {
            let code = kind.code();
            assert!(seen.insert(code), "{code} comes twice");
            assert!(code.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'));
            assert!(!kind.message().is_empty() && !kind.row().advice.is_empty());
        }
    }
}
