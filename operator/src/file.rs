//! Small files of the user's: read within bounds, written whole or not at all.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

use crate::error::{Error, Kind};

/// Reads a file of at most `limit` bytes. Refuses anything but a regular file.
pub fn read(path: &Path, limit: usize) -> Result<Vec<u8>, Error> {
    let file = regular(path).map_err(|error| Error::unreadable(path, error))?;
    read_opened(file, path, limit)
}

/// Opens a regular file. What is none is not opened, or not waited for: a pipe
/// would wait for a writer.
pub fn regular(path: &Path) -> io::Result<File> {
    let check = |metadata: Metadata| match metadata.is_file() {
        true => Ok(()),
        false => Err(io::Error::other(
            "expected a regular file, found another kind",
        )),
    };
    check(path.metadata()?)?;
    // It may have been replaced by a pipe since.
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).map_err(io::Error::other)?;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)?;
    check(file.metadata()?)?;
    Ok(file)
}

/// Reads what was opened at `path`, at most `limit` bytes.
pub fn read_opened(file: File, path: &Path, limit: usize) -> Result<Vec<u8>, Error> {
    let limit = limit as u64;
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|error| Error::unreadable(path, error))?;
    if bytes.len() as u64 > limit {
        return Err(Error::unreadable(
            path,
            format!("the file is larger than {limit} bytes"),
        ));
    }
    Ok(bytes)
}

/// Writes a new file, whole or not at all. Overwrites nothing.
pub fn write_new(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let file = prepared(path, bytes)?;
    match file.persist_noclobber(path) {
        Ok(_) => Ok(()),
        Err(error) if error.error.kind() == std::io::ErrorKind::AlreadyExists => Err(exists(path)),
        Err(error) => Err(Error::unwritable(path, error.error)),
    }
}

/// Replaces a file atomically: a reader sees the old one or the new one.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let file = prepared(path, bytes)?;
    file.persist(path)
        .map(drop)
        .map_err(|error| Error::unwritable(path, error.error))
}

fn prepared(path: &Path, bytes: &[u8]) -> Result<tempfile::NamedTempFile, Error> {
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
    write().map_err(|error: std::io::Error| Error::unwritable(path, error))
}

/// The failure of a place that is taken.
pub fn exists(path: &Path) -> Error {
    Error::new(
        Kind::Failed,
        "output-exists",
        format!("{}: this exists already", path.display()),
    )
    .hint("name another place, or move what is there away yourself")
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::sync::mpsc;
    use std::time::Duration;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn what_is_no_regular_file_is_refused_and_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        mknodat(CWD, path("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        let _socket = UnixListener::bind(path("socket")).unwrap();
        std::os::unix::fs::symlink("pipe", path("link")).unwrap();
        let others = ["pipe", "socket", "link", "."];
        let paths: Vec<_> = others.map(&path).into();
        let (tell, told) = mpsc::channel();
        std::thread::spawn(move || {
            for path in paths {
                tell.send(read(&path, 100).unwrap_err().code).unwrap();
            }
        });
        for name in others {
            let code = told.recv_timeout(Duration::from_secs(20));
            assert_eq!(code.as_deref(), Ok("file-unreadable"), "{name}");
        }
        std::fs::write(path("file"), "text").unwrap();
        assert_eq!(read(&path("file"), 100).unwrap(), b"text");
        assert!(read(&path("file"), 3).is_err());
    }
}
