//! Writes files and directories atomically: first under a temporary name next to their place, and
//! then renamed.

use std::fs::Permissions;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use cap_fs_ext::{DirExt as _, FollowSymlinks, OpenOptionsFollowExt as _};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};

use crate::error::AuthorError;

/// Writes `bytes` to `path`. An existing file is replaced.
pub(crate) fn file(path: &Path, bytes: &[u8]) -> Result<(), AuthorError> {
    toolward_support::files::replace(path, bytes, 0o644).map_err(AuthorError::write(path))
}

/// Writes `bytes` to the file `name` below `root`. An existing file is replaced. Creates the
/// folders in between, and follows no links, since they could lead elsewhere.
pub(crate) fn file_beneath(root: &Path, name: &str, bytes: &[u8]) -> Result<(), AuthorError> {
    let write = || -> std::io::Result<()> {
        let mut folder = Dir::open_ambient_dir(root, ambient_authority())?;
        let (folders, file) = name.rsplit_once('/').unwrap_or(("", name));
        for segment in folders.split('/').filter(|segment| !segment.is_empty()) {
            match folder.create_dir(segment) {
                Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                    return Err(error);
                }
                _ => folder = folder.open_dir_nofollow(segment)?,
            }
        }
        let temporary = format!(".toolward-{}-{file}", std::process::id());
        let mut options = OpenOptions::new();
        // An earlier process with the same number may have left the temporary file behind.
        options.write(true).create(true).truncate(true);
        options.follow(FollowSymlinks::No);
        let mut opened = folder.open_with(&temporary, &options)?;
        let written = opened.write_all(bytes).and_then(|()| opened.sync_all());
        let renamed = written.and_then(|()| folder.rename(&temporary, &folder, file));
        if renamed.is_err() {
            let _ = folder.remove_file(&temporary);
        }
        renamed
    };
    write().map_err(AuthorError::write(&root.join(name)))
}

/// Writes a directory with `files`, whose names use `/` between folders. `path` must not exist yet.
///
/// # Errors
/// If `path` exists, or can't be written.
pub fn directory<'a>(
    path: &Path,
    files: impl IntoIterator<Item = (&'a str, &'a [u8])>,
) -> Result<(), AuthorError> {
    let failed = AuthorError::write(path);
    crate::keys::free(path)?;
    let parent = path.parent().filter(|one| *one != Path::new(""));
    let parent = parent.unwrap_or(Path::new("."));
    std::fs::create_dir_all(parent).map_err(&failed)?;
    let temporary = tempfile::Builder::new()
        .prefix(".toolward-")
        .tempdir_in(parent)
        .map_err(&failed)?;
    let root = Dir::open_ambient_dir(temporary.path(), ambient_authority()).map_err(&failed)?;
    for (name, bytes) in files {
        if let Some((folder, _)) = name.rsplit_once('/') {
            root.create_dir_all(folder).map_err(&failed)?;
        }
        root.write(name, bytes).map_err(&failed)?;
    }
    // A temporary directory is private to the user, but a bundle is for others to read.
    let mode = Permissions::from_mode(0o755);
    std::fs::set_permissions(temporary.path(), mode).map_err(&failed)?;
    std::fs::rename(temporary.path(), path).map_err(&failed)?;
    // It was moved, so nothing is left to remove.
    let _ = temporary.keep();
    Ok(())
}
