//! The `.toolbundle` archive: one zstd frame over a deterministic ustar. This module writes
//! archives; [`crate::verify`] reads and verifies them in one step.

mod detached;
pub(crate) mod tar;

use std::cell::Cell;
use std::io::{self, BufRead, Write};

use zstd::stream::read::Decoder;
use zstd::stream::write::Encoder;
use zstd::zstd_safe::DCtx;

use crate::bundle::MAX_BYTES;
use crate::error::{ErrorKind, Refusal, io_failed, too_large};
use crate::manifest::{self, ENVELOPE_FILE};
use crate::path;
use crate::stored::{FRAME_HEADER, MAX_BLOCK_BYTES, block_header};
use crate::text::bytes as count_bytes;
use crate::{envelope, provenance};
use tar::{BLOCK, ZEROS, canonical};

pub use crate::bundle::Contents;
pub use detached::{Effort, attach, content_bytes, first_envelope};

/// The largest allowed ratio of the size of a tar archive to the size of its compressed archive.
/// The limit applies to tar archives above [`RATIO_FLOOR`].
pub const MAX_RATIO: u64 = 20;
/// The size of a tar archive, in bytes, up to which [`MAX_RATIO`] does not apply: small bundles of
/// text compress well, and can't exhaust a machine.
pub const RATIO_FLOOR: u64 = 8 * 1024 * 1024;
/// The base-2 logarithm of the largest zstd window, the size that RFC 8878 recommends decoders to
/// support. A larger window would make the reader allocate much memory for an unverified file.
pub(crate) const WINDOW_LOG: u32 = 23;
/// The size of the archive's end, in bytes: two blocks of zeros.
pub(crate) const END_BYTES: usize = 2 * BLOCK;

/// How many bytes a tar archive has with files of these sizes.
pub(crate) fn tar_size(sizes: impl IntoIterator<Item = u64>) -> u64 {
    let sizes = sizes.into_iter().map(entry_size);
    sizes.fold(END_BYTES as u64, u64::saturating_add)
}

/// How many bytes of a tar archive a file of this size takes, header and padding included.
pub(crate) fn entry_size(size: u64) -> u64 {
    let block = BLOCK as u64;
    size.div_ceil(block).saturating_add(1).saturating_mul(block)
}

/// The size, in bytes, of the largest decoder that is reused. A larger decoder is freed. Most of a
/// decoder's memory is its window, of up to 8 MiB.
const MAX_REUSED_BYTES: usize = 2 * 1024 * 1024;

thread_local! {
    /// This thread's decoder. It is reused, since the kernel would clear the memory of each new
    /// decoder, most of which is the window.
    static REUSED: Cell<Option<DCtx<'static>>> = const { Cell::new(None) };
}

/// Calls `read` with a decoder that ends with the first frame of `archive`, and accepts windows of
/// up to 2^[`WINDOW_LOG`] bytes.
pub(crate) fn with_decoder<R: BufRead, T>(
    archive: R,
    read: impl FnOnce(Decoder<'_, R>) -> T,
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

/// Refuses a tar archive that is larger than [`RATIO_FLOOR`] and more than [`MAX_RATIO`] times as
/// large as its compressed archive.
pub(crate) fn check_ratio(tar: u64, archive: u64) -> Result<(), Refusal> {
    if tar > RATIO_FLOOR && tar > archive.saturating_mul(MAX_RATIO) {
        return Err(Refusal::new(ErrorKind::ArchiveRatio)
            .expected(format!(
                "at most {MAX_RATIO} times its {}",
                count_bytes(archive)
            ))
            .found(count_bytes(tar)));
    }
    Ok(())
}

/// zstd's level. It is high, since small archives matter more than the publisher's seconds, and
/// decompression is as fast as at lower levels.
const COMPRESSION_LEVEL: i32 = 19;

/// The archive with these contents. The bytes depend only on the contents and the version of zstd.
/// The contents are compared neither with the manifest nor with the signatures.
///
/// # Errors
/// [`ErrorKind::FileDuplicate`], [`ErrorKind::PathConflict`] or [`ErrorKind::TooLarge`] for
/// contents that no reader would accept.
pub fn to_bytes(contents: &Contents<'_>) -> Result<Vec<u8>, Refusal> {
    check(contents)?;
    compress(&contents.entries())
}

/// Entries and the archive's end, compressed.
fn compress(entries: &[(&str, &[u8])]) -> Result<Vec<u8>, Refusal> {
    let total = tar_size(entries.iter().map(|(_, bytes)| bytes.len() as u64));
    let write = || {
        let mut encoder = encoder(Vec::new(), COMPRESSION_LEVEL, total)?;
        for (path, bytes) in entries {
            write_entry(&mut encoder, path, bytes)?;
        }
        encoder.write_all(&[0; END_BYTES])?;
        encoder.finish()
    };
    write().map_err(|error| io_failed("the archive", error))
}

/// Writes one entry: header, content, padding.
fn write_entry(out: &mut impl Write, path: &str, bytes: &[u8]) -> io::Result<()> {
    out.write_all(&canonical(path, bytes.len() as u64))?;
    out.write_all(bytes)?;
    let padding = bytes.len().next_multiple_of(BLOCK) - bytes.len();
    out.write_all(ZEROS.get(..padding).unwrap_or_default())
}

/// The encoder of all compressed archives; only the level differs. `total` is the size of the tar
/// archive.
fn encoder<W: Write>(out: W, level: i32, total: u64) -> io::Result<Encoder<'static, W>> {
    let mut encoder = Encoder::new(out, level)?;
    encoder.include_checksum(true)?;
    encoder.include_contentsize(true)?;
    encoder.window_log(WINDOW_LOG)?;
    encoder.set_pledged_src_size(Some(total))?;
    Ok(encoder)
}

fn check(contents: &Contents<'_>) -> Result<(), Refusal> {
    path::check_set(contents.files.iter().map(|(path, _)| path))
        .map_err(|refusal| refusal.at("the archive"))?;
    let mut paths = contents.files.iter().map(|(path, _)| path);
    if let Some(path) = paths.find(|path| manifest::is_document(path.as_str())) {
        return Err(Refusal::new(ErrorKind::FileDuplicate).at(path.as_str()));
    }
    let total = contents.files.iter().map(|(_, bytes)| bytes.len() as u64);
    let [manifest, envelope] = [contents.manifest, contents.envelope].map(|one| one.len() as u64);
    let provenance = contents.provenance.map_or(0, <[u8]>::len) as u64;
    let limits = [
        (manifest::FILE, manifest, manifest::MAX_BYTES as u64),
        (ENVELOPE_FILE, envelope, envelope::MAX_BYTES as u64),
        (provenance::FILE, provenance, envelope::MAX_BYTES as u64),
        ("all files", total.fold(0, u64::saturating_add), MAX_BYTES),
    ];
    match limits.iter().find(|(_, size, max)| size > max) {
        Some((place, size, max)) => Err(too_large(max).at(*place).found(count_bytes(*size))),
        None => Ok(()),
    }
}

/// The archive with these contents, uncompressed, for fast reading from a host's disk. The same
/// contents give the same bytes. Whether a reader would accept the contents is not checked.
#[must_use]
pub fn to_stored_bytes(contents: &Contents<'_>) -> Vec<u8> {
    let entries = contents.entries();
    let total = tar_size(entries.iter().map(|(_, bytes)| bytes.len() as u64));
    let capacity = usize::try_from(total).unwrap_or(0);
    let mut frame = FrameWriter {
        out: Vec::with_capacity(capacity.saturating_add(capacity / MAX_BLOCK_BYTES * 3 + 32)),
        piece: Vec::with_capacity(MAX_BLOCK_BYTES),
    };
    frame.out.extend_from_slice(&FRAME_HEADER);
    frame.out.extend_from_slice(&total.to_le_bytes());
    for (path, bytes) in entries {
        // Writing to memory can't fail.
        let _ = write_entry(&mut frame, path, bytes);
    }
    let _ = frame.write_all(&[0; END_BYTES]);
    frame.end_block(true);
    frame.out
}

/// Collects a frame of raw blocks.
struct FrameWriter {
    out: Vec<u8>,
    piece: Vec<u8>,
}

impl FrameWriter {
    /// Writes the collected bytes as one block.
    fn end_block(&mut self, last: bool) {
        let header = block_header(self.piece.len(), last);
        self.out.extend_from_slice(&header);
        self.out.append(&mut self.piece);
    }
}

impl Write for FrameWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.piece.len() == MAX_BLOCK_BYTES {
            self.end_block(false);
        }
        let room = MAX_BLOCK_BYTES - self.piece.len();
        let (now, _) = bytes.split_at(room.min(bytes.len()));
        self.piece.extend_from_slice(now);
        Ok(now.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
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
        let read = with_decoder(&*damaged, |mut decoder| {
            decoder.read_to_end(&mut Vec::new())
        });
        read.unwrap().unwrap_err();
        assert_eq!(decoded(other, u64::MAX), second);
    }

    /// Compresses contents of any size with a window of this size.
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
            let read = with_decoder(&*large, |mut decoder| decoder.read(&mut [0]));
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

    #[test]
    fn a_stored_archive_holds_the_same_tar_as_a_compressed_one() {
        // Blocks that end within a file, at its end, and within the padding.
        for size in [
            0,
            1,
            MAX_BLOCK_BYTES - 5 * BLOCK,
            MAX_BLOCK_BYTES,
            3 * MAX_BLOCK_BYTES + 77,
        ] {
            let file = vec![7; size];
            let contents = Contents {
                envelope: b"{}",
                manifest: b"id = 1\n",
                provenance: None,
                files: vec![(
                    crate::path::BundlePath::parse("icons/a.bin").unwrap(),
                    &file,
                )],
            };
            let stored = to_stored_bytes(&contents);
            let compressed = to_bytes(&contents).unwrap();
            let tar = zstd::decode_all(&*stored).unwrap();
            assert_eq!(tar, zstd::decode_all(&*compressed).unwrap());
            assert_eq!(stored, to_stored_bytes(&contents));
            assert!(stored.len() > tar.len());
        }
    }
}
