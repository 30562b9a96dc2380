//! An archive in two pieces: its envelope, and all the rest as an archive of its own. Registries keep them
//! apart, so that a further signature changes the small piece only.

use std::io::{BufRead, Read, Write};

use zstd::stream::read::Decoder;
use zstd::zstd_safe;

use super::decoder::{decoding, with_decoder};
use super::header::{BLOCK, Claimed, ZEROS, canonical};
use super::write::{self, COMPRESSION_LEVEL, encoder};
use super::{Contents, END_BYTES, MAX_RATIO, RATIO_FLOOR, WINDOW_LOG, entry_size};
use crate::bundle::MAX_BYTES;
use crate::envelope;
use crate::error::{ErrorKind, Refusal, io_failed};
use crate::manifest::ENVELOPE_FILE;
use crate::text::bytes;

/// How large the tar archive may be: all files, and headers and padding for more of them than a manifest can
/// list.
const MAX_TAR_BYTES: u64 = MAX_BYTES + 16 * 1024 * 1024;
/// How long the head of a zstd frame can be (RFC 8878, section 3.1.1.1).
const MAX_FRAME_HEADER_BYTES: u64 = 18;

/// How hard to compress what is put together again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effort {
    /// As [`write`](super::write()) does: from the same contents, the same bytes. Some MB a second.
    #[default]
    Exact,
    /// Many times faster, and larger: for an archive that is read once and thrown away.
    Fast,
}

/// The two pieces of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detached {
    /// `manifest.dsse.json`. Nothing in it was verified.
    pub envelope: Vec<u8>,
    /// The archive without it.
    pub content: Vec<u8>,
}

/// Writes everything but the envelope: the archive's form, beginning with `manifest.toml`. The same contents
/// give the same bytes for any signers.
///
/// # Errors
/// Those of [`write`](super::write()).
pub fn write_content<W: Write>(contents: &Contents<'_>, out: W) -> Result<W, Refusal> {
    write::check(contents)?;
    let entries = contents.entries();
    write::write_entries(entries.get(1..).unwrap_or_default(), out)
}

/// Takes an archive apart. Only its first entry is looked at.
///
/// # Errors
/// [`ErrorKind::ArchiveOrder`] if the first entry is not the envelope; [`ErrorKind::ArchiveFormat`],
/// [`ErrorKind::ArchiveTruncated`], [`ErrorKind::ArchiveTrailingData`], [`ErrorKind::ArchiveRatio`] and
/// [`ErrorKind::TooLarge`] for a decompression bomb.
pub fn detach(archive: &[u8]) -> Result<Detached, Refusal> {
    let mut tar = Frame::open(archive, archive.len() as u64)?;
    let envelope = read_envelope(&mut tar)?;
    let rest = tar
        .size
        .checked_sub(entry_size(envelope.len() as u64))
        .ok_or_else(|| Refusal::new(ErrorKind::ArchiveTruncated))?;
    let mut encoder = encoder(Vec::new(), COMPRESSION_LEVEL, rest)?;
    std::io::copy(&mut tar.decoder, &mut encoder).map_err(|error| decoding(&error))?;
    tar.end()?;
    let content = encoder.finish().map_err(|error| decoding(&error))?;
    Ok(Detached { envelope, content })
}

/// The envelope of an archive of which only the beginning is there: `None` if more of it is needed. At
/// most [`envelope::MAX_BYTES`] and a little are ever decompressed.
///
/// # Errors
/// Those of [`detach`], as far as they can be told.
pub fn first_envelope(beginning: &[u8]) -> Result<Option<Vec<u8>>, Refusal> {
    let read = with_decoder(beginning, |mut decoder| read_envelope_from(&mut decoder));
    match read.map_err(|error| decoding(&error))? {
        Ok(envelope) => Ok(Some(envelope)),
        Err(refusal) if refusal.kind() == ErrorKind::ArchiveTruncated => Ok(None),
        Err(refusal) => Err(refusal),
    }
}

/// Puts an archive together from its two pieces, and gives the writer back. `size` is the content's, in
/// bytes. What comes out is to be verified like any archive.
///
/// # Errors
/// Those of [`detach`]; [`ErrorKind::Io`] if reading or writing fails.
pub fn attach<W: Write>(
    envelope: &[u8],
    content: impl BufRead,
    size: u64,
    effort: Effort,
    out: W,
) -> Result<W, Refusal> {
    if envelope.len() > envelope::MAX_BYTES {
        return Err(Refusal::new(ErrorKind::TooLarge)
            .at(ENVELOPE_FILE)
            .expected(format!("at most {} bytes", envelope::MAX_BYTES))
            .found(bytes(envelope.len() as u64)));
    }
    let mut tar = Frame::open(content, size)?;
    let own = entry_size(envelope.len() as u64);
    let level = match effort {
        Effort::Exact => COMPRESSION_LEVEL,
        Effort::Fast => 1,
    };
    let io = |error: std::io::Error| io_failed("the archive", error);
    let mut encoder = encoder(out, level, tar.size.saturating_add(own))?;
    encoder
        .write_all(&canonical(ENVELOPE_FILE, envelope.len() as u64))
        .map_err(io)?;
    encoder.write_all(envelope).map_err(io)?;
    let padding = envelope.len().next_multiple_of(BLOCK) - envelope.len();
    encoder
        .write_all(ZEROS.get(..padding).unwrap_or_default())
        .map_err(io)?;
    std::io::copy(&mut tar.decoder, &mut encoder).map_err(|error| decoding(&error))?;
    tar.end()?;
    encoder.finish().map_err(io)
}

/// One zstd frame that says how much is in it, which is held to that.
struct Frame<'a, R: BufRead> {
    decoder: std::io::Take<Decoder<'a, std::io::Chain<std::io::Cursor<Vec<u8>>, R>>>,
    /// What the frame's head says of its content, in bytes: within the limits.
    size: u64,
}

impl<R: BufRead> Frame<'_, R> {
    fn open(mut compressed: R, length: u64) -> Result<Self, Refusal> {
        let mut head = Vec::new();
        compressed
            .by_ref()
            .take(MAX_FRAME_HEADER_BYTES)
            .read_to_end(&mut head)
            .map_err(|error| decoding(&error))?;
        let size = zstd_safe::get_frame_content_size(&head)
            .ok()
            .flatten()
            .ok_or_else(|| {
                Refusal::new(ErrorKind::ArchiveFormat).expected("a zstd frame that says its size")
            })?;
        if size > MAX_TAR_BYTES {
            return Err(Refusal::new(ErrorKind::TooLarge)
                .at("the archive")
                .expected(format!("at most {MAX_TAR_BYTES} bytes"))
                .found(bytes(size)));
        }
        if size > RATIO_FLOOR && size > length.saturating_mul(MAX_RATIO) {
            return Err(Refusal::new(ErrorKind::ArchiveRatio)
                .expected(format!("at most {MAX_RATIO} times its {}", bytes(length)))
                .found(bytes(size)));
        }
        if size < END_BYTES as u64 {
            return Err(Refusal::new(ErrorKind::ArchiveTruncated));
        }
        let mut decoder = Decoder::with_buffer(std::io::Cursor::new(head).chain(compressed))
            .map_err(|error| decoding(&error))?
            .single_frame();
        decoder
            .window_log_max(WINDOW_LOG)
            .map_err(|error| decoding(&error))?;
        Ok(Self {
            // The decoder holds a frame to its size too; this doesn't depend on it.
            decoder: decoder.take(size),
            size,
        })
    }

    /// After the content: the end of the frame, and of the file.
    fn end(self) -> Result<(), Refusal> {
        if self.decoder.limit() != 0 {
            return Err(Refusal::new(ErrorKind::ArchiveTruncated));
        }
        let mut decoder = self.decoder.into_inner();
        let trailing = || Refusal::new(ErrorKind::ArchiveTrailingData);
        if decoder.read(&mut [0]).map_err(|error| decoding(&error))? != 0 {
            return Err(trailing().found("more than the frame's size"));
        }
        let mut rest = decoder.finish();
        match rest.fill_buf() {
            Ok([]) => Ok(()),
            Ok(_) => Err(trailing().found("data after the zstd frame")),
            Err(error) => Err(decoding(&error)),
        }
    }
}

fn read_envelope<R: BufRead>(tar: &mut Frame<'_, R>) -> Result<Vec<u8>, Refusal> {
    read_envelope_from(&mut tar.decoder)
}

fn read_envelope_from(tar: &mut impl Read) -> Result<Vec<u8>, Refusal> {
    let mut block = ZEROS;
    tar.read_exact(&mut block)
        .map_err(|error| decoding(&error))?;
    let claimed = Claimed::read(&block)?;
    if claimed.path != ENVELOPE_FILE.as_bytes() {
        return Err(Refusal::new(ErrorKind::ArchiveOrder)
            .at(ENVELOPE_FILE)
            .expected("`manifest.dsse.json` first"));
    }
    let size = claimed
        .size()
        .map_err(|refusal| refusal.at(ENVELOPE_FILE))?;
    claimed.must_be(ENVELOPE_FILE, size)?;
    let length = usize::try_from(size)
        .ok()
        .filter(|length| *length <= envelope::MAX_BYTES)
        .ok_or_else(|| {
            Refusal::new(ErrorKind::TooLarge)
                .at(ENVELOPE_FILE)
                .expected(format!("at most {} bytes", envelope::MAX_BYTES))
                .found(bytes(size))
        })?;
    let mut envelope = vec![0; length.next_multiple_of(BLOCK)];
    tar.read_exact(&mut envelope)
        .map_err(|error| decoding(&error))?;
    if envelope.drain(length..).any(|byte| byte != 0) {
        return Err(Refusal::new(ErrorKind::ArchiveHeader)
            .at(ENVELOPE_FILE)
            .expected("zeros after the content"));
    }
    Ok(envelope)
}
