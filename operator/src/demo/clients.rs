//! Which clients' files name the demo's directory: they still have its block.

use std::path::{Path, PathBuf};

use crate::file;

/// Largest file of a client that is looked into, in bytes.
const MAX_FILE_BYTES: usize = 8 << 20;

/// Those of these files that name the directory. A file that is missing, too large or unreadable is left out.
pub fn mentioning<'f>(
    directory: &Path,
    files: impl IntoIterator<Item = &'f PathBuf>,
) -> Vec<&'f PathBuf> {
    let directory = directory.display().to_string();
    let names = |path: &&PathBuf| {
        let bytes = file::read(path, MAX_FILE_BYTES).unwrap_or_default();
        String::from_utf8_lossy(&bytes).contains(&directory)
    };
    files.into_iter().filter(names).collect()
}
