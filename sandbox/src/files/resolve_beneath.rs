//! Opens files beneath a directory. Never opens a file above the directory, through a symbolic
//! link, or across a mount point.
//!
//! A mount point inside a workspace is not entered, since policy did not name the mounted file
//! system: it may be a `/proc`, or a network file system that blocks. To use the mounted file
//! system, an operator maps it as a separate workspace.
//!
//! `openat2` (Linux 5.6) does all this in one step, without races. If a kernel or a container
//! refuses `openat2`, the path is walked part by part: each part is opened relative to its parent
//! with `O_NOFOLLOW`. The walk is slower, and recognises fewer mount points. It compares the device
//! of each directory with the device of the workspace, so it enters a bind mount from the same file
//! system. It also opens a mounted file: the devices of files can't be compared, since in an
//! overlay file system they differ from the device of their directory.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::OnceLock;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, openat, openat2, statat};
use rustix::io::Errno;

/// Flags with which files are opened for reading and writing: no controlling terminal, no blocking
/// on a FIFO or a lease, close on exec.
const ALWAYS: OFlags = OFlags::CLOEXEC
    .union(OFlags::NOCTTY)
    .union(OFlags::NONBLOCK);

/// The most attempts of one open. The kernel gives up an attempt because of a concurrent rename, or
/// because of a signal.
const TRIES: usize = 16;

/// A directory of the host beneath which files are opened. The directory is held open, so that
/// replacing its path later has no effect.
#[derive(Debug)]
pub struct Root {
    pub(super) directory: OwnedFd,
    device: u64,
    walks: bool,
}

impl Root {
    /// Opens a directory of the operator. Links in its path must have been resolved before.
    pub(crate) fn open(canonical: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let walks = !has_openat2();
        let directory = if walks {
            openat(CWD, canonical, flags, Mode::empty())?
        } else {
            openat2(
                CWD,
                canonical,
                flags,
                Mode::empty(),
                ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS,
            )?
        };
        let directory = File::from(directory);
        let device = directory.metadata()?.dev();
        Ok(Self {
            directory: directory.into(),
            device,
            walks,
        })
    }

    /// Opens a handle for the metadata of an existing entry (`O_PATH`), which can't be read or
    /// written. A symbolic link at the path's end is not followed; the handle is for the link.
    pub(super) fn probe(&self, relative: &str) -> Result<File, Errno> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        self.open_with(relative, flags, Mode::empty())
    }

    /// A handle of a directory, for operations on its entries.
    pub(super) fn probe_directory(&self, relative: &str) -> Result<File, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        self.open_with(relative, flags, Mode::empty())
    }

    /// Opens an existing file or directory.
    pub(super) fn open_existing(&self, relative: &str, flags: OFlags) -> Result<File, Errno> {
        self.open_with(relative, flags | ALWAYS, Mode::empty())
    }

    /// Creates a file that does not exist yet.
    pub(super) fn create(&self, relative: &str, flags: OFlags) -> Result<File, Errno> {
        let flags = flags | OFlags::CREATE | OFlags::EXCL | ALWAYS;
        // Files that a guest creates are not executable.
        self.open_with(relative, flags, Mode::from_raw_mode(0o666))
    }

    fn open_with(&self, relative: &str, flags: OFlags, mode: Mode) -> Result<File, Errno> {
        let relative = if relative.is_empty() { "." } else { relative };
        if self.walks {
            return self.walk(relative, flags, mode);
        }
        let resolve = ResolveFlags::BENEATH
            | ResolveFlags::NO_SYMLINKS
            | ResolveFlags::NO_MAGICLINKS
            | ResolveFlags::NO_XDEV;
        for _ in 0..TRIES {
            match openat2(&self.directory, relative, flags, mode, resolve) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                opened => return opened.map(File::from),
            }
        }
        Err(Errno::BUSY)
    }

    fn walk(&self, relative: &str, flags: OFlags, mode: Mode) -> Result<File, Errno> {
        let step = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let (parents, name) = relative.rsplit_once('/').unwrap_or(("", relative));
        let mut current: Option<OwnedFd> = None;
        for part in parents.split('/').filter(|part| !part.is_empty()) {
            let from = current.as_ref().unwrap_or(&self.directory);
            let next = openat(from, part, step, Mode::empty());
            current = Some(self.same_device(next.map_err(|errno| as_link(from, part, errno))?)?);
        }
        let from = current.as_ref().unwrap_or(&self.directory);
        let flags = flags | OFlags::NOFOLLOW;
        let opened = openat(from, name, flags, mode).map_err(|errno| as_link(from, name, errno))?;
        self.same_device(opened).map(File::from)
    }

    fn same_device(&self, opened: OwnedFd) -> Result<OwnedFd, Errno> {
        let opened = File::from(opened);
        match opened.metadata() {
            Ok(metadata) if metadata.is_dir() && metadata.dev() != self.device => Err(Errno::XDEV),
            Ok(_) => Ok(opened.into()),
            Err(error) => Err(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
        }
    }
}

/// For a symbolic link, `O_DIRECTORY | O_NOFOLLOW` fails with `ENOTDIR` and `openat2` with `ELOOP`;
/// this returns `ELOOP`, too.
fn as_link(directory: &OwnedFd, name: &str, errno: Errno) -> Errno {
    let link = || {
        let stat = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
        stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
    };
    match errno {
        Errno::NOTDIR if link() => Errno::LOOP,
        errno => errno,
    }
}

/// Whether the kernel, and the container around it, allow `openat2`.
fn has_openat2() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        openat2(CWD, ".", flags, Mode::empty(), ResolveFlags::BENEATH).is_ok()
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// Roots for both ways of opening, over the same directory.
    fn roots(directory: &Path) -> [Root; 2] {
        [false, true].map(|walks| Root {
            walks,
            ..Root::open(&directory.canonicalize().expect("exists")).expect("opens")
        })
    }

    fn tree() -> tempfile::TempDir {
        let tree = tempfile::tempdir().expect("a directory");
        let root = tree.path();
        std::fs::create_dir_all(root.join("inside/sub")).expect("made");
        std::fs::write(root.join("inside/sub/a.txt"), "inside").expect("written");
        std::fs::write(root.join("secret.txt"), "outside").expect("written");
        symlink("../secret.txt", root.join("inside/last")).expect("linked");
        symlink("..", root.join("inside/middle")).expect("linked");
        symlink("sub", root.join("inside/within")).expect("linked");
        symlink("/proc/self/root", root.join("inside/magic")).expect("linked");
        tree
    }

    #[test]
    fn files_beneath_are_opened_and_created() {
        let tree = tree();
        for root in roots(&tree.path().join("inside")) {
            let read = root.open_existing("sub/a.txt", OFlags::RDONLY);
            assert_eq!(read.expect("opens").metadata().expect("stat").len(), 6);
            assert!(root.probe("").expect("opens").metadata().is_ok());
            assert!(root.probe_directory("sub").is_ok());
            root.create("sub/new", OFlags::WRONLY).expect("creates");
            assert_eq!(
                root.create("sub/new", OFlags::WRONLY).err(),
                Some(Errno::EXIST)
            );
            std::fs::remove_file(tree.path().join("inside/sub/new")).expect("was created there");
        }
    }

    #[test]
    fn no_symbolic_link_is_followed_wherever_it_stands_and_points() {
        let tree = tree();
        for root in roots(&tree.path().join("inside")) {
            for path in [
                "last",
                "middle/secret.txt",
                "within/a.txt",
                "magic/etc/passwd",
            ] {
                let opened = root.open_existing(path, OFlags::RDONLY);
                assert_eq!(opened.err(), Some(Errno::LOOP), "{path}");
                let created = root.create(path, OFlags::WRONLY).err();
                assert!(
                    matches!(created, Some(Errno::LOOP | Errno::EXIST)),
                    "{path}"
                );
            }
            assert_eq!(root.probe_directory("within").err(), Some(Errno::LOOP));
            let link = root.probe("last").expect("tells").metadata().expect("stat");
            assert!(link.file_type().is_symlink());
        }
    }

    #[test]
    fn the_directory_stays_the_one_that_was_opened() {
        let tree = tree();
        let inside = tree.path().join("inside");
        let roots = roots(&inside);
        std::fs::rename(&inside, tree.path().join("moved")).expect("moved");
        std::fs::create_dir_all(inside.join("sub")).expect("made");
        std::fs::write(inside.join("sub/a.txt"), "another directory").expect("written");
        for root in roots {
            let file = root.open_existing("sub/a.txt", OFlags::RDONLY);
            assert_eq!(file.expect("opens").metadata().expect("stat").len(), 6);
        }
    }

    #[test]
    fn a_mount_point_is_not_entered() {
        // On any machine that runs tests, `/` has other file systems below it.
        for root in roots(Path::new("/")) {
            let entered = root.probe("proc/version");
            assert_eq!(entered.err(), Some(Errno::XDEV));
        }
    }
}
