//! How many instances a component makes, counting what is nested in it, and what they
//! take.

use super::MAX_INSTANCE_BYTES;

/// The most instances, of components and of core modules together, that a component
/// may make. An engine lays them all out when it compiles: levels that each
/// instantiate the one below a hundred times need two kilobytes to ask for 10^12.
pub(super) const MAX_INSTANCES: usize = 256;

/// What instantiating one component makes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Made {
    /// Instances of core modules.
    pub(super) core: u64,
    /// Instances of components.
    pub(super) components: u64,
    /// Bytes of the contexts of those of core modules ([`super::size`]).
    pub(super) bytes: u64,
}

impl Made {
    pub(super) fn total(self) -> u64 {
        self.core.saturating_add(self.components)
    }
}

/// One component while it is read.
#[derive(Debug, Default)]
struct Level {
    made: Made,
    /// What each component makes that can be instantiated here, by its index.
    known: Vec<Made>,
    /// Bytes of an instance of each core module here, by its index.
    modules: Vec<u64>,
}

impl Level {
    fn module(&self, index: u32) -> u64 {
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        self.modules
            .get(index)
            .copied()
            .unwrap_or(MAX_INSTANCE_BYTES)
    }
}

/// Counts the instances of a component while it is read from start to end. A
/// component that is instantiated lies before that, and within: it is never taken
/// from elsewhere.
#[derive(Debug, Default)]
pub(super) struct Instantiations {
    here: Level,
    /// The components that enclose the present one.
    outer: Vec<Level>,
}

impl Instantiations {
    /// A core module begins here, with the bytes that an instance of it takes.
    pub(super) fn module(&mut self, bytes: u64) {
        self.here.modules.push(bytes);
    }

    /// A core module comes from elsewhere: it may be any.
    pub(super) fn foreign_module(&mut self) {
        self.module(MAX_INSTANCE_BYTES);
    }

    /// The core module with this index is aliased from an outer component, with the number of levels between.
    pub(super) fn outer_module(&mut self, levels: u32, index: u32) {
        let levels = usize::try_from(levels).unwrap_or(usize::MAX);
        let level = match levels.checked_sub(1) {
            None => Some(&self.here),
            Some(out) => self.outer.iter().rev().nth(out),
        };
        let bytes = level.map_or(MAX_INSTANCE_BYTES, |level| level.module(index));
        self.module(bytes);
    }

    /// The core module with this index is instantiated.
    pub(super) fn core(&mut self, module: u32) {
        let bytes = self.here.module(module);
        let made = &mut self.here.made;
        made.core = made.core.saturating_add(1);
        made.bytes = made.bytes.saturating_add(bytes);
    }

    /// The component with this index is instantiated. One that is not there is for
    /// the engine to refuse.
    pub(super) fn component(&mut self, index: u32) {
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        let inner = self.here.known.get(index).copied().unwrap_or_default();
        let made = &mut self.here.made;
        made.core = made.core.saturating_add(inner.core);
        made.bytes = made.bytes.saturating_add(inner.bytes);
        made.components = made
            .components
            .saturating_add(inner.components)
            .saturating_add(1);
    }

    /// A component is imported. No host gives one.
    pub(super) fn import(&mut self) {
        self.here.known.push(Made::default());
    }

    /// A nested component begins.
    pub(super) fn enter(&mut self) {
        self.outer.push(std::mem::take(&mut self.here));
    }

    /// A nested component ends.
    pub(super) fn leave(&mut self) {
        let outer = self.outer.pop().unwrap_or_default();
        let inner = std::mem::replace(&mut self.here, outer);
        self.here.known.push(inner.made);
    }

    /// What instantiating the component makes that was read.
    pub(super) fn made(&self) -> Made {
        self.here.made
    }
}
