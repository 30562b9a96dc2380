//! Why opening the store or an operation on it was refused or failed.

use toolward_bundle::ContentError;
use toolward_signing::{Digest, Refusal};
use toolward_support::report::codes;

/// Why an operation was refused or failed. Installed bundles stay installed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Verification refused the bundle, or it goes back or contradicts a known release.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The bundle is signed, but no host would accept it.
    #[error(transparent)]
    Content(#[from] Box<ContentError>),
    /// An installed bundle has the same tool or driver.
    #[error("{kind} `{name}` is in two bundles: {first} is installed, {second} brings it, too")]
    Duplicate {
        /// `tool` or `driver`.
        kind: String,
        /// The id, for a tool with its major version.
        name: String,
        /// The installed bundle.
        first: String,
        /// The refused bundle.
        second: String,
    },
    /// The held update has another surface than the one that was accepted.
    #[error("{id}: the surface {accepted} was accepted, the update that is held has {found}")]
    SurfaceMismatch {
        /// The bundle.
        id: String,
        /// The digest that was accepted.
        accepted: Digest,
        /// The digest of the held update's surface.
        found: Digest,
    },
    /// No such bundle.
    #[error("{id} is not installed")]
    NotInstalled {
        /// The requested id.
        id: String,
    },
    /// No update of this bundle is held.
    #[error("no update of {id} is held")]
    NotHeld {
        /// The requested id.
        id: String,
    },
    /// The file of an installed bundle is missing.
    #[error("{id}: the file of the installed bundle {digest} is missing from the store")]
    ObjectMissing {
        /// The bundle.
        id: String,
        /// The manifest digest.
        digest: Digest,
    },
    /// The file of an installed bundle holds another bundle, by a trusted publisher or not.
    #[error("{id}: the store's file holds another bundle: expected {expected}, found {found}")]
    ObjectChanged {
        /// The bundle.
        id: String,
        /// The installed bundle or surface.
        expected: String,
        /// The bundle or surface in the file.
        found: String,
    },
    /// The same keys belong to another publisher than when the bundle was installed.
    #[error("{id} was installed as {expected}'s; the trust store now has it as {found}'s")]
    PublisherChanged {
        /// The bundle.
        id: String,
        /// The publisher at installation.
        expected: String,
        /// The publisher now.
        found: String,
    },
    /// The actions that an installed bundle takes from others have changed since its surface was accepted.
    #[error(
        "{id}: the actions that it takes from a library give it the surface {found}; {accepted} was accepted"
    )]
    ActionsChanged {
        /// The bundle.
        id: String,
        /// The digest that was accepted.
        accepted: Digest,
        /// The digest now.
        found: Digest,
    },
    /// A directory or file can't be used safely.
    #[error(transparent)]
    Unusable(#[from] toolward_support::files::Error),
    /// The file is not a store's state, or it is damaged.
    #[error("the store's state is damaged, or another program's file: {0}")]
    Corrupt(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The state was made by another version of this crate.
    #[error("the store's state has schema {found}; this version reads schema {expected}")]
    Version {
        /// The schema of the file.
        found: i64,
        /// The schema of this crate.
        expected: i64,
    },
    /// Other processes used the store for too long.
    #[error("the store was busy for too long")]
    Busy,
    /// The disk is full, or the file larger than this process may write.
    #[error("the disk of the store is full")]
    Full,
    /// The store can only be read.
    #[error("the store can't be written to: its disk or directory is read-only")]
    ReadOnly,
    /// The newest changes of the state can't be read.
    #[error(
        "the newest changes of the store can't be read: its log has no index, and none can be made"
    )]
    LogUnreadable,
    /// The operating system or SQLite failed.
    #[error("the store failed: {0}")]
    Io(#[source] Box<dyn std::error::Error + Send + Sync>),
}

codes! {
    for Error {
        Self::Refused(refusal) = refusal;
        Self::Content(error) = error;
        Self::Duplicate { .. } = "duplicate-id",
            "keep one of the two bundles: remove the other first";
        Self::SurfaceMismatch { .. } = "surface-mismatch",
            "look at the difference again, and accept the digest shown with it";
        Self::NotInstalled { .. } = "not-installed", "`toolward list` shows what is installed";
        Self::NotHeld { .. } = "not-held", "`toolward update` looks for a new release";
        Self::ObjectMissing { .. } = "object-missing",
            "install the bundle again, and find out who writes to the store's directory";
        Self::ObjectChanged { .. } = "object-changed",
            "install the bundle again, and find out who writes to the store's directory";
        Self::PublisherChanged { .. } = "publisher-changed",
            "install the bundle again, to accept it from this publisher";
        Self::ActionsChanged { .. } = "actions-changed",
            "`toolward update` shows the difference, and how to accept it";
        Self::Unusable(_) = "store-unusable",
            "name another place, or repair owner and mode of this one";
        Self::Corrupt(_) = "store-corrupt",
            "put back a copy of the file that was made while nothing ran; without one, move it away and \
             install the bundles again: what they may go back to is then unknown";
        Self::Version { found, expected } = "store-version", if found > expected {
            "update toolward"
        } else {
            "use the version of toolward that made the file"
        };
        Self::Busy = "store-busy", "find out which process holds the store, and try again";
        Self::Full = "disk-full",
            "make room on the disk: `toolward remove ID` frees the file of a bundle that is not needed";
        Self::ReadOnly = "store-read-only",
            "make the store's directories writable for their user again";
        Self::LogUnreadable = "store-log-unreadable",
            "what was revoked last may be in it: make room on the disk, or make the store's directories \
             writable again";
        Self::Io(_) = "store-io";
    }
}

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
