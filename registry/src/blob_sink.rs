//! Where the bytes of a blob go: in memory, or in a file that a later attempt resumes.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt as _};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};

use crate::artifact::Blob;
use crate::digest::Hasher;
use crate::failure::{Failure, io_failed};

/// A blob while it is downloaded. The bytes so far are hashed.
pub(crate) struct BlobSink {
    to: To,
    pub(crate) length: u64,
    pub(crate) hasher: Hasher,
    /// Whether some bytes are from an earlier attempt, and so unverified.
    pub(crate) resumed: bool,
}

enum To {
    Memory(Vec<u8>),
    File(Partial),
}

/// A file named after the expected digest, or one without a name, which is gone once it is closed.
struct Partial {
    folder: Dir,
    name: Option<String>,
    file: File,
}

impl BlobSink {
    pub(crate) fn memory() -> Self {
        Self {
            to: To::Memory(Vec::new()),
            length: 0,
            hasher: Hasher::default(),
            resumed: false,
        }
    }

    /// Opens or creates the file for a blob in `folder`, and hashes what it holds. Falls back to a file without
    /// a name while another process has it locked.
    pub(crate) fn file(folder: &Path, blob: &Blob) -> Result<Self, Failure> {
        let mut sink = Self::named(folder, &format!("{}.partial", blob.digest.hex()))?;
        let To::File(partial) = &mut sink.to else {
            return Ok(sink);
        };
        let io = |error: std::io::Error| io_failed(folder.display().to_string(), error);
        if partial.file.metadata().map_err(io)?.len() > blob.size {
            sink.restart().map_err(io)?;
            return Ok(sink);
        }
        partial.file.seek(SeekFrom::Start(0)).map_err(io)?;
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let count = partial.file.read(&mut buffer).map_err(io)?;
            if count == 0 {
                break;
            }
            sink.hasher.update(buffer.get(..count).unwrap_or_default());
            sink.length = sink.length.saturating_add(count as u64);
        }
        sink.resumed = sink.length > 0;
        Ok(sink)
    }

    /// A file without a name, which no later attempt resumes.
    pub(crate) fn fresh(folder: &Path) -> Result<Self, Failure> {
        let io = |error: std::io::Error| io_failed(folder.display().to_string(), error);
        let folder = Dir::open_ambient_dir(folder, ambient_authority()).map_err(io)?;
        let file = nameless(&folder).map_err(io)?;
        Ok(Self::of(folder, None, file))
    }

    fn named(folder: &Path, name: &str) -> Result<Self, Failure> {
        let io = |error: std::io::Error| io_failed(folder.display().to_string(), error);
        let folder = Dir::open_ambient_dir(folder, ambient_authority()).map_err(io)?;
        let file = open(&folder, name, OpenOptions::new().create(true)).map_err(io)?;
        if file.try_lock().is_ok() {
            return Ok(Self::of(folder, Some(name.to_owned()), file));
        }
        let file = nameless(&folder).map_err(io)?;
        Ok(Self::of(folder, None, file))
    }

    fn of(folder: Dir, name: Option<String>, file: File) -> Self {
        Self {
            to: To::File(Partial { folder, name, file }),
            ..Self::memory()
        }
    }

    pub(crate) fn append(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        match &mut self.to {
            To::Memory(memory) => memory.extend_from_slice(bytes),
            To::File(partial) => partial.file.write_all(bytes)?,
        }
        self.hasher.update(bytes);
        self.length = self.length.saturating_add(bytes.len() as u64);
        Ok(())
    }

    /// Drops all bytes.
    pub(crate) fn restart(&mut self) -> std::io::Result<()> {
        match &mut self.to {
            To::Memory(memory) => memory.clear(),
            To::File(partial) => {
                partial.file.set_len(0)?;
                partial.file.seek(SeekFrom::Start(0))?;
            }
        }
        self.length = 0;
        self.hasher = Hasher::default();
        self.resumed = false;
        Ok(())
    }

    /// Removes the file: none of its bytes can be reused.
    pub(crate) fn discard(self) {
        if let To::File(partial) = self.to {
            partial.remove();
        }
    }

    /// The bytes of a blob in memory.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        match self.to {
            To::Memory(memory) => memory,
            To::File(_) => Vec::new(),
        }
    }

    /// The file, at its beginning, and without a name: when the last handle is closed, it is gone.
    pub(crate) fn into_file(self) -> std::io::Result<Option<File>> {
        match self.to {
            To::Memory(_) => Ok(None),
            To::File(mut partial) => {
                partial.file.seek(SeekFrom::Start(0))?;
                partial.remove();
                Ok(Some(partial.file))
            }
        }
    }
}

impl Partial {
    fn remove(&self) {
        if let Some(name) = &self.name {
            // The next attempt finds, and hashes, a file that can't be removed.
            let _ = self.folder.remove_file(name);
        }
    }
}

/// A file without a name: no other process finds it, not even after a crash.
fn nameless(folder: &Dir) -> std::io::Result<File> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(std::io::Error::other)?;
    let name = format!("{:032x}.download", u128::from_be_bytes(random));
    let file = open(folder, &name, OpenOptions::new().create_new(true))?;
    folder.remove_file(&name)?;
    Ok(file)
}

fn open(folder: &Dir, name: &str, options: &mut OpenOptions) -> std::io::Result<File> {
    options.read(true).write(true).follow(FollowSymlinks::No);
    // A bundle may be private to its owner.
    #[cfg(unix)]
    cap_std::fs::OpenOptionsExt::mode(options, 0o600);
    folder
        .open_with(name, options)
        .map(cap_std::fs::File::into_std)
}
