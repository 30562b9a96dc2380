//! The programs that a build starts. They are found outside the checkout (the repository that
//! contains the bundle), and get a new environment and a scratch directory.

use std::ffi::{OsStr, OsString};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::error::BuildError;
use super::wrap;
use crate::error::AuthorError;

/// Where the programs of a build are found, and their settings.
#[derive(Debug, Clone, Default)]
pub struct BuildTools {
    /// Toolward's own toolchain directory: `python/` is a virtual environment, `js/` has a
    /// `node_modules`, and `cache/` has the caches of compilers. It is searched before
    /// [`path`](Self::path).
    pub directory: Option<PathBuf>,
    /// The directories of `PATH`. Relative directories and directories inside the checkout are
    /// skipped, since the author of the checkout could choose the program there.
    pub path: Vec<PathBuf>,
    /// The user's home, which tools get as `HOME`. In home, a confined tool reads only the checkout
    /// and installed programs.
    pub home: Option<PathBuf>,
    /// The settings of Rust's tools.
    pub rust: RustSettings,
}

/// The user's variables for Rust's tools.
#[derive(Debug, Clone, Default)]
pub struct RustSettings {
    /// `CARGO_HOME`; `.cargo` in the home directory if it is `None`.
    pub cargo_home: Option<PathBuf>,
    /// `RUSTUP_HOME`; `.rustup` in the home directory if it is `None`.
    pub rustup_home: Option<PathBuf>,
    /// `CARGO_TARGET_DIR`, absolute.
    pub target: Option<PathBuf>,
    /// The names of variables that hold tokens of registries. A confined build does not get them.
    pub tokens: Vec<OsString>,
}

/// A program that the user must install, and how.
pub(super) struct Wanted {
    /// Its name in `PATH`, or below `python/bin` of the toolchain directory.
    pub(super) name: &'static str,
    /// The command that installs it, with `{}` for the toolchain directory.
    pub(super) install: &'static str,
}

impl BuildTools {
    /// Finds the program, for building the bundle in `bundle`.
    pub(super) fn find(&self, wanted: &Wanted, bundle: &Path) -> Result<PathBuf, BuildError> {
        let own = self.directory.iter().map(|own| own.join("python/bin"));
        let found = own
            .chain(self.outside(bundle))
            .map(|directory| directory.join(wanted.name))
            .find(|program| is_executable(program));
        found.ok_or_else(|| self.missing(wanted.name, wanted.install))
    }

    /// Finds a program that the user named: a path, or a name that is looked up outside the
    /// checkout.
    pub(super) fn named(&self, program: &OsStr, bundle: &Path) -> Option<PathBuf> {
        let named = path(program);
        if named.is_absolute() {
            return Some(named);
        }
        let mut candidates = self.outside(bundle).map(|directory| directory.join(&named));
        candidates.find(|program| is_executable(program))
    }

    /// Returns the error for a missing tool, with the command that installs it.
    pub(super) fn missing(&self, tool: &'static str, install: &str) -> BuildError {
        let directory = self.directory.as_ref();
        let directory = directory.map_or("TOOLCHAIN".into(), |own| own.to_string_lossy());
        BuildError::ToolMissing(tool, install.replace("{}", &directory))
    }

    /// Returns the directory in which a compiler caches results for the next build.
    pub(super) fn cache(&self, compiler: &str, scratch: &Scratch) -> PathBuf {
        match &self.directory {
            Some(own) => own.join("cache").join(compiler),
            None => scratch.path("cache"),
        }
    }

    pub(super) fn cargo_home(&self) -> Option<PathBuf> {
        let own = || Some(self.home.as_ref()?.join(".cargo"));
        self.rust.cargo_home.clone().or_else(own)
    }

    pub(super) fn rustup_home(&self) -> Option<PathBuf> {
        let own = || Some(self.home.as_ref()?.join(".rustup"));
        self.rust.rustup_home.clone().or_else(own)
    }

    /// Returns the directories of `PATH` that are not in the checkout.
    fn outside<'a>(&'a self, bundle: &Path) -> impl Iterator<Item = PathBuf> + 'a {
        let checkout = checkout(bundle, self.home.as_deref());
        self.path
            .iter()
            .filter(|directory| directory.is_absolute())
            .filter_map(|directory| directory.canonicalize().ok())
            .filter(move |directory| !directory.starts_with(&checkout))
    }

    /// Returns a command with a new environment: `PATH`, the home directory, a language for
    /// messages, and a directory for temporary files.
    pub(super) fn command(&self, program: &Path, bundle: &Path, scratch: &Path) -> Command {
        let path = std::env::join_paths(self.outside(bundle)).unwrap_or_default();
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", path)
            .env("LANG", "C.UTF-8")
            .env("TMPDIR", scratch)
            .current_dir(scratch);
        if let Some(home) = &self.home {
            command.env("HOME", home);
        }
        command
    }
}

/// Returns the checkout that a bundle's directory belongs to: the outermost directory with `.git`.
/// The user's home and the directories above it do not count, and a submodule is part of its
/// checkout. Without a `.git`, the checkout is the bundle's directory.
pub(super) fn checkout(bundle: &Path, home: Option<&Path>) -> PathBuf {
    let bundle = bundle.canonicalize().unwrap_or_else(|_| bundle.to_owned());
    let home = home.and_then(|home| home.canonicalize().ok());
    let root = bundle
        .ancestors()
        .take_while(|directory| Some(*directory) != home.as_deref())
        .filter(|directory| directory.join(".git").exists())
        .last();
    root.unwrap_or(&bundle).to_owned()
}

/// Returns a program in a form that can be started from any directory: an absolute path, or a bare
/// name.
pub(super) fn path(program: &OsStr) -> PathBuf {
    let named = PathBuf::from(program);
    match named.components().count() {
        1 => named,
        _ => std::path::absolute(&named).unwrap_or(named),
    }
}

fn is_executable(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// The directory in which a build works. It contains the worlds, scripts and results.
pub(super) struct Scratch {
    directory: tempfile::TempDir,
    /// The bundle that is built.
    pub(super) bundle: PathBuf,
}

impl Scratch {
    /// Makes a directory for one build of the bundle in `bundle`. Dropping it removes the
    /// directory.
    pub(super) fn new(bundle: &Path) -> Result<Self, BuildError> {
        let failed = AuthorError::write(&std::env::temp_dir());
        let directory = tempfile::Builder::new()
            .prefix("toolward-build-")
            // Otherwise another user could replace a script before it runs.
            .permissions(Permissions::from_mode(0o700))
            .tempdir()
            .map_err(&failed)?;
        let scratch = Self {
            directory,
            bundle: bundle.to_owned(),
        };
        wrap::write(&scratch.worlds()).map_err(failed)?;
        Ok(scratch)
    }

    /// Makes a directory that is also the directory of the bundle to build.
    pub(super) fn with_bundle() -> Result<Self, BuildError> {
        let mut scratch = Self::new(Path::new("/"))?;
        scratch.bundle = scratch.directory.path().to_owned();
        Ok(scratch)
    }

    pub(super) fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Returns the directory with the files of `wit/`.
    pub(super) fn worlds(&self) -> PathBuf {
        self.path("wit")
    }

    /// Writes files into a folder of the directory.
    pub(super) fn write(&self, folder: &str, files: &[(&str, &str)]) -> Result<(), BuildError> {
        let folder = self.path(folder);
        let failed = AuthorError::write(&folder);
        std::fs::create_dir_all(&folder).map_err(&failed)?;
        for (name, text) in files {
            std::fs::write(folder.join(name), text).map_err(&failed)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WANTED: Wanted = Wanted {
        name: "tool",
        install: "install tool into {}",
    };

    fn program(directory: &Path) {
        std::fs::create_dir_all(directory).unwrap();
        std::fs::write(directory.join("tool"), "").unwrap();
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(directory.join("tool"), mode).unwrap();
    }

    #[test]
    fn a_program_of_the_checkout_is_never_taken() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let bundle = root.join("checkout/bundles/one");
        std::fs::create_dir_all(&bundle).unwrap();
        // A submodule is part of the checkout.
        std::fs::create_dir_all(root.join("checkout/.git")).unwrap();
        std::fs::create_dir_all(root.join("checkout/bundles/.git")).unwrap();
        program(&root.join("checkout/bin"));
        let tools = BuildTools {
            path: vec![root.join("checkout/bin"), root.join("outside")],
            ..BuildTools::default()
        };
        let error = tools.find(&WANTED, &bundle).unwrap_err();
        assert!(error.to_string().contains("tool"), "{error}");
        program(&root.join("outside"));
        assert_eq!(
            tools.find(&WANTED, &bundle).unwrap(),
            root.join("outside/tool")
        );
    }

    #[test]
    fn a_name_is_looked_up_and_a_path_is_taken_from_here() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        program(&root.join("bundle/bin"));
        let tools = BuildTools {
            path: vec![root.join("bundle/bin")],
            ..BuildTools::default()
        };
        let bundle = root.join("bundle");
        assert_eq!(tools.named("tool".as_ref(), &bundle), None);
        let elsewhere = tools.named("tool".as_ref(), &root.join("other"));
        assert_eq!(elsewhere, Some(root.join("bundle/bin/tool")));
        let here = std::env::current_dir().unwrap();
        let named = tools.named("bin/tool".as_ref(), &bundle);
        assert_eq!(named, Some(here.join("bin/tool")));
    }

    #[test]
    fn the_toolchain_directory_comes_first_and_is_named_by_what_is_missing() {
        let root = tempfile::tempdir().unwrap();
        let tools = BuildTools {
            directory: Some(root.path().to_owned()),
            path: vec![root.path().join("path")],
            ..BuildTools::default()
        };
        let error = tools.find(&WANTED, root.path()).unwrap_err();
        let BuildError::ToolMissing(_, install) = &error else {
            panic!("{error}");
        };
        assert_eq!(
            *install,
            format!("install tool into {}", root.path().display())
        );
        program(&root.path().join("path"));
        program(&root.path().join("python/bin"));
        let found = tools.find(&WANTED, &root.path().join("elsewhere")).unwrap();
        assert_eq!(found, root.path().join("python/bin/tool"));
    }
}
