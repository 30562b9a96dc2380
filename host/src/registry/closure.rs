//! What a tool can have done through the tools that it calls: effects over the
//! transitive closure of `requires.tools`, so that a harmless contract can't
//! launder a dangerous one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use toolward_contract::capability::Class;
use toolward_contract::driver::Driver;
use toolward_contract::tool::Tool;
use toolward_policy::Effects;

use super::driver::LoadedDriver;

/// A contract and the drivers that may carry it out, before anything is
/// decided.
pub(super) struct Candidate {
    pub(super) contract: Arc<Tool>,
    pub(super) major_id: String,
    pub(super) publisher: String,
    pub(super) bundle: String,
    pub(super) drivers: Vec<Arc<LoadedDriver>>,
}

/// The tools reachable from one, itself left out, and what they may do.
#[derive(Debug, Clone, Default)]
pub(super) struct Reach {
    pub(super) effects: Effects,
    /// By `id@major`, in order.
    pub(super) tools: Vec<String>,
}

/// What a call of `start` by one of its drivers can reach.
pub(super) fn reach(
    start: &Tool,
    driver: &Driver,
    candidates: &BTreeMap<String, Candidate>,
) -> Reach {
    let mut seen = BTreeSet::new();
    let mut open: Vec<String> = called(start, driver);
    let mut effects = Effects::default();
    while let Some(name) = open.pop() {
        for candidate in named(&name, candidates) {
            if !seen.insert(candidate.major_id.clone()) {
                continue;
            }
            for driver in &candidate.drivers {
                effects = effects.join(Effects::of(&candidate.contract, &driver.driver));
                open.extend(called(&candidate.contract, &driver.driver));
            }
        }
    }
    Reach {
        effects,
        tools: seen.into_iter().collect(),
    }
}

/// The tools that a contract and its driver ask to call.
fn called(contract: &Tool, driver: &Driver) -> Vec<String> {
    let declared = contract.declaration().union(&driver.requires.capabilities);
    declared
        .of_class(&Class::Tool)
        .map(toolward_contract::capability::Capability::scope)
        .collect()
}

/// The tools that a name may mean, no fewer than
/// [`find_by_id`](super::Catalogue::find_by_id) gives: an id means each of its
/// majors.
fn named<'c>(
    name: &'c str,
    candidates: &'c BTreeMap<String, Candidate>,
) -> impl Iterator<Item = &'c Candidate> + 'c {
    let exact = candidates.get(name);
    let majors = candidates
        .values()
        .filter(move |candidate| candidate.contract.id.as_str() == name);
    exact.into_iter().chain(majors)
}
