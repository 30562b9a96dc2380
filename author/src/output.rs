//! Writes files and directories atomically: beside their place first, then
//! renamed into it.

use std::fs::Permissions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::Dir;

use crate::error::AuthorError;

/// Writes `bytes` to `path`, in place of a file that is there.
pub(crate) fn file(path: &Path, bytes: &[u8]) -> Result<(), AuthorError> {
    let failed = |source| AuthorError::Write {
        path: path.to_owned(),
        source,
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".toolward-");
    let mode = readable();
    if let Some(mode) = mode {
        builder.permissions(mode);
    }
    let mut temporary = builder.tempfile_in(parent(path)).map_err(failed)?;
    temporary.write_all(bytes).map_err(failed)?;
    temporary.as_file().sync_all().map_err(failed)?;
    temporary
        .persist(path)
        .map_err(|error| failed(error.error))?;
    Ok(())
}

/// Writes a directory with `files` in it, names with `/` between folders.
/// `path` must not exist yet.
pub(crate) fn directory<'a>(
    path: &Path,
    files: impl IntoIterator<Item = (&'a str, &'a [u8])>,
) -> Result<(), AuthorError> {
    let failed = |source| AuthorError::Write {
        path: path.to_owned(),
        source,
    };
    if path.symlink_metadata().is_ok() {
        return Err(AuthorError::Exists {
            path: path.to_owned(),
        });
    }
    let parent = parent(path);
    std::fs::create_dir_all(&parent).map_err(failed)?;
    let temporary = tempfile::Builder::new()
        .prefix(".toolward-")
        .tempdir_in(&parent)
        .map_err(failed)?;
    let root = Dir::open_ambient_dir(temporary.path(), ambient_authority()).map_err(failed)?;
    for (name, bytes) in files {
        if let Some((folder, _)) = name.rsplit_once('/') {
            root.create_dir_all(folder).map_err(failed)?;
        }
        root.write(name, bytes).map_err(failed)?;
    }
    // A temporary directory is the user's alone; a bundle is for others to read.
    if let Some(mode) = listable() {
        std::fs::set_permissions(temporary.path(), mode).map_err(failed)?;
    }
    std::fs::rename(temporary.path(), path).map_err(failed)?;
    // It has moved: there is nothing left to remove.
    let _ = temporary.keep();
    Ok(())
}

fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

#[cfg(unix)]
#[expect(
    clippy::unnecessary_wraps,
    reason = "other systems have no modes to set"
)]
fn readable() -> Option<Permissions> {
    use std::os::unix::fs::PermissionsExt as _;
    Some(Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn readable() -> Option<Permissions> {
    None
}

#[cfg(unix)]
fn listable() -> Option<Permissions> {
    use std::os::unix::fs::PermissionsExt as _;
    Some(Permissions::from_mode(0o755))
}

#[cfg(not(unix))]
fn listable() -> Option<Permissions> {
    None
}
