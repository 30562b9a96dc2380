//! `trust update`: the next documents of a publisher, and what it revokes.

use super::{FreshnessFlags, Subject, print};
use crate::failure::Failure;
use crate::output::Output;

impl Subject<'_> {
    pub(super) fn update(
        &self,
        name: &str,
        sources: &[String],
        revocations: Option<&str>,
        freshness: &FreshnessFlags,
        output: &mut Output,
    ) -> Result<(), Failure> {
        let rule = |settings: &_| freshness.given(settings);
        let changes = self.changes(output);
        let known = changes.update(name, sources, revocations, rule)?;
        print(&known, output)
    }
}
