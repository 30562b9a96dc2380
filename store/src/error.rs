//! Errors of opening the store and of operations on it.

use toolward_bundle::ContentError;
use toolward_signing::{Digest, Refusal};
use toolward_support::report::codes;

codes! {
    /// Why an operation was refused or failed. Installed bundles stay installed.
    #[derive(Debug)]
    pub enum Error: Error {
        /// Verification refused the bundle. Or a release or document is older than a known one, or
        /// has the same number as a known one but another content.
        Refused(inner: Refusal);
        /// The bundle is signed, but no host would accept it.
        Content(inner: Box<ContentError>);
        /// `kind` is `tool` or `driver`; a tool's `name` is its id with the major version.
        Duplicate { kind: String, name: String, first: String, second: String } = "duplicate-id" ["1 or 3"],
            ("{kind} `{name}` is in two bundles: {first} is installed, {second} brings it, too")
            => "keep one of the two bundles: remove the other first";
        SurfaceMismatch { id: String, accepted: Digest, found: Digest } = "surface-mismatch" ["3"],
            "the held update has another [surface](store.md#the-surface) than the one that was accepted",
            ("{id}: the surface {accepted} was accepted, the update that is held has {found}")
            => "look at the difference again, and accept the digest shown with it";
        NotInstalled { id: String } = "not-installed", "no bundle of this id is installed", ("{id} is not installed")
            => "`toolward list` shows what is installed";
        NotHeld { id: String } = "not-held", "no update of this bundle waits to be accepted", ("no update of {id} is held")
            => "`toolward update` looks for a new release";
        ObjectMissing { id: String, digest: Digest } = "object-missing" ["3"], "the file of an installed bundle is missing",
            ("{id}: the file of the installed bundle {digest} is missing from the store")
            => "install the bundle again, and find out who writes to the store's directory";
        ObjectChanged { id: String, expected: String, found: String } = "object-changed" ["3"],
            "the file of an installed bundle holds another bundle, by a trusted publisher or not",
            ("{id}: the store's file holds another bundle: expected {expected}, found {found}")
            => "install the bundle again, and find out who writes to the store's directory";
        PublisherChanged { id: String, expected: String, found: String } = "publisher-changed" ["3"],
            "the keys of an installed bundle belong to another publisher now",
            ("{id} was installed as {expected}'s; the trust store now has it as {found}'s")
            => "install the bundle again, to accept it from this publisher";
        ActionsChanged { id: String, accepted: Digest, found: Digest } = "actions-changed" ["3"],
            "an action that an installed bundle takes from a library demands something else than when the bundle was accepted",
            ("{id}: the actions that it takes from a library give it the surface {found}; {accepted} was accepted")
            => "`toolward update` shows the difference, and how to accept it";
        Unusable(inner: toolward_support::files::Error) = "store-unusable" ["1 or 2"]
            => "name another place, or repair owner and mode of this one";
        Corrupt(source: BoxError) = "store-corrupt",
            "the file of a store is damaged, or another program's",
            ("the store's state is damaged, or another program's file: {source}")
            => "put back a copy of the file that was made while nothing ran; without one, move it away and \
                install the bundles again: what they may go back to is then unknown";
        Version { found: i64, expected: i64 } = "store-version", "the file of a store is from another version of Toolward",
            ("the store's state has schema {found}; this version reads schema {expected}")
            => if found > expected {
                "update toolward"
            } else {
                "use the version of toolward that made the file"
            };
        Busy = "store-busy", "other processes held a store for too long", ("the store was busy for too long")
            => "find out which process holds the store, and try again";
        Full = "disk-full", "the disk has no room for a bundle; the old release stays", ("the disk of the store is full")
            => "make room on the disk: `toolward remove ID` frees the file of a bundle that is not needed";
        ReadOnly = "store-read-only", "the store can't be written to: its disk or directory is read-only"
            => "make the store's directories writable for their user again";
        LogUnreadable = "store-log-unreadable",
            "the store's latest changes, revocations among them, are in a log that can't be read on a full or read-only disk",
            ("the newest changes of the store can't be read: its log has no index, and none can be made")
            => "what was revoked last may be in it: make room on the disk, or make the store's directories \
                writable again";
        Io(source: BoxError) = "store-io", "the file of a store can't be read or written",
            ("the store failed: {source}");
    }
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl Error {
    /// A failure of the operating system.
    pub(crate) fn io(what: &str, error: impl Into<std::io::Error>) -> Self {
        toolward_support::sqlite::Error::io(what, error).into()
    }
}

impl From<ContentError> for Error {
    fn from(error: ContentError) -> Self {
        Self::Content(Box::new(error))
    }
}

impl From<toolward_support::sqlite::Error> for Error {
    fn from(error: toolward_support::sqlite::Error) -> Self {
        use toolward_support::sqlite::Error as E;
        match error {
            E::Unusable(error) => Self::Unusable(error),
            E::Corrupt(problem) => Self::Corrupt(problem),
            E::Version { found, expected } => Self::Version { found, expected },
            E::Busy => Self::Busy,
            E::Full => Self::Full,
            E::ReadOnly(_) => Self::ReadOnly,
            E::Io(error) => Self::Io(error),
            other => Self::Io(other.into()),
        }
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        toolward_support::sqlite::Error::from(error).into()
    }
}
