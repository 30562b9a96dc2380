//! What a tool can have done through the tools that it calls: effects over the transitive closure of `requires.tools`,
//! so that a harmless contract can't launder a dangerous one.

use std::collections::{BTreeMap, BTreeSet};

use toolward_contract::capability::{Capability, Class};
use toolward_contract::driver::Driver;
use toolward_contract::tool::Tool;

use super::candidates::Candidates;
use crate::effects::Effects;
use crate::policy::Policy;

/// The tools reachable from one, and what they may do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reach {
    /// The joined effects of all of them; of each tool those of every driver that may serve it.
    pub effects: Effects,
    /// By `id@major`, in order.
    pub tools: Vec<String>,
}

/// All tools, by the names that other tools call them by.
pub(super) struct Callable<'c, 'a> {
    by_major: &'c BTreeMap<String, Candidates<'a>>,
    by_id: BTreeMap<&'c str, Vec<&'c str>>,
    policy: &'c Policy,
}

impl<'c, 'a> Callable<'c, 'a> {
    pub(super) fn new(by_major: &'c BTreeMap<String, Candidates<'a>>, policy: &'c Policy) -> Self {
        let mut by_id: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (major_id, candidates) in by_major {
            let majors = by_id.entry(candidates.contract.tool.id.as_str());
            majors.or_default().push(major_id.as_str());
        }
        Self {
            by_major,
            by_id,
            policy,
        }
    }

    /// What a call of `tool` through `driver` can reach.
    pub(super) fn reach(&self, tool: &Tool, driver: &Driver) -> Reach {
        let mut seen = BTreeSet::new();
        let mut open: Vec<String> = called(tool, driver);
        let mut effects = Effects::default();
        while let Some(name) = open.pop() {
            for (major_id, candidates) in self.named(&name) {
                if !seen.insert(major_id.to_owned()) {
                    continue;
                }
                let tool = candidates.contract.tool;
                for fit in &candidates.fit {
                    let implementation = &fit.implementation;
                    let own = Effects::of(tool, implementation.driver);
                    let approval = self.policy.approval_of(tool, candidates.contract.publisher);
                    effects = effects.join(own.asking(approval));
                    open.extend(called(tool, implementation.driver));
                }
            }
        }
        Reach {
            effects,
            tools: seen.into_iter().collect(),
        }
    }

    /// The tools that a name may mean: an id means each of its majors, although a call reaches the newest only.
    fn named(&self, name: &str) -> impl Iterator<Item = (&'c str, &'c Candidates<'a>)> {
        let exact = self.by_major.get_key_value(name);
        let exact = exact.map(|(major_id, candidates)| (major_id.as_str(), candidates));
        let majors = self.by_id.get(name).cloned().unwrap_or_default();
        let by_major = self.by_major;
        let majors = majors
            .into_iter()
            .filter_map(move |major_id| Some((major_id, by_major.get(major_id)?)));
        exact.into_iter().chain(majors)
    }
}

/// The tools that a contract and its driver ask to call.
fn called(tool: &Tool, driver: &Driver) -> Vec<String> {
    let declared = tool.declaration().union(&driver.requires.capabilities);
    declared
        .of_class(&Class::Tool)
        .map(Capability::scope)
        .collect()
}
