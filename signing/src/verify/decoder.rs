//! The zstd decoder of a thread, kept from one archive to the next: most of its memory is the window, which the
//! kernel would have to clear each time.

use std::cell::Cell;
use std::io;

use zstd::stream::read::Decoder;
use zstd::zstd_safe::DCtx;

use crate::archive::WINDOW_LOG;

/// A decoder of more bytes is given back after its archive.
const KEPT_BYTES: usize = 2 * 1024 * 1024;

thread_local! {
    static KEPT: Cell<Option<DCtx<'static>>> = const { Cell::new(None) };
}

/// Decodes the one frame that `archive` has, with a window of at most [`WINDOW_LOG`].
pub(super) fn with_decoder<'a, T>(
    archive: &'a [u8],
    read: impl FnOnce(Decoder<'_, &'a [u8]>) -> T,
) -> io::Result<T> {
    let mut context = KEPT.take().unwrap_or_else(DCtx::create);
    let mut decoder = Decoder::with_context(archive, &mut context).single_frame();
    decoder.window_log_max(WINDOW_LOG)?;
    let result = read(decoder);
    if context.sizeof() <= KEPT_BYTES {
        KEPT.set(Some(context));
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

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
        let archives = [&first, &second].map(|bytes| zstd::encode_all(&**bytes, 1).unwrap());
        let [one, other] = &archives;
        assert_eq!(decoded(one, 1000), first[..1000]);
        assert!(kept() > 0);
        assert_eq!(decoded(other, u64::MAX), second);
        // Cut off.
        let half = &one[..one.len() / 2];
        let cut = with_decoder(half, |mut decoder| decoder.read_to_end(&mut Vec::new()));
        cut.unwrap().unwrap_err();
        assert_eq!(decoded(one, u64::MAX), first);
    }

    #[test]
    fn a_large_decoder_is_not_kept() {
        let large = vec![1; 2 * KEPT_BYTES];
        let mut archive = zstd::Encoder::new(Vec::new(), 1).unwrap();
        archive.window_log(WINDOW_LOG).unwrap();
        std::io::Write::write_all(&mut archive, &large).unwrap();
        let archive = archive.finish().unwrap();
        decoded(&zstd::encode_all(&b"small"[..], 1).unwrap(), u64::MAX);
        assert!((1..=KEPT_BYTES).contains(&kept()));
        assert_eq!(decoded(&archive, u64::MAX), large);
        assert_eq!(kept(), 0);
    }
}
