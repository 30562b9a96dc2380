//! An archive that is not compressed: for a host's own disk, where the time to read it counts and every
//! reader of archives still takes it.

use super::header::{BLOCK, ZEROS, canonical};
use super::{Contents, END, entry_size};

/// How a zstd frame begins (RFC 8878, section 3.1.1): the magic number, a descriptor that announces a window
/// and a size in 8 bytes and no checksum (each file has a digest), and a window of 128 KiB.
const FRAME: [u8; 6] = [0x28, 0xb5, 0x2f, 0xfd, 0b1100_0000, 7 << 3];
/// The largest block of a frame.
const PIECE: usize = 128 * 1024;

/// The archive with these contents, uncompressed: the same contents give the same bytes. Whether a reader
/// would take them is not looked at.
#[must_use]
pub fn to_stored_bytes(contents: &Contents<'_>) -> Vec<u8> {
    let entries = contents.entries();
    let total = entries.iter().fold(END as u64, |total, (_, bytes)| {
        total.saturating_add(entry_size(bytes.len() as u64))
    });
    let capacity = usize::try_from(total).unwrap_or(0);
    let mut frame = Frame {
        out: Vec::with_capacity(capacity.saturating_add(capacity / PIECE * 3 + 32)),
        piece: Vec::with_capacity(PIECE),
    };
    frame.out.extend_from_slice(&FRAME);
    frame.out.extend_from_slice(&total.to_le_bytes());
    for (path, bytes) in entries {
        frame.write(&canonical(path, bytes.len() as u64));
        frame.write(bytes);
        let padding = bytes.len().next_multiple_of(BLOCK) - bytes.len();
        frame.write(ZEROS.get(..padding).unwrap_or_default());
    }
    frame.write(&[0; END]);
    frame.block(true);
    frame.out
}

/// A frame of raw blocks in the making.
struct Frame {
    out: Vec<u8>,
    piece: Vec<u8>,
}

impl Frame {
    fn write(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.piece.len() == PIECE {
                self.block(false);
            }
            let room = PIECE - self.piece.len();
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.piece.extend_from_slice(now);
            bytes = later;
        }
    }

    /// Section 3.1.1.2: whether it is the last, type 0 (raw), and the size, in three bytes.
    fn block(&mut self, last: bool) {
        let size = u32::try_from(self.piece.len()).unwrap_or(0);
        let [a, b, c, _] = (size << 3 | u32::from(last)).to_le_bytes();
        self.out.extend_from_slice(&[a, b, c]);
        self.out.append(&mut self.piece);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::BundlePath;

    #[test]
    fn a_stored_archive_holds_the_same_tar_as_a_compressed_one() {
        // Blocks that end within a file, at its end, and within the padding.
        for size in [0, 1, PIECE - 5 * BLOCK, PIECE, 3 * PIECE + 77] {
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
        }
    }
}
