//! Why a process is not confined.

use std::path::PathBuf;

use toolward_support::report::codes;

/// Why a process is not confined.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfineError {
    /// There are other threads already, which would not be confined.
    #[error("the process has {0} threads; confine it while it has one")]
    Threads(usize),
    /// A path that was to be kept can't be opened.
    #[error("{}, which was to be kept, can't be opened: {source}", path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// What went wrong.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// This kernel does not have all that a strict confinement needs.
    #[error("this kernel can't confine a process fully: {0}")]
    Incomplete(String),
    /// The kernel refused.
    #[error("the kernel refused the confinement: {0}")]
    Refused(#[source] Box<dyn std::error::Error + Send + Sync>),
}

codes! {
    for ConfineError {
        Self::Threads(_) = "confine-threads",
            "confine the process first thing, before the async runtime starts";
        Self::Path { .. } = "confine-path", "name what is there and may be opened";
        Self::Incomplete(_) = "confine-incomplete",
            "use a newer kernel, or do without the strict mode";
        Self::Refused(_) = "confine-refused",
            "see whether something else forbids it, such as a container";
    }
}
