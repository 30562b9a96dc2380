//! The subjects of decisions, as plain data: a contract and a driver, each with its publisher, and
//! the machine that a host runs on.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Serialize;
use toolward_contract::capability::{Capability, CapabilitySet, Class};
use toolward_contract::driver::{Driver, DriverKind};
use toolward_contract::tool::Tool;

/// The risk level from which a person is asked.
pub(crate) const ASK_FROM_RISK: u8 = 2;
/// The risk level that only a person can approve.
pub(crate) const IRREVERSIBLE_RISK: u8 = 3;

/// A contract, and the publisher of its bundle.
#[derive(Debug, Clone, Copy)]
pub struct Contract<'a> {
    /// The contract.
    pub tool: &'a Tool,
    /// Its publisher, as verified.
    pub publisher: &'a str,
}

/// A driver, and the publisher of its bundle.
#[derive(Debug, Clone, Copy)]
pub struct Implementation<'a> {
    /// The driver.
    pub driver: &'a Driver,
    /// Its publisher, as verified.
    pub publisher: &'a str,
}

/// Who declared a capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DeclaredBy {
    /// The contract.
    Contract,
    /// The driver, in addition to the contract. This needs a rule that names the driver.
    Driver,
}

/// One capability as declared, and the parts of it that are required.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Declared {
    pub(crate) capability: Capability,
    pub(crate) mutates: bool,
    pub(crate) by: DeclaredBy,
    /// The capability itself, or the parts of a network capability that the driver's egress covers.
    /// Empty if the egress covers nothing of it.
    pub(crate) asked: Vec<Capability>,
}

impl Declared {
    fn of(capability: &Capability, mutates: bool, by: DeclaredBy, driver: &Driver) -> Self {
        Self {
            capability: capability.clone(),
            mutates,
            by,
            asked: narrowed(capability, &driver.egress),
        }
    }
}

/// All required capabilities: capabilities that the contract reads or changes, and capabilities
/// that the driver adds.
pub(crate) fn declared(tool: &Tool, driver: &Driver) -> Vec<Declared> {
    let (required, added) = (&tool.requires.capabilities, &driver.requires.capabilities);
    let is_implied = |one: &&Capability| implied(one, &tool.mutates);
    let of_contract = |one: &&Capability| required.covers_one(one) || is_implied(one);
    let reads = required.iter().filter(|one| !is_implied(one));
    let reads = reads.map(|one| Declared::of(one, false, DeclaredBy::Contract, driver));
    let changes = tool.mutates.iter();
    let changes = changes.map(|one| Declared::of(one, true, DeclaredBy::Contract, driver));
    let added = added.iter().filter(|one| !of_contract(one));
    let added = added.map(|one| Declared::of(one, false, DeclaredBy::Driver, driver));
    reads.chain(changes).chain(added).collect()
}

/// The capabilities for reading that [`declared`] leaves out because `mutates` includes them.
pub(crate) fn implied_reads(tool: &Tool, driver: &Driver) -> Vec<Declared> {
    let reads = tool.requires.capabilities.iter();
    reads
        .filter(|capability| implied(capability, &tool.mutates))
        .map(|capability| Declared::of(capability, false, DeclaredBy::Contract, driver))
        .collect()
}

/// Whether `mutates` already includes the capability, since changing implies reading. This does not
/// hold for secrets: storing does not imply using.
fn implied(capability: &Capability, mutates: &CapabilitySet) -> bool {
    *capability.class() != Class::Secret && mutates.covers_one(capability)
}

/// If there are more parts, parts that another part covers stay. Leaving them out only saves rows,
/// and would take too long for a hostile declaration with thousands of parts.
const MAX_TIDIED_PARTS: usize = 256;

/// The required parts of a capability, given the driver's egress.
pub(crate) fn narrowed(capability: &Capability, egress: &CapabilitySet) -> Vec<Capability> {
    if *capability.class() != Class::Network {
        return vec![capability.clone()];
    }
    let parts = egress.iter().filter_map(|used| capability.intersect(used));
    let parts: CapabilitySet = parts.collect();
    let parts = match parts.len() <= MAX_TIDIED_PARTS {
        true => parts.widest(),
        false => parts,
    };
    parts.into_iter().collect()
}

/// The properties of a host that drivers and grants may need. The host describes itself, and this
/// crate inspects nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Machine {
    pub(crate) os: String,
    pub(crate) arch: String,
    pub(crate) memory_bytes: u64,
    unusable: BTreeMap<PathBuf, UnusableDirectory>,
    /// The additional kinds of drivers that it runs.
    kinds: BTreeSet<String>,
}

/// Why no guest can use the directory behind a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, thiserror::Error)]
#[error("{}: {problem}", .directory.display())]
pub struct UnusableDirectory {
    /// The directory, as named in the policy.
    pub directory: PathBuf,
    /// The stable code of the problem, such as `workspace-missing`.
    pub code: &'static str,
    /// The problem, as text for people.
    pub problem: String,
    /// What the operator can do about it.
    pub hint: String,
}

impl Machine {
    /// A machine whose workspaces are all usable. `os` and `arch` are as in [`std::env::consts`];
    /// `memory_bytes` is the most memory that one call may have.
    pub fn new(os: &str, arch: &str, memory_bytes: u64) -> Self {
        Self {
            os: os.to_owned(),
            arch: arch.to_owned(),
            memory_bytes,
            ..Self::default()
        }
    }

    /// The same machine, on which this directory of a workspace can't be used.
    #[must_use]
    pub fn without(mut self, directory: UnusableDirectory) -> Self {
        self.unusable.insert(directory.directory.clone(), directory);
        self
    }

    /// The same machine, as if every directory could be used. A decision for this machine shows
    /// what a policy would grant once all directories can be used.
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

    pub(crate) fn runs(&self, kind: DriverKind) -> bool {
        kind.is_run() || self.kinds.contains(kind.as_str())
    }

    pub(crate) fn unusable(&self, directory: &Path) -> Option<&UnusableDirectory> {
        self.unusable.get(directory)
    }
}
