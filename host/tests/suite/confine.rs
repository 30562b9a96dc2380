//! The confinement, against a stand-in for a guest that has escaped: this very
//! program, told to run the last "test" of this file, which confines itself and
//! then tries whatever it likes. What counts is what did not happen.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::symlink;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{getppid, test_kill_process};
use toolward_host::confine::{Confinement, Network, State, outlook};

/// A directory with what the guest may have and what not.
struct Scene {
    directory: tempfile::TempDir,
    listener: TcpListener,
    other: TcpListener,
    _unix: UnixListener,
}

impl Scene {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        for folder in ["read", "write", "outside"] {
            fs::create_dir(at(folder)).unwrap();
            fs::write(at(folder).join("file"), folder).unwrap();
        }
        symlink(at("outside/file"), at("write/link")).unwrap();
        symlink(at("outside"), at("write/folder")).unwrap();
        let bind = || {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            listener.set_nonblocking(true).unwrap();
            listener
        };
        Self {
            listener: bind(),
            other: bind(),
            _unix: UnixListener::bind(at("write/socket")).unwrap(),
            directory,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// What the guest could do: a line for each attempt.
    fn escape(&self, network: &str) -> BTreeMap<String, bool> {
        let port = |listener: &TcpListener| listener.local_addr().unwrap().port().to_string();
        let mut guest = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "confine::escaped_guest",
                "--ignored",
                "--nocapture",
            ])
            .env("SCENE", self.directory.path())
            .env("NETWORK", network)
            .env("PORT", port(&self.listener))
            .env("OTHER_PORT", port(&self.other))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut text = String::new();
        guest
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        assert!(guest.wait().unwrap().success(), "{text}");
        let lines = text.lines().filter_map(|line| line.split_once(": "));
        lines
            .filter_map(|(what, could)| Some((what.to_owned(), could.parse().ok()?)))
            .collect()
    }

    fn connections(&self) -> (bool, bool) {
        (self.listener.accept().is_ok(), self.other.accept().is_ok())
    }
}

/// Whether this machine can show it; says so aloud where not.
fn can_confine() -> bool {
    let outlook = outlook();
    if outlook.state != State::Full {
        eprintln!(
            "skipped: this kernel does not confine {}",
            outlook.missing()
        );
    }
    outlook.state == State::Full
}

#[test]
fn an_escaped_guest_reaches_no_file_program_or_socket_but_those_that_were_kept() {
    if !can_confine() {
        return;
    }
    let scene = Scene::new();
    let could = scene.escape("none");
    let allowed: Vec<_> = could.iter().filter(|(_, could)| **could).collect();
    let expected = [
        "append to a file that was open before",
        "list a kept directory",
        "make a directory in a writable one",
        "make a file in a writable directory",
        "open /dev/null",
        "overwrite a file in a writable directory",
        "read a kept file",
        "read a writable file",
        "remove a file in a writable directory",
        "rename a file within a writable directory",
        "start a thread",
    ];
    let names: Vec<_> = allowed.iter().map(|(what, _)| what.as_str()).collect();
    assert_eq!(names, expected);
    assert!(could.len() > 40, "{could:#?}");

    // What did not happen.
    assert_eq!(scene.connections(), (false, false));
    let unchanged = |name: &str, content: &str| {
        assert_eq!(fs::read_to_string(scene.path(name)).unwrap(), content);
    };
    unchanged("outside/file", "outside");
    unchanged("read/file", "read");
    let names = |folder: &str| {
        let entries = fs::read_dir(scene.path(folder)).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names("outside"), ["file"]);
    assert_eq!(names("read"), ["file"]);
    assert_eq!(names(""), ["outside", "read", "write"]);
    assert_eq!(
        names("write"),
        [
            "file", "folder", "link", "made", "open", "renamed", "script", "socket"
        ]
    );
}

#[test]
fn a_granted_port_can_be_reached_and_no_other() {
    if !can_confine() {
        return;
    }
    let scene = Scene::new();
    let could = scene.escape("port");
    assert!(could["connect to the granted port"]);
    assert!(could["make a UDP socket"], "names are resolved over UDP");
    for never in [
        "connect to another port",
        "listen on a port",
        "connect to a Unix socket",
        "connect to an abstract socket",
        "read a file outside",
        "start /bin/sh",
    ] {
        assert!(!could[never], "{never}");
    }
    assert_eq!(scene.connections(), (true, false));
}

#[test]
fn a_process_that_has_threads_is_not_confined_by_halves() {
    let error = Confinement::builder().apply().unwrap_err();
    assert_eq!(error.code(), "confine-threads");
    assert!(fs::read_dir("/").is_ok(), "nothing has changed");
}

#[test]
fn a_path_that_is_not_there_is_an_error_before_anything_changes() {
    let thread = std::thread::spawn(|| {
        let confinement = Confinement::builder().read("/not/there");
        let error = confinement.apply_to_this_thread().unwrap_err();
        assert_eq!(error.code(), "confine-path");
        assert!(error.to_string().contains("/not/there"), "{error}");
        assert!(fs::read_dir("/").is_ok(), "nothing has changed");
    });
    thread.join().unwrap();
}

#[test]
fn names_are_resolved_in_a_confined_thread_that_keeps_the_systems_files() {
    use std::net::ToSocketAddrs;
    let confines = can_confine();
    let thread = std::thread::spawn(move || {
        let confinement = Confinement::builder().system_files().network(Network::Any);
        confinement.apply_to_this_thread().unwrap();
        let found = "localhost:80".to_socket_addrs().unwrap();
        assert!(found.into_iter().all(|address| address.ip().is_loopback()));
        assert_eq!(fs::read("/etc/passwd").is_ok(), !confines);
    });
    thread.join().unwrap();
}

/// Says what it could do.
struct Attempts(PathBuf);

impl Attempts {
    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn tell(&self, what: &str, could: bool) {
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

    /// Starts a program that would leave a file behind.
    fn start(&self, what: &str, program: impl AsRef<Path>, arguments: &[&str]) {
        let mut command = Command::new(program.as_ref());
        command.args(arguments).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let started = command.spawn();
        self.tell(what, started.and_then(|mut child| child.wait()).is_ok());
    }

    fn files(&self) {
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

    fn outside(&self) {
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

    fn programs(&self) {
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

    fn network(&self) {
        let connect = |variable: &str| {
            let port: u16 = std::env::var(variable).unwrap().parse().unwrap();
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        };
        self.tell("connect to the granted port", connect("PORT"));
        self.tell("connect to another port", connect("OTHER_PORT"));
        self.tell("listen on a port", TcpListener::bind("127.0.0.1:0").is_ok());
        self.tell("make a UDP socket", UdpSocket::bind("127.0.0.1:0").is_ok());
        let connected = UnixStream::connect(self.at("write/socket"));
        self.tell("connect to a Unix socket", connected.is_ok());
        self.tell("connect to an abstract socket", {
            use std::os::linux::net::SocketAddrExt;
            let name = std::os::unix::net::SocketAddr::from_abstract_name(b"toolward").unwrap();
            // Refused before anybody is looked for.
            match UnixStream::connect_addr(&name) {
                Ok(_) => true,
                Err(error) => error.kind() == std::io::ErrorKind::ConnectionRefused,
            }
        });
    }
}

#[test]
#[ignore = "a process of its own, started by the tests above"]
fn escaped_guest() {
    // Run by hand, it has nothing to escape from.
    let Some(scene) = std::env::var_os("SCENE") else {
        return;
    };
    let attempts = Attempts(scene.into());
    fs::write(attempts.at("write/script"), "#!/bin/sh\n").unwrap();
    let executable = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o700);
    fs::set_permissions(attempts.at("write/script"), executable).unwrap();
    let mut open = fs::File::create(attempts.at("write/open")).unwrap();

    let port = std::env::var("PORT").unwrap().parse().unwrap();
    let network = match std::env::var("NETWORK").unwrap().as_str() {
        "port" => Network::Ports(vec![port]),
        _ => Network::None,
    };
    let confinement = Confinement::builder()
        .read(attempts.at("read"))
        .read_write(attempts.at("write"))
        .network(network)
        .strict(true);
    let confined = confinement.apply_to_this_thread().unwrap();
    assert_eq!(confined.state, State::Full);

    let started = Instant::now();
    attempts.tell(
        "append to a file that was open before",
        open.write_all(b"x").is_ok(),
    );
    attempts.files();
    attempts.outside();
    attempts.programs();
    attempts.network();
    assert!(started.elapsed() < Duration::from_secs(20));
}
