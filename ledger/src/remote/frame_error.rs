//! Why what came over the socket is no frame.

use std::io;

/// Why a frame was not taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The other side is gone, or the socket failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Not a frame, or one that must not come.
    #[error("a frame can't be taken: {0}")]
    Bad(&'static str),
}
