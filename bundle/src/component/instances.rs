//! How many instances a component makes of what is nested in it.

/// The most instances that a component may make of what is nested in it. An
/// engine lays them all out when it compiles: levels that each instantiate the
/// one below a hundred times need two kilobytes to ask for 10^12.
pub(super) const MAX_INSTANCES: usize = 256;

/// Counts, for each level of nesting, the instances that one component of that
/// level makes at most.
#[derive(Debug, Default)]
pub(super) struct Instantiations {
    /// By level: most core instances, most component instances.
    most: Vec<(usize, usize)>,
    /// The components that enclose the present one, which is `here`.
    outer: Vec<(usize, usize)>,
    here: (usize, usize),
}

impl Instantiations {
    pub(super) fn core(&mut self) {
        self.here.0 = self.here.0.saturating_add(1);
    }

    pub(super) fn component(&mut self) {
        self.here.1 = self.here.1.saturating_add(1);
    }

    pub(super) fn enter(&mut self) {
        self.outer.push(std::mem::take(&mut self.here));
    }

    pub(super) fn leave(&mut self) {
        self.note();
        self.here = self.outer.pop().unwrap_or_default();
    }

    fn note(&mut self) {
        let level = self.outer.len();
        if self.most.len() <= level {
            self.most.resize(level.saturating_add(1), (0, 0));
        }
        if let Some(most) = self.most.get_mut(level) {
            *most = (most.0.max(self.here.0), most.1.max(self.here.1));
        }
    }

    /// At most so many instances in all, if every level instantiates the most
    /// demanding component of the next.
    pub(super) fn total(&mut self) -> usize {
        self.note();
        self.most
            .iter()
            .rev()
            .fold(0_usize, |below, (core, components)| {
                components
                    .saturating_mul(below.saturating_add(1))
                    .saturating_add(*core)
            })
    }
}
