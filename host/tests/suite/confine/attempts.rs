//! The attempts of the stand-in for an escaped guest, which reports whether each succeeded.

use std::fs;
use std::io::Read;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{AtFlags, CWD, FileType, Mode, Timespec, Timestamps, XattrFlags, mknodat};
use rustix::process::{
    Pid, Resource, Rlimit, getppid, getrlimit, prlimit, setpriority_process, setrlimit,
    test_kill_process,
};

use wasmtime::PoolingAllocationConfig;

use super::raw::{self, Sending};

/// Reports which attempts succeeded.
pub(super) struct Attempts(pub(super) PathBuf);

impl Attempts {
    pub(super) fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(super) fn tell(&self, what: &str, could: bool) {
        eprintln!("{what}: {could}");
    }

    fn read(&self, what: &str, path: impl AsRef<Path>) {
        let read = fs::File::open(path).and_then(|mut file| file.read(&mut [0; 8]));
        self.tell(what, read.is_ok());
    }

    fn list(&self, what: &str, path: impl AsRef<Path>) {
        let listed = fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some());
        self.tell(what, listed);
    }

    fn write(&self, what: &str, path: impl AsRef<Path>) {
        self.tell(what, fs::write(path, "changed").is_ok());
    }

    /// Tries to start a program that creates a file.
    fn start(&self, what: &str, program: impl AsRef<Path>, arguments: &[&str]) {
        let mut command = Command::new(program.as_ref());
        command.args(arguments).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let started = command.spawn();
        self.tell(what, started.and_then(|mut child| child.wait()).is_ok());
    }

    pub(super) fn files(&self) {
        // A request that an engine makes if it is created later.
        self.tell(
            "see which of its own pages were written",
            PoolingAllocationConfig::is_pagemap_scan_available(),
        );
        self.read("read a kept file", self.at("read/file"));
        self.list("list a kept directory", self.at("read"));
        self.write("change a file kept for reading", self.at("read/file"));
        self.write(
            "make a file in a directory kept for reading",
            self.at("read/new"),
        );
        let removed = fs::remove_file(self.at("read/file"));
        self.tell("remove a file kept for reading", removed.is_ok());

        self.read("read a writable file", self.at("write/file"));
        self.write(
            "overwrite a file in a writable directory",
            self.at("write/file"),
        );
        self.write("make a file in a writable directory", self.at("write/new"));
        let renamed = fs::rename(self.at("write/new"), self.at("write/renamed"));
        self.tell("rename a file within a writable directory", renamed.is_ok());
        let made = fs::create_dir(self.at("write/made"));
        self.tell("make a directory in a writable one", made.is_ok());
        fs::write(self.at("write/gone"), "").unwrap();
        let removed = fs::remove_file(self.at("write/gone"));
        self.tell("remove a file in a writable directory", removed.is_ok());

        let linked = symlink(self.at("outside/file"), self.at("write/planted"));
        self.tell("make a symbolic link", linked.is_ok());
        let linked = fs::hard_link(self.at("outside/file"), self.at("write/hard"));
        self.tell("link a file from outside", linked.is_ok());
        let moved = fs::rename(self.at("outside/file"), self.at("write/moved"));
        self.tell("move a file from outside", moved.is_ok());
        let moved = fs::rename(self.at("write/renamed"), self.at("outside/moved"));
        self.tell("move a file to the outside", moved.is_ok());
        let node = |name: &str, kind| {
            let mode = Mode::RUSR | Mode::WUSR;
            mknodat(CWD, self.at(name), kind, mode, rustix::fs::makedev(1, 5)).is_ok()
        };
        self.tell("make a pipe", node("write/pipe", FileType::Fifo));
        self.tell(
            "make a device",
            node("write/zero", FileType::CharacterDevice),
        );
    }

    /// Operations that Landlock has no rules for. They are tried on files that may be written.
    pub(super) fn attributes(&self) {
        let (kept, file) = (self.at("write/file"), self.at("write/file"));
        let changed = rustix::fs::chmod(&file, Mode::from_raw_mode(0o777));
        self.tell("change the rights of a file by its path", changed.is_ok());
        let [user, group] = [rustix::process::getuid().as_raw(), 1];
        let given = rustix::fs::chown(&file, None, Some(rustix::fs::Gid::from_raw(group)));
        let owned = rustix::fs::chown(&file, Some(rustix::fs::Uid::from_raw(user)), None);
        self.tell("change the owner of a file", given.is_ok() || owned.is_ok());
        let set = rustix::fs::setxattr(&file, "user.toolward", b"x", XattrFlags::empty());
        self.tell(
            "set an attribute of a file",
            !matches!(set, Err(rustix::io::Errno::PERM)),
        );
        let past = Timespec {
            tv_sec: 1,
            tv_nsec: 0,
        };
        let times = Timestamps {
            last_access: past,
            last_modification: past,
        };
        let aged = rustix::fs::utimensat(CWD, &file, &times, AtFlags::empty());
        self.tell("set the times of a file by its path", aged.is_ok());

        let mut options = fs::OpenOptions::new();
        let open = options.write(true).open(&kept).unwrap();
        let runs = rustix::fs::fchmod(&open, Mode::from_raw_mode(0o4755));
        self.tell("let a file run with its owner's rights", runs.is_ok());
        let own = rustix::fs::fchmod(&open, Mode::from_raw_mode(0o600));
        self.tell("change the rights of an open file", own.is_ok());
        let aged = rustix::fs::futimens(&open, &times);
        self.tell("set the times of an open file", aged.is_ok());
        let mut options = fs::OpenOptions::new();
        options.write(true).create_new(true).mode(0o4755);
        let made = options.open(self.at("write/set-id"));
        self.tell(
            "make a file that runs with its owner's rights",
            made.is_ok(),
        );
        let watching = rustix::fs::inotify::init(rustix::fs::inotify::CreateFlags::empty());
        self.tell("hear of what others do with files", watching.is_ok());
    }

    pub(super) fn outside(&self) {
        self.read("read a file outside", self.at("outside/file"));
        self.read("read through ..", self.at("write/../outside/file"));
        self.read("read through a link", self.at("write/link"));
        self.read(
            "read through a linked directory",
            self.at("write/folder/file"),
        );
        self.list("list a directory outside", self.at("outside"));
        self.list("list the parent", self.at("."));
        self.list("list the root", "/");
        self.write("change a file outside", self.at("outside/file"));
        self.write("change a file through a link", self.at("write/link"));
        self.write("make a file outside", self.at("outside/new"));
        self.write("make a file beside", self.at("new"));
        let mut truncating = fs::OpenOptions::new();
        let truncated = truncating
            .write(true)
            .truncate(true)
            .open(self.at("outside/file"));
        self.tell("truncate a file outside", truncated.is_ok());
        let removed = fs::remove_file(self.at("outside/file"));
        self.tell("remove a file outside", removed.is_ok());

        self.read("read /etc/passwd", "/etc/passwd");
        self.read("read the environment", "/proc/self/environ");
        self.read("read the memory", "/proc/self/mem");
        self.read("read another process's memory map", "/proc/1/maps");
        let root = format!("/proc/self/root{}", self.at("outside/file").display());
        self.read("read through /proc/self/root", root);
        self.list("list the open files", "/proc/self/fd");
        self.read("open /dev/zero", "/dev/zero");
        self.read("open /dev/tty", "/dev/tty");
        self.read("open /dev/null", "/dev/null");
    }

    pub(super) fn programs(&self) {
        let touch = format!("touch {}", self.at("write/started").display());
        self.start("start /bin/sh", "/bin/sh", &["-c", &touch]);
        self.start(
            "start itself",
            std::env::current_exe().unwrap(),
            &["--list"],
        );
        self.start("start a script", self.at("write/script"), &[]);
        let loader = fs::read_dir("/lib64")
            .into_iter()
            .flatten()
            .flatten()
            .next();
        let loader = loader.map_or("/lib64/ld-linux-x86-64.so.2".into(), |entry| entry.path());
        self.start("start the loader", loader, &["/bin/sh", "-c", &touch]);
        let signal = getppid().map(test_kill_process);
        self.tell(
            "send a signal to its parent",
            matches!(signal, Some(Ok(()))),
        );
        let thread = std::thread::Builder::new().spawn(|| ());
        self.tell("start a thread", thread.is_ok());
        let outside = self.at("outside/file");
        let thread = std::thread::spawn(move || fs::read(outside).is_ok());
        self.tell(
            "read a file outside from a new thread",
            thread.join().unwrap(),
        );
    }

    /// `listening` was opened before the confinement.
    pub(super) fn network(&self, listening: &TcpListener) {
        let port = |variable: &str| -> u16 { std::env::var(variable).unwrap().parse().unwrap() };
        let connect = |variable: &str| TcpStream::connect(("127.0.0.1", port(variable))).is_ok();
        self.tell("connect to the granted port", connect("PORT"));
        self.tell("connect to another port", connect("OTHER_PORT"));
        self.tell("listen on a port", TcpListener::bind("127.0.0.1:0").is_ok());
        for how in [Sending::To, Sending::Message, Sending::Messages] {
            self.tell(
                &format!("connect to another port by sending ({how:?})"),
                raw::fast_open(port("OTHER_PORT"), how),
            );
        }
        self.tell("listen without an address", raw::listen_anywhere());
        self.tell("accept a connection", raw::accept(listening) != refused());
        let accepted = listening.accept().map(|_| ());
        self.tell(
            "accept a connection, with flags",
            accepted.map_err(|error| error.raw_os_error()) != Err(Some(libc::EPERM)),
        );
        self.tell("make a UDP socket", UdpSocket::bind("127.0.0.1:0").is_ok());
        let connected = UnixStream::connect(self.at("write/socket"));
        self.tell("connect to a Unix socket", connected.is_ok());
        let reached = UnixDatagram::pair().and_then(|(own, _other)| {
            own.send_to(b"escaped", self.at("datagrams"))?;
            own.connect(self.at("datagrams"))
        });
        self.tell("send to a Unix socket of datagrams", reached.is_ok());
        self.tell(
            "make a pair of connected sockets",
            UnixStream::pair().is_ok(),
        );
        self.tell("connect to an abstract socket", {
            use std::os::linux::net::SocketAddrExt;
            let name = std::os::unix::net::SocketAddr::from_abstract_name(b"toolward").unwrap();
            // The confinement refuses before the kernel looks for a listener. `ConnectionRefused`
            // means that the kernel looked, so it counts as success.
            match UnixStream::connect_addr(&name) {
                Ok(_) => true,
                Err(error) => error.kind() == std::io::ErrorKind::ConnectionRefused,
            }
        });
    }

    /// Operations that affect other processes of the same user.
    pub(super) fn neighbours(&self) {
        if let Ok(neighbour) = std::env::var("NEIGHBOUR") {
            let neighbour = Pid::from_raw(neighbour.parse().unwrap());
            let soon = Rlimit {
                current: Some(1),
                maximum: Some(1),
            };
            let limited = prlimit(neighbour, Resource::Cpu, soon);
            self.tell("limit another process", limited.is_ok());
            let slowed = setpriority_process(neighbour, 19);
            self.tell("slow another process down", slowed.is_ok());
            let pinned = neighbour.is_some_and(|process| raw::pin(process.as_raw_pid()));
            self.tell("pin another process to a processor", pinned);
        }
        let own = getrlimit(Resource::Core);
        self.tell("ask for its own limits and set them", {
            setrlimit(Resource::Core, own).is_ok()
        });
        for (what, made) in raw::make_shared() {
            self.tell(what, made);
        }
        for (what, made) in raw::make_processes() {
            self.tell(what, made);
        }
        self.tell("ask for the machine's clock", raw::clock() != refused());
        self.tell("make a call of x32", raw::call_of_x32() != refused());
    }

    /// Operations on the terminal, if standard input is one.
    pub(super) fn terminal(&self) {
        for (what, request) in [
            ("type into the terminal", 0x5412),
            ("type into the terminal, with high bits", 0x1_0000_5412),
            ("speak to the console", 0x541c),
            (
                "speak to the console, with high bits",
                0xffff_ffff_0000_541c,
            ),
        ] {
            self.tell(what, raw::request(request, b'\n') != refused());
        }
        let waiting = rustix::io::ioctl_fionread(std::io::stdin()).unwrap_or(0);
        self.tell("leave something to read in the terminal", waiting > 0);
    }
}

/// The answer of a system call filter.
fn refused() -> Result<(), i32> {
    Err(libc::EPERM)
}
