//! Writing an archive: the same contents give the same bytes. Writing a verified bundle to a new directory: complete,
//! or not at all.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};
use zstd::stream::write::Encoder;

use super::tar::{BLOCK, ZEROS, canonical};
use super::{Contents, END_BYTES, WINDOW_LOG, tar_size};
use crate::bundle::{Bundle, MAX_BYTES};
use crate::document::Verified;
use crate::error::{ErrorKind, Refusal, io_failed, too_large, unplaced_io};
use crate::manifest::{self, ENVELOPE_FILE};
use crate::path;
use crate::{envelope, provenance};

/// zstd's level: small files matter more than the publisher's seconds, and the reader's speed is the same.
pub(super) const COMPRESSION_LEVEL: i32 = 19;

/// Writes an archive and returns the writer. The bytes depend only on the contents and the version of zstd. Neither
/// signatures nor the manifest are compared with the contents.
///
/// # Errors
/// [`ErrorKind::FileDuplicate`], [`ErrorKind::PathConflict`] or [`ErrorKind::TooLarge`] for contents that no reader
/// would accept, [`ErrorKind::Io`] if writing fails.
pub fn write<W: Write>(contents: &Contents<'_>, out: W) -> Result<W, Refusal> {
    check(contents)?;
    write_entries(&contents.entries(), out)
}

/// Writes entries and the archive's end.
pub(super) fn write_entries<W: Write>(entries: &[(&str, &[u8])], out: W) -> Result<W, Refusal> {
    let total = tar_size(entries.iter().map(|(_, bytes)| bytes.len() as u64));
    let write = || {
        let mut encoder = encoder(out, COMPRESSION_LEVEL, total)?;
        for (path, bytes) in entries {
            write_entry(&mut encoder, path, bytes)?;
        }
        encoder.write_all(&[0; END_BYTES])?;
        encoder.finish()
    };
    write().map_err(|error| io_failed("the archive", error))
}

/// Writes one entry: header, content, padding.
pub(super) fn write_entry(out: &mut impl Write, path: &str, bytes: &[u8]) -> io::Result<()> {
    out.write_all(&canonical(path, bytes.len() as u64))?;
    out.write_all(bytes)?;
    let padding = bytes.len().next_multiple_of(BLOCK) - bytes.len();
    out.write_all(ZEROS.get(..padding).unwrap_or_default())
}

/// The one way in which archives are compressed, but for the level. `total` is the size of the tar archive.
pub(super) fn encoder<W: Write>(out: W, level: i32, total: u64) -> io::Result<Encoder<'static, W>> {
    let mut encoder = Encoder::new(out, level)?;
    encoder.include_checksum(true)?;
    encoder.include_contentsize(true)?;
    encoder.window_log(WINDOW_LOG)?;
    encoder.set_pledged_src_size(Some(total))?;
    Ok(encoder)
}

/// [`write()`] into memory.
///
/// # Errors
/// Those of [`write()`].
pub fn to_bytes(contents: &Contents<'_>) -> Result<Vec<u8>, Refusal> {
    write(contents, Vec::new())
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
        Some((place, size, max)) => Err(too_large(max).at(*place).found(crate::text::bytes(*size))),
        None => Ok(()),
    }
}

/// [`write()`] into a file at `target`, in place of an existing one: all of it or, on failure, nothing.
///
/// # Errors
/// Those of [`write()`].
pub fn write_file(contents: &Contents<'_>, target: &Path) -> Result<(), Refusal> {
    let bytes = to_bytes(contents)?;
    let (parent, name) = open_parent(target)?;
    let temporary = temporary_name(name)?;
    let written = parent
        .write(&temporary, &bytes)
        .and_then(|()| parent.rename(&temporary, &parent, name));
    written.map_err(|error| {
        // If this fails too, the first error is the one to report.
        let _ = parent.remove_file(&temporary);
        io_failed(target.display().to_string(), error)
    })
}

/// Writes a bundle to the directory `target`, which must not exist; its parent must. The files are written to a
/// directory next to it, which is then renamed, so that the write is atomic, and a failure leaves nothing. The verified
/// bytes are written, but a later reader must verify them again.
///
/// # Errors
/// [`ErrorKind::Io`], also if `target` exists.
pub fn unpack(bundle: &Verified<Bundle>, target: &Path) -> Result<(), Refusal> {
    let io = |error: io::Error| io_failed(target.display().to_string(), error);
    let (parent, name) = open_parent(target)?;
    if parent.symlink_metadata(name).is_ok() {
        return Err(Refusal::new(ErrorKind::Io)
            .at(target.display().to_string())
            .expected("a name that is not taken")
            .found("something of this name")
            .hinted("name a directory that does not exist yet"));
    }
    let temporary = temporary_name(name)?;
    parent.create_dir(&temporary).map_err(io)?;
    let written = parent
        .open_dir(&temporary)
        .and_then(|fresh| write_files(bundle, &fresh))
        .and_then(|()| parent.rename(&temporary, &parent, name));
    written.map_err(|error| {
        // If this fails too, the first error is the one to report.
        let _ = parent.remove_dir_all(&temporary);
        io(error)
    })
}

fn write_files(bundle: &Bundle, root: &Dir) -> io::Result<()> {
    let folders: BTreeSet<_> = bundle
        .files
        .keys()
        .flat_map(|path| path.folders())
        .collect();
    // Sorted, so that outer folders come first.
    for folder in folders {
        root.create_dir(folder)?;
    }
    for (path, bytes) in bundle.contents().entries() {
        let mut file = root.open_with(path, OpenOptions::new().write(true).create_new(true))?;
        file.write_all(bytes)?;
    }
    Ok(())
}

/// Opens the directory that `target` is in; also returns its name there.
fn open_parent(target: &Path) -> Result<(Dir, &str), Refusal> {
    let place = || target.display().to_string();
    let name = target.file_name().and_then(|name| name.to_str());
    let (Some(parent), Some(name)) = (target.parent(), name) else {
        return Err(Refusal::new(ErrorKind::Io)
            .at(place())
            .expected("a path that ends in a name"));
    };
    let parent = match parent.as_os_str().is_empty() {
        true => Path::new("."),
        false => parent,
    };
    let parent = Dir::open_ambient_dir(parent, ambient_authority());
    Ok((parent.map_err(|error| io_failed(place(), error))?, name))
}

/// An unpredictable name for an unfinished file or directory.
fn temporary_name(name: &str) -> Result<String, Refusal> {
    let random = getrandom::u64().map_err(|error| unplaced_io(io::Error::other(error)))?;
    Ok(format!(".{name}.{random:016x}.tmp"))
}
