//! An archive in two pieces: its envelope, and the rest as another archive. Registries store the
//! two pieces separately, so a further signature changes only the envelope.

use std::io::{BufRead, Read, Write};

use zstd::stream::read::Decoder;
use zstd::zstd_safe;

use super::tar::{EntryHeader, ZEROS, fill, read_small};
use super::{
    COMPRESSION_LEVEL, Contents, END_BYTES, WINDOW_LOG, check_ratio, encoder, entry_size,
    with_decoder, write_entry,
};
use crate::bundle::MAX_BYTES;
use crate::envelope;
use crate::error::{ErrorKind, Refusal, decoding, io_failed, too_large};
use crate::manifest::ENVELOPE_FILE;
use crate::text::bytes;

/// How large the tar archive may be: the largest content, and headers and padding for more files
/// than a manifest can list.
const MAX_TAR_BYTES: u64 = MAX_BYTES + 16 * 1024 * 1024;
/// How long the header of a zstd frame can be (RFC 8878, section 3.1.1.1).
const MAX_FRAME_HEADER_BYTES: u64 = 18;

/// The compression level of an archive that is joined from two pieces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effort {
    /// The level of [`to_bytes`](super::to_bytes), with the same bytes for the same contents. A few
    /// MB per second.
    #[default]
    Exact,
    /// Many times faster, but the archive is larger: for an archive that is read once and deleted.
    Fast,
}

/// Everything but the envelope, as an archive that starts with `manifest.toml`. The same contents
/// give the same bytes, no matter who signed.
///
/// # Errors
/// The errors of [`to_bytes`](super::to_bytes).
pub fn content_bytes(contents: &Contents<'_>) -> Result<Vec<u8>, Refusal> {
    super::check(contents)?;
    super::compress(contents.entries().get(1..).unwrap_or_default())
}

/// Reads the envelope from the first bytes of an archive; `None` if more bytes are needed. At most
/// a little more than [`envelope::MAX_BYTES`] is decompressed.
///
/// # Errors
/// [`ErrorKind::ArchiveOrder`] if the first entry is not the envelope;
/// [`ErrorKind::ArchiveFormat`], [`ErrorKind::ArchiveHeader`], [`ErrorKind::FileType`];
/// [`ErrorKind::TooLarge`].
pub fn first_envelope(beginning: &[u8]) -> Result<Option<Vec<u8>>, Refusal> {
    let read = with_decoder(beginning, |mut decoder| read_envelope(&mut decoder));
    match read.map_err(decoding)? {
        Ok(envelope) => Ok(Some(envelope)),
        Err(refusal) if refusal.kind() == ErrorKind::ArchiveTruncated => Ok(None),
        Err(refusal) => Err(refusal),
    }
}

/// Joins an archive from its two pieces, and returns the writer. `size` is the size of `content` in
/// bytes. The result must be verified like any archive.
///
/// # Errors
/// [`ErrorKind::ArchiveFormat`], [`ErrorKind::ArchiveTruncated`],
/// [`ErrorKind::ArchiveTrailingData`]; [`ErrorKind::ArchiveRatio`] or [`ErrorKind::TooLarge`] for a
/// decompression bomb, [`ErrorKind::TooLarge`] also for the envelope; [`ErrorKind::Io`] if reading
/// or writing fails.
pub fn attach<W: Write>(
    envelope: &[u8],
    content: impl BufRead,
    size: u64,
    effort: Effort,
    out: W,
) -> Result<W, Refusal> {
    if envelope.len() > envelope::MAX_BYTES {
        return Err(too_large(envelope::MAX_BYTES)
            .at(ENVELOPE_FILE)
            .found(bytes(envelope.len() as u64)));
    }
    let mut tar = Frame::open(content, size)?;
    let own = entry_size(envelope.len() as u64);
    let level = match effort {
        Effort::Exact => COMPRESSION_LEVEL,
        Effort::Fast => 1,
    };
    let io = |error: std::io::Error| io_failed("the archive", error);
    let mut encoder = encoder(out, level, tar.size.saturating_add(own)).map_err(io)?;
    write_entry(&mut encoder, ENVELOPE_FILE, envelope).map_err(io)?;
    std::io::copy(&mut tar.decoder, &mut encoder).map_err(decoding)?;
    tar.end()?;
    encoder.finish().map_err(io)
}

/// One zstd frame that states its size, which is enforced.
struct Frame<'a, R: BufRead> {
    decoder: std::io::Take<Decoder<'a, std::io::Chain<std::io::Cursor<Vec<u8>>, R>>>,
    /// The size in the frame's header, in bytes, within the limits.
    size: u64,
}

impl<R: BufRead> Frame<'_, R> {
    fn open(mut compressed: R, length: u64) -> Result<Self, Refusal> {
        let mut head = Vec::new();
        compressed
            .by_ref()
            .take(MAX_FRAME_HEADER_BYTES)
            .read_to_end(&mut head)
            .map_err(decoding)?;
        let size = zstd_safe::get_frame_content_size(&head)
            .ok()
            .flatten()
            .ok_or_else(|| {
                Refusal::new(ErrorKind::ArchiveFormat).expected("a zstd frame that says its size")
            })?;
        if size > MAX_TAR_BYTES {
            return Err(too_large(MAX_TAR_BYTES)
                .at("the archive")
                .found(bytes(size)));
        }
        check_ratio(size, length)?;
        if size < END_BYTES as u64 {
            return Err(Refusal::new(ErrorKind::ArchiveTruncated));
        }
        let mut decoder = Decoder::with_buffer(std::io::Cursor::new(head).chain(compressed))
            .map_err(decoding)?
            .single_frame();
        decoder.window_log_max(WINDOW_LOG).map_err(decoding)?;
        Ok(Self {
            // The decoder enforces the size of a frame, too, but this limit does not depend on the
            // decoder.
            decoder: decoder.take(size),
            size,
        })
    }

    /// Checks that the frame and the file end after the content.
    fn end(self) -> Result<(), Refusal> {
        if self.decoder.limit() != 0 {
            return Err(Refusal::new(ErrorKind::ArchiveTruncated));
        }
        let mut decoder = self.decoder.into_inner();
        let trailing = || Refusal::new(ErrorKind::ArchiveTrailingData);
        if decoder.read(&mut [0]).map_err(decoding)? != 0 {
            return Err(trailing().found("more than the frame's size"));
        }
        let mut rest = decoder.finish();
        match rest.fill_buf() {
            Ok([]) => Ok(()),
            Ok(_) => Err(trailing().found("data after the zstd frame")),
            Err(error) => Err(decoding(error)),
        }
    }
}

fn read_envelope(tar: &mut impl Read) -> Result<Vec<u8>, Refusal> {
    let mut block = ZEROS;
    fill(tar, &mut block)?;
    let header = EntryHeader::read(&block)?;
    if header.path != ENVELOPE_FILE.as_bytes() {
        return Err(Refusal::new(ErrorKind::ArchiveOrder)
            .at(ENVELOPE_FILE)
            .expected("`manifest.dsse.json` first"));
    }
    read_small(tar, &header, ENVELOPE_FILE, envelope::MAX_BYTES)
}
