//! ustar headers and entries. For a path and a size, there is exactly one valid header. A reader
//! compares every header with the valid header, so no field can differ from the manifest.

use std::io::Read;

use crate::error::{ErrorKind, Refusal, decoding, too_large};
use crate::text::{bytes, quoted_bytes};

/// The size of a tar block.
pub(crate) const BLOCK: usize = 512;

pub(crate) type TarBlock = [u8; BLOCK];

/// A block of zeros; two of them end an archive.
pub(crate) const ZEROS: TarBlock = [0; BLOCK];

/// Start and length of the fields (POSIX.1-1988, ustar).
const NAME: (usize, usize) = (0, 100);
const MODE: (usize, usize) = (100, 8);
const UID: (usize, usize) = (108, 8);
const GID: (usize, usize) = (116, 8);
const SIZE: (usize, usize) = (124, 12);
const MTIME: (usize, usize) = (136, 12);
const CHECKSUM: (usize, usize) = (148, 8);
const TYPE: (usize, usize) = (156, 1);
const MAGIC: (usize, usize) = (257, 8);
const PREFIX: (usize, usize) = (345, 155);

/// The fields of an entry's header, in the order in which a difference is reported.
const FIELDS: [(&str, (usize, usize)); 13] = [
    ("magic", MAGIC),
    ("mode", MODE),
    ("owner", UID),
    ("group", GID),
    ("time", MTIME),
    ("link name", (157, 100)),
    ("owner's name", (265, 32)),
    ("group's name", (297, 32)),
    ("device number", (329, 16)),
    ("name", NAME),
    ("prefix", PREFIX),
    ("size", SIZE),
    ("checksum", CHECKSUM),
];

/// The only valid header for a regular file. `path` must be a bundle path or the name of a
/// document, and `size` below 8 GiB. The callers' types and limits ensure this.
pub(crate) fn canonical(path: &str, size: u64) -> TarBlock {
    let mut header = ZEROS;
    let (prefix, name) = split(path);
    put(&mut header, NAME, name.as_bytes());
    put(&mut header, PREFIX, prefix.as_bytes());
    put(&mut header, MODE, b"0000644\0");
    put(&mut header, UID, b"0000000\0");
    put(&mut header, GID, b"0000000\0");
    put(&mut header, SIZE, format!("{size:011o}\0").as_bytes());
    put(&mut header, MTIME, b"00000000000\0");
    put(&mut header, TYPE, b"0");
    put(&mut header, MAGIC, b"ustar\x0000");
    put(&mut header, CHECKSUM, b"        ");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    put(&mut header, CHECKSUM, format!("{sum:06o}\0 ").as_bytes());
    header
}

/// Splits a path for the prefix and name fields. The whole path is the name if it fits; otherwise
/// the prefix is as short as possible.
fn split(path: &str) -> (&str, &str) {
    if path.len() <= NAME.1 {
        return ("", path);
    }
    path.match_indices('/')
        .filter_map(|(slash, _)| Some((path.get(..slash)?, path.get(slash + 1..)?)))
        .find(|(_, name)| name.len() <= NAME.1)
        .unwrap_or(("", path))
}

fn put(header: &mut TarBlock, (start, length): (usize, usize), value: &[u8]) {
    let field = header.get_mut(start..start + length).unwrap_or_default();
    for (to, from) in field.iter_mut().zip(value) {
        *to = *from;
    }
}

fn field(header: &TarBlock, (start, length): (usize, usize)) -> &[u8] {
    header.get(start..start + length).unwrap_or_default()
}

/// A header of an entry. Only its kind is checked.
pub(crate) struct EntryHeader<'a> {
    header: &'a TarBlock,
    /// The claimed path, which may contain any bytes.
    pub(crate) path: Vec<u8>,
}

impl<'a> EntryHeader<'a> {
    /// Reads path and kind.
    ///
    /// # Errors
    /// [`ErrorKind::ArchiveHeader`] if this is not a ustar header, [`ErrorKind::FileType`] for all
    /// but regular files: links, devices, pipes, folders, and the extended headers of PAX and GNU.
    pub(crate) fn read(header: &'a TarBlock) -> Result<Self, Refusal> {
        if field(header, MAGIC) != b"ustar\x0000" {
            return Err(Refusal::new(ErrorKind::ArchiveHeader)
                .expected("a ustar header")
                .found(quoted_bytes(field(header, MAGIC))));
        }
        let trimmed = |at| {
            let text = field(header, at);
            text.split(|byte| *byte == 0).next().unwrap_or_default()
        };
        let mut path = trimmed(PREFIX).to_vec();
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(trimmed(NAME));
        let kind = match field(header, TYPE) {
            b"0" => return Ok(Self { header, path }),
            b"\0" => "a file of the old tar format",
            b"1" => "a hard link",
            b"2" => "a symbolic link",
            b"3" | b"4" => "a device",
            b"5" => "a folder",
            b"6" => "a pipe",
            b"x" | b"g" => "a PAX header",
            b"L" | b"K" => "a GNU long name",
            b"S" => "a sparse file",
            _ => "an entry of an unknown type",
        };
        Err(Refusal::new(ErrorKind::FileType)
            .at(quoted_bytes(&path))
            .expected("a regular file")
            .found(kind))
    }

    /// The claimed size: 11 octal digits.
    ///
    /// # Errors
    /// [`ErrorKind::ArchiveHeader`] for any other spelling, base-256 included.
    pub(crate) fn size(&self) -> Result<u64, Refusal> {
        let digits = field(self.header, SIZE)
            .strip_suffix(b"\0")
            .filter(|digits| digits.iter().all(|digit| matches!(digit, b'0'..=b'7')));
        digits
            .map(|digits| {
                digits
                    .iter()
                    .fold(0, |size, digit| size << 3 | u64::from(digit - b'0'))
            })
            .ok_or_else(|| {
                Refusal::new(ErrorKind::ArchiveHeader)
                    .expected("a size in 11 octal digits")
                    .found(quoted_bytes(field(self.header, SIZE)))
            })
    }

    /// Compares the header with the only valid header of this file.
    ///
    /// # Errors
    /// [`ErrorKind::SizeMismatch`] if the size differs, otherwise [`ErrorKind::ArchiveHeader`] with
    /// the first field that differs.
    pub(crate) fn must_be(&self, path: &str, size: u64) -> Result<(), Refusal> {
        let claimed = self.size()?;
        if claimed != size {
            return Err(Refusal::new(ErrorKind::SizeMismatch)
                .at(path)
                .expected(bytes(size))
                .found(bytes(claimed)));
        }
        let canonical = canonical(path, size);
        if *self.header == canonical {
            return Ok(());
        }
        let differs = FIELDS
            .iter()
            .find(|(_, at)| field(self.header, *at) != field(&canonical, *at));
        let refusal = Refusal::new(ErrorKind::ArchiveHeader).at(path);
        Err(match differs {
            Some((name, at)) => refusal
                .expected(format!(
                    "the {name} {}",
                    quoted_bytes(field(&canonical, *at))
                ))
                .found(quoted_bytes(field(self.header, *at))),
            None => refusal.expected("zeros after the prefix"),
        })
    }
}

/// Fills a buffer with the next bytes of an archive.
pub(crate) fn fill(tar: &mut impl Read, buffer: &mut [u8]) -> Result<(), Refusal> {
    tar.read_exact(buffer).map_err(decoding)
}

/// Reads the content of an entry with a known name and an unknown size, and its padding.
pub(crate) fn read_small(
    tar: &mut impl Read,
    header: &EntryHeader<'_>,
    name: &'static str,
    max: usize,
) -> Result<Vec<u8>, Refusal> {
    let size = header.size().map_err(|refusal| refusal.at(name))?;
    header.must_be(name, size)?;
    let length = usize::try_from(size)
        .ok()
        .filter(|length| *length <= max)
        .ok_or_else(|| too_large(max).at(name).found(bytes(size)))?;
    let mut content = vec![0; length];
    fill(tar, &mut content)?;
    read_padding(tar, size, name)?;
    Ok(content)
}

/// Reads the padding up to the next block. The padding must be zeros.
pub(crate) fn read_padding(tar: &mut impl Read, size: u64, place: &str) -> Result<(), Refusal> {
    let over = usize::try_from(size % BLOCK as u64).unwrap_or(0);
    if over == 0 {
        return Ok(());
    }
    let mut padding = ZEROS;
    let padding = padding.get_mut(over..).unwrap_or_default();
    fill(tar, padding)?;
    if padding.iter().all(|byte| *byte == 0) {
        return Ok(());
    }
    Err(Refusal::new(ErrorKind::ArchiveHeader)
        .at(place)
        .expected("zeros after the content"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bundle_path_fits_a_header_and_reads_back() {
        let deepest = format!("{}/{}", "d".repeat(54), "f".repeat(100));
        let middle = format!("{}/{}/{}", "a".repeat(50), "b".repeat(50), "c".repeat(53));
        for path in ["a", "tools/x/TOOL.md", &"n".repeat(100), &deepest, &middle] {
            let header = canonical(path, 7);
            let claimed = EntryHeader::read(&header).unwrap();
            assert_eq!(claimed.path, path.as_bytes());
            assert_eq!(claimed.size().unwrap(), 7);
            claimed.must_be(path, 7).unwrap();
        }
    }

    #[test]
    fn every_changed_byte_of_a_header_is_refused() {
        let good = canonical("tools/x/TOOL.md", 7);
        for position in 0..BLOCK {
            for flip in [1, 0x20, 0x80] {
                let mut header = good;
                header[position] ^= flip;
                let verdict = EntryHeader::read(&header)
                    .and_then(|claimed| claimed.must_be("tools/x/TOOL.md", 7));
                assert!(verdict.is_err(), "byte {position} flipped by {flip:#x}");
            }
        }
    }
}
