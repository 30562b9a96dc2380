//! What the files of one import may have together: all of them are in memory before the first is looked at.

use std::path::Path;

use toolward_operator::file;

use crate::codes::Code;
use crate::failure::{Failure, Kind, Result};

/// Bytes of all files together.
const MAX_TOTAL: usize = 64 * 1024 * 1024;

/// What is left for further files.
pub(super) struct Budget {
    left: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { left: MAX_TOTAL }
    }
}

impl Budget {
    /// Reads a file of at most `limit` bytes.
    pub(super) fn read(&mut self, path: &Path, limit: usize) -> Result<Vec<u8>> {
        let size = path.metadata().map_or(0, |metadata| metadata.len());
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        if size > self.left && size <= limit {
            let message = format!("{}: more than {MAX_TOTAL} bytes of files", path.display());
            return Err(Failure::new(Kind::Usage, Code::ImportTooMany, message));
        }
        let bytes = file::read(path, limit.min(self.left))?;
        self.left = self.left.saturating_sub(bytes.len());
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_more_than_one_import_keeps_are_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        std::fs::write(&path, "12345678").unwrap();
        let mut budget = Budget { left: 12 };
        assert_eq!(budget.read(&path, 8).unwrap(), b"12345678");
        let refused = budget.read(&path, 8).unwrap_err();
        assert!(refused.to_string().contains("bytes of files"), "{refused}");
        assert_eq!(budget.left, 4);
    }
}
