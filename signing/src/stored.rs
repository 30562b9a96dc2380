//! Stored archives: a tar archive in a zstd frame of raw blocks, whose places follow from the size of
//! the tar archive. A part is read by a seek, and a file can be left unread until it is needed.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use crate::error::{ErrorKind, Refusal, decoding, io_failed};
use crate::manifest::FileDigest;

/// How the frame starts (RFC 8878, section 3.1.1): the magic number, a descriptor, and a window of
/// 128 KiB. The descriptor announces the window and a size in 8 bytes, and no checksum, since each
/// file has a digest.
pub(crate) const FRAME_HEADER: [u8; 6] = [0x28, 0xb5, 0x2f, 0xfd, 0b1100_0000, 7 << 3];
/// The size of a block, in bytes: the largest that a frame may have. Only the last may be smaller.
pub(crate) const MAX_BLOCK_BYTES: usize = 128 * 1024;
/// The frame's header, and the size of the tar archive.
const START_BYTES: usize = FRAME_HEADER.len() + 8;
/// The size of the header of a block.
const BLOCK_HEADER_BYTES: usize = 3;

/// The header of a block (RFC 8878, section 3.1.1.2): whether it is the last block, type 0 (raw),
/// and the size.
pub(crate) fn block_header(size: usize, last: bool) -> [u8; BLOCK_HEADER_BYTES] {
    let size = u32::try_from(size).unwrap_or(0);
    let [a, b, c, _] = (size << 3 | u32::from(last)).to_le_bytes();
    [a, b, c]
}

/// An open file that starts as a stored archive, and has its length.
#[derive(Debug)]
struct StoredTar {
    file: File,
    /// The size of the tar archive.
    size: u64,
}

impl StoredTar {
    /// `None` if the file is not a stored archive.
    fn open(file: File) -> io::Result<Option<Self>> {
        let length = file.metadata()?.len();
        let mut start = [0; START_BYTES];
        if length < START_BYTES as u64 {
            return Ok(None);
        }
        file.read_exact_at(&mut start, 0)?;
        let Some((&FRAME_HEADER, size)) = start.split_first_chunk() else {
            return Ok(None);
        };
        let size = size.try_into().map(u64::from_le_bytes).unwrap_or(0);
        let blocks = size.div_ceil(MAX_BLOCK_BYTES as u64);
        let headers = blocks.saturating_mul(BLOCK_HEADER_BYTES as u64);
        let expected = size.saturating_add(headers);
        let is_stored = expected.saturating_add(START_BYTES as u64) == length;
        Ok(is_stored.then_some(Self { file, size }))
    }

    /// The number of the block with this byte of the tar archive, and the bytes from there to the
    /// block's end.
    fn place(&self, position: u64) -> (u64, u64) {
        let chunk = MAX_BLOCK_BYTES as u64;
        let rest = self.size.saturating_sub(position);
        (position / chunk, rest.min(chunk - position % chunk))
    }

    fn check_block(&self, block: u64) -> io::Result<()> {
        let start = block.saturating_mul(MAX_BLOCK_BYTES as u64);
        let (_, size) = self.place(start);
        let is_last = start.saturating_add(size) == self.size;
        let mut found = [0; BLOCK_HEADER_BYTES];
        let headers = block.saturating_mul(BLOCK_HEADER_BYTES as u64);
        let place = start.saturating_add(headers) + START_BYTES as u64;
        self.file.read_exact_at(&mut found, place)?;
        match found == block_header(usize::try_from(size).unwrap_or(0), is_last) {
            true => Ok(()),
            false => Err(io::Error::other("a block is not stored where it belongs")),
        }
    }
}

/// Reads the tar archive of a stored archive, from any byte. Nothing is buffered, since most reads
/// are of whole files. The file's own position is neither used nor changed.
#[derive(Debug)]
pub(crate) struct StoredReader {
    tar: StoredTar,
    position: u64,
    /// The block whose header was compared last.
    checked: Option<u64>,
}

impl StoredReader {
    /// A reader at the start; `None` if the file is not a stored archive.
    pub(crate) fn open(file: File) -> io::Result<Option<Self>> {
        Ok(StoredTar::open(file)?.map(|tar| Self {
            tar,
            position: 0,
            checked: None,
        }))
    }

    /// The length of the file.
    pub(crate) fn length(&self) -> io::Result<u64> {
        Ok(self.tar.file.metadata()?.len())
    }

    /// Skips these bytes, and returns the position of the first.
    pub(crate) fn skip(&mut self, bytes: u64) -> u64 {
        let start = self.position;
        self.position = start.saturating_add(bytes);
        start
    }
}

impl Read for StoredReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (block, rest) = self.tar.place(self.position);
        let wanted = usize::try_from(rest).map_or(buffer.len(), |rest| rest.min(buffer.len()));
        if wanted == 0 {
            return Ok(0);
        }
        if self.checked != Some(block) {
            self.tar.check_block(block)?;
            self.checked = Some(block);
        }
        let headers = (block + 1).saturating_mul(BLOCK_HEADER_BYTES as u64);
        let place = self.position.saturating_add(headers) + START_BYTES as u64;
        let (buffer, _) = buffer.split_at_mut(wanted);
        let count = self.tar.file.read_at(buffer, place)?;
        self.position = self.position.saturating_add(count as u64);
        Ok(count)
    }
}

/// Opens the file of a stored archive again.
pub type ReopenFn = dyn Fn() -> io::Result<File> + Send + Sync;

/// A file of a verified bundle whose content was not read. The signed manifest states its digest.
/// No descriptor is kept open for it.
#[derive(Clone)]
pub struct UnreadFile {
    pub(crate) reopen: Arc<ReopenFn>,
    /// The position in the tar archive.
    pub(crate) start: u64,
    pub(crate) expected: FileDigest,
    pub(crate) facts: Arc<[u8]>,
}

impl UnreadFile {
    /// The digest and size that the manifest states.
    #[must_use]
    pub fn expected(&self) -> FileDigest {
        self.expected
    }

    /// The facts for which the content was left unread.
    #[must_use]
    pub fn facts(&self) -> &[u8] {
        &self.facts
    }

    /// Opens the archive again, reads the content, and hashes the bytes that it returns.
    ///
    /// # Errors
    /// [`DigestMismatch`](crate::ErrorKind::DigestMismatch) if the content was changed, or the
    /// error of an archive that was removed, was damaged otherwise or can't be read.
    pub fn read(&self) -> Result<Arc<[u8]>, Refusal> {
        let opened = (self.reopen)().and_then(StoredReader::open);
        let opened = opened.map_err(|error| io_failed("the archive", error))?;
        let mut reader = opened.ok_or_else(|| Refusal::new(ErrorKind::ArchiveFormat))?;
        reader.skip(self.start);
        self.expected
            .read(|piece| reader.read_exact(piece).map_err(decoding))
    }
}

impl fmt::Debug for UnreadFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnreadFile")
            .field("expected", &self.expected)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Seek as _, SeekFrom, Write as _};

    use super::*;
    use crate::archive::{Contents, to_stored_bytes};

    fn stored(size: usize) -> (File, Vec<u8>) {
        let content: Vec<u8> = (0..size).map(|number| (number % 251) as u8).collect();
        let bytes = to_stored_bytes(&Contents {
            envelope: b"{}",
            manifest: b"id = 1\n",
            provenance: None,
            files: vec![("icons/a.bin".parse().unwrap(), &content)],
        });
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        let tar = zstd::decode_all(&*bytes).unwrap();
        (file, tar)
    }

    #[test]
    fn a_seek_in_a_stored_archive_gives_the_bytes_of_the_decoder() {
        for size in [
            0,
            1,
            MAX_BLOCK_BYTES - 5 * 512,
            MAX_BLOCK_BYTES,
            3 * MAX_BLOCK_BYTES + 77,
        ] {
            let (file, tar) = stored(size);
            let mut reader = StoredReader::open(file).unwrap().unwrap();
            for position in [
                0,
                1,
                511,
                MAX_BLOCK_BYTES - 1,
                MAX_BLOCK_BYTES,
                tar.len() - 1,
                tar.len(),
            ] {
                if position > tar.len() {
                    continue;
                }
                reader.position = position as u64;
                let mut rest = Vec::new();
                reader.read_to_end(&mut rest).unwrap();
                assert!(rest == tar[position..], "{size} bytes from {position}");
            }
        }
    }

    #[test]
    fn only_a_file_of_the_stored_length_is_read_by_a_seek() {
        let (file, tar) = stored(MAX_BLOCK_BYTES);
        let length = file.metadata().unwrap().len();
        for other in [length - 1, length + 1, 14, 13, 0] {
            file.set_len(other).unwrap();
            let opened = StoredReader::open(file.try_clone().unwrap()).unwrap();
            assert!(opened.is_none(), "{other}");
        }
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&zstd::encode_all(&*tar, 1).unwrap())
            .unwrap();
        assert!(StoredReader::open(file).unwrap().is_none());
    }

    #[test]
    fn a_block_with_another_header_is_not_read() {
        let (mut file, _) = stored(3 * MAX_BLOCK_BYTES);
        for block in 0..4 {
            let place = (START_BYTES + block * (MAX_BLOCK_BYTES + BLOCK_HEADER_BYTES)) as u64;
            let mut header = [0];
            file.read_exact_at(&mut header, place).unwrap();
            let mut put = |byte| {
                file.seek(SeekFrom::Start(place)).unwrap();
                file.write_all(&[byte]).unwrap();
            };
            // Another type: a block of one repeated byte.
            put(header[0] ^ 2);
            let mut reader = StoredReader::open(file.try_clone().unwrap())
                .unwrap()
                .unwrap();
            reader.read_to_end(&mut Vec::new()).unwrap_err();
            file.seek(SeekFrom::Start(place)).unwrap();
            file.write_all(&header).unwrap();
        }
    }
}
