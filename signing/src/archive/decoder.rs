//! Decoding of archives. A thread keeps its decoder's memory from one archive to the next: most of it is the window,
//! which the kernel would have to clear each time.

use std::cell::Cell;
use std::io;

use zstd::stream::read::Decoder;
use zstd::zstd_safe::DCtx;

use super::WINDOW_LOG;
use crate::error::{ErrorKind, Refusal};

/// The largest memory that is kept, in bytes. That of a larger window, of up to 8 MiB, is freed.
const MAX_KEPT_BYTES: usize = 2 * 1024 * 1024;

thread_local! {
    static KEPT: Cell<Option<DCtx<'static>>> = const { Cell::new(None) };
}

/// Calls `read` with a decoder that ends with the first frame of `archive`, and takes windows of up to 2^[`WINDOW_LOG`]
/// bytes.
pub(crate) fn with_decoder<'a, T>(
    archive: &'a [u8],
    read: impl FnOnce(Decoder<'_, &'a [u8]>) -> T,
) -> io::Result<T> {
    let mut context = KEPT.take().unwrap_or_else(DCtx::create);
    // Also resets what the last archive left.
    let mut decoder = Decoder::with_context(archive, &mut context).single_frame();
    decoder.window_log_max(WINDOW_LOG)?;
    let result = read(decoder);
    if context.sizeof() <= MAX_KEPT_BYTES {
        KEPT.set(Some(context));
    }
    Ok(result)
}

/// Why an archive can't be decoded.
pub(crate) fn decoding(error: &io::Error) -> Refusal {
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

    fn kept() -> usize {
        let context = KEPT.take();
        let bytes = context.as_ref().map_or(0, DCtx::sizeof);
        KEPT.set(context);
        bytes
    }

    #[test]
    fn a_decoder_that_stopped_half_way_begins_the_next_archive_anew() {
        let first = vec![1; 300_000];
        let second: Vec<u8> = (0..300_000)
            .map(|number: u32| number.to_le_bytes()[1])
            .collect();
        let archives = [&first, &second].map(|bytes| with_window(bytes, SMALL_WINDOW_LOG));
        let [one, other] = &archives;
        assert_eq!(decoded(one, 1000), first[..1000]);
        assert!(kept() > 0);
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

    /// Has a window of this size whatever the size of its contents.
    fn with_window(bytes: &[u8], window_log: u32) -> Vec<u8> {
        let mut archive = zstd::Encoder::new(Vec::new(), 1).unwrap();
        archive.window_log(window_log).unwrap();
        archive.include_checksum(true).unwrap();
        archive.write_all(bytes).unwrap();
        archive.finish().unwrap()
    }

    #[test]
    fn a_window_that_is_too_large_is_refused_by_a_decoder_that_was_kept() {
        let large = with_window(b"large", WINDOW_LOG + 1);
        for _ in 0..2 {
            assert_eq!(
                decoded(&with_window(b"small", SMALL_WINDOW_LOG), 10),
                b"small"
            );
            assert!(kept() > 0);
            let read = with_decoder(&large, |mut decoder| decoder.read(&mut [0]));
            read.unwrap().unwrap_err();
        }
    }

    #[test]
    fn a_large_decoder_is_not_kept() {
        let large = vec![1; 2 * MAX_KEPT_BYTES];
        let archive = with_window(&large, WINDOW_LOG);
        decoded(&with_window(b"small", SMALL_WINDOW_LOG), u64::MAX);
        assert!((1..=MAX_KEPT_BYTES).contains(&kept()));
        assert_eq!(decoded(&archive, u64::MAX), large);
        assert_eq!(kept(), 0);
    }
}
