//! The `.toolbundle` archive: one zstd frame over a deterministic ustar, and what is written from it.
//! Reading one is verifying it, and lives in [`crate::verify`].

mod contents;
mod decoder;
mod detached;
pub(crate) mod header;
mod stored;
mod unpack;
mod write;

pub use contents::Contents;
pub(crate) use decoder::{decoding, with_decoder};
pub use detached::{Detached, Effort, attach, detach, first_envelope, write_content};
pub(crate) use stored::Stored;
pub use stored::to_stored_bytes;
pub use unpack::unpack;
pub use write::{to_bytes, write, write_file};

/// How many times its own size an archive may expand to, once it is beyond [`RATIO_FLOOR`].
pub const MAX_RATIO: u64 = 20;
/// Up to this many bytes an archive may expand without regard to the ratio: small bundles of text compress
/// well, and this much exhausts no machine.
pub const RATIO_FLOOR: u64 = 8 * 1024 * 1024;
/// The largest zstd window, as a power of two: what RFC 8878 recommends that decoders support. A larger one
/// would make the reader allocate for a file it knows nothing about.
pub(crate) const WINDOW_LOG: u32 = 23;
/// How the archive ends, in bytes: two blocks of zeros.
pub(crate) const END_BYTES: usize = 2 * header::BLOCK;

/// How many bytes of a tar archive a file of this size takes, header and padding included.
pub(crate) fn entry_size(size: u64) -> u64 {
    let block = header::BLOCK as u64;
    size.div_ceil(block).saturating_add(1).saturating_mul(block)
}
