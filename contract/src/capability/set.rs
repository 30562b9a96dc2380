//! Ordered sets of capabilities: declarations, policies, grants. An empty set grants nothing.

use std::collections::BTreeSet;
use std::fmt;

use super::{Capability, Class};

/// A set of capabilities, ordered by class and scope.
#[derive(
    Clone,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    serde::Serialize,
    serde::Deserialize,
)]
#[serde(transparent)]
pub struct CapabilitySet {
    members: BTreeSet<Capability>,
}

impl CapabilitySet {
    /// The set that grants nothing.
    pub fn new() -> CapabilitySet {
        CapabilitySet::default()
    }

    /// Adds one capability. If a member has the same scope, and one of the two is written with the
    /// port 443, the set keeps the one without the port, which is not limited to https.
    pub fn insert(&mut self, capability: Capability) {
        let host = capability.host();
        if host.is_some_and(|host| host.written_port() == host.port()) {
            self.members.replace(capability);
        } else {
            self.members.insert(capability);
        }
    }

    /// Whether it grants nothing.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The number of members.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// The capabilities in order.
    pub fn iter(&self) -> impl Iterator<Item = &Capability> {
        self.members.iter()
    }

    /// The members of one class, in order.
    pub fn of_class<'s>(&'s self, class: &'s Class) -> impl Iterator<Item = &'s Capability> {
        self.iter().filter(move |member| member.class() == class)
    }

    /// Whether this capability is a member.
    pub fn contains(&self, capability: &Capability) -> bool {
        self.members.contains(capability)
    }

    /// Whether one of its members covers `capability`.
    pub fn covers_one(&self, capability: &Capability) -> bool {
        self.members.iter().any(|member| member.covers(capability))
    }

    /// Whether it covers every member of `other`. Every set covers the empty one.
    pub fn covers(&self, other: &CapabilitySet) -> bool {
        other.iter().all(|member| self.covers_one(member))
    }

    /// The members of `other` that it does not cover.
    pub fn missing(&self, other: &CapabilitySet) -> CapabilitySet {
        let missing = other.iter().filter(|member| !self.covers_one(member));
        missing.cloned().collect()
    }

    /// The members of the two sets together.
    pub fn union(&self, other: &CapabilitySet) -> CapabilitySet {
        self.iter().chain(other.iter()).cloned().collect()
    }

    /// What both sets grant, computed for each pair of members. Members that others cover are left
    /// out.
    pub fn intersection(&self, other: &CapabilitySet) -> CapabilitySet {
        let pairs = self
            .iter()
            .flat_map(|a| other.iter().filter_map(|b| a.intersect(b)));
        pairs.collect::<CapabilitySet>().widest()
    }

    /// The members that no other member covers.
    #[must_use]
    pub fn widest(self) -> CapabilitySet {
        let covered = |one: &Capability| self.iter().any(|wide| wide != one && wide.covers(one));
        self.iter().filter(|one| !covered(one)).cloned().collect()
    }
}

impl FromIterator<Capability> for CapabilitySet {
    fn from_iter<I: IntoIterator<Item = Capability>>(members: I) -> Self {
        let mut set = CapabilitySet::new();
        set.extend(members);
        set
    }
}

impl Extend<Capability> for CapabilitySet {
    fn extend<I: IntoIterator<Item = Capability>>(&mut self, members: I) {
        members.into_iter().for_each(|member| self.insert(member));
    }
}

impl IntoIterator for CapabilitySet {
    type Item = Capability;
    type IntoIter = std::collections::btree_set::IntoIter<Capability>;

    fn into_iter(self) -> Self::IntoIter {
        self.members.into_iter()
    }
}

impl<'s> IntoIterator for &'s CapabilitySet {
    type Item = &'s Capability;
    type IntoIter = std::collections::btree_set::Iter<'s, Capability>;

    fn into_iter(self) -> Self::IntoIter {
        self.members.iter()
    }
}

impl fmt::Display for CapabilitySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let members: Vec<String> = self.iter().map(Capability::to_string).collect();
        write!(f, "[{}]", members.join(", "))
    }
}
