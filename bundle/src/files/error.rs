//! Why the files of a bundle can't be read.

use std::path::{Path, PathBuf};

use toolward_report::codes;

use super::MAX_DEPTH;

/// What a symbolic link is called in messages.
pub(super) const SYMBOLIC_LINK: &str = "a symbolic link";

/// Why an authoring directory can't be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FilesError {
    /// The operating system refused.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// What was to be read.
        path: PathBuf,
        /// Its answer.
        source: std::io::Error,
    },
    /// A symbolic link, a device, a socket or a pipe.
    #[error("{path}: this is {kind}; a bundle holds regular files only", path = path.display())]
    NotRegular {
        /// Where it lies.
        path: PathBuf,
        /// What it is.
        kind: &'static str,
    },
    /// A folder with and without a dot before its name.
    #[error("{path}: there is {without}/, too, and both are the same folder of the bundle", path = path.display())]
    Twice {
        /// The one with the dot.
        path: PathBuf,
        /// The other's name.
        without: &'static str,
    },
    /// A folder below too many others.
    #[error("{path}: folders lie at most {MAX_DEPTH} levels deep", path = path.display())]
    TooDeep {
        /// Where it lies.
        path: PathBuf,
    },
    /// A name that isn't UTF-8.
    #[error("{path}: the name is not UTF-8", path = path.display())]
    Name {
        /// Where it lies.
        path: PathBuf,
    },
    /// A file that its reader would refuse for its size. It was not read.
    #[error("{path}: expected at most {limit} bytes, found {found}", path = path.display())]
    TooLarge {
        /// Where it lies.
        path: PathBuf,
        /// The limit, in bytes.
        limit: u64,
        /// Its size, in bytes.
        found: u64,
    },
    /// More than a bundle may hold.
    #[error("{path}: more than {limit} {what}", path = path.display())]
    TooMuch {
        /// Where the limit was passed.
        path: PathBuf,
        /// The limit.
        limit: u64,
        /// Its unit.
        what: &'static str,
    },
}

codes! {
    for FilesError {
        Self::Io { .. } = "file-unreadable";
        Self::NotRegular { kind, .. } = "file-not-regular", match *kind {
            SYMBOLIC_LINK => "put the file itself there instead of a link to it",
            _ => "remove it, or move it out of the bundle's folders",
        };
        Self::Twice { .. } = "folder-twice", "move the files of one into the other";
        Self::TooDeep { .. } = "file-name", "move its files up";
        Self::Name { .. } = "file-name", "use ASCII letters, digits, '.', '_' and '-' in names";
        Self::TooLarge { .. } = "document-too-large", "split it, or remove what it does not need";
        Self::TooMuch { .. } = "bundle-too-large",
            "move what is not part of the bundle out of its folders";
    }
}

impl FilesError {
    /// What it is about.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::Io { path, .. }
            | Self::NotRegular { path, .. }
            | Self::Twice { path, .. }
            | Self::TooDeep { path }
            | Self::Name { path }
            | Self::TooLarge { path, .. }
            | Self::TooMuch { path, .. } => path,
        }
    }
}
