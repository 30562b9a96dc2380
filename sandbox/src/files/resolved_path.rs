//! A resolved path of a guest: its workspace, the granted access, and operations on it. All
//! operations block, so run them with the functions of [`super`].

use std::fs::{File, Metadata};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex};

use rustix::fs::{AtFlags, Mode, OFlags, Timestamps};
use rustix::io::Errno;
use wasmtime_wasi::p2::FsResult;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::file::OpenFile;
use super::path::{VirtualPath, makeable};
use super::plan::{Access, Mount, not_linked};
use super::{Fail, OPEN_FILE, Shared};

/// The most attempts of one open. An attempt fails if the file is replaced while it is opened.
const TRIES: usize = 16;

/// A guest's path in its workspace.
#[derive(Debug, Clone)]
pub(super) struct ResolvedPath {
    pub(super) shared: Arc<Shared>,
    pub(super) mount: Arc<Mount>,
    pub(super) path: VirtualPath,
    pub(super) access: Access,
    /// Whether the guest wrote it as a directory, with `/`, `.` or `..` at its end.
    pub(super) directory: bool,
}

/// The options with which a guest opens a file or directory.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Request {
    pub(super) read: bool,
    pub(super) write: bool,
    pub(super) create: bool,
    pub(super) exclusive: bool,
    pub(super) truncate: bool,
    pub(super) directory: bool,
}

/// The opened file or directory.
pub(super) enum Opened {
    File(OpenFile),
    Directory,
}

/// The kinds of entries that exist for a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Directory,
}

impl Kind {
    /// The kind of an existing entry. Anything but a file or directory (a symbolic link, FIFO,
    /// socket or device) is refused.
    pub(super) fn of(metadata: &Metadata) -> Result<Self, Fail> {
        let file_type = metadata.file_type();
        if file_type.is_file() {
            Ok(Self::File)
        } else if file_type.is_dir() {
            Ok(Self::Directory)
        } else {
            Err(Fail::Refused(ErrorCode::NotPermitted))
        }
    }
}

impl ResolvedPath {
    fn relative(&self) -> &str {
        // A resolved path is created only inside its workspace.
        self.path.below(&self.mount.path).unwrap_or_default()
    }

    /// Opens a handle for the metadata of an existing entry, if the guest may know of the entry.
    pub(super) fn look(&self) -> Result<(File, Metadata, Kind), Fail> {
        let file = match self.mount.root.probe(self.relative()) {
            // If the guest sees only a part of the workspace, a file in the middle of a path does
            // not exist for the guest.
            Err(Errno::NOTDIR) if self.mount.is_partial() => Err(Errno::NOENT),
            probed => probed,
        }?;
        let metadata = file.metadata()?;
        let kind = Kind::of(&metadata)?;
        if kind == Kind::File {
            if self.access < Access::Read {
                return Err(ErrorCode::NoEntry.into());
            }
            if self.directory {
                return Err(ErrorCode::NotDirectory.into());
            }
        }
        Ok((file, metadata, kind))
    }

    /// Fails if this path may not be changed.
    fn writable(&self) -> Result<(), Fail> {
        match self.access {
            Access::Write => Ok(()),
            Access::Read => Err(Fail::Refused(ErrorCode::ReadOnly)),
            Access::Pass | Access::None => Err(Fail::Refused(ErrorCode::NotPermitted)),
        }
    }

    /// The same path, if an entry may be created with its name.
    pub(super) fn for_creation(self) -> FsResult<Self> {
        match self.makeable() {
            Ok(()) => Ok(self),
            Err(fail) => Err(fail.raise(self.path.as_str(), &self.shared.violations)),
        }
    }

    /// Fails if no entry may get this name.
    fn makeable(&self) -> Result<(), Fail> {
        match makeable(self.path.name()) {
            true => Ok(()),
            false => Err(Fail::Refused(ErrorCode::Invalid)),
        }
    }

    /// The directory that contains this path, and the path's name there. `None` if the path is the
    /// workspace's own directory.
    fn entry(&self) -> Result<Option<(OwnedFd, &str)>, Fail> {
        let relative = self.relative();
        if relative.is_empty() {
            return Ok(None);
        }
        let (parent, name) = relative.rsplit_once('/').unwrap_or(("", relative));
        let parent = self.mount.root.probe_directory(parent)?;
        Ok(Some((parent.into(), name)))
    }

    pub(super) fn open(&self, request: &Request) -> Result<Opened, Fail> {
        let changes = request.write || request.create || request.truncate;
        if changes {
            self.writable()?;
        }
        let slot = self.shared.open(OPEN_FILE)?;
        for _ in 0..TRIES {
            let (file, metadata) = match self.look() {
                // `open_at` refuses `create` together with `directory`.
                Ok(_) if request.create && request.exclusive => {
                    return Err(ErrorCode::Exist.into());
                }
                Ok((_, _, Kind::Directory)) if changes => {
                    return Err(ErrorCode::IsDirectory.into());
                }
                Ok((_, _, Kind::Directory)) => return Ok(Opened::Directory),
                Ok(_) if request.directory => return Err(ErrorCode::NotDirectory.into()),
                Ok((seen, known, Kind::File)) => {
                    let flags = flags(request);
                    let file = match self.mount.root.open_existing(self.relative(), flags) {
                        // The entry was removed or replaced in the meantime.
                        Err(Errno::NOENT | Errno::LOOP | Errno::ISDIR | Errno::NXIO) => continue,
                        opened => opened?,
                    };
                    let metadata = file.metadata()?;
                    // `seen` holds the inode, so the inode's number can't be reused.
                    let same = (metadata.dev(), metadata.ino()) == (known.dev(), known.ino());
                    drop(seen);
                    if !same {
                        continue;
                    }
                    (file, metadata)
                }
                Err(Fail::Code(ErrorCode::NoEntry)) if request.create => {
                    if self.directory {
                        return Err(ErrorCode::IsDirectory.into());
                    }
                    match self.create(request) {
                        // Another process was faster, and the entry exists now.
                        Err(Fail::Code(ErrorCode::Exist)) if !request.exclusive => continue,
                        made => made?,
                    }
                }
                Err(fail) => return Err(fail),
            };
            if changes {
                not_linked(&metadata)?;
            }
            if request.truncate && metadata.len() > 0 {
                file.set_len(0)?;
            }
            return Ok(Opened::File(OpenFile {
                file,
                path: self.path.clone(),
                shared: self.shared.clone(),
                mount: self.mount.clone(),
                access: self.access,
                // A file that is opened without any access can be read.
                read: request.read || !request.write,
                write: request.write,
                growing: Mutex::default(),
                _slot: slot,
            }));
        }
        Err(ErrorCode::Busy.into())
    }

    fn create(&self, request: &Request) -> Result<(File, Metadata), Fail> {
        self.makeable()?;
        let grant = &self.shared.grant;
        grant.counters.create(&grant.limits, &self.mount, || {
            let file = self.mount.root.create(self.relative(), flags(request))?;
            let metadata = file.metadata()?;
            Ok((file, metadata))
        })
    }

    pub(super) fn create_directory(&self) -> Result<(), Fail> {
        if let Err(refused) = self.writable() {
            // Creating a directory that exists is not a violation.
            return match self.look() {
                Ok(_) => Err(ErrorCode::Exist.into()),
                Err(_) => Err(refused),
            };
        }
        let Some((parent, name)) = self.entry()? else {
            return Err(ErrorCode::Exist.into());
        };
        self.makeable()?;
        let grant = &self.shared.grant;
        grant.counters.create(&grant.limits, &self.mount, || {
            rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(0o777)).map_err(Fail::from)
        })
    }

    /// Removes a file, or an empty directory.
    pub(super) fn remove(&self, kind: Kind) -> Result<(), Fail> {
        self.writable()?;
        let (other, flags) = match kind {
            Kind::File => (ErrorCode::IsDirectory, AtFlags::empty()),
            Kind::Directory => (ErrorCode::NotDirectory, AtFlags::REMOVEDIR),
        };
        if self.look()?.2 != kind {
            return Err(other.into());
        }
        let (parent, name) = self.entry()?.ok_or(ErrorCode::Busy)?;
        Ok(rustix::fs::unlinkat(&parent, name, flags)?)
    }

    /// Moves the entry to `target`. Both paths must be writable; for a directory, everything below
    /// both paths must be.
    pub(super) fn rename(&self, target: &Self) -> Result<(), Fail> {
        self.writable()?;
        target.writable()?;
        if !Arc::ptr_eq(&self.mount.root, &target.mount.root) {
            return Err(ErrorCode::CrossDevice.into());
        }
        let kind = self.look()?.2;
        let below = |place: &Self| place.mount.rules.writes_below(&place.path);
        if kind == Kind::Directory && !(below(self) && below(target)) {
            return Err(Fail::Refused(ErrorCode::NotPermitted));
        }
        match target.look() {
            Ok(_) => {}
            Err(Fail::Code(ErrorCode::NoEntry)) if kind == Kind::File && target.directory => {
                return Err(ErrorCode::NotDirectory.into());
            }
            Err(Fail::Code(ErrorCode::NoEntry)) => {}
            Err(fail) => return Err(fail),
        }
        let (from, old) = self.entry()?.ok_or(ErrorCode::Busy)?;
        let (to, new) = target.entry()?.ok_or(ErrorCode::Busy)?;
        Ok(rustix::fs::renameat(&from, old, &to, new)?)
    }

    /// Sets the times through an open file, since a confined process can't set them by path.
    pub(super) fn set_times(&self, times: &Timestamps) -> Result<(), Fail> {
        self.writable()?;
        let (_, _, kind) = self.look()?;
        let open = |flags| self.mount.root.open_existing(self.relative(), flags);
        let opened = match open(OFlags::RDONLY) {
            // A file may be write-only.
            Err(Errno::ACCESS) if kind == Kind::File => open(OFlags::WRONLY),
            opened => opened,
        }?;
        let metadata = opened.metadata()?;
        if Kind::of(&metadata)? == Kind::File {
            not_linked(&metadata)?;
        }
        Ok(rustix::fs::futimens(&opened, times)?)
    }

    /// Always fails, since links do not exist for a guest.
    pub(super) fn read_link(&self) -> Result<(), Fail> {
        self.look()?;
        Err(ErrorCode::Invalid.into())
    }

    /// Syncs the entries of a directory, if the guest may write there.
    pub(super) fn sync_directory(&self) -> Result<(), Fail> {
        if self.access < Access::Write {
            return Ok(());
        }
        Ok(self.open_directory()?.sync_all()?)
    }

    /// Opens a directory to read its entries.
    pub(super) fn open_directory(&self) -> Result<File, Fail> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        Ok(self.mount.root.open_existing(self.relative(), flags)?)
    }
}

fn flags(request: &Request) -> OFlags {
    match (request.read, request.write) {
        (true, true) => OFlags::RDWR,
        (false, true) => OFlags::WRONLY,
        // Setting a file's size needs a writable handle.
        (_, false) if request.truncate => OFlags::RDWR,
        (_, false) => OFlags::RDONLY,
    }
}
