//! Tests the confinement against a stand-in for a guest that has escaped. The stand-in is this same
//! program, which runs the last "test" of this file: it confines itself and then tries various
//! attacks. The tests assert which of them succeeded.

mod attempts;
mod raw;

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{ioctl_tiocsctty, setsid};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use toolward_host::confine::{ALLOWED_CALLS, Confinement, Network, State, SystemCalls, outlook};
use wasmtime::PoolingAllocationConfig;

use self::attempts::Attempts;

/// A directory with files that the guest may reach and files that it may not, and two listening
/// sockets.
struct Scene {
    directory: tempfile::TempDir,
    listener: TcpListener,
    other: TcpListener,
    _unix: UnixListener,
    datagrams: UnixDatagram,
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
        let datagrams = UnixDatagram::bind(at("datagrams")).unwrap();
        datagrams.set_nonblocking(true).unwrap();
        Self {
            datagrams,
            listener: bind(),
            other: bind(),
            _unix: UnixListener::bind(at("write/socket")).unwrap(),
            directory,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Returns what the guest could do, with an entry for each attempt.
    fn escape(&self, network: &str) -> BTreeMap<String, bool> {
        self.escape_with(network, Stdio::null(), &[])
    }

    fn escape_with(
        &self,
        network: &str,
        input: Stdio,
        variables: &[(&str, &str)],
    ) -> BTreeMap<String, bool> {
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
            .envs(variables.iter().copied())
            .stdin(input)
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

/// Whether this machine can confine a process; prints a message if not.
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

/// The attempts of an escaped guest that succeed although no network was granted.
const LEFT: [&str; 16] = [
    "append to a file that was open before",
    "ask for its own limits and set them",
    "change the rights of an open file",
    "list a kept directory",
    "make a directory in a writable one",
    "make a file in a writable directory",
    "make a pair of connected sockets",
    "open /dev/null",
    "overwrite a file in a writable directory",
    "read a kept file",
    "read a writable file",
    "remove a file in a writable directory",
    "rename a file within a writable directory",
    "see which of its own pages were written",
    "set the times of an open file",
    "start a thread",
];

/// The entries of [`LEFT`] and of `more`, in order.
fn expected(more: &[&'static str]) -> Vec<&'static str> {
    // An older kernel can't list written pages.
    let told = |what: &&str| {
        PoolingAllocationConfig::is_pagemap_scan_available() || !what.starts_with("see which")
    };
    let mut expected: Vec<_> = LEFT.into_iter().chain(more.iter().copied()).collect();
    expected.retain(told);
    expected.sort_unstable();
    expected
}

/// The attempts that succeeded.
fn done(could: &BTreeMap<String, bool>) -> Vec<&str> {
    let done = could.iter().filter(|(_, could)| **could);
    done.map(|(what, _)| what.as_str()).collect()
}

#[test]
fn an_escaped_guest_reaches_no_file_program_or_socket_but_those_that_were_kept() {
    if !can_confine() {
        return;
    }
    let scene = Scene::new();
    let could = scene.escape("none");
    assert_eq!(done(&could), expected(&[]));
    assert!(could.len() > 60, "{could:#?}");

    // The connections did not happen.
    assert_eq!(scene.connections(), (false, false));
    let unchanged = |name: &str, content: &str| {
        assert_eq!(fs::read_to_string(scene.path(name)).unwrap(), content);
    };
    unchanged("outside/file", "outside");
    unchanged("read/file", "read");
    let mode = fs::metadata(scene.path("write/file"))
        .unwrap()
        .permissions();
    assert_eq!(
        mode.mode() & 0o7777,
        0o600,
        "as it was set on the open file"
    );
    let sent = scene.datagrams.recv(&mut [0; 8]).unwrap_err();
    assert_eq!(sent.kind(), std::io::ErrorKind::WouldBlock, "nothing came");
    let names = |folder: &str| {
        let entries = fs::read_dir(scene.path(folder)).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names("outside"), ["file"]);
    assert_eq!(names("read"), ["file"]);
    assert_eq!(names(""), ["datagrams", "outside", "read", "write"]);
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
        "connect to another port by sending (To)",
        "connect to another port by sending (Message)",
        "connect to another port by sending (Messages)",
        "listen on a port",
        "listen without an address",
        "accept a connection",
        "accept a connection, with flags",
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
fn an_escaped_guest_types_nothing_into_the_terminal_that_the_host_has() {
    if !can_confine() {
        return;
    }
    let (mut master, slave) = raw::terminal();
    let input = slave.try_clone().unwrap().into();
    let could = Scene::new().escape_with("none", input, &[("TERMINAL", "yes")]);
    for never in [
        "type into the terminal",
        "type into the terminal, with high bits",
        "speak to the console",
        "speak to the console, with high bits",
        "leave something to read in the terminal",
    ] {
        assert!(!could[never], "{never}");
    }
    // The terminal echoes typed text.
    let mut echo = [0; 8];
    assert!(!matches!(master.read(&mut echo), Ok(1..)), "{echo:?}");
}

#[test]
fn the_deny_list_leaves_new_processes_and_refuses_what_is_known_to_do_harm() {
    if !can_confine() {
        return;
    }
    let scene = Scene::new();
    let could = scene.escape_with("none", Stdio::null(), &[("LIST", "deny")]);
    assert_eq!(done(&could), expected(&["make a process"]));
    let sent = scene.datagrams.recv(&mut [0; 8]).unwrap_err();
    assert_eq!(sent.kind(), std::io::ErrorKind::WouldBlock, "nothing came");
}

#[test]
fn the_book_names_each_call_that_is_allowed() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/src/confinement.md");
    let page = fs::read_to_string(page).unwrap();
    for group in ALLOWED_CALLS {
        let row = page
            .lines()
            .find(|line| line.starts_with(&format!("| {} |", group.name)));
        let row = row.unwrap_or_else(|| panic!("no group {}", group.name));
        for (call, _) in group.calls {
            assert!(
                row.contains(&format!("`{call}`")),
                "{call} of {}",
                group.name
            );
        }
    }
}

/// A process that uses a processor until it is ended.
struct Busy(Child);

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Lets a guest escape next to another process. Returns what the guest could do, and the state of
/// the other process before and after.
fn beside_a_neighbour() -> (BTreeMap<String, bool>, [Neighbour; 2]) {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "while :; do :; done"]);
    let mut busy = Busy(command.stdin(Stdio::null()).spawn().unwrap());
    let process = busy.0.id();
    let before = Neighbour::of(process);
    let variables = [("NEIGHBOUR", process.to_string())];
    let variables = variables
        .each_ref()
        .map(|(name, value)| (*name, value.as_str()));
    let could = Scene::new().escape_with("none", Stdio::null(), &variables);
    let after = Neighbour::of(process);
    assert!(busy.0.try_wait().unwrap().is_none(), "it lives on");
    (could, [before, after])
}

/// The properties of a process that other processes can change.
#[derive(Debug, PartialEq)]
struct Neighbour {
    limits: String,
    processors: Option<String>,
    nice: Option<String>,
}

impl Neighbour {
    fn of(process: u32) -> Self {
        let read = |name: &str| fs::read_to_string(format!("/proc/{process}/{name}")).unwrap();
        let (status, stat) = (read("status"), read("stat"));
        let mut processors = status
            .lines()
            .filter(|line| line.starts_with("Cpus_allowed:"));
        let after_name = stat.rsplit_once(')').unwrap().1;
        Self {
            limits: read("limits"),
            processors: processors.next().map(str::to_owned),
            nice: after_name.split_whitespace().nth(16).map(str::to_owned),
        }
    }
}

#[test]
fn an_escaped_guest_does_not_end_another_process_by_its_limits() {
    if !can_confine() {
        return;
    }
    let (could, [before, after]) = beside_a_neighbour();
    assert!(!could["limit another process"]);
    assert_eq!(after.limits, before.limits);
}

#[test]
fn an_escaped_guest_neither_slows_down_nor_pins_another_process() {
    if !can_confine() {
        return;
    }
    let (could, [before, after]) = beside_a_neighbour();
    assert!(!could["slow another process down"]);
    assert!(!could["pin another process to a processor"]);
    assert_eq!(after, before);
}

#[test]
fn a_kernel_that_does_not_hold_files_gets_a_warning_that_says_so() {
    let thread = std::thread::spawn(|| {
        // Answers Landlock's calls like a kernel without Landlock.
        let calls = (444..=446).map(|call| (call, Vec::new())).collect();
        let filter = SeccompFilter::new(
            calls,
            SeccompAction::Allow,
            SeccompAction::Errno(libc::ENOSYS.cast_unsigned()),
            std::env::consts::ARCH.try_into().unwrap(),
        );
        let program: BpfProgram = filter.unwrap().try_into().unwrap();
        seccompiler::apply_filter(&program).unwrap();

        let confined = Confinement::builder().apply_to_this_thread().unwrap();
        assert!(fs::read_dir("/").is_ok(), "files are not held");
        assert_eq!(confined.state, State::Partial);
        let warning = confined.warning().unwrap();
        assert!(warning.contains("from your files"), "{warning}");
        assert!(warning.contains("missing: files (needs"), "{warning}");
    });
    thread.join().unwrap();
    if can_confine() {
        assert_eq!(outlook().warning(), None);
    }
}

#[test]
fn a_process_that_has_threads_is_not_confined_by_halves() {
    let error = Confinement::builder().apply().unwrap_err();
    assert_eq!(error.code(), "confine-threads");
    assert!(fs::read_dir("/").is_ok(), "nothing has changed");
}

#[test]
fn a_path_that_is_not_there_is_an_error_before_anything_changes() {
    let place = tempfile::tempdir().unwrap();
    let missing = place.path().join("missing");
    let thread = std::thread::spawn(move || {
        let confinement = Confinement::builder().read(&missing);
        let error = confinement.apply_to_this_thread().unwrap_err();
        assert_eq!(error.code(), "confine-path");
        assert!(
            error.to_string().contains(missing.to_str().unwrap()),
            "{error}"
        );
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

#[test]
fn a_server_takes_connections_from_its_own_sockets_and_no_other() {
    if !can_confine() {
        return;
    }
    for (count, calls) in [
        (0, SystemCalls::AllowList),
        (1, SystemCalls::AllowList),
        (2, SystemCalls::AllowList),
        (0, SystemCalls::DenyList),
        (1, SystemCalls::DenyList),
        (2, SystemCalls::DenyList),
    ] {
        accepts_on_these_only(count, calls);
    }
}

/// Confines a thread that keeps the first `count` of four listening sockets. Asserts that it can
/// accept on these only.
fn accepts_on_these_only(count: usize, calls: SystemCalls) {
    let bind = |_| TcpListener::bind("127.0.0.1:0").unwrap();
    let listeners = [(); 4].map(bind);
    let _clients = listeners.each_ref().map(|listener| {
        let address = listener.local_addr().unwrap();
        std::net::TcpStream::connect(address).unwrap()
    });
    let thread = std::thread::spawn(move || {
        let (own, others) = listeners.split_at(count);
        let confinement = Confinement::builder().system_calls(calls);
        let confinement = own.iter().fold(confinement, Confinement::accept_on);
        confinement.apply_to_this_thread().unwrap();
        for listener in own {
            listener.accept().unwrap();
        }
        for listener in others {
            let refused = listener.accept().unwrap_err();
            assert_eq!(refused.raw_os_error(), Some(libc::EPERM), "{calls:?}");
        }
        // A new listening socket is refused, and so is a copy of a kept one.
        let anew = TcpListener::bind("127.0.0.1:0").unwrap_err();
        assert_eq!(anew.raw_os_error(), Some(libc::EPERM), "{calls:?}");
        for listener in own {
            let copy = listener.try_clone().unwrap();
            let refused = copy.accept().unwrap_err();
            assert_eq!(refused.raw_os_error(), Some(libc::EPERM), "{calls:?}");
        }
    });
    thread.join().unwrap();
}

#[test]
#[ignore = "a process of its own, started by the tests above"]
fn escaped_guest() {
    // If it is run by hand, it has nothing to escape from.
    let Some(scene) = std::env::var_os("SCENE") else {
        return;
    };
    let attempts = Attempts(scene.into());
    fs::write(attempts.at("write/script"), "#!/bin/sh\n").unwrap();
    let executable = fs::Permissions::from_mode(0o700);
    fs::set_permissions(attempts.at("write/script"), executable).unwrap();
    let mut open = fs::File::create(attempts.at("write/open")).unwrap();

    let listening = TcpListener::bind("127.0.0.1:0").unwrap();
    listening.set_nonblocking(true).unwrap();
    if std::env::var_os("TERMINAL").is_some() {
        setsid().unwrap();
        ioctl_tiocsctty(std::io::stdin()).unwrap();
    }

    let port = std::env::var("PORT").unwrap().parse().unwrap();
    let network = match std::env::var("NETWORK").unwrap().as_str() {
        "port" => Network::Ports(vec![port]),
        _ => Network::None,
    };
    // A broker does this when it is opened.
    toolward_host::memory::finds_written_pages();
    let confinement = Confinement::builder()
        .read(attempts.at("read"))
        .read_write(attempts.at("write"))
        .network(network)
        .system_calls(match std::env::var_os("LIST") {
            Some(_) => SystemCalls::DenyList,
            None => SystemCalls::AllowList,
        })
        .strict(true);
    let confined = confinement.apply_to_this_thread().unwrap();
    assert_eq!(confined.state, State::Full);

    let started = Instant::now();
    attempts.tell(
        "append to a file that was open before",
        open.write_all(b"x").is_ok(),
    );
    attempts.files();
    attempts.attributes();
    attempts.outside();
    attempts.programs();
    attempts.network(&listening);
    attempts.neighbours();
    attempts.terminal();
    assert!(started.elapsed() < Duration::from_secs(20));
}
