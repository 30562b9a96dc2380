//! Reads a bundle directory through `cap-std`, beneath one handle, without following links. Each
//! file is read while its folder is walked, so that no name is looked up twice.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::sync::Arc;

use cap_fs_ext::{DirExt as _, FollowSymlinks, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _};
use cap_std::fs::{Dir, File, OpenOptions};

use super::document::{BundleHead, Files};
use crate::error::{ErrorKind, Refusal, io_failed, too_large, unplaced_io};
use crate::manifest::{self, ENVELOPE_FILE, FileDigest};
use crate::path::BundlePath;
use crate::text::{bytes, quoted};
use crate::{envelope, provenance};

/// Reads a directory whose envelope and manifest, if they exist, `open` accepts.
pub(super) fn read<H: BundleHead>(
    root: &Dir,
    open: impl FnOnce(Option<&[u8]>, Option<&[u8]>) -> Result<H, Refusal>,
) -> Result<(H, Files), Refusal> {
    let envelope = read_document(root, ENVELOPE_FILE, envelope::MAX_BYTES)?;
    let loose = read_document(root, manifest::FILE, manifest::MAX_BYTES)?;
    let mut head = open(envelope.as_deref(), loose.as_deref())?;
    if let Some(provenance) = read_document(root, provenance::FILE, envelope::MAX_BYTES)? {
        head.provenance(&provenance)?;
    }
    let expected: BTreeMap<String, FileDigest> = head
        .manifest()
        .entries()
        .map(|(path, expected)| (path.as_str().to_owned(), expected))
        .collect();
    let folders: BTreeSet<String> = head
        .manifest()
        .entries()
        .flat_map(|(path, _)| path.folders())
        .map(str::to_owned)
        .collect();
    let mut reader = FolderReader {
        expected,
        folders,
        head: &mut head,
        files: Files::new(),
    };
    reader.folder(root, "")?;
    let files = reader.files;
    let missing = head
        .manifest()
        .entries()
        .find(|(path, _)| !files.contains_key(*path));
    if let Some((path, _)) = missing {
        return Err(Refusal::new(ErrorKind::FileMissing).at(path.as_str()));
    }
    Ok((head, files))
}

/// Reads one of the documents at the root, or `None` if it is missing.
fn read_document(root: &Dir, name: &str, max: usize) -> Result<Option<Vec<u8>>, Refusal> {
    let Some(file) = open_file(root, name, name)? else {
        return Ok(None);
    };
    let mut document = Vec::new();
    file.take(max as u64 + 1)
        .read_to_end(&mut document)
        .map_err(|error| io_failed(name, error))?;
    if document.len() > max {
        return Err(too_large(max).at(name));
    }
    Ok(Some(document))
}

/// Opens a regular file in `folder` itself, if it exists: no link is followed, no pipe blocks.
fn open_file(folder: &Dir, name: &str, place: &str) -> Result<Option<File>, Refusal> {
    let mut options = OpenOptions::new();
    options.read(true).follow(FollowSymlinks::No).nonblock(true);
    let file = match folder.open_with(name, &options) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            let metadata = folder.symlink_metadata(name);
            return Err(match metadata.is_ok_and(|metadata| !metadata.is_file()) {
                true => not_regular().at(place),
                false => io_failed(place, error),
            });
        }
    };
    let metadata = file.metadata().map_err(|error| io_failed(place, error))?;
    match metadata.is_file() {
        true => Ok(Some(file)),
        false => Err(not_regular().at(place)),
    }
}

fn not_regular() -> Refusal {
    Refusal::new(ErrorKind::FileType).expected("a regular file")
}

struct FolderReader<'a, H> {
    expected: BTreeMap<String, FileDigest>,
    folders: BTreeSet<String>,
    head: &'a mut H,
    files: Files,
}

impl<H: BundleHead> FolderReader<'_, H> {
    /// Reads all files in and below a folder of the bundle; `prefix` is its path with a final
    /// slash. A name that the manifest doesn't list is refused, so the manifest bounds the walk.
    fn folder(&mut self, folder: &Dir, prefix: &str) -> Result<(), Refusal> {
        let at = if prefix.is_empty() { "." } else { prefix };
        let mut names = Vec::new();
        for entry in folder.entries().map_err(|error| io_failed(at, error))? {
            let entry = entry.map_err(|error| io_failed(at, error))?;
            let kind = entry.file_type().map_err(|error| io_failed(at, error))?;
            let name = entry.file_name().into_string().map_err(|name| {
                Refusal::new(ErrorKind::PathInvalid)
                    .at(at)
                    .expected("a name in ASCII")
                    .found(quoted(&name.to_string_lossy()))
            })?;
            names.push((name, kind));
        }
        // Sorted, so that the refusal does not depend on the order of the file system.
        names.sort_by(|(a, _), (b, _)| a.cmp(b));
        for (name, kind) in names {
            let path = format!("{prefix}{name}");
            if kind.is_dir() {
                self.subfolder(folder, &name, &path)?;
            } else if kind.is_file() {
                self.file(folder, &name, &path)?;
            } else {
                return Err(not_regular().at(quoted(&path)).found(if kind.is_symlink() {
                    "a symbolic link"
                } else {
                    "a special file"
                }));
            }
        }
        Ok(())
    }

    fn subfolder(&mut self, folder: &Dir, name: &str, path: &str) -> Result<(), Refusal> {
        if !self.folders.contains(path) {
            return Err(Refusal::new(ErrorKind::FileExtra)
                .at(quoted(path))
                .found("a folder in which the manifest lists nothing"));
        }
        let subfolder = folder
            .open_dir_nofollow(name)
            .map_err(|error| io_failed(path, error))?;
        self.folder(&subfolder, &format!("{path}/"))
    }

    fn file(&mut self, folder: &Dir, name: &str, path: &str) -> Result<(), Refusal> {
        let Some(expected) = self.expected.get(path).copied() else {
            return if [manifest::FILE, ENVELOPE_FILE, provenance::FILE].contains(&path) {
                Ok(())
            } else {
                Err(Refusal::new(ErrorKind::FileExtra).at(quoted(path)))
            };
        };
        let file = open_file(folder, name, path)?
            .ok_or_else(|| Refusal::new(ErrorKind::FileMissing).at(path))?;
        let content = self
            .content(file, expected)
            .map_err(|refusal| refusal.at(path))?;
        self.files.insert(BundlePath::parse(path)?, content);
        Ok(())
    }

    /// Reads a file of exactly the expected size and digest.
    fn content(&mut self, mut file: File, expected: FileDigest) -> Result<Arc<[u8]>, Refusal> {
        let wrong_size = |size: u64| {
            Refusal::new(ErrorKind::SizeMismatch)
                .expected(bytes(expected.size))
                .found(bytes(size))
        };
        let size = file.metadata().map_err(unplaced_io)?.len();
        if size != expected.size {
            return Err(wrong_size(size));
        }
        let content = expected.read(|piece| {
            file.read_exact(piece).map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => wrong_size(0).found("less"),
                _ => unplaced_io(error),
            })?;
            self.head.progress(piece.len());
            Ok(())
        })?;
        if file.read(&mut [0]).map_err(unplaced_io)? != 0 {
            return Err(wrong_size(0).found("more"));
        }
        Ok(content)
    }
}
