//! Reads the files of a bundle under work from its authoring directory: which
//! are taken, under what names, within what limits. Never follows a symbolic
//! link, so that what gets signed lies inside the directory.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use toolward_signing::manifest::FileRole;

pub use self::error::FilesError;
use self::error::SYMBOLIC_LINK;
use crate::documents::role_of;
use crate::sizes;

mod error;

/// The folders that a bundle is made of.
pub const FOLDERS: &[&str] = &[
    "actions",
    "drivers",
    "icons",
    "prompts",
    "resources",
    "schemas",
    "tools",
];

/// Those that an authoring directory may have with a dot before the name (AIP-14, AIP-30, AIP-39). No path in a bundle
/// begins with one.
const DOTTED: &[&str] = &["actions", "drivers", "tools"];

/// All files together, in bytes: the limit of the archive.
pub const MAX_TOTAL_BYTES: u64 = 512 * 1024 * 1024;

/// How large a file may be, in bytes: what the reader of documents of its name takes, for others
/// [`MAX_TOTAL_BYTES`]. Compared before a file is read.
#[must_use]
pub fn limit_of(path: &str) -> u64 {
    let limit = sizes::of(path).and_then(|limit| u64::try_from(limit).ok());
    limit.unwrap_or(MAX_TOTAL_BYTES)
}

/// How many files a bundle may have. A manifest of 256 KiB holds fewer.
pub const MAX_FILES: usize = 4096;

/// How deep folders may lie (at most 8 segments).
const MAX_DEPTH: usize = 8;

/// The files of a bundle under work, by name within the bundle.
pub type Files = BTreeMap<String, Arc<[u8]>>;

/// What was found in an authoring directory.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Found {
    /// The files to pack.
    pub files: Files,
    /// Hidden files that were left out.
    pub skipped: Vec<String>,
    /// What could not be read, where the rest was.
    pub problems: Vec<FilesError>,
    /// The folders that lie under a name with a dot, without it.
    dotted: Vec<&'static str>,
}

impl Found {
    /// Where a file of the bundle lies in the directory.
    #[must_use]
    pub fn place(&self, path: &str) -> String {
        let folder = path.split('/').next().unwrap_or_default();
        match self.dotted.contains(&folder) {
            true => format!(".{path}"),
            false => path.to_owned(),
        }
    }
}

/// Whether a directory has one of the folders that the AIPs name with a dot: `.actions`, `.drivers`, `.tools`.
#[must_use]
pub fn is_workspace(directory: &Path) -> bool {
    workspace_folders(directory).next().is_some()
}

/// Those of these folders that a directory has.
pub fn workspace_folders(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let folders = DOTTED.iter();
    folders
        .map(|folder| directory.join(format!(".{folder}")))
        .filter(|folder| folder.is_dir())
}

/// Where a file of the bundle in `directory` lies, or will lie once it is made.
#[must_use]
pub fn place(directory: &Path, path: &str) -> String {
    let folder = path.split('/').next().unwrap_or_default();
    let dotted = DOTTED.contains(&folder)
        && directory.join(format!(".{folder}")).is_dir()
        && !directory.join(folder).exists();
    match dotted {
        true => format!(".{path}"),
        false => path.to_owned(),
    }
}

/// Reads the files that belong into a bundle: everything in [`FOLDERS`] and, of
/// the root, `README.md` and names that start with `LICENSE`. `.actions`, `.drivers` and
/// `.tools` are read as the folders without the dot.
///
/// # Errors
///
/// When something is not a regular file, can't be read, has no UTF-8 name, or when
/// all of it is more than a bundle may hold.
pub fn collect(directory: &Path) -> Result<Found, FilesError> {
    packed(directory, false)
}

/// [`collect`], but passes over what can't be read, and says so in [`Found::problems`].
///
/// # Errors
///
/// When the directory itself can't be read, or all of it is more than a bundle may hold.
pub fn survey(directory: &Path) -> Result<Found, FilesError> {
    packed(directory, true)
}

fn packed(directory: &Path, tolerant: bool) -> Result<Found, FilesError> {
    let root = open(directory)?;
    let mut walk = Walk {
        at: directory,
        found: Found::default(),
        total: 0,
        pick: Pick::Packed,
        tolerant,
    };
    let names = walk.names(&root, "")?;
    for name in &names {
        let Some(bare) = name.strip_prefix('.') else {
            continue;
        };
        let Some(bare) = DOTTED.iter().find(|folder| **folder == bare) else {
            continue;
        };
        if names.iter().any(|name| name == bare) {
            walk.tolerate(Err(FilesError::Twice {
                path: directory.join(name),
                without: bare,
            }))?;
            continue;
        }
        walk.found.dotted.push(bare);
        let read = walk.folder(&root, name, bare, 1);
        walk.tolerate(read)?;
    }
    for name in names {
        let folder = FOLDERS.contains(&name.as_str());
        let document = name == "README.md" || name.starts_with("LICENSE");
        let read = if folder {
            walk.folder(&root, &name, &name, 1)
        } else if document {
            walk.file(&root, &name, &name)
        } else {
            Ok(())
        };
        walk.tolerate(read)?;
    }
    Ok(walk.found)
}

/// Reads every file below `directory`, under any name: for a packed bundle,
/// in which a file too many is an error and not something to pass over.
///
/// # Errors
///
/// As [`collect`].
pub fn tree(directory: &Path) -> Result<Files, FilesError> {
    let root = open(directory)?;
    let mut walk = Walk {
        at: directory,
        found: Found::default(),
        total: 0,
        pick: Pick::All,
        tolerant: false,
    };
    walk.entries(&root, "", 0)?;
    Ok(walk.found.files)
}

/// Reads the documents, schemas and components below `directory`, which need be
/// no bundle.
///
/// # Errors
///
/// As [`collect`].
pub fn documents(directory: &Path) -> Result<Files, FilesError> {
    let root = open(directory)?;
    let mut walk = Walk {
        at: directory,
        found: Found::default(),
        total: 0,
        pick: Pick::Documents,
        tolerant: false,
    };
    walk.entries(&root, "", 0)?;
    Ok(walk.found.files)
}

/// Reads the sources of a crate: every file below `directory` but hidden ones
/// and what build tools write.
///
/// # Errors
///
/// As [`collect`].
pub fn sources(directory: &Path) -> Result<Files, FilesError> {
    sources_with(directory, false)
}

/// [`sources`], but passes over what can't be read, such as symbolic links.
///
/// # Errors
///
/// When the directory itself can't be read, or all of it is more than a bundle may hold.
pub fn readable_sources(directory: &Path) -> Result<Files, FilesError> {
    sources_with(directory, true)
}

fn sources_with(directory: &Path, tolerant: bool) -> Result<Files, FilesError> {
    let root = open(directory)?;
    let mut walk = Walk {
        at: directory,
        found: Found::default(),
        total: 0,
        pick: Pick::Sources,
        tolerant,
    };
    walk.entries(&root, "", 0)?;
    Ok(walk.found.files)
}

/// Folders that build tools and interpreters fill.
pub const BUILD_FOLDERS: &[&str] = &["target", "node_modules", "__pycache__"];

fn is_document(path: &str) -> bool {
    !matches!(
        role_of(path),
        FileRole::Other | FileRole::Icon | FileRole::Prompt | FileRole::Resource
    )
}

/// Reads one file below `directory`, at most `limit` bytes of it, never through
/// a symbolic link in its last segment.
///
/// # Errors
///
/// As [`collect`].
pub fn read(directory: &Path, name: &str, limit: u64) -> Result<Arc<[u8]>, FilesError> {
    let root = open(directory)?;
    let path = directory.join(name);
    read_in(&root, name, &path, (limit, limit))
}

fn open(directory: &Path) -> Result<Dir, FilesError> {
    Dir::open_ambient_dir(directory, ambient_authority()).map_err(|source| FilesError::Io {
        path: directory.to_owned(),
        source,
    })
}

/// Reads a file with the limit of its name, and what is left of that of all files.
fn read_in(
    dir: &Dir,
    name: &str,
    path: &Path,
    (own, left): (u64, u64),
) -> Result<Arc<[u8]>, FilesError> {
    let io = |source| FilesError::Io {
        path: path.to_owned(),
        source,
    };
    // Before opening, since opening a pipe would wait for its other end.
    regular(&dir.symlink_metadata(name).map_err(io)?, path)?;
    let file = dir.open(name).map_err(io)?;
    let metadata = file.metadata().map_err(io)?;
    regular(&metadata, path)?;
    let fits = |found: u64| {
        if found > own {
            let path = path.to_owned();
            return Err(FilesError::TooLarge {
                path,
                limit: own,
                found,
            });
        }
        (found <= left)
            .then_some(())
            .ok_or_else(|| FilesError::TooMuch {
                path: path.to_owned(),
                limit: left,
                what: "bytes",
            })
    };
    fits(metadata.len())?;
    let mut bytes = Vec::new();
    // It may have grown since.
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

struct Walk<'a> {
    at: &'a Path,
    found: Found,
    total: u64,
    pick: Pick,
    /// Whether what can't be read is passed over.
    tolerant: bool,
}

/// Which files of a folder are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pick {
    /// All but hidden ones.
    Packed,
    /// All.
    All,
    /// Documents, schemas and components; build folders are passed over.
    Documents,
    /// All but hidden files and build folders.
    Sources,
}

impl Walk<'_> {
    /// The names in a directory, sorted, so that errors come in a fixed order.
    fn names(&mut self, dir: &Dir, prefix: &str) -> Result<Vec<String>, FilesError> {
        let at = self.at.join(prefix);
        let io = |source| FilesError::Io {
            path: at.clone(),
            source,
        };
        let mut names = Vec::new();
        for entry in dir.entries().map_err(io)? {
            let name = entry.map_err(io)?.file_name();
            match name.into_string() {
                Ok(name) => names.push(name),
                Err(name) => {
                    let path = self.at.join(prefix).join(name);
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

    fn folder(
        &mut self,
        parent: &Dir,
        name: &str,
        path: &str,
        depth: usize,
    ) -> Result<(), FilesError> {
        let shown = self.at.join(self.found.place(path));
        let io = |source| FilesError::Io {
            path: shown.clone(),
            source,
        };
        let metadata = parent.symlink_metadata(name).map_err(io)?;
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

    fn entries(&mut self, dir: &Dir, folder: &str, depth: usize) -> Result<(), FilesError> {
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
            let shown = self.at.join(&path);
            let metadata = match dir.symlink_metadata(&name) {
                Ok(metadata) => metadata,
                Err(source) => {
                    let path = shown;
                    self.tolerate(Err(FilesError::Io { path, source }))?;
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

    /// Keeps a problem of one file or folder, where the rest is to be read. Limits of the whole hold always.
    fn tolerate(&mut self, read: Result<(), FilesError>) -> Result<(), FilesError> {
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

    fn file(&mut self, dir: &Dir, name: &str, path: &str) -> Result<(), FilesError> {
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
