//! A copy of the ledger in the layout of C2SP tlog-tiles, which other programs can read from a
//! folder or a web server.

use std::fs;
use std::path::{Path, PathBuf};

use crate::append::integer;
use crate::error::Error;
use crate::reader::Reader;
use crate::record::Hash;
use crate::tree::Edge;

/// The number of hashes in a full tile, and of records in a full bundle of entries.
const WIDTH: usize = 256;

impl Reader {
    /// Writes the rows below the newest checkpoint to a new directory: `checkpoint`, hashes under
    /// `tile/LEVEL/`, records under `tile/entries/`. A bundle of entries is left out if any of its
    /// records was pruned. Returns the size of the tree.
    ///
    /// # Errors
    /// [`Error::NoCheckpoint`] without a checkpoint, [`Error::Differs`] if it signs other rows,
    /// [`Error::Io`] if the path exists.
    pub fn export_tiles(&self, directory: &Path) -> Result<u64, Error> {
        let note = self.newest_checkpoint()?.ok_or(Error::NoCheckpoint)?;
        let checkpoint = self.verifier.open(&note).map_err(Error::key)?;
        fs::create_dir(directory).map_err(fail)?;
        let mut writer = Tiles {
            directory,
            levels: Vec::new(),
        };
        let mut edge = Edge::new();
        let mut bundle = Some(Vec::new());
        let mut rows = self
            .records
            .prepare_cached("SELECT leaf, record FROM entry WHERE seq < ?1 ORDER BY seq")?;
        let mut rows = rows.query([integer(checkpoint.size)])?;
        while let Some(row) = rows.next()? {
            let leaf = crate::record::Hex(row.get(0)?);
            edge.push(leaf);
            writer.push(0, leaf)?;
            match (&mut bundle, row.get::<_, Option<Vec<u8>>>(1)?) {
                (Some(bundle), Some(record)) => {
                    let length = u16::try_from(record.len());
                    let length = length.map_err(|_| Error::corrupt("a record's length"))?;
                    bundle.extend_from_slice(&length.to_be_bytes());
                    bundle.extend_from_slice(&record);
                }
                (bundle, _) => *bundle = None,
            }
            let (number, count) = place(edge.size());
            if count == WIDTH || edge.size() == checkpoint.size {
                if let Some(bundle) = &bundle {
                    writer.write("entries", number, count, bundle)?;
                }
                bundle = Some(Vec::new());
            }
        }
        writer.end()?;
        if edge.size() != checkpoint.size || edge.root() != checkpoint.root {
            return Err(Error::Differs("the rows are not those of the checkpoint"));
        }
        fs::write(directory.join("checkpoint"), note).map_err(fail)?;
        Ok(checkpoint.size)
    }
}

/// The number of the tile that contains the last of `size` hashes, and the number of hashes in this
/// tile.
fn place(size: u64) -> (u64, usize) {
    let last = size.saturating_sub(1);
    let count = usize::try_from(last % WIDTH as u64).unwrap_or_default() + 1;
    (last / WIDTH as u64, count)
}

/// Writes tiles. `levels` has for each level the number of its full tiles, and the hashes that are
/// in no tile yet.
struct Tiles<'d> {
    directory: &'d Path,
    levels: Vec<(u64, Vec<Hash>)>,
}

impl Tiles<'_> {
    fn push(&mut self, level: usize, hash: Hash) -> Result<(), Error> {
        if self.levels.len() <= level {
            self.levels.push((0, Vec::new()));
        }
        let Some((number, hashes)) = self.levels.get_mut(level) else {
            return Ok(());
        };
        hashes.push(hash);
        if hashes.len() < WIDTH {
            return Ok(());
        }
        let (full, hashes) = (*number, std::mem::take(hashes));
        *number += 1;
        self.write_hashes(level, full, &hashes)?;
        // The root of a full tile is one hash of the level above.
        self.push(level + 1, hashes.into_iter().collect::<Edge>().root())
    }

    /// Writes the tiles that are not full.
    fn end(&mut self) -> Result<(), Error> {
        let levels = std::mem::take(&mut self.levels);
        for (level, (number, hashes)) in levels.iter().enumerate() {
            if !hashes.is_empty() {
                self.write_hashes(level, *number, hashes)?;
            }
        }
        Ok(())
    }

    fn write_hashes(&self, level: usize, number: u64, hashes: &[Hash]) -> Result<(), Error> {
        let bytes: Vec<u8> = hashes.iter().flat_map(|hash| hash.0).collect();
        self.write(&level.to_string(), number, hashes.len(), &bytes)
    }

    fn write(&self, kind: &str, number: u64, count: usize, bytes: &[u8]) -> Result<(), Error> {
        let mut path = self.directory.join("tile").join(kind);
        path.push(number_path(number));
        if count < WIDTH {
            let mut name = path.file_name().unwrap_or_default().to_owned();
            name.push(".p");
            path.set_file_name(name);
            path.push(count.to_string());
        }
        fs::create_dir_all(path.parent().unwrap_or(self.directory)).map_err(fail)?;
        fs::write(path, bytes).map_err(fail)
    }
}

/// A tile's number as a path: 1234067 is `x001/x234/067`.
fn number_path(number: u64) -> PathBuf {
    let mut groups = vec![format!("{:03}", number % 1000)];
    let mut rest = number / 1000;
    while rest > 0 {
        groups.push(format!("x{:03}", rest % 1000));
        rest /= 1000;
    }
    groups.iter().rev().collect()
}

fn fail(error: std::io::Error) -> Error {
    Error::io("the tiles", error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_a_path_of_groups_of_three_digits() {
        for (number, path) in [
            (0, "000"),
            (67, "067"),
            (1_234_067, "x001/x234/067"),
            (1000, "x001/000"),
        ] {
            assert_eq!(number_path(number), Path::new(path));
        }
        assert_eq!(
            [place(1), place(256), place(257)],
            [(0, 1), (0, 256), (1, 1)]
        );
    }
}
