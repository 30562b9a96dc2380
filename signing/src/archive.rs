//! The `.toolbundle` archive: one zstd frame over a deterministic ustar. This module writes archives; [`crate::verify`]
//! reads them, since reading one is verifying it.

mod detached;
mod stored;
pub(crate) mod tar;
mod write;

use std::cell::Cell;
use std::io;

use zstd::stream::read::Decoder;
use zstd::zstd_safe::DCtx;

use crate::error::{ErrorKind, Refusal};
use crate::manifest::{self, ENVELOPE_FILE};
use crate::path::BundlePath;
use crate::provenance;

pub use detached::{Detached, Effort, attach, detach, first_envelope, write_content};
pub(crate) use stored::StoredFrame;
pub use stored::to_stored_bytes;
pub use write::{to_bytes, unpack, write, write_file};

/// How many times its own size an archive may expand to, once it is beyond [`RATIO_FLOOR`].
pub const MAX_RATIO: u64 = 20;
/// Up to this many bytes an archive may expand without regard to the ratio: small bundles of text compress
/// well, and this much exhausts no machine.
pub const RATIO_FLOOR: u64 = 8 * 1024 * 1024;
/// The largest zstd window, as a power of two: what RFC 8878 recommends that decoders support. A larger one
/// would make the reader allocate much for an unverified file.
pub(crate) const WINDOW_LOG: u32 = 23;
/// How the archive ends, in bytes: two blocks of zeros.
pub(crate) const END_BYTES: usize = 2 * tar::BLOCK;

/// The contents of an archive, borrowed.
#[derive(Clone, Debug)]
pub struct Contents<'a> {
    /// `manifest.dsse.json`.
    pub envelope: &'a [u8],
    /// `manifest.toml`, as signed.
    pub manifest: &'a [u8],
    /// `provenance.dsse.json`, if the bundle has one.
    pub provenance: Option<&'a [u8]>,
    /// `tools.json` and all other listed files, in any order.
    pub files: Vec<(BundlePath, &'a [u8])>,
}

impl<'a> Contents<'a> {
    /// All entries in the order of an archive.
    fn entries(&self) -> Vec<(&str, &'a [u8])> {
        let mut files: Vec<_> = self
            .files
            .iter()
            .map(|(path, bytes)| (path.as_str(), *bytes))
            .collect();
        files.sort_by_key(|(path, _)| *path);
        let mut entries = vec![
            (ENVELOPE_FILE, self.envelope),
            (manifest::FILE, self.manifest),
        ];
        entries.extend(self.provenance.map(|bytes| (provenance::FILE, bytes)));
        entries.extend(files);
        entries
    }
}

/// How many bytes a tar archive has with files of these sizes.
pub(crate) fn tar_size(sizes: impl IntoIterator<Item = u64>) -> u64 {
    let sizes = sizes.into_iter().map(entry_size);
    sizes.fold(END_BYTES as u64, u64::saturating_add)
}

/// How many bytes of a tar archive a file of this size takes, header and padding included.
pub(crate) fn entry_size(size: u64) -> u64 {
    let block = tar::BLOCK as u64;
    size.div_ceil(block).saturating_add(1).saturating_mul(block)
}

/// The largest decoder that is reused, in bytes. The memory of a larger window, of up to 8 MiB, is freed.
const MAX_REUSED_BYTES: usize = 2 * 1024 * 1024;

thread_local! {
    /// A thread reuses its decoder's memory: most of it is the window, which the kernel would have to clear each time.
    static REUSED: Cell<Option<DCtx<'static>>> = const { Cell::new(None) };
}

/// Calls `read` with a decoder that ends with the first frame of `archive`, and accepts windows of up to
/// 2^[`WINDOW_LOG`] bytes.
pub(crate) fn with_decoder<'a, T>(
    archive: &'a [u8],
    read: impl FnOnce(Decoder<'_, &'a [u8]>) -> T,
) -> io::Result<T> {
    let mut context = REUSED.take().unwrap_or_else(DCtx::create);
    // Also resets the state of the last archive.
    let mut decoder = Decoder::with_context(archive, &mut context).single_frame();
    decoder.window_log_max(WINDOW_LOG)?;
    let result = read(decoder);
    if context.sizeof() <= MAX_REUSED_BYTES {
        REUSED.set(Some(context));
    }
    Ok(result)
}

/// Why an archive can't be decoded.
pub(crate) fn decoding(error: io::Error) -> Refusal {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        Refusal::new(ErrorKind::ArchiveTruncated)
    } else {
        Refusal::new(ErrorKind::ArchiveFormat).found(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use super::*;

    const SMALL_WINDOW_LOG: u32 = 17;

    fn decoded(archive: &[u8], most: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        with_decoder(archive, |decoder| {
            decoder.take(most).read_to_end(&mut bytes)
        })
        .unwrap()
        .unwrap();
        bytes
    }

    fn reused() -> usize {
        let context = REUSED.take();
        let bytes = context.as_ref().map_or(0, DCtx::sizeof);
        REUSED.set(context);
        bytes
    }

    #[test]
    fn a_decoder_that_stopped_half_way_reads_the_next_archive_from_its_start() {
        let first = vec![1; 300_000];
        let second: Vec<u8> = (0..300_000)
            .map(|number: u32| number.to_le_bytes()[1])
            .collect();
        let archives = [&first, &second].map(|bytes| with_window(bytes, SMALL_WINDOW_LOG));
        let [one, other] = &archives;
        assert_eq!(decoded(one, 1000), first[..1000]);
        assert!(reused() > 0);
        assert_eq!(decoded(other, u64::MAX), second);
        // Cut off.
        let half = &one[..one.len() / 2];
        let cut = with_decoder(half, |mut decoder| decoder.read_to_end(&mut Vec::new()));
        cut.unwrap().unwrap_err();
        assert_eq!(decoded(one, u64::MAX), first);
        // Damaged.
        let mut damaged = other.clone();
        let middle = damaged.len() / 2;
        damaged[middle..middle + 100].fill(0xff);
        let read = with_decoder(&damaged, |mut decoder| decoder.read_to_end(&mut Vec::new()));
        read.unwrap().unwrap_err();
        assert_eq!(decoded(other, u64::MAX), second);
    }

    /// Has a window of this size for contents of any size.
    fn with_window(bytes: &[u8], window_log: u32) -> Vec<u8> {
        let mut archive = zstd::Encoder::new(Vec::new(), 1).unwrap();
        archive.window_log(window_log).unwrap();
        archive.include_checksum(true).unwrap();
        archive.write_all(bytes).unwrap();
        archive.finish().unwrap()
    }

    #[test]
    fn a_window_that_is_too_large_is_refused_by_a_decoder_that_was_reused() {
        let large = with_window(b"large", WINDOW_LOG + 1);
        for _ in 0..2 {
            assert_eq!(
                decoded(&with_window(b"small", SMALL_WINDOW_LOG), 10),
                b"small"
            );
            assert!(reused() > 0);
            let read = with_decoder(&large, |mut decoder| decoder.read(&mut [0]));
            read.unwrap().unwrap_err();
        }
    }

    #[test]
    fn a_large_decoder_is_not_reused() {
        let large = vec![1; 2 * MAX_REUSED_BYTES];
        let archive = with_window(&large, WINDOW_LOG);
        decoded(&with_window(b"small", SMALL_WINDOW_LOG), u64::MAX);
        assert!((1..=MAX_REUSED_BYTES).contains(&reused()));
        assert_eq!(decoded(&archive, u64::MAX), large);
        assert_eq!(reused(), 0);
    }
}
