//! The files that all calls together hold open: a process has a limited number of
//! descriptors, and connections need some of them.

use std::sync::Arc;

use rustix::process::{Resource, getrlimit};
use toolward_policy::{LimitName, Limits};

use super::gate::Sum;
use super::{Gate, Path};
use crate::exceeded::Exceeded;

/// The open files of the calls of one admission.
#[derive(Debug)]
pub(crate) struct CallFiles(Sum);

impl CallFiles {
    pub(super) fn new(limits: &Limits) -> Self {
        let allowed = limits.open_files_total.unwrap_or_else(default_total);
        Self(Sum::new(LimitName::OpenFilesTotal, allowed, 1, limits))
    }
}

/// Half of the files that this process may open.
fn default_total() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX) / 2
}

/// The right to hold one file open, counted over all calls; given back when dropped.
#[derive(Debug)]
pub(crate) struct OpenFile {
    files: Arc<CallFiles>,
    principal: Arc<Gate>,
    publisher: Arc<Gate>,
}

impl Path {
    /// One more open file of this call.
    pub(crate) fn open_file(&self) -> Result<OpenFile, Exceeded> {
        let (principal, publisher) = (&self.principal, &self.publisher);
        let taken = (self.files.0).take(&principal.files, Some(&publisher.files), 1, 0);
        taken.map_err(|full| full.exceeded)?;
        Ok(OpenFile {
            files: self.files.clone(),
            principal: principal.clone(),
            publisher: publisher.clone(),
        })
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        let (principal, publisher) = (&self.principal, &self.publisher);
        (self.files.0).give_back(&principal.files, Some(&publisher.files), 1);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Admission;
    use super::*;

    #[test]
    fn one_principal_leaves_files_for_others_and_all_come_back() {
        let limits = Limits {
            open_files_total: Some(4),
            concurrency: 4,
            concurrency_per_principal: 3,
            concurrency_per_publisher: 4,
            ..Limits::default()
        };
        let admission = Admission::new(&limits, Arc::new(toolward_state::Local::default()));
        let (tool, publisher) = (admission.tool("a", "t@1"), admission.publisher("a"));
        let path = |principal| admission.path(&tool, &publisher, principal);
        let (greedy, modest) = (path("greedy"), path("modest"));
        let mut open: Vec<_> = (0..3).map(|_| greedy.open_file().expect("room")).collect();
        let exceeded = greedy.open_file().expect_err("its share is taken");
        assert_eq!(
            (exceeded.limit, exceeded.used, exceeded.allowed),
            (LimitName::OpenFilesTotal, 4, 3)
        );
        let last = modest.open_file().expect("room for others");
        assert!(modest.open_file().is_err());
        open.pop();
        drop(last);
        let _again = greedy.open_file().expect("room again");
    }
}
