//! Confines the programs that a build starts. They compile sources of other people, and run some of
//! these sources: a crate's `build.rs`, a macro, the top level of a Python module.
//!
//! Outside the user's home the programs read what the user can read, except devices and the files
//! of the user's session. Below home they read the checkout (the repository that contains the
//! bundle), the toolchain, and the directories where these programs are installed. They write to
//! few directories, and have no network.
//!
//! Landlock's rules bind the thread that applies them and its children. So each program is started
//! by a separate thread, and the caller's thread stays unconfined.

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

/// The directories that may be read if the home directory is not known.
const SYSTEM: [&str; 14] = [
    "/bin", "/etc", "/gnu", "/lib", "/lib32", "/lib64", "/libx32", "/nix", "/opt", "/proc",
    "/sbin", "/snap", "/sys", "/usr",
];

/// Directories outside home that are never read: raw disks and terminals, and the sockets and files
/// of the user's session.
const PRIVATE: [&str; 2] = ["/dev", "/run/user"];

/// The files below Cargo's home that hold tokens.
const CREDENTIALS: [&str; 2] = ["credentials", "credentials.toml"];

/// The files and directories that a program may reach.
#[derive(Debug, Clone)]
pub(super) struct BuildConfinement {
    /// The user's home, without links.
    home: Option<PathBuf>,
    kept: BuildProfile,
}

impl BuildConfinement {
    /// A confinement for building the bundle in `bundle`. The program may write to `scratch`.
    pub(super) fn new(tools: &BuildTools, bundle: &Path, scratch: &Path) -> Self {
        let home = tools.home.as_deref();
        let home = home.and_then(|home| home.canonicalize().ok());
        // If home is `/`, no path is outside of home, so home then counts as not known.
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
            // The Python in this directory may be a link to an installation elsewhere.
            confinement.run(&own.join("python/bin/python"));
        }
        confinement.write(scratch);
        confinement
    }

    /// Lets the program read a file, or a directory with everything below it, but never all of
    /// home.
    pub(super) fn read(&mut self, path: &Path) {
        self.kept.read.push(path.to_owned());
    }

    /// Lets the program read the content of a directory, including the targets of links.
    pub(super) fn read_entries(&mut self, directory: &Path) {
        let entries = std::fs::read_dir(directory).into_iter().flatten();
        let paths = entries.flatten().map(|entry| entry.path());
        self.kept.read.extend(paths);
    }

    /// Lets the program read and execute another program, with the files that are installed next to
    /// it.
    pub(super) fn run(&mut self, program: &Path) {
        let installed = installed(program, self.home.as_deref());
        self.kept.read.extend(installed);
    }

    /// Lets the program write to a file, or to a directory with everything below it, but never to
    /// all of home.
    pub(super) fn write(&mut self, path: &Path) {
        self.kept.write.push(path.to_owned());
    }

    /// Lets the program read the checkout. If the checkout is home itself, hidden entries are left
    /// out.
    fn read_checkout(&mut self, checkout: &Path) {
        if Some(checkout) != self.home.as_deref() {
            return self.read(checkout);
        }
        let entries = std::fs::read_dir(checkout).into_iter().flatten().flatten();
        let visible = entries.filter(|entry| {
            let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
            // A link could lead to a hidden entry.
            !hidden && entry.file_type().is_ok_and(|kind| !kind.is_symlink())
        });
        self.kept.read.extend(visible.map(|entry| entry.path()));
    }

    /// Starts a program that is confined from its first instruction. `unusable` converts the
    /// system's error about the program.
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
            let panicked = |_| Err(refused("the thread that starts it has panicked"));
            thread.join().unwrap_or_else(panicked)
        })?;
        // The overseer runs in this thread, which is not confined.
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

/// Returns the paths of the files with tokens, whether or not they exist, and the targets of links
/// with these names.
fn credentials(cargo_home: &Path) -> Vec<PathBuf> {
    let Ok(cargo_home) = cargo_home.canonicalize() else {
        return Vec::new();
    };
    let files = CREDENTIALS.map(|name| cargo_home.join(name));
    let behind = files.iter().filter_map(|file| file.canonicalize().ok());
    let behind: Vec<PathBuf> = behind.collect();
    files.into_iter().chain(behind).collect()
}

/// The folders with programs in a directory that also has other content, such as `~/.local`.
const OF_PROGRAMS: [&str; 6] = ["bin", "include", "lib", "lib32", "lib64", "libexec"];

/// How often the interpreter of an interpreter is looked up. The kernel stops at four.
const MAX_INTERPRETERS: usize = 4;

/// The most bytes of a script that are read for its first lines.
const MAX_SCRIPT_BYTES: u64 = 4096;

/// Returns the [`places`] of a program. If the program is a link or a script, also returns the
/// places of the link's target or of the script's interpreters.
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

/// Returns the program itself, and its prefix (the directory that contains `bin`), or its directory
/// if that is not a `bin`. Of a prefix with other content, returns only the folders with programs.
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
        // `~/bin` alone, and no other folder of home.
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

/// Whether a prefix is a hidden directory in home, or may be one, if home is not known. Programs
/// share such directories with keys and data.
fn is_shared(prefix: &Path, home: Option<&Path>) -> bool {
    let name = prefix.file_name().unwrap_or_default();
    let in_home = home.is_none() || prefix.parent() == home;
    in_home && name.as_encoded_bytes().starts_with(b".")
}

/// Returns the interpreter that the first lines of a script name.
fn interpreter(program: &Path) -> Option<PathBuf> {
    // Does not wait for a pipe at the program's path.
    if !program.metadata().ok()?.is_file() {
        return None;
    }
    let script = File::open(program).ok()?.take(MAX_SCRIPT_BYTES);
    let mut lines = BufReader::new(script).lines().map_while(Result::ok);
    let first = lines.next()?;
    let named = first.strip_prefix("#!")?.split_whitespace().next()?;
    // If the interpreter's path is too long for a first line, pip writes the path to the second
    // line. Python takes that line for the start of a string.
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
