//! An archive that is not compressed: for a host's own disk, where the time to read it matters. Every reader of
//! archives accepts it.

use std::io::{self, Write};

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
            assert!(stored.len() > tar.len());
        }
    }
}
