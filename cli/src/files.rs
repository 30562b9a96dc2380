//! Small files of the user's: read within bounds, written whole or not at all.

use std::io::{Read as _, Write as _};
use std::path::Path;

use crate::failure::{Exit, Failure};

/// Reads a file of at most `limit` bytes.
pub(crate) fn read(path: &Path, limit: usize) -> Result<Vec<u8>, Failure> {
    let limit = limit as u64;
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(limit.saturating_add(1)).read_to_end(&mut bytes))
        .map_err(|error| Failure::unreadable(path, error))?;
    if bytes.len() as u64 > limit {
        return Err(Failure::unreadable(
            path,
            format!("the file is larger than {limit} bytes"),
        ));
    }
    Ok(bytes)
}

/// Writes a new file, whole or not at all. Overwrites nothing.
pub(crate) fn write_new(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let file = prepared(path, bytes)?;
    match file.persist_noclobber(path) {
        Ok(_) => Ok(()),
        Err(error) if error.error.kind() == std::io::ErrorKind::AlreadyExists => Err(exists(path)),
        Err(error) => Err(Failure::unwritable(path, error.error)),
    }
}

/// Writes a file in place of another: whoever reads it sees one or the other.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let file = prepared(path, bytes)?;
    file.persist(path)
        .map(drop)
        .map_err(|error| Failure::unwritable(path, error.error))
}

fn prepared(path: &Path, bytes: &[u8]) -> Result<tempfile::NamedTempFile, Failure> {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let write = || {
        let mut file = tempfile::Builder::new()
            .prefix(".toolward-")
            .permissions(std::fs::Permissions::from_mode(0o644))
            .tempfile_in(folder)?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        Ok(file)
    };
    write().map_err(|error: std::io::Error| Failure::unwritable(path, error))
}

/// The failure of a place that is taken.
pub(crate) fn exists(path: &Path) -> Failure {
    Failure::new(
        Exit::Failed,
        "output-exists",
        format!("{}: this exists already", path.display()),
    )
    .hint("name another place, or move what is there away yourself")
}
