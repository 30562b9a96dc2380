//! The files that all calls together hold open: a process has a limited number of
//! descriptors, and connections need some of them.

use std::sync::Arc;

use rustix::process::{Resource, getrlimit};
use toolward_policy::{LimitName, Limits};
use toolward_sandbox::exceeded::Exceeded;
use toolward_sandbox::files::{OpenFile, OpenFiles};

use super::gate::Sum;
use super::{Gate, Path};

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

/// One open file, until it is dropped.
struct HeldFile {
    files: Arc<CallFiles>,
    principal: Arc<Gate>,
    publisher: Arc<Gate>,
}

impl OpenFiles for Path {
    fn open(&self) -> Result<OpenFile, Exceeded> {
        let (principal, publisher) = (&self.principal, &self.publisher);
        let taken = (self.files.0).take(&principal.files, Some(&publisher.files), 1, 0);
        taken.map_err(|full| full.exceeded)?;
        Ok(Box::new(HeldFile {
            files: self.files.clone(),
            principal: principal.clone(),
            publisher: publisher.clone(),
        }))
    }
}

impl Drop for HeldFile {
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
        let mut open: Vec<_> = (0..3).map(|_| greedy.open().expect("room")).collect();
        let exceeded = greedy.open().expect_err("its share is taken");
        assert_eq!(
            (exceeded.limit, exceeded.used, exceeded.allowed),
            (LimitName::OpenFilesTotal, 4, 3)
        );
        let last = modest.open().expect("room for others");
        assert!(modest.open().is_err());
        open.pop();
        drop(last);
        let _again = greedy.open().expect("room again");
    }
}
