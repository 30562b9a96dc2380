//! The host directories behind workspaces: they are opened once, when a host is built, and compared
//! with each other and with the directories that no guest may reach.
//!
//! The directories stay open, so that renaming or replacing a directory after the check does not
//! redirect a tool. A directory that is created later is found when the host is built again.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolward_policy::UnusableDirectory;
use toolward_support::report::codes;

use crate::error::HostError;
use crate::files::Root;

/// One `[[workspace]]` of the policy.
#[derive(Debug, Clone, Copy)]
pub struct Mapping<'a> {
    /// The virtual path.
    pub path: &'a str,
    /// The host directory that it stands for.
    pub directory: &'a Path,
    /// Whether it may overlap another workspace that is also shared.
    pub shared: bool,
}

codes! {
    /// Why a directory can't be a workspace, which blocks a tool that needs it.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub enum Unusable: Error {
        Missing = "workspace-missing" ["4"], "the directory of a workspace that a tool needs does not exist",
            ("no such directory")
            => "create the directory, then load the tools again";
        NotADirectory = "workspace-not-a-directory" ["4"],
            "a workspace that a tool needs is mapped to something other than a directory of files",
            ("expected a directory, found something else")
            => "map the workspace to a directory of files";
        /// `/proc`, `/sys`.
        Kernel = "workspace-not-a-directory" ["4"], ("expected a directory of files, found the kernel's own")
            => "map the workspace to a directory of files";
        Unreadable(problem: String) = "workspace-unreadable" ["4"],
            "the directory of a workspace that a tool needs can't be opened", ("{problem}")
            => "let the host's user read the directory";
        Unmapped = "workspace-unmapped" ["4"], "policy maps no workspace to this directory"
            => "add a `[[workspace]]` for it to the policy";
    }
}

impl From<io::Error> for Unusable {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Missing,
            io::ErrorKind::NotADirectory => Self::NotADirectory,
            _ => Self::Unreadable(error.to_string()),
        }
    }
}

/// The directories of all workspaces, or the reasons why they can't be used.
#[derive(Debug, Default)]
pub struct Workspaces(HashMap<PathBuf, Result<Arc<Root>, Unusable>>);

impl Workspaces {
    /// The directory of a workspace, by the directory's path in the policy.
    pub fn root(&self, directory: &Path) -> Result<Arc<Root>, Unusable> {
        let root = self.0.get(directory).cloned();
        root.unwrap_or(Err(Unusable::Unmapped))
    }

    /// The directories that can't be used, each with the problem.
    pub fn unusable(&self) -> impl Iterator<Item = UnusableDirectory> {
        self.0.iter().filter_map(|(directory, root)| {
            let problem = root.as_ref().err()?;
            Some(UnusableDirectory {
                directory: directory.clone(),
                code: problem.code(),
                problem: problem.to_string(),
                hint: problem.hint().unwrap_or_default().into_owned(),
            })
        })
    }
}

/// Opens the directories of all workspaces. Two directories may overlap only if both are shared;
/// the same mapping may occur twice. No directory may contain, equal or be inside a directory of
/// `protected`, each of which has a description for people.
///
/// A directory that can't be opened is not an error: it blocks the tools that need it. A missing
/// directory is still compared by its path.
pub fn check(
    mappings: &[Mapping<'_>],
    protected: &[(&str, &Path)],
) -> Result<Workspaces, HostError> {
    let mut workspaces = Workspaces::default();
    let mut checked: Vec<(Mapping<'_>, Location)> = Vec::new();
    for mapping in mappings {
        let location = Location::of(mapping.directory);
        let refuse = |problem: String| HostError::Workspace {
            path: mapping.path.to_owned(),
            directory: mapping.directory.to_owned(),
            problem,
        };
        if !mapping.directory.is_absolute() {
            return Err(refuse("is not an absolute path".to_owned()));
        }
        for (what, path) in protected {
            if let Some(how) = location.overlaps(&Location::of(path)) {
                return Err(refuse(format!("{how} {what} ({})", path.display())));
            }
        }
        for (other, theirs) in &checked {
            let both = mapping.shared && other.shared;
            let same = mapping.path == other.path && mapping.directory == other.directory;
            if let Some(how) = location.overlaps(theirs)
                && !both
                && !same
            {
                return Err(refuse(format!(
                    "{how} the directory of the workspace `{}` ({}), and not both say `shared = \
                     true`",
                    other.path,
                    other.directory.display()
                )));
            }
        }
        workspaces
            .0
            .insert(mapping.directory.to_owned(), open(&location));
        checked.push((*mapping, location));
    }
    Ok(workspaces)
}

fn open(location: &Location) -> Result<Arc<Root>, Unusable> {
    if location.is_missing {
        return Err(Unusable::Missing);
    }
    let root = Root::open(&location.canonical)?;
    let system = rustix::fs::fstatfs(&root.directory).map_err(io::Error::from)?;
    // Plain files in these file systems give control over the whole process.
    const SYSFS: rustix::fs::FsWord = 0x6265_6572;
    if [rustix::fs::PROC_SUPER_MAGIC, SYSFS].contains(&system.f_type) {
        return Err(Unusable::Kernel);
    }
    Ok(Arc::new(root))
}

/// The location of a directory, independent of the spelling of its path.
struct Location {
    /// Without symbolic links; parts that do not exist yet stay as written.
    canonical: PathBuf,
    /// The device and inode of the directory, if it exists, and of its parent directories. A bind
    /// mount has another path but the same numbers.
    above: Vec<(u64, u64)>,
    is_missing: bool,
}

impl Location {
    fn of(path: &Path) -> Self {
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let mut missing: Vec<OsString> = Vec::new();
        let mut existing = absolute.as_path();
        let found = loop {
            match existing.canonicalize() {
                Ok(found) => break found,
                Err(_) => match (existing.parent(), existing.file_name()) {
                    (Some(parent), Some(name)) => {
                        missing.push(name.to_owned());
                        existing = parent;
                    }
                    // The path has a `..` after a part that does not exist.
                    (Some(parent), None) => existing = parent.parent().unwrap_or(parent),
                    _ => break existing.to_owned(),
                },
            }
        };
        let identity = |path: &Path| {
            let metadata = path.metadata().ok()?;
            Some((metadata.dev(), metadata.ino()))
        };
        let above = found.ancestors().filter_map(identity).collect();
        let is_missing = !missing.is_empty();
        let canonical = missing
            .iter()
            .rev()
            .fold(found, |path, name| path.join(name));
        Self {
            canonical,
            above,
            is_missing,
        }
    }

    fn identity(&self) -> Option<&(u64, u64)> {
        (!self.is_missing).then(|| self.above.first())?
    }

    fn contains(&self, other: &Self) -> bool {
        other.canonical.starts_with(&self.canonical)
            || self.identity().is_some_and(|own| other.above.contains(own))
    }

    /// How the two overlap, for people; `None` if they don't.
    fn overlaps(&self, other: &Self) -> Option<&'static str> {
        match (self.contains(other), other.contains(self)) {
            (true, true) => Some("is"),
            (true, false) => Some("contains"),
            (false, true) => Some("lies inside"),
            (false, false) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    struct Tree(tempfile::TempDir);

    impl Tree {
        fn new(directories: &[&str]) -> Self {
            let tree = tempfile::tempdir().expect("a directory");
            for directory in directories {
                std::fs::create_dir_all(tree.path().join(directory)).expect("made");
            }
            Self(tree)
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        /// Checks workspaces, given as directory and `shared`, with `keys` as
        /// the one protected directory.
        fn check(&self, workspaces: &[(&str, bool)]) -> Result<Workspaces, String> {
            let keys = self.path("keys");
            let paths: Vec<PathBuf> = workspaces.iter().map(|(name, _)| self.path(name)).collect();
            let mappings: Vec<Mapping<'_>> = paths
                .iter()
                .zip(workspaces)
                .map(|(directory, (name, shared))| Mapping {
                    path: name,
                    directory,
                    shared: *shared,
                })
                .collect();
            check(&mappings, &[("the keys", &keys)]).map_err(|error| {
                assert_eq!(error.code(), "workspace-refused");
                error.to_string()
            })
        }
    }

    #[test]
    fn directories_side_by_side_are_workspaces() {
        let tree = Tree::new(&["a", "ab", "keys"]);
        let workspaces = tree.check(&[("a", false), ("ab", false)]).expect("fine");
        assert!(workspaces.root(&tree.path("a")).is_ok());
        assert!(workspaces.root(&tree.path("ab")).is_ok());
    }

    #[test]
    fn two_workspaces_overlap_only_where_both_say_so() {
        let tree = Tree::new(&["a/b/c", "keys"]);
        symlink(tree.path("a/b"), tree.path("link")).expect("linked");
        for (first, second) in [("a", "a"), ("a", "a/b/c"), ("a/b/c", "a"), ("a", "link")] {
            for shared in [(false, false), (true, false), (false, true)] {
                // Two identical mappings count as one.
                if first == second {
                    continue;
                }
                let refused = tree.check(&[(first, shared.0), (second, shared.1)]);
                assert!(refused.is_err(), "{first} {second} {shared:?}");
            }
            tree.check(&[(first, true), (second, true)])
                .expect("both say so");
        }
    }

    #[test]
    fn one_directory_under_two_paths_is_an_overlap() {
        let tree = Tree::new(&["a"]);
        let directory = tree.path("a");
        let mapping = |path| Mapping {
            path,
            directory: &directory,
            shared: false,
        };
        assert!(check(&[mapping("/one"), mapping("/two")], &[]).is_err());
        assert!(check(&[mapping("/one"), mapping("/one")], &[]).is_ok());
    }

    #[test]
    fn a_workspace_neither_contains_nor_enters_what_is_protected() {
        let tree = Tree::new(&["home/keys", "keys/inner", "other"]);
        symlink(tree.path("keys"), tree.path("other/link")).expect("linked");
        symlink(tree.path("keys/inner"), tree.path("other/deep")).expect("linked");
        for name in [
            ".",
            "keys",
            "keys/inner",
            "other/link",
            "other/deep",
            "keys/new",
        ] {
            let refused = tree.check(&[(name, true)]).expect_err(name);
            assert!(refused.contains("the keys"), "{refused}");
        }
        tree.check(&[("home", false), ("other", false)])
            .expect("no key is there");
    }

    #[test]
    fn a_protected_directory_that_comes_later_is_protected_already() {
        let tree = Tree::new(&["a"]);
        let later = tree.path("a/state/keys");
        let directory = tree.path("a");
        let mapping = Mapping {
            path: "/a",
            directory: &directory,
            shared: true,
        };
        assert!(check(&[mapping], &[("the keys", &later)]).is_err());
    }

    #[test]
    fn a_directory_that_is_none_blocks_and_does_not_stop_the_host() {
        let tree = Tree::new(&["a", "keys"]);
        std::fs::write(tree.path("file"), "").expect("written");
        let workspaces = tree
            .check(&[("missing", false), ("file", false), ("a", false)])
            .expect("the host starts");
        let problem = |name: &str| workspaces.root(&tree.path(name)).err();
        assert_eq!(problem("missing"), Some(Unusable::Missing));
        assert_eq!(problem("file"), Some(Unusable::NotADirectory));
        assert_eq!(problem("unknown"), Some(Unusable::Unmapped));
        assert_eq!(problem("a"), None);
    }

    #[test]
    fn the_kernel_s_files_are_no_workspace() {
        let proc = Path::new("/proc/self");
        let mapping = Mapping {
            path: "/p",
            directory: proc,
            shared: false,
        };
        let workspaces = check(&[mapping], &[]).expect("the host starts");
        assert_eq!(workspaces.root(proc).err(), Some(Unusable::Kernel));
    }

    #[test]
    fn a_relative_directory_is_refused() {
        let mapping = Mapping {
            path: "/p",
            directory: Path::new("notes"),
            shared: false,
        };
        assert!(check(&[mapping], &[]).is_err());
    }
}
