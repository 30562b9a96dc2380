//! Why a process is not confined.

use std::path::PathBuf;

/// Why a process is not confined.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfineError {
    /// There are other threads already, which would go free.
    #[error("the process has {0} threads; confine it while it has one")]
    Threads(usize),
    /// A path that was to be kept can't be opened.
    #[error("{}, which was to be kept, can't be opened: {problem}", path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// What went wrong.
        problem: String,
    },
    /// This kernel does not have all that a strict confinement needs.
    #[error("this kernel can't confine a process fully: {0}")]
    Incomplete(String),
    /// The kernel refused.
    #[error("the kernel refused the confinement: {0}")]
    Refused(String),
}

impl ConfineError {
    /// The stable code of this error, as the book lists it.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Threads(_) => "confine-threads",
            Self::Path { .. } => "confine-path",
            Self::Incomplete(_) => "confine-incomplete",
            Self::Refused(_) => "confine-refused",
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Threads(_) => "confine the process first thing, before the async runtime starts",
            Self::Path { .. } => "name what is there and may be opened",
            Self::Incomplete(_) => "use a newer kernel, or do without the strict mode",
            Self::Refused(_) => "see whether something else forbids it, such as a container",
        };
        Some(hint.to_owned())
    }
}
