//! Reads an archive in one pass and checks each entry as it arrives. No library unpacks files, and
//! every header is compared with the only valid header of its file.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, Read};
use std::sync::Arc;

use zstd::stream::read::Decoder;

use super::KnownFn;
use super::document::{BundleHead, Files, Unread};
use crate::archive::tar::{EntryHeader, TarBlock, ZEROS, fill, read_padding, read_small};
use crate::archive::{check_ratio, tar_size, with_decoder};
use crate::error::{ErrorKind, Refusal, decoding};
use crate::manifest::{self, ENVELOPE_FILE, FileDigest, FileRole, Manifest};
use crate::path::BundlePath;
use crate::stored::{ReopenFn, StoredReader, UnreadFile};
use crate::text::{bytes, quoted_bytes};
use crate::{envelope, provenance};

/// How a zstd frame starts (RFC 8878, section 3.1.1). A skippable frame starts differently.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Reads an archive of `size` bytes whose first two entries `open` accepts.
pub(super) fn read<H: BundleHead>(
    mut archive: impl BufRead,
    size: u64,
    open: impl Fn(Option<&[u8]>, Option<&[u8]>) -> Result<H, Refusal>,
) -> Result<(H, Files), Refusal> {
    let start = archive.fill_buf().map_err(decoding)?;
    if !start.starts_with(&ZSTD_MAGIC) {
        return Err(Refusal::new(ErrorKind::ArchiveFormat)
            .expected("a file that begins with a zstd frame")
            .found(quoted_bytes(start.get(..4).unwrap_or(start)))
            .hinted("this is not a bundle: name a bundle's directory, or its `.toolbundle` file"));
    }
    let read = with_decoder(archive, |mut frame| read_tar(&mut frame, size, &open));
    let (head, files, _) = read.map_err(decoding)??;
    Ok((head, files))
}

/// Reads a stored archive whose first two entries `open` accepts, without the content of `known`
/// components. `None` if the file is not a stored archive.
pub(super) fn read_stored<H: BundleHead>(
    file: File,
    reopen: &Arc<ReopenFn>,
    known: &KnownFn<'_>,
    open: impl Fn(Option<&[u8]>, Option<&[u8]>) -> Result<H, Refusal>,
) -> Option<Result<(H, Files, Unread), Refusal>> {
    let reader = StoredReader::open(file).ok()??;
    let size = reader.length().ok()?;
    let mut tar = StoredSource {
        reader,
        reopen,
        known,
    };
    Some(read_tar(&mut tar, size, open))
}

/// A tar archive that is read once, from its start.
trait TarSource: Read {
    /// Skips the content of a component, if it need not be read now.
    fn skip(&mut self, _expected: FileDigest) -> Option<UnreadFile> {
        None
    }

    /// Counts the bytes after the tar archive.
    fn count_rest(&mut self) -> io::Result<u64>;
}

impl<R: BufRead> TarSource for Decoder<'_, R> {
    fn count_rest(&mut self) -> io::Result<u64> {
        io::copy(self.get_mut(), &mut io::sink())
    }
}

struct StoredSource<'a> {
    reader: StoredReader,
    reopen: &'a Arc<ReopenFn>,
    known: &'a KnownFn<'a>,
}

impl Read for StoredSource<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reader.read(buffer)
    }
}

impl TarSource for StoredSource<'_> {
    fn skip(&mut self, expected: FileDigest) -> Option<UnreadFile> {
        Some(UnreadFile {
            facts: (self.known)(&expected)?,
            reopen: Arc::clone(self.reopen),
            start: self.reader.skip(expected.size),
            expected,
        })
    }

    fn count_rest(&mut self) -> io::Result<u64> {
        // The length of a stored archive was compared when it was opened.
        Ok(0)
    }
}

fn read_tar<H: BundleHead>(
    tar: &mut impl TarSource,
    size: u64,
    open: impl Fn(Option<&[u8]>, Option<&[u8]>) -> Result<H, Refusal>,
) -> Result<(H, Files, Unread), Refusal> {
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
    // The signed manifest gives the total size before anything large is read.
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
    let components: BTreeSet<BundlePath> = (head.manifest().artifacts.files.iter())
        .filter(|file| file.role == FileRole::Component)
        .map(|file| file.path.clone())
        .collect();
    let (mut files, mut unread) = (Files::new(), Unread::new());
    for (path, expected) in &listed {
        let Some(current) = block else {
            return Err(Refusal::new(ErrorKind::FileMissing).at(path.as_str()));
        };
        let header = EntryHeader::read(&current)?;
        if header.path != path.as_str().as_bytes() {
            let seen = |name: &str| files.contains_key(name) || unread.contains_key(name);
            return Err(misplaced(&header, Some(path), head.manifest(), seen));
        }
        header.must_be(path.as_str(), expected.size)?;
        let skipped = match components.contains(path) {
            true => tar.skip(*expected),
            false => None,
        };
        if let Some(file) = skipped {
            unread.insert(path.clone(), file);
        } else {
            let content = expected.read(|piece| {
                fill(tar, piece)?;
                head.progress(piece.len());
                Ok(())
            });
            let content = content.map_err(|refusal| refusal.at(path.as_str()))?;
            files.insert(path.clone(), content);
        }
        read_padding(tar, expected.size, path.as_str())?;
        block = next_header(tar)?;
    }
    if let Some(block) = &block {
        let header = EntryHeader::read(block)?;
        let seen = |name: &str| files.contains_key(name) || unread.contains_key(name);
        return Err(misplaced(&header, None, head.manifest(), seen));
    }
    read_end(tar)?;
    Ok((head, files, unread))
}

/// The refusal of an entry that is not the expected entry.
fn misplaced(
    header: &EntryHeader<'_>,
    wanted: Option<&BundlePath>,
    manifest: &Manifest,
    seen: impl Fn(&str) -> bool,
) -> Refusal {
    let place = quoted_bytes(&header.path);
    let Ok(name) = std::str::from_utf8(&header.path) else {
        return Refusal::new(ErrorKind::PathInvalid)
            .at(place)
            .expected("a name in ASCII");
    };
    if seen(name) || name == ENVELOPE_FILE || name == manifest::FILE {
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

/// The next header, or `None` at the first of the two blocks of zeros that end the archive.
fn next_header(tar: &mut impl Read) -> Result<Option<TarBlock>, Refusal> {
    let mut block = ZEROS;
    fill(tar, &mut block)?;
    Ok((block != ZEROS).then_some(block))
}

/// Reads one of the first two entries.
fn read_document(
    tar: &mut impl Read,
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

/// Checks that after the first block of zeros come a second one, the end of the frame, and the end
/// of the file.
fn read_end(tar: &mut impl TarSource) -> Result<(), Refusal> {
    let trailing = || Refusal::new(ErrorKind::ArchiveTrailingData);
    if next_header(tar)?.is_some() {
        return Err(trailing().found("data after a block of zeros"));
    }
    // This also makes the decoder check the frame's end.
    if tar.read(&mut [0]).map_err(decoding)? != 0 {
        return Err(trailing().found("data after the end of the tar archive"));
    }
    match tar.count_rest().map_err(decoding)? {
        0 => Ok(()),
        rest => Err(trailing().found(format!("{} after the zstd frame", bytes(rest)))),
    }
}
