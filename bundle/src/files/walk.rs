//! Walks an authoring directory: the files to read, their names within the bundle, and the limits.

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use cap_std::fs::Dir;
use toolward_signing::manifest::FileRole;

use super::{BUILD_FOLDERS, DirectoryFiles, MAX_FILES, MAX_TOTAL_BYTES, limit_of};
use crate::documents::role_of;
use crate::error::{FilesError, MAX_DEPTH, SYMBOLIC_LINK};

/// Reads a file. Its size is bounded by the limit for its name (`own`), and by what all files
/// together may still have (`left`).
pub(super) fn read_in(
    dir: &Dir,
    name: &str,
    path: &Path,
    (own, left): (u64, u64),
) -> Result<Arc<[u8]>, FilesError> {
    let io = FilesError::io(path);
    // Checked before opening, since opening a pipe would block.
    regular(&dir.symlink_metadata(name).map_err(&io)?, path)?;
    let file = dir.open(name).map_err(&io)?;
    let metadata = file.metadata().map_err(&io)?;
    regular(&metadata, path)?;
    let fits = |found: u64| match path.to_owned() {
        path if found > own => Err(FilesError::TooLarge {
            path,
            limit: own,
            found,
        }),
        path if found > left => Err(FilesError::TooMuch {
            path,
            limit: left,
            what: "bytes",
        }),
        _ => Ok(()),
    };
    fits(metadata.len())?;
    let mut bytes = Vec::new();
    // The file may have grown since.
    file.take(own.min(left).saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(io)?;
    fits(u64::try_from(bytes.len()).unwrap_or(u64::MAX))?;
    Ok(bytes.into())
}

fn regular(metadata: &cap_std::fs::Metadata, path: &Path) -> Result<(), FilesError> {
    let kind = metadata.file_type();
    if kind.is_file() {
        return Ok(());
    }
    Err(FilesError::NotRegular {
        path: path.to_owned(),
        kind: if kind.is_symlink() {
            SYMBOLIC_LINK
        } else if kind.is_dir() {
            "a directory"
        } else {
            "a device, socket or pipe"
        },
    })
}

pub(super) struct Walk<'a> {
    at: &'a Path,
    pub(super) found: DirectoryFiles,
    total: u64,
    pick: Pick,
    /// Whether unreadable files and folders are skipped.
    tolerant: bool,
}

/// Which files of a folder are read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Pick {
    /// All except hidden files.
    Packed,
    /// All.
    All,
    /// Contracts, drivers, actions, schemas and components, except in hidden folders and build
    /// folders.
    Documents,
    /// All except hidden files and build folders.
    Sources,
}

impl<'a> Walk<'a> {
    pub(super) fn new(at: &'a Path, pick: Pick, tolerant: bool) -> Self {
        Self {
            at,
            found: DirectoryFiles::default(),
            total: 0,
            pick,
            tolerant,
        }
    }

    /// The names in a directory, sorted, so that errors have a fixed order.
    pub(super) fn names(&mut self, dir: &Dir, prefix: &str) -> Result<Vec<String>, FilesError> {
        let at = self.at.join(prefix);
        let io = FilesError::io(&at);
        let mut names = Vec::new();
        for entry in dir.entries().map_err(&io)? {
            let name = entry.map_err(&io)?.file_name();
            match name.into_string() {
                Ok(name) => names.push(name),
                Err(name) => {
                    let path = at.join(name);
                    self.tolerate(Err(FilesError::Name { path }))?;
                }
            }
            if names.len() > MAX_FILES {
                return Err(self.too_many(prefix));
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    pub(super) fn folder(
        &mut self,
        parent: &Dir,
        name: &str,
        path: &str,
        depth: usize,
    ) -> Result<(), FilesError> {
        let shown = self.at.join(self.found.place(path));
        let io = FilesError::io(&shown);
        let metadata = parent.symlink_metadata(name).map_err(&io)?;
        if !metadata.is_dir() {
            return Err(FilesError::NotRegular {
                path: shown,
                kind: "no directory",
            });
        }
        if depth > MAX_DEPTH {
            return Err(FilesError::TooDeep { path: shown });
        }
        let dir = parent.open_dir(name).map_err(io)?;
        self.entries(&dir, path, depth)
    }

    pub(super) fn entries(
        &mut self,
        dir: &Dir,
        folder: &str,
        depth: usize,
    ) -> Result<(), FilesError> {
        for name in self.names(dir, folder)? {
            let path = match folder {
                "" => name.clone(),
                folder => format!("{folder}/{name}"),
            };
            if name.starts_with('.') && self.pick != Pick::All {
                self.found.skipped.push(path);
                continue;
            }
            if matches!(self.pick, Pick::Documents | Pick::Sources)
                && BUILD_FOLDERS.contains(&name.as_str())
            {
                continue;
            }
            let metadata = dir.symlink_metadata(&name);
            let metadata = match metadata.map_err(FilesError::io(&self.at.join(&path))) {
                Ok(metadata) => metadata,
                Err(error) => {
                    self.tolerate(Err(error))?;
                    continue;
                }
            };
            if self.pick == Pick::Documents && !metadata.is_dir() && !is_document(&path) {
                continue;
            }
            let read = if metadata.is_dir() {
                self.folder(dir, &name, &path, depth + 1)
            } else {
                self.file(dir, &name, &path)
            };
            self.tolerate(read)?;
        }
        Ok(())
    }

    /// If unreadable files are skipped, records an error instead of returning it. An error about
    /// the limits for all files is always returned.
    pub(super) fn tolerate(&mut self, read: Result<(), FilesError>) -> Result<(), FilesError> {
        match read {
            Err(error) if self.tolerant && !matches!(error, FilesError::TooMuch { .. }) => {
                if self.found.problems.len() >= MAX_FILES {
                    return Err(self.too_many(""));
                }
                self.found.problems.push(error);
                Ok(())
            }
            read => read,
        }
    }

    pub(super) fn file(&mut self, dir: &Dir, name: &str, path: &str) -> Result<(), FilesError> {
        if self.found.files.len() >= MAX_FILES {
            return Err(self.too_many(path));
        }
        let left = MAX_TOTAL_BYTES.saturating_sub(self.total);
        let shown = self.at.join(self.found.place(path));
        let bytes = read_in(dir, name, &shown, (limit_of(path), left))?;
        self.total += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.found.files.insert(path.to_owned(), bytes);
        Ok(())
    }

    fn too_many(&self, path: &str) -> FilesError {
        FilesError::TooMuch {
            path: self.at.join(path),
            limit: u64::try_from(MAX_FILES).unwrap_or(u64::MAX),
            what: "files",
        }
    }
}

fn is_document(path: &str) -> bool {
    !matches!(
        role_of(path),
        FileRole::Other | FileRole::Icon | FileRole::Prompt | FileRole::Resource
    )
}
