//! Confines the programs that a build starts. What they compile was written by others, and
//! some of it runs: a crate's `build.rs`, a macro, the top level of a Python module.
//!
//! Outside the user's home they read what the user can read, but for devices and what
//! other programs keep at run time. Below home they read the checkout, the toolchain, and
//! where the program itself lies. They write to few directories, and reach no network.
//!
//! Landlock's rules bind the thread that applies them and what it starts. So each program
//! is started by its own thread, and the caller's stays free.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use toolward_confine::build_profile::{BuildProfile, Overseer};

use super::error::BuildError;
use super::program::{BuildTools, checkout};

/// What is read where the home directory is not known.
const SYSTEM: [&str; 14] = [
    "/bin", "/etc", "/gnu", "/lib", "/lib32", "/lib64", "/libx32", "/nix", "/opt", "/proc",
    "/sbin", "/snap", "/sys", "/usr",
];

/// Never read, though they lie outside home: raw disks and terminals, and the sockets
/// and files of the user's session.
const PRIVATE: [&str; 2] = ["/dev", "/run/user"];

/// Where Cargo keeps tokens, below its home.
const CREDENTIALS: [&str; 2] = ["credentials", "credentials.toml"];

/// What a program may reach.
#[derive(Debug, Clone)]
pub(super) struct BuildConfinement {
    /// The user's home, without links.
    home: Option<PathBuf>,
    kept: BuildProfile,
}

impl BuildConfinement {
    /// For the bundle in `bundle`. The program may write to `scratch`.
    pub(super) fn new(tools: &BuildTools, bundle: &Path, scratch: &Path) -> Self {
        let home = tools.home.as_deref();
        let home = home.and_then(|home| home.canonicalize().ok());
        // If all is below home, nothing is outside.
        let home = home.filter(|home| home.parent().is_some());
        let mut private: Vec<PathBuf> = PRIVATE.map(PathBuf::from).into();
        private.extend(home.clone());
        private.extend(tools.cargo_home().iter().flat_map(|home| credentials(home)));
        let kept = BuildProfile {
            read: match home {
                Some(_) => vec![PathBuf::from("/")],
                None => SYSTEM.map(PathBuf::from).into(),
            },
            write: Vec::new(),
            private,
        };
        let mut confinement = Self { home, kept };
        confinement.read_checkout(&checkout(bundle, tools.home.as_deref()));
        if let Some(own) = &tools.directory {
            confinement.read(own);
            // Its Python may come from elsewhere.
            confinement.run(&own.join("python/bin/python"));
        }
        confinement.write(scratch);
        confinement
    }

    /// Lets it read a file, or a directory with all below; never all of home.
    pub(super) fn read(&mut self, path: &Path) {
        self.kept.read.push(path.to_owned());
    }

    /// Lets it read the content of a directory, behind links, too.
    pub(super) fn read_entries(&mut self, directory: &Path) {
        let entries = std::fs::read_dir(directory).into_iter().flatten();
        self.kept
            .read
            .extend(entries.flatten().map(|entry| entry.path()));
    }

    /// Lets it read and execute a program, with what is installed next to it.
    pub(super) fn run(&mut self, program: &Path) {
        self.kept
            .read
            .extend(installed(program, self.home.as_deref()));
    }

    /// Lets it write to a file, or a directory with all below; never all of home.
    pub(super) fn write(&mut self, path: &Path) {
        self.kept.write.push(path.to_owned());
    }

    /// Where home itself is built, what is hidden in it stays out of reach.
    fn read_checkout(&mut self, checkout: &Path) {
        if Some(checkout) != self.home.as_deref() {
            return self.read(checkout);
        }
        let entries = std::fs::read_dir(checkout).into_iter().flatten().flatten();
        let visible = entries.filter(|entry| {
            let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
            // A link could lead to what is hidden.
            !hidden && entry.file_type().is_ok_and(|kind| !kind.is_symlink())
        });
        self.kept.read.extend(visible.map(|entry| entry.path()));
    }

    /// Starts a program that is confined from its first instruction. `unusable` makes an
    /// error from the system's error about the program.
    pub(super) fn start(
        &self,
        command: &mut Command,
        unusable: &(dyn Fn(std::io::Error) -> BuildError + Sync),
    ) -> Result<Child, BuildError> {
        let start = || -> Result<(Child, Overseer), BuildError> {
            let overseer = self.kept.apply().map_err(refused)?;
            Ok((command.spawn().map_err(unusable)?, overseer))
        };
        let (mut child, overseer) = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new()
                .spawn_scoped(scope, start)
                .map_err(refused)?;
            let panicked = |_| refused("the thread that starts it has panicked");
            thread.join().unwrap_or_else(|panic| Err(panicked(panic)))
        })?;
        // From this thread, which is not confined.
        if let Err(error) = overseer.watch() {
            let _ = child.kill();
            let _ = child.wait();
            return Err(refused(error));
        }
        Ok(child)
    }
}

fn refused(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> BuildError {
    BuildError::Confine(error.into())
}

/// The files with tokens, existing or not, and what links of these names
/// lead to.
fn credentials(cargo_home: &Path) -> Vec<PathBuf> {
    let Ok(cargo_home) = cargo_home.canonicalize() else {
        return Vec::new();
    };
    let files = CREDENTIALS.map(|name| cargo_home.join(name));
    let behind = files.iter().filter_map(|file| file.canonicalize().ok());
    let behind: Vec<PathBuf> = behind.collect();
    files.into_iter().chain(behind).collect()
}

/// The folders of programs in a directory that holds other things, too, such as
/// `~/.local`.
const OF_PROGRAMS: [&str; 6] = ["bin", "include", "lib", "lib32", "lib64", "libexec"];

/// How many interpreters of interpreters are looked at. The kernel stops at four.
const MAX_INTERPRETERS: usize = 4;

/// How much of a script is read for its first lines.
const MAX_SCRIPT_BYTES: u64 = 4096;

/// The places of a program, of the file that a link leads to, and of the interpreters of a
/// script.
fn installed(program: &Path, home: Option<&Path>) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut next = Some(program.to_owned());
    for _ in 0..=MAX_INTERPRETERS {
        let Some(program) = next else { break };
        let real = program.canonicalize().ok();
        for program in [Some(&program), real.as_ref()].into_iter().flatten() {
            found.extend(places(program, home));
        }
        next = interpreter(&program);
    }
    found
}

/// The program itself, and its prefix (the directory with `bin`) or else its directory.
fn places(program: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let mut places = vec![program.to_owned()];
    let directory = program
        .parent()
        .and_then(|parent| parent.canonicalize().ok());
    let Some(directory) = directory else {
        return places;
    };
    let prefix = match (directory.file_name(), directory.parent()) {
        (Some(name), Some(prefix)) if name == "bin" => prefix,
        _ => &directory,
    };
    let holds_home = |place: &Path| home.is_some_and(|home| home.starts_with(place));
    if prefix.parent().is_none() || holds_home(prefix) {
        // Of `~/bin` no other folder of home.
        if directory.parent().is_some() && !holds_home(&directory) {
            places.push(directory);
        }
    } else if is_shared(prefix, home) {
        places.extend(OF_PROGRAMS.map(|folder| prefix.join(folder)));
    } else {
        places.push(prefix.to_owned());
    }
    places
}

/// Whether it is a hidden directory in home, or may be: programs share such with keys and
/// data.
fn is_shared(prefix: &Path, home: Option<&Path>) -> bool {
    let name = prefix.file_name().unwrap_or_default();
    let in_home = home.is_none() || prefix.parent() == home;
    in_home && name.as_encoded_bytes().starts_with(b".")
}

/// What runs a script.
fn interpreter(program: &Path) -> Option<PathBuf> {
    // A pipe in the program's place is not waited for.
    if !program.metadata().ok()?.is_file() {
        return None;
    }
    let script = File::open(program).ok()?.take(MAX_SCRIPT_BYTES);
    let mut lines = BufReader::new(script).lines().map_while(Result::ok);
    let first = lines.next()?;
    let named = first.strip_prefix("#!")?.split_whitespace().next()?;
    // For a path that does not fit into a first line pip writes this second one, which
    // Python takes for the start of a string.
    let long = lines.next().and_then(|line| {
        let rest = line.strip_prefix("'''exec' ")?;
        let path = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split('"').next(),
            None => rest.split_whitespace().next(),
        };
        path.map(PathBuf::from)
    });
    Some(long.unwrap_or_else(|| PathBuf::from(named))).filter(|path| path.is_absolute())
}
