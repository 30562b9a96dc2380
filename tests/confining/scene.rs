//! A machine with a server that has every possible grant, and with the data that the server's
//! process must not change.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use super::server::Server;

const EXAMPLES: [&str; 9] = [
    "csv-summary",
    "files-search",
    "http-fetch",
    "json-query",
    "kv-counter",
    "markdown-html",
    "notes-append",
    "text-digest",
    "text-stats",
];

const EXAMPLE_KEY: &str = "key:cd841c22fb88b5562fa3e6a5fdd74be5dd34deb54cf96b6b16c43d6c4d4f74a5";

/// The user that the server runs as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum User {
    /// A user without rights over the machine: the user of the test, or `nobody` if the test runs
    /// as root.
    Ordinary,
    Root,
}

impl User {
    /// Returns the number of the user and group, if it differs from the test's.
    fn number(self) -> Option<u32> {
        const NOBODY: u32 = 65_534;
        (is_root() && self == Self::Ordinary).then_some(NOBODY)
    }
}

/// Whether this test runs as root.
pub(super) fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

/// Returns the command's path. The first use builds the command, so it is never outdated.
fn toolward() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        // TARGET/PROFILE/deps/confining-HASH
        let this = std::env::current_exe().unwrap();
        let folder = this.parent().and_then(Path::parent).unwrap();
        let profile = match folder.file_name().and_then(|name| name.to_str()).unwrap() {
            "debug" => "dev",
            other => other,
        };
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut build = Command::new(cargo);
        // A build script that sees another package's variables would run again, and everything that
        // depends on its package would be compiled again.
        for (name, _) in std::env::vars_os() {
            let shown = name.to_string_lossy();
            if shown.starts_with("CARGO_PKG_") || shown.starts_with("CARGO_MANIFEST_") {
                build.env_remove(name);
            }
        }
        let built = build
            .args(["build", "--quiet", "--workspace", "--bin", "toolward"])
            .args(["--profile", profile, "--target-dir"])
            .arg(folder.parent().unwrap())
            .current_dir(root())
            .stdin(Stdio::null())
            .status()
            .unwrap();
        assert!(built.success(), "run `cargo build`");
        // README's own `cargo run` replaces the built file while tests run.
        let link = folder.join("toolward-confining");
        let _ = fs::remove_file(&link);
        fs::hard_link(folder.join("toolward"), &link).unwrap();
        link
    })
}

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The environment of a server.
pub(super) struct Scene {
    directory: tempfile::TempDir,
    user: User,
    /// A process of the same user.
    neighbour: Child,
    datagrams: UnixDatagram,
}

impl Scene {
    /// Makes a scene with all examples.
    pub(super) fn new(user: User) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        for folder in ["home", "files", "notes", "outside"] {
            fs::create_dir(path(folder)).unwrap();
        }
        let examples = root().join("examples");
        for example in EXAMPLES {
            let name = format!("{example}.toolbundle");
            fs::copy(examples.join("bundles").join(&name), path(&name)).unwrap();
        }
        fs::copy(
            examples.join("keys/example.pub.pem"),
            path("example.pub.pem"),
        )
        .unwrap();
        fs::write(path("files/a.md"), "one\nTODO: tea\n").unwrap();
        fs::write(path("notes/kept"), "kept").unwrap();
        fs::write(path("outside/file"), "outside").unwrap();
        fs::write(path("policy.toml"), policy()).unwrap();
        let datagrams = UnixDatagram::bind(path("outside/datagrams")).unwrap();
        datagrams.set_nonblocking(true).unwrap();
        let mut neighbour = Command::new("sleep");
        neighbour
            .arg("3600")
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        if let Some(number) = user.number() {
            give(directory.path(), number);
            neighbour.uid(number).gid(number);
        }
        Self {
            neighbour: neighbour.spawn().unwrap(),
            directory,
            user,
            datagrams,
        }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Returns `toolward serve` with all grants, as that user.
    pub(super) fn command(&self, flags: &str) -> Command {
        let mut command = self.program(toolward());
        command
            .args(["serve", "--trust-key", "example.pub.pem"])
            .args(["--policy-file", "policy.toml"])
            .args(flags.split_whitespace());
        for example in EXAMPLES {
            command.arg("--bundle").arg(format!("{example}.toolbundle"));
        }
        command
    }

    /// Returns a program, as that user.
    pub(super) fn program(&self, program: impl AsRef<Path>) -> Command {
        // The user gets a copy, since the user may not have access to the test's build.
        let own = self.path("program");
        fs::copy(program, &own).unwrap();
        let mut command = Command::new(own);
        command
            .current_dir(self.directory.path())
            .env_clear()
            .env("HOME", self.path("home"))
            .process_group(0);
        if let Some(number) = self.user.number() {
            command.uid(number).gid(number);
        }
        command
    }

    pub(super) fn serve(&self) -> Server {
        Server::start(self.command(""))
    }

    pub(super) fn neighbour(&self) -> u32 {
        self.neighbour.id()
    }

    /// Returns everything that a process could have changed.
    pub(super) fn state(&mut self) -> BTreeMap<String, String> {
        let mut state = BTreeMap::new();
        for folder in ["outside", "notes", "files"] {
            files(&self.path(folder), &mut state);
        }
        let process = self.neighbour.id();
        let ended = self.neighbour.try_wait().unwrap();
        state.insert("neighbour, ended".to_owned(), format!("{ended:?}"));
        for file in ["limits", "oom_score_adj", "timerslack_ns"] {
            let text = fs::read_to_string(format!("/proc/{process}/{file}")).unwrap_or_default();
            state.insert(format!("neighbour, {file}"), text);
        }
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
        let told = [
            "Cpus_allowed:",
            "Mems_allowed:",
            "TracerPid:",
            "SigPnd:",
            "ShdPnd:",
        ];
        let lines = status
            .lines()
            .filter(|line| told.iter().any(|told| line.starts_with(told)));
        let lines: Vec<&str> = lines.collect();
        state.insert("neighbour, status".to_owned(), lines.join("\n"));
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
        let after_name = stat.rsplit_once(')').unwrap().1;
        let fields: Vec<&str> = after_name.split_whitespace().collect();
        // Group and session; priority and niceness; real-time priority and policy.
        let told = [2, 3, 15, 16, 37, 38].map(|field| fields[field].to_owned());
        state.insert("neighbour, stat".to_owned(), told.join(" "));
        let mut datagram = [0; 64];
        let came = self.datagrams.recv(&mut datagram).ok();
        state.insert("datagrams".to_owned(), format!("{came:?}"));
        let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        state.insert("host name".to_owned(), name);
        state
    }

    /// Returns the differences: the name, the earlier value, and the present one.
    pub(super) fn changed_since(
        &mut self,
        before: &BTreeMap<String, String>,
    ) -> Vec<(Option<String>, Option<String>, String)> {
        let after = self.state();
        let mut keys: Vec<String> = before.keys().chain(after.keys()).cloned().collect();
        keys.sort();
        keys.dedup();
        keys.into_iter()
            .filter(|key| before.get(key) != after.get(key))
            .map(|key| (before.get(&key).cloned(), after.get(&key).cloned(), key))
            .collect()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = self.neighbour.kill();
        let _ = self.neighbour.wait();
    }
}

/// Makes a user the owner of a path.
fn give(path: &Path, user: u32) {
    chown(path, Some(user), Some(user)).unwrap();
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            give(&entry.unwrap().path(), user);
        }
    }
}

/// Returns the facts about each file: its content and its metadata.
fn files(path: &Path, state: &mut BTreeMap<String, String>) {
    let metadata = path.symlink_metadata().unwrap();
    let content = match metadata.is_file() {
        true => String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned(),
        false => String::new(),
    };
    let known = format!(
        "{:o} {} {} {} {} {} {}.{} {content}",
        metadata.mode(),
        metadata.uid(),
        metadata.gid(),
        metadata.nlink(),
        metadata.mtime(),
        metadata.mtime_nsec(),
        metadata.ctime(),
        metadata.ctime_nsec(),
    );
    state.insert(path.display().to_string(), known);
    if metadata.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            files(&entry.unwrap().path(), state);
        }
    }
}

fn policy() -> String {
    let grant = |tool: &str, lines: &str| {
        format!("[[grant]]\npublisher = \"{EXAMPLE_KEY}\"\ntool = \"{tool}\"\n{lines}\n")
    };
    [
        "[[workspace]]\npath = \"/files\"\ndirectory = \"files\"\n".to_owned(),
        "[[workspace]]\npath = \"/notes\"\ndirectory = \"notes\"\n".to_owned(),
        grant("files.search", "requires = [\"workspace:/files\"]"),
        grant(
            "kv.counter",
            "mutates = [\"database:counters\"]\npreapproved = true",
        ),
        grant(
            "notes.append",
            "mutates = [\"workspace:/notes\"]\npreapproved = true",
        ),
        grant("text.digest", "requires = [\"tool:text.stats\"]"),
        grant(
            "http.fetch",
            "requires = [\"network:*.wikipedia.org\", \"network:*.rust-lang.org\", \
             \"network:docs.rs\", \"network:www.rfc-editor.org\"]",
        ),
    ]
    .concat()
}
