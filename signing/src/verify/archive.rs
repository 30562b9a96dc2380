//! Reading an archive in one pass, each entry checked as it arrives. No library unpacks anything, and every header is
//! compared with the only one that its file may have.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek as _};

use zstd::stream::read::Decoder;

use super::directory::read_hashed;
use super::document::{BundleHead, Files};
use crate::archive::tar::{EntryHeader, TarBlock, ZEROS, fill, read_padding, read_small};
use crate::archive::{StoredFrame, check_ratio, decoding, tar_size, with_decoder};
use crate::error::{ErrorKind, Refusal, io_failed};
use crate::manifest::{self, ENVELOPE_FILE, FileDigest, Manifest};
use crate::path::BundlePath;
use crate::text::{bytes, quoted_bytes};
use crate::{envelope, provenance};

/// How a zstd frame starts (RFC 8878, section 3.1.1). A skippable frame starts differently.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The size of the buffer for small reads from a file. Larger ones bypass it.
const READ_BUFFER_BYTES: usize = 8 * 1024;

/// The most that is read of an archive that may not be compressed: a bundle's limit, and its headers.
const UNCOMPRESSED_BYTES: u64 = super::MAX_BYTES + 64 * 1024 * 1024;

/// Reads an archive whose first two entries `open` accepts.
pub(super) fn read<H: BundleHead>(
    archive: &[u8],
    open: impl Fn(Option<&[u8]>, Option<&[u8]>) -> Result<H, Refusal>,
) -> Result<(H, Files), Refusal> {
    if !archive.starts_with(&ZSTD_MAGIC) {
        return Err(Refusal::new(ErrorKind::ArchiveFormat)
            .expected("a file that begins with a zstd frame")
            .found(quoted_bytes(archive.get(..4).unwrap_or(archive)))
            .hinted("this is not a bundle: name a bundle's directory, or its `.toolbundle` file"));
    }
    let size = archive.len() as u64;
    if let Some(result) = read_stored(archive, size, &open) {
        return result;
    }
    with_decoder(archive, |mut frame| read_tar(&mut frame, size, &open)).map_err(decoding)?
}

/// Reads an archive in a file from its start, as [`read`] does. If it isn't compressed, only the files are kept in
/// memory.
pub(super) fn read_file<H: BundleHead>(
    file: &mut File,
    open: impl Fn(Option<&[u8]>, Option<&[u8]>) -> Result<H, Refusal>,
) -> Result<(H, Files), Refusal> {
    let io = |error: std::io::Error| io_failed("the archive", error);
    let size = file.metadata().map_err(io)?.len();
    file.rewind().map_err(io)?;
    let buffered = BufReader::with_capacity(READ_BUFFER_BYTES, &*file);
    if let Some(result) = read_stored(buffered, size, &open) {
        return result;
    }
    file.rewind().map_err(io)?;
    let mut bytes = Vec::new();
    super::read_archive(file, UNCOMPRESSED_BYTES, &mut bytes, "the archive")?;
    read(&bytes, open)
}

/// Reads an archive that isn't compressed, as a host stores it; `None` for any other.
fn read_stored<H: BundleHead>(
    archive: impl BufRead,
    size: u64,
    open: impl Fn(Option<&[u8]>, Option<&[u8]>) -> Result<H, Refusal>,
) -> Option<Result<(H, Files), Refusal>> {
    let mut frame = StoredFrame::open(archive)?;
    let result = read_tar(&mut frame, size, open);
    (!frame.is_odd()).then_some(result)
}

fn read_tar<H: BundleHead>(
    tar: &mut impl Frame,
    size: u64,
    open: impl Fn(Option<&[u8]>, Option<&[u8]>) -> Result<H, Refusal>,
) -> Result<(H, Files), Refusal> {
    let envelope = read_document(
        tar,
        ENVELOPE_FILE,
        envelope::MAX_BYTES,
        ErrorKind::EnvelopeMissing,
    )?;
    let manifest = read_document(
        tar,
        manifest::FILE,
        manifest::MAX_BYTES,
        ErrorKind::ManifestMissing,
    )?;
    let mut head = open(Some(&envelope), Some(&manifest))?;
    // The signed manifest gives the size of the whole before anything large is read.
    let sizes = head.manifest().entries().map(|(_, expected)| expected.size);
    check_ratio(tar_size(sizes), size)?;

    let mut block = next_header(tar)?;
    if let Some(third) = &block
        && let header = EntryHeader::read(third)?
        && header.path == provenance::FILE.as_bytes()
    {
        let document = read_small(tar, &header, provenance::FILE, envelope::MAX_BYTES)?;
        head.provenance(&document)?;
        block = next_header(tar)?;
    }
    let listed: Vec<(BundlePath, FileDigest)> = head
        .manifest()
        .sorted()
        .into_iter()
        .map(|(path, expected)| (path.clone(), expected))
        .collect();
    let mut files = Files::new();
    for (path, expected) in &listed {
        let Some(current) = block else {
            return Err(Refusal::new(ErrorKind::FileMissing).at(path.as_str()));
        };
        let header = EntryHeader::read(&current)?;
        if header.path != path.as_str().as_bytes() {
            return Err(misplaced(&header, Some(path), head.manifest(), &files));
        }
        header.must_be(path.as_str(), expected.size)?;
        let content = read_hashed(*expected, |piece| {
            fill(tar, piece)?;
            head.progress(piece.len());
            Ok(())
        })
        .map_err(|refusal| refusal.at(path.as_str()))?;
        read_padding(tar, expected.size, path.as_str())?;
        files.insert(path.clone(), content);
        block = next_header(tar)?;
    }
    if let Some(block) = &block {
        let header = EntryHeader::read(block)?;
        return Err(misplaced(&header, None, head.manifest(), &files));
    }
    read_end(tar)?;
    Ok((head, files))
}

/// Why an entry is not the expected one.
fn misplaced(
    header: &EntryHeader<'_>,
    wanted: Option<&BundlePath>,
    manifest: &Manifest,
    seen: &Files,
) -> Refusal {
    let place = quoted_bytes(&header.path);
    let name = match std::str::from_utf8(&header.path) {
        Ok(name) => name,
        Err(_) => {
            return Refusal::new(ErrorKind::PathInvalid)
                .at(place)
                .expected("a name in ASCII");
        }
    };
    if seen.contains_key(name) || name == ENVELOPE_FILE || name == manifest::FILE {
        return Refusal::new(ErrorKind::FileDuplicate).at(place);
    }
    if name == provenance::FILE {
        return Refusal::new(ErrorKind::ArchiveOrder)
            .at(place)
            .expected("the provenance as the third entry");
    }
    match wanted {
        Some(wanted) if manifest.entry(name).is_some() => Refusal::new(ErrorKind::FileMissing)
            .at(wanted.as_str())
            .expected("the files of the manifest, sorted by name")
            .found(format!("{place} in its place")),
        _ => match BundlePath::parse(name) {
            Err(refusal) => refusal.at(place),
            Ok(_)
                if manifest
                    .entries()
                    .any(|(path, _)| path.as_str().eq_ignore_ascii_case(name)) =>
            {
                Refusal::new(ErrorKind::PathConflict)
                    .at(place)
                    .expected("the manifest's spelling")
            }
            Ok(_) => Refusal::new(ErrorKind::FileExtra).at(place),
        },
    }
}

/// A zstd frame that contains a tar archive, read forwards.
trait Frame: Read {
    /// How many bytes follow the frame, all of which was read.
    fn rest(&mut self) -> usize;
}

impl Frame for Decoder<'_, &[u8]> {
    fn rest(&mut self) -> usize {
        self.get_ref().len()
    }
}

impl<R: BufRead> Frame for StoredFrame<R> {
    fn rest(&mut self) -> usize {
        // If any follow, a decoder reads the frame instead, and counts them.
        usize::from(self.has_more())
    }
}

/// The next header, or `None` at the first of the two blocks of zeros that end the archive.
fn next_header(tar: &mut impl Frame) -> Result<Option<TarBlock>, Refusal> {
    let mut block = ZEROS;
    fill(tar, &mut block)?;
    Ok((block != ZEROS).then_some(block))
}

/// Reads one of the first two entries.
fn read_document(
    tar: &mut impl Frame,
    name: &'static str,
    max: usize,
    missing: ErrorKind,
) -> Result<Vec<u8>, Refusal> {
    let block = next_header(tar)?.ok_or_else(|| Refusal::new(missing).at(name))?;
    let header = EntryHeader::read(&block)?;
    if header.path == name.as_bytes() {
        return read_small(tar, &header, name, max);
    }
    Err(Refusal::new(ErrorKind::ArchiveOrder)
        .at(name)
        .expected("`manifest.dsse.json` first, then `manifest.toml`")
        .found(quoted_bytes(&header.path)))
}

/// After the first block of zeros: another, the end of the frame, the end of the file.
fn read_end(tar: &mut impl Frame) -> Result<(), Refusal> {
    let trailing = || Refusal::new(ErrorKind::ArchiveTrailingData);
    if next_header(tar)?.is_some() {
        return Err(trailing().found("data after a block of zeros"));
    }
    // This also makes the decoder check the frame's end.
    if tar.read(&mut [0]).map_err(decoding)? != 0 {
        return Err(trailing().found("data after the end of the tar archive"));
    }
    match tar.rest() {
        0 => Ok(()),
        rest => Err(trailing().found(format!("{} after the zstd frame", bytes(rest as u64)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::{Contents, to_bytes, to_stored_bytes};

    struct Nothing(Manifest);

    impl BundleHead for Nothing {
        fn manifest(&self) -> &Manifest {
            &self.0
        }

        fn provenance(&mut self, _bytes: &[u8]) -> Result<(), Refusal> {
            Ok(())
        }
    }

    #[test]
    fn an_archive_that_is_not_compressed_is_read_as_it_comes_and_others_are_decoded() {
        let contents = Contents {
            envelope: b"{}",
            manifest: b"id = 1\n",
            provenance: None,
            files: Vec::new(),
        };
        let streams = |bytes: &[u8]| {
            let refuse = |_: Option<&[u8]>, _: Option<&[u8]>| Err(Refusal::new(ErrorKind::Expired));
            let read = read_stored::<Nothing>(bytes, bytes.len() as u64, refuse);
            read.map(|result| result.err().map(|refusal| refusal.kind()))
        };
        let stored = to_stored_bytes(&contents);
        assert_eq!(streams(&stored), Some(Some(ErrorKind::Expired)));
        assert_eq!(streams(&to_bytes(&contents).unwrap()), None);
        // Cut within the manifest.
        assert_eq!(streams(&stored[..stored.len() / 3]), None);
    }
}
