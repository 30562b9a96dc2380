//! Reads the files of an unpacked bundle from its authoring directory. This module decides which
//! files belong to the bundle and what their names in it are, and applies the limits. Symbolic
//! links below the directory are not followed, so that every signed file is inside the directory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use toolward_contract::front_matter;
use toolward_signing::manifest::TOOLS_FILE;

use self::walk::{Pick, Walk, read_in};
use crate::documents::{file_name, is_prompt};
pub use crate::error::FilesError;

mod walk;

/// How large `bundle.toml` may be, in bytes: the same limit as for the manifest made from it.
pub(crate) const MAX_BUNDLE_TOML: usize = 256 * 1024;

/// The largest `tools.json` that is read, in bytes. The parser accepts less.
const MAX_TOOLS_JSON: usize = 4 * 1024 * 1024;

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

/// The folders that an authoring directory may have with a dot before the name (AIP-14, AIP-30,
/// AIP-39). No path in a bundle starts with a dot.
const DOTTED: &[&str] = &["actions", "drivers", "tools"];

/// How large all files together may be, in bytes: the same limit as for an archive.
pub const MAX_TOTAL_BYTES: u64 = 512 * 1024 * 1024;

/// How large a file may be, in bytes: for `bundle.toml`, contracts, drivers, actions and prompts
/// the limit of the parser, for `tools.json` 4 MiB, otherwise [`MAX_TOTAL_BYTES`]. The size is
/// checked before a file is read.
pub fn limit_of(path: &str) -> u64 {
    let limit = match file_name(path) {
        "bundle.toml" => MAX_BUNDLE_TOML,
        TOOLS_FILE => MAX_TOOLS_JSON,
        "TOOL.md" | "DRIVER.md" | "ACTION.md" => front_matter::MAX_BYTES,
        name if name.ends_with(".tool.md") || is_prompt(path) => front_matter::MAX_BYTES,
        _ => return MAX_TOTAL_BYTES,
    };
    u64::try_from(limit).unwrap_or(MAX_TOTAL_BYTES)
}

/// The most files that are read from a directory. A valid bundle has fewer: its manifest, of at
/// most 256 KiB, can't list this many.
pub const MAX_FILES: usize = 4096;

/// The files of an authoring directory, by name within the bundle.
pub type Files = BTreeMap<String, Arc<[u8]>>;

/// The files of an authoring directory.
#[derive(Debug, Default)]
pub struct DirectoryFiles {
    /// The files to pack.
    pub files: Files,
    /// The hidden files and folders, which are not read.
    pub skipped: Vec<String>,
    /// The errors of unreadable files, if the remaining files were read anyway.
    pub problems: Vec<FilesError>,
    /// The names, without the dot, of the folders that have a dot in the directory.
    dotted: Vec<&'static str>,
}

impl DirectoryFiles {
    /// The path that a file of the bundle has in the directory.
    pub fn place(&self, path: &str) -> String {
        dotted(path, |folder| self.dotted.contains(&folder))
    }
}

/// Whether a directory has one of the folders that the AIPs name with a dot: `.actions`,
/// `.drivers`, `.tools`.
pub fn is_workspace(directory: &Path) -> bool {
    workspace_folders(directory).next().is_some()
}

/// The folders with a dot that a directory has.
pub fn workspace_folders(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let folders = DOTTED.iter();
    folders
        .map(|folder| directory.join(format!(".{folder}")))
        .filter(|folder| folder.is_dir())
}

/// The path that a file of the bundle has in `directory`, or would have if it existed.
pub fn place(directory: &Path, path: &str) -> String {
    dotted(path, |folder| {
        DOTTED.contains(&folder)
            && directory.join(format!(".{folder}")).is_dir()
            && !directory.join(folder).exists()
    })
}

/// The path of a file in the directory: with a dot before it if its first folder has a dot there.
fn dotted(path: &str, is_dotted: impl FnOnce(&str) -> bool) -> String {
    match is_dotted(path.split('/').next().unwrap_or_default()) {
        true => format!(".{path}"),
        false => path.to_owned(),
    }
}

/// Reads the files that belong in a bundle: all files below the [`FOLDERS`], except hidden files.
/// At the root, it also reads `README.md` and files whose names start with `LICENSE`. `.actions`,
/// `.drivers` and `.tools` are read as the folders without the dot.
///
/// # Errors
///
/// When a file is not a regular file, can't be read or has no UTF-8 name, or when the files
/// together exceed a bundle's limits.
pub fn collect(directory: &Path) -> Result<DirectoryFiles, FilesError> {
    packed(directory, false)
}

/// As [`collect`], but continues after an unreadable file, whose error is in
/// [`DirectoryFiles::problems`].
///
/// # Errors
///
/// When the directory itself can't be read, or all of it is more than a bundle may hold.
pub fn survey(directory: &Path) -> Result<DirectoryFiles, FilesError> {
    packed(directory, true)
}

fn packed(directory: &Path, tolerant: bool) -> Result<DirectoryFiles, FilesError> {
    let root = open(directory)?;
    let mut walk = Walk::new(directory, Pick::Packed, tolerant);
    let names = walk.names(&root, "")?;
    for name in &names {
        let bare = name.strip_prefix('.').unwrap_or_default();
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
        let read = match (folder, document) {
            (true, _) => walk.folder(&root, &name, &name, 1),
            (_, true) => walk.file(&root, &name, &name),
            _ => continue,
        };
        walk.tolerate(read)?;
    }
    Ok(walk.found)
}

/// Reads every file below `directory`, under any name. For a packed bundle, in which an additional
/// file is an error.
///
/// # Errors
///
/// As [`collect`].
pub fn tree(directory: &Path) -> Result<Files, FilesError> {
    walk_all(directory, Pick::All, false)
}

/// Reads the contracts, drivers, actions, schemas and components below `directory`, which need not
/// be a bundle.
///
/// # Errors
///
/// As [`collect`].
pub fn documents(directory: &Path) -> Result<Files, FilesError> {
    walk_all(directory, Pick::Documents, false)
}

/// Reads the sources of a crate: every file below `directory` except hidden files and the output of
/// build tools.
///
/// # Errors
///
/// As [`collect`].
pub fn sources(directory: &Path) -> Result<Files, FilesError> {
    walk_all(directory, Pick::Sources, false)
}

/// As [`sources`], but without unreadable files, such as symbolic links.
///
/// # Errors
///
/// When the directory itself can't be read, or all of it is more than a bundle may hold.
pub fn readable_sources(directory: &Path) -> Result<Files, FilesError> {
    walk_all(directory, Pick::Sources, true)
}

fn walk_all(directory: &Path, pick: Pick, tolerant: bool) -> Result<Files, FilesError> {
    let root = open(directory)?;
    let mut walk = Walk::new(directory, pick, tolerant);
    walk.entries(&root, "", 0)?;
    Ok(walk.found.files)
}

/// Folders that build tools and interpreters fill.
pub const BUILD_FOLDERS: &[&str] = &["target", "node_modules", "__pycache__"];

/// Reads one file below `directory` with at most `limit` bytes. The last segment of `name` may not
/// be a symbolic link.
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
    Dir::open_ambient_dir(directory, ambient_authority()).map_err(FilesError::io(directory))
}
