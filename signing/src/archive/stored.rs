//! An archive that is not compressed: for a host's own disk, where the time to read it matters. Every reader of
//! archives accepts it.

use std::io::{self, BufRead, Read, Write};

use super::{Contents, END_BYTES, tar_size, write_entry};

/// How a zstd frame starts (RFC 8878, section 3.1.1): the magic number, a descriptor that announces a window
/// and a size in 8 bytes and no checksum (each file has a digest), and a window of 128 KiB.
const FRAME_HEADER: [u8; 6] = [0x28, 0xb5, 0x2f, 0xfd, 0b1100_0000, 7 << 3];
/// The largest block of a frame.
const CHUNK_BYTES: usize = 128 * 1024;

/// The archive with these contents, uncompressed: the same contents give the same bytes. It is not checked whether a
/// reader would accept them.
#[must_use]
pub fn to_stored_bytes(contents: &Contents<'_>) -> Vec<u8> {
    let entries = contents.entries();
    let total = tar_size(entries.iter().map(|(_, bytes)| bytes.len() as u64));
    let capacity = usize::try_from(total).unwrap_or(0);
    let mut frame = FrameWriter {
        out: Vec::with_capacity(capacity.saturating_add(capacity / CHUNK_BYTES * 3 + 32)),
        piece: Vec::with_capacity(CHUNK_BYTES),
    };
    frame.out.extend_from_slice(&FRAME_HEADER);
    frame.out.extend_from_slice(&total.to_le_bytes());
    for (path, bytes) in entries {
        // Writing to memory can't fail.
        let _ = write_entry(&mut frame, path, bytes);
    }
    let _ = frame.write_all(&[0; END_BYTES]);
    frame.end_block(true);
    frame.out
}

/// Collects a frame of raw blocks.
struct FrameWriter {
    out: Vec<u8>,
    piece: Vec<u8>,
}

impl FrameWriter {
    /// Section 3.1.1.2: whether it is the last, type 0 (raw), and the size, in three bytes.
    fn end_block(&mut self, last: bool) {
        let size = u32::try_from(self.piece.len()).unwrap_or(0);
        let [a, b, c, _] = (size << 3 | u32::from(last)).to_le_bytes();
        self.out.extend_from_slice(&[a, b, c]);
        self.out.append(&mut self.piece);
    }
}

impl Write for FrameWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.piece.len() == CHUNK_BYTES {
            self.end_block(false);
        }
        let room = CHUNK_BYTES - self.piece.len();
        let (now, _) = bytes.split_at(room.min(bytes.len()));
        self.piece.extend_from_slice(now);
        Ok(now.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The frame of an uncompressed archive, read without a decoder. It must be exactly as [`to_stored_bytes`] makes it; a
/// zstd decoder reads or refuses any other frame.
pub(crate) struct StoredFrame<R> {
    inner: R,
    /// How many bytes of the current block are left.
    left: usize,
    /// Whether the current block is the last.
    last: bool,
    /// The size of the blocks after it, in bytes.
    to_come: u64,
    /// Whether only a decoder can read it.
    odd: bool,
}

impl<R: BufRead> StoredFrame<R> {
    /// `None` if the frame starts in another way.
    pub(crate) fn open(mut inner: R) -> Option<Self> {
        let mut head = [0; FRAME_HEADER.len()];
        let mut total = [0; 8];
        inner.read_exact(&mut head).ok()?;
        inner.read_exact(&mut total).ok()?;
        (head == FRAME_HEADER).then(|| Self {
            inner,
            left: 0,
            last: false,
            to_come: u64::from_le_bytes(total),
            odd: false,
        })
    }

    /// Whether only a decoder can read the frame: then results so far must be ignored.
    pub(crate) fn is_odd(&self) -> bool {
        self.odd
    }

    /// Whether bytes follow the frame, all of which was read. Then it is odd.
    pub(crate) fn has_more(&mut self) -> bool {
        let ends = self
            .inner
            .read_exact(&mut [0])
            .is_err_and(|error| error.kind() == io::ErrorKind::UnexpectedEof);
        self.odd |= !ends;
        self.odd
    }

    fn read_some(&mut self, buffer: &mut [u8]) -> Option<usize> {
        while self.left == 0 && !self.last {
            let mut header = [0; 3];
            self.inner.read_exact(&mut header).ok()?;
            let size;
            (size, self.last) = block(header)?;
            self.to_come = self.to_come.checked_sub(size as u64)?;
            let whole = match self.last {
                true => self.to_come == 0,
                false => size == CHUNK_BYTES,
            };
            self.left = whole.then_some(size)?;
        }
        if self.left == 0 || buffer.is_empty() {
            return Some(0);
        }
        let most = self.left.min(buffer.len());
        let place = buffer.get_mut(..most)?;
        let count = loop {
            match self.inner.read(place) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => break result.ok()?,
            }
        };
        self.left = self.left.checked_sub(count)?;
        (count > 0).then_some(count)
    }
}

/// Size and whether it is the last, of a raw block.
fn block([a, b, c]: [u8; 3]) -> Option<(usize, bool)> {
    let header = u32::from_le_bytes([a, b, c, 0]);
    let (last, kind) = (header & 1 == 1, header >> 1 & 3);
    let size = usize::try_from(header >> 3).ok()?;
    (kind == 0 && size <= CHUNK_BYTES).then_some((size, last))
}

impl<R: BufRead> Read for StoredFrame<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.read_some(buffer).ok_or_else(|| {
            self.odd = true;
            std::io::Error::other("a frame that only a decoder can read")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tar::BLOCK;
    use super::*;
    use crate::path::BundlePath;

    #[test]
    fn a_stored_archive_holds_the_same_tar_as_a_compressed_one() {
        // Blocks that end within a file, at its end, and within the padding.
        for size in [
            0,
            1,
            CHUNK_BYTES - 5 * BLOCK,
            CHUNK_BYTES,
            3 * CHUNK_BYTES + 77,
        ] {
            let file = vec![7; size];
            let contents = Contents {
                envelope: b"{}",
                manifest: b"id = 1\n",
                provenance: None,
                files: vec![(BundlePath::parse("icons/a.bin").unwrap(), &file)],
            };
            let stored = to_stored_bytes(&contents);
            let compressed = super::super::to_bytes(&contents).unwrap();
            let tar = zstd::decode_all(&*stored).unwrap();
            assert_eq!(tar, zstd::decode_all(&*compressed).unwrap());
            assert_eq!(stored, to_stored_bytes(&contents));
            let mut read = Vec::new();
            let mut frame = StoredFrame::open(&*stored).unwrap();
            frame.read_to_end(&mut read).unwrap();
            assert_eq!(read, tar);
            assert!(!frame.has_more() && !frame.is_odd());
            assert!(StoredFrame::open(&*compressed).is_none());
        }
    }

    #[test]
    fn a_spoiled_frame_is_read_as_a_decoder_reads_it_or_left_to_one() {
        let file = vec![7; CHUNK_BYTES + 3 * BLOCK];
        let stored = to_stored_bytes(&Contents {
            envelope: b"{}",
            manifest: b"id = 1\n",
            provenance: None,
            files: vec![(BundlePath::parse("a.bin").unwrap(), &file)],
        });
        let first = FRAME_HEADER.len() + 8;
        let second = first + 3 + CHUNK_BYTES;
        let headers = (0..first + 3).chain(second..second + 3);
        let mut read = 0;
        for place in headers {
            for bit in 0..8 {
                let mut spoiled = stored.clone();
                spoiled[place] ^= 1 << bit;
                read += usize::from(same_as_decoder(&spoiled));
            }
        }
        for length in [first, first + 2, second, second + 2, stored.len() - 1] {
            read += usize::from(same_as_decoder(&stored[..length]));
        }
        assert_eq!(read, 0, "what is spoiled in these places is no frame");
        assert!(same_as_decoder(&stored));
        let longer = [&stored[..], b"more"].concat();
        let mut frame = StoredFrame::open(&*longer).unwrap();
        frame.read_to_end(&mut Vec::new()).unwrap();
        assert!(!frame.is_odd());
        assert!(frame.has_more() && frame.is_odd());
    }

    /// Whether it is read here; if so, as a decoder does.
    fn same_as_decoder(archive: &[u8]) -> bool {
        let Some(mut stored) = StoredFrame::open(archive) else {
            return false;
        };
        let mut read = Vec::new();
        let result = stored.read_to_end(&mut read);
        assert_eq!(result.is_err(), stored.is_odd());
        if stored.is_odd() {
            return false;
        }
        assert_eq!(zstd::decode_all(archive).ok(), Some(read));
        true
    }
}
