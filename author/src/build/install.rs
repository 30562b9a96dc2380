//! Fetches the tools of other languages into Toolward's own toolchain directory: exact
//! versions, each file with the digest that this release carries. npm and pip fetch, and
//! run no script of what they fetch.

mod packages;

#[cfg(test)]
mod tests;

use std::ffi::{OsStr, OsString};
use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use toolward_support::files::{Folder, Lock, Protection};

pub use self::packages::Installable;
use self::packages::{NPM, pinned};
use super::BuildProgress;
use super::error::BuildError;
use super::program::{Tools, Wanted};
use super::tool::{Tool, run};
use crate::error::AuthorError;

const NPM_PROGRAM: Wanted = Wanted {
    name: "npm",
    install: "Node.js 20 or later with npm, from your system's packages",
};

const PYTHON_PROGRAM: Wanted = Wanted {
    name: "python3",
    install: "Python 3.11 or later with the module venv, from your system's packages",
};

/// The prefix of a directory that packages are fetched into.
const NEW: &str = ".new-";

/// How long another install is waited for. It takes minutes where it fetches something.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

/// What npm and pip are started with.
#[derive(Clone, Copy)]
struct Start<'a> {
    tools: &'a Tools,
    /// The toolchain directory.
    own: &'a Path,
    /// Lies in the checkout that no program is taken from.
    here: &'a Path,
    variables: &'a [(OsString, OsString)],
}

/// Fetches the packages into the [toolchain directory](Tools::directory), which is made
/// where it is missing. npm and pip, and the programs that these start, are looked for in
/// [`Tools::path`], outside the checkout of `here`. They use the registries that
/// this user has set up; of `variables`, the user's environment, they get the settings of
/// registries, proxies and certificates only.
///
/// # Errors
///
/// There is no toolchain directory, or its owner or mode is unsafe. Another process installs
/// into it. Its `js` or `python` exists and is something else. npm or pip is missing or fails; the other one is
/// run all the same. What was fetched before stays.
pub fn install(
    wanted: &[Installable],
    tools: &Tools,
    here: &Path,
    variables: &[(OsString, OsString)],
    progress: &mut dyn FnMut(BuildProgress<'_>),
) -> Result<(), BuildError> {
    let own = tools.directory.as_ref().ok_or(BuildError::NoToolchain)?;
    let own = &std::path::absolute(own).map_err(unwritable(own))?;
    // Its programs run with this user's rights.
    let folder = Folder::make(own, Protection::Own).map_err(unsafe_folder)?;
    toolward_support::files::lock(&folder, Lock::Exclusive, LOCK_TIMEOUT).map_err(|error| {
        match error.kind() {
            ErrorKind::WouldBlock => BuildError::ToolchainBusy { path: own.clone() },
            _ => unwritable(own)(error),
        }
    })?;
    sweep(own);
    let start = Start {
        tools,
        own,
        here,
        variables,
    };
    let requirements: Vec<&str> = wanted.iter().filter_map(|one| one.requirement).collect();
    let npm = match wanted.iter().any(|one| one.requirement.is_none()) {
        true => install_npm(start, progress),
        false => Ok(()),
    };
    let python = match requirements.is_empty() {
        true => Ok(()),
        false => install_python(&requirements, start, progress),
    };
    npm.and(python)
}

/// All of it in a new directory, which is moved to its place once it is whole.
fn install_npm(
    start: Start<'_>,
    progress: &mut dyn FnMut(BuildProgress<'_>),
) -> Result<(), BuildError> {
    let place = start.own.join("js");
    if place.symlink_metadata().is_ok() {
        return Err(AuthorError::Exists { path: place }.into());
    }
    let npm = start.find(&NPM_PROGRAM)?;
    let scratch = temporary(start.own)?;
    let new = scratch.path().join("js");
    make(&new)?;
    for (name, text) in NPM {
        let file = new.join(name);
        std::fs::write(&file, text).map_err(unwritable(&file))?;
    }
    let mut command = start.command(&npm, scratch.path());
    command
        .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
        .arg("--loglevel=error")
        .current_dir(&new);
    fetch(command, "npm", progress)?;
    std::fs::rename(&new, &place).map_err(unwritable(&place))
}

fn install_python(
    requirements: &[&str],
    start: Start<'_>,
    progress: &mut dyn FnMut(BuildProgress<'_>),
) -> Result<(), BuildError> {
    let scratch = temporary(start.own)?;
    let python = virtual_environment(start, scratch.path(), progress)?;
    let file = scratch.path().join("requirements.txt");
    std::fs::write(&file, pinned(requirements)).map_err(unwritable(&file))?;
    let mut command = start.command(&python, scratch.path());
    command
        .args(["-I", "-m", "pip", "install", "--quiet"])
        .args(["--disable-pip-version-check", "--no-input", "--no-deps"])
        .args(["--require-hashes", "--only-binary", ":all:"])
        .arg("--requirement")
        .arg(&file);
    fetch(command, "pip", progress)
}

/// The Python of the virtual environment, which is made where it is missing. It knows its
/// own place, and can't be made elsewhere and moved there.
fn virtual_environment(
    start: Start<'_>,
    scratch: &Path,
    progress: &mut dyn FnMut(BuildProgress<'_>),
) -> Result<PathBuf, BuildError> {
    let place = start.own.join("python");
    let python = place.join("bin/python");
    let is_new = match place.symlink_metadata() {
        Ok(found) if found.is_dir() && python.exists() => {
            Folder::open(&place, Protection::Own).map_err(unsafe_folder)?;
            false
        }
        Ok(_) => return Err(AuthorError::Exists { path: place }.into()),
        Err(_) => true,
    };
    if !is_new && place.join("bin/pip").exists() {
        return Ok(python);
    }
    // Missing, or without pip because making it was interrupted.
    let mut command = start.command(&start.find(&PYTHON_PROGRAM)?, scratch);
    command.args(["-I", "-m", "venv"]).arg(&place);
    if is_new {
        // No umask opens what is in it to others.
        make(&place)?;
    }
    let made = fetch(command, "python3 -m venv", progress);
    if is_new && made.is_err() {
        // Half of one would not be taken for a missing one. If it stays, the next install
        // completes it.
        let _ = std::fs::remove_dir_all(&place);
    }
    made.map(|()| python)
}

impl Start<'_> {
    /// A program outside the checkout, and not in the toolchain directory.
    fn find(&self, wanted: &Wanted) -> Result<PathBuf, BuildError> {
        let tools = Tools {
            directory: None,
            ..self.tools.clone()
        };
        tools.find(wanted, self.here)
    }

    fn command(&self, program: &Path, scratch: &Path) -> Command {
        let mut command = self.tools.command(program, self.here, scratch);
        let kept = self.variables.iter();
        let kept = kept.filter(|(name, _)| is_kept(name));
        command.envs(kept.map(|(name, value)| (name, value)));
        command
    }
}

fn fetch(
    command: Command,
    what: &'static str,
    progress: &mut dyn FnMut(BuildProgress<'_>),
) -> Result<(), BuildError> {
    run(Tool::unconfined(command), what, progress).map_err(|error| match error {
        BuildError::Failed { status, .. } => BuildError::Install { what, status },
        other => other,
    })
}

/// Makes a directory that only this user enters.
fn make(path: &Path) -> Result<(), BuildError> {
    let made = DirBuilder::new().mode(0o700).create(path);
    made.map_err(unwritable(path))
}

/// Removes what interrupted installs have left. The lock is held, so that none is under way.
fn sweep(own: &Path) {
    let entries = std::fs::read_dir(own).into_iter().flatten().flatten();
    let left = entries.filter(|entry| {
        let name = entry.file_name();
        name.to_str().is_some_and(|name| name.starts_with(NEW))
    });
    for entry in left {
        // One that can't be removed only takes room.
        let _ = std::fs::remove_dir_all(entry.path());
    }
}

fn temporary(own: &Path) -> Result<tempfile::TempDir, BuildError> {
    let new = tempfile::Builder::new().prefix(NEW).tempdir_in(own);
    new.map_err(unwritable(own))
}

fn unsafe_folder(error: toolward_support::files::Error) -> BuildError {
    unwritable(&error.path)(std::io::Error::other(error.problem))
}

fn unwritable(path: &Path) -> impl FnOnce(std::io::Error) -> BuildError + use<> {
    let path: PathBuf = path.to_owned();
    |source| BuildError::Author(AuthorError::Write { path, source })
}

/// The prefixes of settings, in upper case.
const BEGINNINGS: [&str; 5] = ["LC_", "NPM_", "PIP_", "SSL_CERT_", "XDG_"];

/// The suffixes of proxies, and of credentials that an `.npmrc` refers to.
const ENDS: [&str; 5] = ["_PROXY", "TOKEN", "AUTH", "PASSWORD", "USERNAME"];

const NAMES: [&str; 9] = [
    "CURL_CA_BUNDLE",
    "DBUS_SESSION_BUS_ADDRESS",
    "LANG",
    "LOGNAME",
    "NETRC",
    "NODE_EXTRA_CA_CERTS",
    "NODE_USE_SYSTEM_CA",
    "REQUESTS_CA_BUNDLE",
    "USER",
];

/// Settings of npm and pip that start another program, or install elsewhere.
const DROPPED: [&str; 11] = [
    "NPM_CONFIG_GIT",
    "NPM_CONFIG_GLOBAL",
    "NPM_CONFIG_LOCATION",
    "NPM_CONFIG_NODE_OPTIONS",
    "NPM_CONFIG_PREFIX",
    "NPM_CONFIG_SCRIPT_SHELL",
    "PIP_PREFIX",
    "PIP_PYTHON",
    "PIP_ROOT",
    "PIP_TARGET",
    "PIP_USER",
];

/// Whether npm and pip get this variable: they get settings of registries, proxies and certificates, none that chooses
/// what code runs or where packages go.
fn is_kept(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    // npm takes its own in any case, and proxies are mostly in lower case.
    let name = name.to_ascii_uppercase();
    let kept = NAMES.contains(&name.as_str())
        || BEGINNINGS
            .iter()
            .any(|beginning| name.starts_with(beginning))
        || ENDS.iter().any(|end| name.ends_with(end));
    kept && !DROPPED.contains(&name.as_str())
}
