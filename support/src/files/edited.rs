//! Changes a user's file that belongs to other programs, with the user's consent. The file is
//! opened beneath a folder without following links, is not written if it has changed since it was
//! read, is replaced as a whole, and is backed up once.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::{Error, Folder, Problem, Protection, read, temporary_name, write_new_at};

/// The mode of a new file and of a backup.
const PRIVATE: u32 = 0o600;

/// The suffix of a backup's name, after the file's name.
const BACKUP: &str = ".toolward-backup";

/// A file to be changed, and its contents when it was read.
///
/// ```
/// use std::path::Path;
/// use toolward_support::files::EditedFile;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let home = tempfile::tempdir()?;
/// let name = Path::new(".client/settings.json");
/// let file = EditedFile::beneath(home.path(), name, 1024)?;
/// assert_eq!(file.bytes(), None);
/// file.write(b"{}")?;
/// assert_eq!(std::fs::read(home.path().join(name))?, b"{}");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct EditedFile {
    path: PathBuf,
    /// The deepest folder of the path that exists.
    folder: OwnedFd,
    /// The folders below it that are missing.
    missing: Vec<OsString>,
    name: OsString,
    limit: u64,
    before: Option<Before>,
}

#[derive(Debug)]
struct Before {
    bytes: Vec<u8>,
    mode: u32,
    group: u32,
}

impl EditedFile {
    /// Reads a file beneath `root`, at most `limit` bytes. Links in the path of `root` are
    /// followed, but no links below it. Nothing is changed or created.
    ///
    /// # Errors
    /// [`Problem::NoName`] for a path that is absolute or empty, starts with the part `.`, or has a
    /// part `..`; [`Problem::Link`], [`Problem::NotAFile`], [`Problem::NotAFolder`],
    /// [`Problem::HardLinks`]; [`Problem::Owner`] or [`Problem::Mode`] for a file, or a folder of
    /// the path, that others could change; [`Problem::TooLarge`], [`Problem::Io`].
    pub fn beneath(root: &Path, path: &Path, limit: u64) -> Result<Self, Error> {
        let whole = root.join(path);
        let mut names = names(path).ok_or_else(|| Error::new(&whole, Problem::NoName))?;
        let name = names.pop().unwrap_or_default();
        let mut folder = OwnedFd::from(Folder::open(root, Protection::Own)?);
        let mut at = root.to_owned();
        let mut missing = names.into_iter();
        let mut lacking = Vec::new();
        for name in missing.by_ref() {
            at.push(&name);
            match open_folder(&folder, &name, &at) {
                Ok(opened) => folder = opened,
                Err(error) if error.is_missing() => {
                    lacking.push(name);
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        lacking.extend(missing);
        let mut file = Self {
            path: whole,
            folder,
            missing: lacking,
            name,
            limit,
            before: None,
        };
        if file.missing.is_empty() {
            file.before = file.look()?;
        }
        Ok(file)
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its contents; `None` if it does not exist.
    pub fn bytes(&self) -> Option<&[u8]> {
        self.before.as_ref().map(|before| before.bytes.as_slice())
    }

    /// The path of the backup of its earlier contents, if it has earlier contents.
    pub fn backup(&self) -> Option<PathBuf> {
        self.before.as_ref()?;
        Some(self.path.with_file_name(self.backup_name()))
    }

    /// Whether the backup already exists. It has the contents before the first change, and is never
    /// overwritten.
    pub fn has_backup(&self) -> bool {
        is_of_type(&self.folder, &self.backup_name(), FileType::RegularFile)
    }

    /// Replaces the contents that were read. The file keeps its mode and group; a new file has mode
    /// 0600. The contents before the first change become the only backup, with mode 0600, next to
    /// the file. A link with the backup's name is replaced. Missing folders are created with mode
    /// 0700.
    ///
    /// # Errors
    /// [`Problem::Changed`] if the file has changed since it was read; the errors of
    /// [`EditedFile::beneath`]. The file then stays unchanged, except if only the final wait for
    /// the disk fails.
    pub fn write(mut self, bytes: &[u8]) -> Result<(), Error> {
        self.make_folders()?;
        if self.look()?.as_ref().map(|now| &now.bytes) != self.before.as_ref().map(|old| &old.bytes)
        {
            return Err(Error::new(&self.path, Problem::Changed));
        }
        let folder = self.folder.as_fd();
        if let Some(before) = self.before.as_ref().filter(|_| !self.has_backup()) {
            let backup = self.backup_name();
            let temporary = self.written(&before.bytes, PRIVATE, None)?;
            let moved = rustix::fs::renameat(folder, &temporary, folder, &backup);
            self.renamed(&temporary, moved)?;
        }
        let (mode, group) = match &self.before {
            Some(before) => (before.mode, Some(before.group)),
            None => (PRIVATE, None),
        };
        let temporary = self.written(bytes, mode, group)?;
        let moved = match self.before {
            Some(_) => rustix::fs::renameat(folder, &temporary, folder, &self.name),
            None => {
                let flags = RenameFlags::NOREPLACE;
                rustix::fs::renameat_with(folder, &temporary, folder, &self.name, flags)
            }
        };
        self.renamed(&temporary, moved)?;
        rustix::fs::fsync(folder).map_err(|error| self.failed("written", error))
    }

    fn backup_name(&self) -> OsString {
        let mut name = self.name.clone();
        name.push(BACKUP);
        name
    }

    fn failed(&self, action: &'static str, error: Errno) -> Error {
        Error::io(&self.path, action, error)
    }

    fn make_folders(&mut self) -> Result<(), Error> {
        let mut at = self.path.clone();
        for _ in 0..=self.missing.len() {
            at.pop();
        }
        for name in std::mem::take(&mut self.missing) {
            at.push(&name);
            match rustix::fs::mkdirat(&self.folder, &name, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(Error::io(&at, "created", error)),
            }
            self.folder = open_folder(&self.folder, &name, &at)?;
        }
        Ok(())
    }

    /// Reads the current file.
    fn look(&self) -> Result<Option<Before>, Error> {
        let problem = |problem| Error::new(&self.path, problem);
        // Without these flags, a pipe would wait for a writer, and a terminal would become this
        // process's terminal.
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let opened = match rustix::fs::openat(&self.folder, &self.name, flags, Mode::empty()) {
            Ok(opened) => File::from(opened),
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return Err(problem(Problem::Link)),
            Err(Errno::NXIO) => return Err(problem(Problem::NotAFile)),
            Err(error) => return Err(self.failed("opened", error)),
        };
        let metadata = opened
            .metadata()
            .map_err(|error| Error::io(&self.path, "read", error))?;
        if !metadata.is_file() {
            return Err(problem(Problem::NotAFile));
        }
        Protection::Own.check(&metadata).map_err(problem)?;
        if metadata.nlink() != 1 {
            let count = metadata.nlink();
            return Err(problem(Problem::HardLinks { count }));
        }
        Ok(Some(Before {
            bytes: read(opened, &self.path, self.limit)?,
            mode: metadata.mode() & 0o7777,
            group: metadata.gid(),
        }))
    }

    /// Writes a file with another name in the same folder, waits for the disk, and returns the
    /// name.
    fn written(&self, bytes: &[u8], mode: u32, group: Option<u32>) -> Result<OsString, Error> {
        let fail = |error| Error::io(&self.path, "written", error);
        let name = OsString::from(temporary_name().map_err(fail)?);
        write_new_at(&self.folder, name.as_ref(), &[bytes], PRIVATE, |file| {
            if let Some(group) = group
                && file.metadata()?.gid() != group
            {
                rustix::fs::fchown(file, None, Some(Gid::from_raw(group)))?;
            }
            // Set independently of the umask, and after the group, since changing the group clears
            // set-id bits.
            Ok(rustix::fs::fchmod(file, Mode::from_raw_mode(mode))?)
        })
        .map_err(fail)?;
        Ok(name)
    }

    fn renamed(&self, temporary: &OsStr, renamed: Result<(), Errno>) -> Result<(), Error> {
        renamed.map_err(|error| {
            let _ = rustix::fs::unlinkat(&self.folder, temporary, AtFlags::empty());
            match error {
                Errno::EXIST => Error::new(&self.path, Problem::Changed),
                error => self.failed("written", error),
            }
        })
    }
}

/// The parts of a relative path, if there is at least one and all are plain names.
fn names(path: &Path) -> Option<Vec<OsString>> {
    let names = path.components().map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        _ => None,
    });
    let names: Option<Vec<OsString>> = names.collect();
    names.filter(|names| !names.is_empty())
}

/// Whether an entry of a folder has this type. A link is not followed.
fn is_of_type(folder: &OwnedFd, name: &OsStr, wanted: FileType) -> bool {
    let found = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
    found.is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == wanted)
}

/// Opens a folder within another folder, without following a link.
fn open_folder(above: &OwnedFd, name: &OsStr, path: &Path) -> Result<OwnedFd, Error> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = match rustix::fs::openat(above, name, flags, Mode::empty()) {
        Ok(opened) => File::from(opened),
        // Some kernels report a link as "not a directory".
        Err(Errno::LOOP | Errno::NOTDIR) => {
            let problem = match is_of_type(above, name, FileType::Symlink) {
                true => Problem::Link,
                false => Problem::NotAFolder,
            };
            return Err(Error::new(path, problem));
        }
        Err(error) => return Err(Error::io(path, "opened", error)),
    };
    Protection::Own.check_opened(&opened, path)?;
    Ok(opened.into())
}
