//! Reading an archive: one pass, each entry checked as it arrives. Nothing is ever unpacked by a library,
//! and every header is compared with the only one that its file may have.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek as _};

use zstd::stream::read::Decoder;

use super::directory::read_hashed;
use super::document::{Files, Head};
use crate::archive::header::{BLOCK, Claimed, TarBlock, ZEROS};
use crate::archive::{
    END_BYTES, MAX_RATIO, RATIO_FLOOR, Stored, decoding, entry_size, with_decoder,
};
use crate::error::{ErrorKind, Refusal, io_failed};
use crate::manifest::{self, ENVELOPE_FILE, Expected, Manifest};
use crate::path::BundlePath;
use crate::text::{bytes, quoted_bytes};
use crate::{envelope, provenance};

/// How a zstd frame begins (RFC 8878, section 3.1.1). A skippable frame begins otherwise.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// How much of a file is read at once where little is asked for. More comes straight into its place.
const READ_BUFFER_BYTES: usize = 8 * 1024;

/// The most that is read of one that may not be compressed: a bundle's limit, and its headers.
const UNCOMPRESSED_BYTES: u64 = super::MAX_BYTES + 64 * 1024 * 1024;

/// Reads an archive whose first two entries `open` accepts.
pub(super) fn read<H: Head>(
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
    with_decoder(archive, |frame| read_tar(&mut Tar { frame }, size, &open))
        .map_err(|error| decoding(&error))?
}

/// Reads an archive in a file from its beginning, as [`read`] does. Nothing but the files is kept in memory if it
/// isn't compressed.
pub(super) fn read_file<H: Head>(
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

/// Reads an archive that isn't compressed, as a host keeps it; `None` for any other.
fn read_stored<H: Head>(
    archive: impl BufRead,
    size: u64,
    open: impl Fn(Option<&[u8]>, Option<&[u8]>) -> Result<H, Refusal>,
) -> Option<Result<(H, Files), Refusal>> {
    let mut tar = Tar {
        frame: Stored::open(archive)?,
    };
    let result = read_tar(&mut tar, size, open);
    (!tar.frame.is_odd()).then_some(result)
}

fn read_tar<H: Head>(
    tar: &mut Tar<impl Frame>,
    size: u64,
    open: impl Fn(Option<&[u8]>, Option<&[u8]>) -> Result<H, Refusal>,
) -> Result<(H, Files), Refusal> {
    let envelope = tar.document(
        ENVELOPE_FILE,
        envelope::MAX_BYTES,
        ErrorKind::EnvelopeMissing,
    )?;
    let loose = tar.document(
        manifest::FILE,
        manifest::MAX_BYTES,
        ErrorKind::ManifestMissing,
    )?;
    let mut head = open(Some(&envelope), Some(&loose))?;
    check_ratio(head.manifest(), size)?;

    let mut header = tar.header()?;
    if let Some(block) = &header
        && let claimed = Claimed::read(block)?
        && claimed.path == provenance::FILE.as_bytes()
    {
        let document = tar.small(&claimed, provenance::FILE, envelope::MAX_BYTES)?;
        head.provenance(&document)?;
        header = tar.header()?;
    }
    let listed: Vec<(BundlePath, Expected)> = head
        .manifest()
        .sorted()
        .into_iter()
        .map(|(path, expected)| (path.clone(), expected))
        .collect();
    let mut files = Files::new();
    for (path, expected) in &listed {
        let Some(block) = header else {
            return Err(Refusal::new(ErrorKind::FileMissing).at(path.as_str()));
        };
        let claimed = Claimed::read(&block)?;
        if claimed.path != path.as_str().as_bytes() {
            return Err(misplaced(&claimed, Some(path), head.manifest(), &files));
        }
        claimed.must_be(path.as_str(), expected.size)?;
        let content = read_hashed(*expected, |piece| {
            tar.fill(piece)?;
            head.progress(piece.len());
            Ok(())
        })
        .map_err(|refusal| refusal.at(path.as_str()))?;
        tar.padding(expected.size, path.as_str())?;
        files.insert(path.clone(), content);
        header = tar.header()?;
    }
    if let Some(block) = &header {
        let claimed = Claimed::read(block)?;
        return Err(misplaced(&claimed, None, head.manifest(), &files));
    }
    tar.end()?;
    Ok((head, files))
}

/// The size of the whole is known from the signed manifest, before anything large is read.
fn check_ratio(manifest: &Manifest, archive: u64) -> Result<(), Refusal> {
    let total = manifest
        .entries()
        .fold(END_BYTES as u64, |total, (_, expected)| {
            total.saturating_add(entry_size(expected.size))
        });
    if total > RATIO_FLOOR && total > archive.saturating_mul(MAX_RATIO) {
        return Err(Refusal::new(ErrorKind::ArchiveRatio)
            .expected(format!("at most {MAX_RATIO} times its {}", bytes(archive)))
            .found(bytes(total)));
    }
    Ok(())
}

/// Why an entry is not the one that has to come now.
fn misplaced(
    claimed: &Claimed<'_>,
    wanted: Option<&BundlePath>,
    manifest: &Manifest,
    seen: &Files,
) -> Refusal {
    let place = quoted_bytes(&claimed.path);
    let name = match std::str::from_utf8(&claimed.path) {
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

/// A tar archive in a zstd frame, read forwards.
struct Tar<F> {
    frame: F,
}

/// A zstd frame: what is in it.
trait Frame: Read {
    /// Bytes that come after the frame, all of which was read.
    fn rest(&mut self) -> usize;
}

impl Frame for Decoder<'_, &[u8]> {
    fn rest(&mut self) -> usize {
        self.get_ref().len()
    }
}

impl<R: BufRead> Frame for Stored<R> {
    fn rest(&mut self) -> usize {
        // How many, its decoder finds out.
        usize::from(self.has_more())
    }
}

impl<F: Frame> Tar<F> {
    fn fill(&mut self, buffer: &mut [u8]) -> Result<(), Refusal> {
        self.frame
            .read_exact(buffer)
            .map_err(|error| decoding(&error))
    }

    /// The next header, or `None` at the first of the two blocks of zeros that end the archive.
    fn header(&mut self) -> Result<Option<TarBlock>, Refusal> {
        let mut block = ZEROS;
        self.fill(&mut block)?;
        Ok((block != ZEROS).then_some(block))
    }

    /// One of the first two entries, whose name is known and whose size is not.
    fn document(
        &mut self,
        name: &'static str,
        max: usize,
        missing: ErrorKind,
    ) -> Result<Vec<u8>, Refusal> {
        let block = self
            .header()?
            .ok_or_else(|| Refusal::new(missing).at(name))?;
        let claimed = Claimed::read(&block)?;
        if claimed.path == name.as_bytes() {
            return self.small(&claimed, name, max);
        }
        Err(Refusal::new(ErrorKind::ArchiveOrder)
            .at(name)
            .expected("`manifest.dsse.json` first, then `manifest.toml`")
            .found(quoted_bytes(&claimed.path)))
    }

    fn small(
        &mut self,
        claimed: &Claimed<'_>,
        name: &'static str,
        max: usize,
    ) -> Result<Vec<u8>, Refusal> {
        let size = claimed.size().map_err(|refusal| refusal.at(name))?;
        claimed.must_be(name, size)?;
        let length = usize::try_from(size)
            .ok()
            .filter(|length| *length <= max)
            .ok_or_else(|| {
                Refusal::new(ErrorKind::TooLarge)
                    .at(name)
                    .expected(format!("at most {max} bytes"))
                    .found(bytes(size))
            })?;
        let mut document = vec![0; length];
        self.fill(&mut document)?;
        self.padding(size, name)?;
        Ok(document)
    }

    /// Reads up to the next block; only zeros may stand there.
    fn padding(&mut self, size: u64, place: &str) -> Result<(), Refusal> {
        let over = usize::try_from(size % BLOCK as u64).unwrap_or(0);
        if over == 0 {
            return Ok(());
        }
        let mut padding = ZEROS;
        let padding = padding.get_mut(over..).unwrap_or_default();
        self.fill(padding)?;
        if padding.iter().all(|byte| *byte == 0) {
            Ok(())
        } else {
            Err(Refusal::new(ErrorKind::ArchiveHeader)
                .at(place)
                .expected("zeros after the content"))
        }
    }

    /// After the first block of zeros: another, the end of the frame, the end of the file.
    fn end(&mut self) -> Result<(), Refusal> {
        let mut block = ZEROS;
        self.fill(&mut block)?;
        let trailing = || Refusal::new(ErrorKind::ArchiveTrailingData);
        if block != ZEROS {
            return Err(trailing().found("data after a block of zeros"));
        }
        // This also makes the decoder check the frame's end.
        if self
            .frame
            .read(&mut [0])
            .map_err(|error| decoding(&error))?
            != 0
        {
            return Err(trailing().found("data after the end of the tar archive"));
        }
        match self.frame.rest() {
            0 => Ok(()),
            rest => Err(trailing().found(format!("{} after the zstd frame", bytes(rest as u64)))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::{Contents, to_bytes, to_stored_bytes};

    struct Nothing(Manifest);

    impl Head for Nothing {
        fn manifest(&self) -> &Manifest {
            &self.0
        }

        fn provenance(&mut self, _bytes: &[u8]) -> Result<(), Refusal> {
            Ok(())
        }

        fn progress(&mut self, _count: usize) {}
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
