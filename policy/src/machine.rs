//! What a host has for drivers, as plain data: the facts outside bundles and policy on which routes depend.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Serialize;
use toolward_contract::driver::DriverKind;

/// What a host has that drivers and grants may need. A host describes itself; this crate looks at nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    pub(crate) os: String,
    pub(crate) arch: String,
    pub(crate) memory_bytes: u64,
    unusable: BTreeMap<PathBuf, UnusableDirectory>,
    /// Kinds of drivers that it runs and not every host does.
    kinds: BTreeSet<String>,
}

/// Why no guest can use the directory behind a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, thiserror::Error)]
#[error("{}: {problem}", .directory.display())]
pub struct UnusableDirectory {
    /// The directory, as the policy names it.
    pub directory: PathBuf,
    /// The stable code of the problem: `workspace-missing`.
    pub code: &'static str,
    /// What is wrong with it, for people.
    pub problem: String,
    /// What the operator does about it.
    pub hint: String,
}

impl Machine {
    /// A machine whose workspaces are all usable. `os` and `arch` are as in [`std::env::consts`]; `memory_bytes` is
    /// the most that one call may have.
    #[must_use]
    pub fn new(os: &str, arch: &str, memory_bytes: u64) -> Self {
        Self {
            os: os.to_owned(),
            arch: arch.to_owned(),
            memory_bytes,
            unusable: BTreeMap::new(),
            kinds: BTreeSet::new(),
        }
    }

    /// The same machine, where this directory of a workspace can't be used.
    #[must_use]
    pub fn without(mut self, directory: UnusableDirectory) -> Self {
        self.unusable.insert(directory.directory.clone(), directory);
        self
    }

    /// The same machine as if every directory could be used: for what a policy would give once they can.
    #[must_use]
    pub fn with_all_directories(mut self) -> Self {
        self.unusable.clear();
        self
    }

    /// The same machine, which also runs drivers of these kinds.
    #[must_use]
    pub fn running(mut self, kinds: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.kinds.extend(kinds.into_iter().map(Into::into));
        self
    }

    pub(crate) fn runs(&self, kind: &DriverKind) -> bool {
        kind.is_run() || self.kinds.contains(kind.as_str())
    }

    pub(crate) fn unusable(&self, directory: &Path) -> Option<&UnusableDirectory> {
        self.unusable.get(directory)
    }
}
