//! A person's machine: an empty home directory, and a directory to work in.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use super::{Run, archive, copy, example_key, root};

/// Compiling a driver takes a second, so machines share this cache unless a test is about the
/// cache.
const SHARED_CACHE: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/e2e-cache");

/// A temporary home directory, and a work directory in which all commands run.
pub(crate) struct Machine {
    directory: tempfile::TempDir,
    cache: PathBuf,
}

impl Machine {
    pub(crate) fn new() -> Self {
        let machine = Self {
            // Not in TMPDIR, since the output on a terminal depends on the length of paths.
            directory: tempfile::tempdir_in("/tmp").unwrap(),
            cache: SHARED_CACHE.into(),
        };
        fs::create_dir(machine.home()).unwrap();
        fs::create_dir(machine.work()).unwrap();
        machine
    }

    /// Makes a machine with an example's `NAME.toolbundle`, and `example.pub.pem`.
    pub(crate) fn with_example(example: &str) -> Self {
        let machine = Self::new();
        machine.add_example(example);
        machine
    }

    pub(crate) fn add_example(&self, example: &str) {
        copy(
            &archive(example),
            &self.path(&format!("{example}.toolbundle")),
        );
        copy(&example_key(), &self.path("example.pub.pem"));
    }

    /// Gives the machine its own cache of compiled drivers.
    pub(crate) fn with_own_cache(mut self) -> Self {
        self.cache = self.home().join(".cache");
        self
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.directory.path().join("work")
    }

    /// Returns the cache of compiled drivers.
    pub(crate) fn cache(&self) -> PathBuf {
        self.cache.join("toolward")
    }

    /// A path below the work directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.work().join(name)
    }

    /// Writes a file below the work directory.
    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub(crate) fn text(&self, name: &str) -> String {
        String::from_utf8(self.read(name)).unwrap()
    }

    /// Writes the user's own `toolward.toml`.
    pub(crate) fn configure(&self, text: &str) {
        let directory = self.home().join(".config/toolward");
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("toolward.toml"), text).unwrap();
    }

    /// The command with these words as arguments.
    pub(crate) fn toolward(&self, words: &str) -> Run {
        let mut command = self.program(toolward());
        command.args(words.split_whitespace());
        Run::new(command)
    }

    /// Any program, with this machine's home and work directory.
    pub(crate) fn program(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command
            .current_dir(self.work())
            .env_clear()
            .env("PATH", env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home())
            .env("XDG_CACHE_HOME", &self.cache)
            .env("LC_ALL", "C.UTF-8");
        // Cargo and rustup stay in the real home directory.
        let home = PathBuf::from(env::var_os("HOME").unwrap_or_default());
        for (name, folder) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
            let value = env::var_os(name).unwrap_or_else(|| home.join(folder).into());
            command.env(name, value);
        }
        command
    }
}

/// Returns the command's path. The first use builds the command, so it is never outdated.
pub(crate) fn toolward() -> &'static Path {
    static BUILT: OnceLock<Option<PathBuf>> = OnceLock::new();
    let built = BUILT.get_or_init(build_toolward).as_deref();
    built.expect("the command does not build: run `cargo build`")
}

fn build_toolward() -> Option<PathBuf> {
    // TARGET/PROFILE/deps/e2e-HASH
    let this = env::current_exe().unwrap();
    let folder = this.parent().and_then(Path::parent).unwrap();
    let profile = match folder.file_name().and_then(|name| name.to_str()).unwrap() {
        "debug" => "dev",
        other => other,
    };
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    // A build script that sees another package's variables would run again, and everything that
    // depends on its package would be compiled again.
    for (name, _) in env::vars_os() {
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
    built.success().then(|| own_link(&folder.join("toolward")))
}

/// Links the built command at a path that no build replaces. README's own `cargo run` replaces the
/// built file while tests run, and the command starts itself by its path.
fn own_link(built: &Path) -> PathBuf {
    let folder = built.with_file_name("e2e");
    std::fs::create_dir_all(&folder).unwrap();
    let (new, link) = (
        folder.join(format!("toolward-{}", std::process::id())),
        folder.join("toolward"),
    );
    std::fs::hard_link(built, &new).unwrap();
    std::fs::rename(&new, &link).unwrap();
    // Renaming has no effect if both names are the same file, so the new name is removed.
    let _ = std::fs::remove_file(&new);
    link
}

/// Returns the Cargo that compiles drivers, as `cargo xtask guests` installed it.
pub(crate) fn guest_cargo() -> Option<OsString> {
    let set_up = || {
        let cargo = match env::var_os("GUEST_TOOLCHAIN_DIR") {
            Some(folder) => PathBuf::from(folder),
            None => root().join("target/guest-toolchain"),
        }
        .join("guest-cargo");
        cargo.is_file().then(|| cargo.into())
    };
    env::var_os("TOOLWARD_GUEST_CARGO").or_else(set_up)
}
