//! Writing an archive: the same contents give the same bytes.

use std::io::Write;
use std::path::Path;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use zstd::stream::write::Encoder;

use super::header::{BLOCK, ZEROS, canonical};
use super::unpack::{fresh_name, split_target};
use super::{Contents, END_BYTES, WINDOW_LOG, entry_size};
use crate::bundle::MAX_BYTES;
use crate::error::{ErrorKind, Refusal, io_failed};
use crate::manifest::{self, ENVELOPE_FILE};
use crate::path;
use crate::{envelope, provenance};

/// zstd's level: small files matter more than the publisher's seconds, and the reader's speed is the same.
pub(super) const COMPRESSION_LEVEL: i32 = 19;

/// Writes an archive and gives the writer back. The bytes depend on the contents and the version of zstd
/// only. Whether the contents are signed, or agree with the manifest, is not looked at.
///
/// # Errors
/// [`ErrorKind::FileDuplicate`], [`ErrorKind::PathConflict`] or [`ErrorKind::TooLarge`] for contents that no reader
/// would take, [`ErrorKind::Io`] if writing fails.
pub fn write<W: Write>(contents: &Contents<'_>, out: W) -> Result<W, Refusal> {
    check(contents)?;
    write_entries(&contents.entries(), out)
}

/// Writes entries and the archive's end.
pub(super) fn write_entries<W: Write>(entries: &[(&str, &[u8])], out: W) -> Result<W, Refusal> {
    let total = entries.iter().fold(END_BYTES as u64, |total, (_, bytes)| {
        total.saturating_add(entry_size(bytes.len() as u64))
    });
    let io = |error: std::io::Error| io_failed("the archive", error);
    let mut encoder = encoder(out, COMPRESSION_LEVEL, total)?;
    for (path, bytes) in entries {
        encoder
            .write_all(&canonical(path, bytes.len() as u64))
            .map_err(io)?;
        encoder.write_all(bytes).map_err(io)?;
        let padding = bytes.len().next_multiple_of(BLOCK) - bytes.len();
        encoder
            .write_all(ZEROS.get(..padding).unwrap_or_default())
            .map_err(io)?;
    }
    encoder.write_all(&[0; END_BYTES]).map_err(io)?;
    encoder.finish().map_err(io)
}

/// The one way in which archives are compressed, but for the level. `total` is the size of the tar archive.
pub(super) fn encoder<W: Write>(
    out: W,
    level: i32,
    total: u64,
) -> Result<Encoder<'static, W>, Refusal> {
    let io = |error: std::io::Error| io_failed("the archive", error);
    let mut encoder = Encoder::new(out, level).map_err(io)?;
    encoder.include_checksum(true).map_err(io)?;
    encoder.include_contentsize(true).map_err(io)?;
    encoder.window_log(WINDOW_LOG).map_err(io)?;
    encoder.set_pledged_src_size(Some(total)).map_err(io)?;
    Ok(encoder)
}

/// [`write()`] into memory.
///
/// # Errors
/// Those of [`write()`].
pub fn to_bytes(contents: &Contents<'_>) -> Result<Vec<u8>, Refusal> {
    write(contents, Vec::new())
}

/// [`write()`] into a file at `target`, in place of one that is there: all of it or, on failure, nothing.
///
/// # Errors
/// Those of [`write()`].
pub fn write_file(contents: &Contents<'_>, target: &Path) -> Result<(), Refusal> {
    let bytes = to_bytes(contents)?;
    let (parent, name) = split_target(target)?;
    let io = |error: std::io::Error| io_failed(target.display().to_string(), error);
    let parent = Dir::open_ambient_dir(parent, ambient_authority()).map_err(io)?;
    let temporary = fresh_name(name)?;
    let written = parent
        .write(&temporary, &bytes)
        .and_then(|()| parent.rename(&temporary, &parent, name));
    written.map_err(|error| {
        // What can't be removed can't be helped; the error told is the first one.
        let _ = parent.remove_file(&temporary);
        io(error)
    })
}

pub(super) fn check(contents: &Contents<'_>) -> Result<(), Refusal> {
    path::check_set(contents.files.iter().map(|(path, _)| path))
        .map_err(|refusal| refusal.at("the archive"))?;
    if let Some((path, _)) = contents.files.iter().find(|(path, _)| {
        [manifest::FILE, ENVELOPE_FILE, provenance::FILE]
            .iter()
            .any(|reserved| path.as_str().eq_ignore_ascii_case(reserved))
    }) {
        return Err(Refusal::new(ErrorKind::FileDuplicate).at(path.as_str()));
    }
    let total = contents.files.iter().fold(0, |total: u64, (_, bytes)| {
        total.saturating_add(bytes.len() as u64)
    });
    let limits = [
        (
            manifest::FILE,
            contents.manifest.len() as u64,
            manifest::MAX_BYTES as u64,
        ),
        (
            ENVELOPE_FILE,
            contents.envelope.len() as u64,
            envelope::MAX_BYTES as u64,
        ),
        (
            provenance::FILE,
            contents.provenance.map_or(0, <[u8]>::len) as u64,
            envelope::MAX_BYTES as u64,
        ),
        ("all files", total, MAX_BYTES),
    ];
    match limits.iter().find(|(_, size, max)| size > max) {
        Some((place, size, max)) => Err(Refusal::new(ErrorKind::TooLarge)
            .at(*place)
            .expected(format!("at most {max} bytes"))
            .found(crate::text::bytes(*size))),
        None => Ok(()),
    }
}
