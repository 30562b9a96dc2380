use std::fs;
use std::io::Read as _;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use toolward_confine::build_profile::is_available;

use super::*;
use crate::build::program::RustSettings;

/// A home with a checkout, and with files that a build must not reach.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        home.write("secret", "secret");
        home.write("src/checkout/driver.c", "source");
        home.write("src/other/driver.c", "secret");
        fs::create_dir(home.path("src/checkout/.git")).unwrap();
        fs::create_dir_all(home.path("scratch")).unwrap();
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn tools(&self) -> BuildTools {
        BuildTools {
            home: Some(self.path("")),
            ..BuildTools::default()
        }
    }

    fn confinement(&self) -> BuildConfinement {
        let bundle = self.path("src/checkout");
        BuildConfinement::new(&self.tools(), &bundle, &self.path("scratch"))
    }
}

/// Returns what a confined shell prints; `None` if the kernel can't confine.
#[track_caller]
fn prints(confinement: &BuildConfinement, script: &str) -> Option<String> {
    if !is_available() {
        eprintln!("SKIPPED: this kernel has no Landlock");
        return None;
    }
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", script])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let unusable = |source| panic!("{source}");
    let mut child = confinement.start(&mut command, &unusable).unwrap();
    let mut printed = String::new();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_to_string(&mut printed).unwrap();
    child.wait().unwrap();
    Some(printed.trim().to_owned())
}

/// Whether a confined shell reads a file.
#[track_caller]
fn reads(confinement: &BuildConfinement, path: &Path) -> Option<bool> {
    let text = fs::read_to_string(path).unwrap();
    let printed = prints(confinement, &format!("cat '{}'", path.display()))?;
    assert!(printed.is_empty() || printed == text.trim(), "{printed}");
    Some(!printed.is_empty())
}

#[test]
fn a_confined_program_reads_nothing_in_home_but_the_checkout() {
    let home = Home::new();
    let confinement = home.confinement();
    for (file, expected) in [
        ("secret", false),
        ("src/other/driver.c", false),
        ("src/checkout/driver.c", true),
    ] {
        let Some(read) = reads(&confinement, &home.path(file)) else {
            return;
        };
        assert_eq!(read, expected, "{file}");
    }
    // The files are not listed either, and a link does not lead to them.
    let list = format!("ls '{}'", home.path("").display());
    assert_eq!(prints(&confinement, &list).unwrap(), "");
    let link = home.path("src/checkout/link");
    symlink(home.path("secret"), &link).unwrap();
    assert_eq!(reads(&home.confinement(), &link), Some(false));
    assert_eq!(reads(&confinement, Path::new("/etc/passwd")), Some(true));
}

#[test]
fn a_confined_program_writes_to_scratch_directories_only() {
    let home = Home::new();
    let outside = tempfile::tempdir().unwrap();
    let folders = [
        (home.path("src/checkout"), false),
        (home.path("src/checkout/.git"), false),
        (home.path(""), false),
        (outside.path().to_owned(), false),
        (home.path("scratch"), true),
    ];
    for (folder, expected) in folders {
        let file = folder.join("new");
        let script = format!("echo x > '{}'", file.display());
        if prints(&home.confinement(), &script).is_none() {
            return;
        }
        assert_eq!(file.exists(), expected, "{}", folder.display());
    }
    let source = home.path("src/checkout/driver.c");
    let script = format!("rm -f '{0}'; echo x >> '{0}'", source.display());
    prints(&home.confinement(), &script);
    assert_eq!(fs::read_to_string(source).unwrap(), "source");
}

#[test]
fn a_confined_program_makes_no_connection() {
    let home = Home::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let connect = format!(
        "import socket\ntry:\n socket.create_connection(('127.0.0.1', {}))\n print('connected')\n\
         except OSError as error:\n print(type(error).__name__)",
        address.port()
    );
    let script = format!("/usr/bin/env python3 -c \"{connect}\" || echo none");
    let mut unconfined = Command::new("/bin/sh");
    let found = unconfined.args(["-c", &script]).output().unwrap().stdout;
    if found != b"connected\n" {
        eprintln!("SKIPPED: there is no python3 to connect with");
        return;
    }
    let Some(printed) = prints(&home.confinement(), &script) else {
        return;
    };
    assert_eq!(printed, "PermissionError");
}

#[test]
fn a_confined_program_makes_no_other_sockets() {
    let home = Home::new();
    for family in ["AF_UNIX", "AF_INET", "AF_INET6", "AF_NETLINK"] {
        let make = format!(
            "import socket\ntry:\n socket.socket(socket.{family}, socket.SOCK_DGRAM)\n \
             print('made')\nexcept PermissionError:\n print('refused')"
        );
        let script = format!("/usr/bin/env python3 -c \"{make}\" || echo none");
        let Some(printed) = prints(&home.confinement(), &script) else {
            return;
        };
        if printed == "none" {
            eprintln!("SKIPPED: there is no python3 to make sockets with");
            return;
        }
        assert_eq!(printed, "refused", "{family}");
    }
}

#[test]
fn a_confined_program_looks_into_no_process_that_it_did_not_start() {
    let home = Home::new();
    let script = "readlink /proc/self/cwd; readlink /proc/$PPID/cwd; \
                  kill -0 $PPID && echo signalled; echo end";
    let Some(printed) = prints(&home.confinement(), script) else {
        return;
    };
    let here = std::env::current_dir().unwrap();
    assert_eq!(printed, format!("{}\nend", here.display()));
    // Root, and users who may measure performance, may read the environment of another process.
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        let environment = prints(&home.confinement(), "cat /proc/$PPID/environ | wc -c");
        assert_eq!(environment.unwrap(), "0");
    }
}

#[test]
fn cargos_tokens_are_not_read_wherever_they_lie() {
    let home = Home::new();
    let outside = tempfile::tempdir().unwrap();
    for cargo_home in [home.path(".cargo"), outside.path().canonicalize().unwrap()] {
        fs::create_dir_all(&cargo_home).unwrap();
        let kept = home.path("dotfiles/token");
        home.write("dotfiles/token", "token");
        fs::write(cargo_home.join("credentials"), "token").unwrap();
        symlink(&kept, cargo_home.join("credentials.toml")).unwrap();
        fs::write(cargo_home.join("config.toml"), "settings").unwrap();
        let tools = BuildTools {
            rust: RustSettings {
                cargo_home: Some(cargo_home.clone()),
                ..RustSettings::default()
            },
            ..home.tools()
        };
        // This holds even if the checkout contains the link's target.
        let checkout = home.path("dotfiles");
        let mut confinement = BuildConfinement::new(&tools, &checkout, &home.path("scratch"));
        confinement.read_entries(&cargo_home);
        confinement.read(&cargo_home);
        for (file, expected) in [
            ("credentials", false),
            ("credentials.toml", false),
            ("config.toml", true),
        ] {
            let Some(read) = reads(&confinement, &cargo_home.join(file)) else {
                return;
            };
            assert_eq!(read, expected, "{}/{file}", cargo_home.display());
        }
        assert_eq!(reads(&confinement, &kept), Some(false));
    }
}

#[test]
fn raw_disks_and_terminals_are_out_of_reach_and_harmless_devices_are_not() {
    let home = Home::new();
    let script = "ls /dev; (: < /dev/ptmx) && echo open; head -c 3 /dev/zero | wc -c; echo x > /dev/null && echo written";
    let Some(printed) = prints(&home.confinement(), script) else {
        return;
    };
    assert_eq!(printed, "3\nwritten");
}

#[test]
fn what_is_hidden_in_home_stays_so_where_home_itself_is_built() {
    let home = Home::new();
    home.write(".ssh/key", "secret");
    home.write("driver.c", "source");
    symlink(".ssh", home.path("link")).unwrap();
    let confinement = BuildConfinement::new(&home.tools(), &home.path(""), &home.path("scratch"));
    for (file, expected) in [(".ssh/key", false), ("link/key", false), ("driver.c", true)] {
        let Some(read) = reads(&confinement, &home.path(file)) else {
            return;
        };
        assert_eq!(read, expected, "{file}");
    }
}

#[test]
fn a_home_inside_the_checkout_is_not_opened_with_it() {
    let home = Home::new();
    home.write("src/checkout/home/secret", "secret");
    let tools = BuildTools {
        home: Some(home.path("src/checkout/home")),
        ..BuildTools::default()
    };
    let bundle = home.path("src/checkout");
    let confinement = BuildConfinement::new(&tools, &bundle, &home.path("scratch"));
    for (file, expected) in [("driver.c", true), ("home/secret", false)] {
        let Some(read) = reads(&confinement, &bundle.join(file)) else {
            return;
        };
        assert_eq!(read, expected, "{file}");
    }
}

#[test]
fn without_a_known_home_the_system_and_the_checkout_are_read() {
    let home = Home::new();
    for unknown in [None, Some(PathBuf::from("/"))] {
        let tools = BuildTools {
            home: unknown,
            ..BuildTools::default()
        };
        let bundle = home.path("src/checkout");
        let confinement = BuildConfinement::new(&tools, &bundle, &home.path("scratch"));
        for (file, expected) in [("secret", false), ("src/checkout/driver.c", true)] {
            let Some(read) = reads(&confinement, &home.path(file)) else {
                return;
            };
            assert_eq!(read, expected, "{file}");
        }
    }
}

#[test]
fn a_program_reads_what_is_installed_with_it_and_keeps_from_its_neighbours() {
    let home = Home::new();
    for (program, beside, expected) in [
        ("tools/zig/zig", "tools/zig/lib/std.zig", true),
        ("tools/go/bin/go", "tools/go/src/fmt.go", true),
        (".local/bin/tool", ".local/lib/tool.py", true),
        (".local/bin/tool", ".local/share/keyring", false),
        ("bin/tool", "bin/helper", true),
        ("bin/tool", "secret", false),
        ("tool", "secret", false),
    ] {
        home.write(beside, "text");
        home.write(program, "text");
        let mut confinement = home.confinement();
        confinement.run(&home.path(program));
        let both = [(program, true), (beside, expected)];
        for (file, expected) in both {
            let Some(read) = reads(&confinement, &home.path(file)) else {
                return;
            };
            assert_eq!(read, expected, "{program}: {file}");
        }
    }
}

#[test]
fn a_script_reads_its_interpreter_where_a_virtual_environment_links_to_it() {
    let home = Home::new();
    let python = home.path("venv/bin/python");
    home.write("pythons/3/bin/python3", "text");
    home.write("pythons/3/lib/os.py", "text");
    fs::create_dir_all(python.parent().unwrap()).unwrap();
    symlink(home.path("pythons/3/bin/python3"), &python).unwrap();
    let first = format!("#!{}\n", python.display());
    // As pip writes it if a path is too long for a first line.
    let long = format!(
        "#!/bin/sh\n'''exec' \"{}\" \"$0\" \"$@\"\n' '''\n",
        python.display()
    );
    for script in [first, long] {
        home.write("venv/bin/tool", &script);
        let mut confinement = home.confinement();
        confinement.run(&home.path("venv/bin/tool"));
        let Some(read) = reads(&confinement, &home.path("pythons/3/lib/os.py")) else {
            return;
        };
        assert!(read, "{script}");
    }
}

#[test]
fn the_callers_own_thread_stays_free() {
    let home = Home::new();
    if reads(&home.confinement(), &home.path("secret")).is_some() {
        assert_eq!(fs::read(home.path("secret")).unwrap(), b"secret");
        fs::write(home.path("secret"), "changed").unwrap();
    }
}

/// What a `build.rs` could try. Each line is tried alone. The numbers of system calls are from
/// x86-64.
const ATTEMPTS: &str = r#"
import ctypes, os, socket, sys
outside, scratch, datagrams = sys.argv[1:4]
libc = ctypes.CDLL(None, use_errno=True)
def call(*arguments):
    if libc.syscall(*arguments) < 0:
        raise OSError(ctypes.get_errno(), "")
def opened(change):
    file = os.open(outside, os.O_RDONLY)
    change(file)
def datagram():
    pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    pair[0].sendto(b"out", datagrams)
def program(path, mode):
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, mode))
attempts = {
    "mode": lambda: os.chmod(outside, 0o666),
    "mode, open": lambda: opened(lambda file: os.fchmod(file, 0o666)),
    "mode, below /proc": lambda: opened(lambda file: os.chmod(f"/proc/self/fd/{file}", 0o666)),
    "mode, by fchmodat2": lambda: call(452, -100, outside.encode(), 0o666, 0),
    "owner": lambda: os.chown(outside, os.getuid(), os.getgid()),
    "owner, open": lambda: opened(lambda file: os.fchown(file, os.getuid(), os.getgid())),
    "times": lambda: os.utime(outside, (1, 1)),
    "times, open": lambda: opened(lambda file: os.utime(file, (1, 1))),
    "attribute": lambda: os.setxattr(outside, "user.toolward", b"x"),
    "attribute, open": lambda: opened(lambda file: os.setxattr(file, "user.toolward", b"x")),
    "datagram": datagram,
    "namespace of a user": lambda: call(272, 0x10000000),
    "namespace of files": lambda: call(272, 0x20000),
    "another's namespace": lambda: call(308, os.open("/proc/self/ns/net", os.O_RDONLY), 0),
    "shared memory": lambda: call(29, 0x54574152, 4096, 0o1600),
    "keyring": lambda: call(248, b"user", b"toolward-test", b"x", 1, -2),
    "set-id program": lambda: program(scratch + "/set-id", 0o4755),
    "set-id, by mknod": lambda: os.mknod(scratch + "/set-id", 0o104755),
    "set-id, by chmod": lambda: (program(scratch + "/plain", 0o755), os.chmod(scratch + "/plain", 0o6755)),
    "a second listener": lambda: call(317, 1, 8, 0),
    "mount": lambda: call(165, b"none", scratch.encode(), b"tmpfs", 0, 0),
}
for name, attempt in attempts.items():
    try:
        attempt()
        print("did", name)
    except PermissionError:
        pass
    except OSError as error:
        print(name, error)
link = scratch + "/link"
os.symlink(outside, link)
for change in [lambda: os.chmod(link, 0o666), lambda: os.utime(link, (1, 1))]:
    try:
        change()
        print("did through a link")
    except PermissionError:
        pass
inside = scratch + "/inside"
program(inside, 0o600)
os.chmod(inside, 0o750)
os.utime(inside, (5, 7))
file = os.open(inside, os.O_RDONLY)
os.fchmod(file, 0o751)
os.chdir(scratch)
os.chmod("inside", 0o711)
os.utime(file, (5, 9))
print("end")
"#;

#[cfg(target_arch = "x86_64")]
#[test]
fn a_hostile_build_changes_no_file_outside_and_makes_no_namespace_memory_or_set_id_program() {
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::net::UnixDatagram;

    let home = Home::new();
    let outside = tempfile::tempdir().unwrap();
    let file = outside.path().join("file");
    fs::write(&file, "outside").unwrap();
    let receiver = UnixDatagram::bind(outside.path().join("datagrams")).unwrap();
    receiver.set_nonblocking(true).unwrap();
    home.write("src/checkout/build.py", ATTEMPTS);
    let before = fs::metadata(&file).unwrap();
    let script = format!(
        "/usr/bin/env python3 '{}' '{}' '{}' '{}' 2>&1 || echo none",
        home.path("src/checkout/build.py").display(),
        file.display(),
        home.path("scratch").display(),
        outside.path().join("datagrams").display()
    );
    let Some(printed) = prints(&home.confinement(), &script) else {
        return;
    };
    let after = fs::metadata(&file).unwrap();
    assert_eq!(after.ctime(), before.ctime());
    assert_eq!(after.ctime_nsec(), before.ctime_nsec());
    assert_eq!(
        (after.mode(), after.mtime()),
        (before.mode(), before.mtime())
    );
    assert!(receiver.recv(&mut [0; 8]).is_err(), "no datagram came");
    for entry in fs::read_dir(home.path("scratch")).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o6000, 0, "{}", entry.path().display());
    }
    if printed.contains("none") && printed.contains("python3") {
        eprintln!("SKIPPED: there is no python3 to try with");
        return;
    }
    assert_eq!(printed, "end");
    let inside = fs::metadata(home.path("scratch/inside")).unwrap();
    assert_eq!((inside.mode() & 0o7777, inside.mtime()), (0o711, 9));
}
