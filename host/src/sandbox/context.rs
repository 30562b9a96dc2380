//! The state that all attempts of a call share: access, counters, observer.

use std::sync::Arc;
use std::time::Instant;

use super::access::Access;
use super::call_budget::CallBudget;
use super::call_scope::CallScope;
use super::files::{self, FileLimits};
use super::guest_reports::ReportCounts;
use super::{held, keyvalue, tools};
use crate::api::limits::CallLimits;
use crate::api::violations::Violations;
use crate::events::ProgressEvents;
use crate::services::Services;

/// One call, as its sandboxes see it.
pub(crate) struct Context {
    pub(crate) limits: CallLimits,
    pub(crate) access: Arc<Access>,
    pub(crate) services: Arc<Services>,
    pub(crate) budget: Arc<CallBudget>,
    pub(crate) violations: Violations,
    pub(crate) scope: Arc<CallScope>,
    pub(crate) secrets: Arc<super::secrets::CallSecrets>,
    pub(crate) network: Option<toolward_egress::Call>,
    pub(crate) tools: Option<Arc<tools::Ctx>>,
    pub(crate) reports: ReportCounts,
    /// Set where there were readers of events when the driver was picked.
    pub(crate) events: Option<ProgressEvents>,
}

impl Context {
    /// Takes on what the driver that was tried before used and tried.
    pub(crate) fn follow(&self, before: &Self) {
        if let Some(redactor) = before.secrets.redactor() {
            self.secrets.keep_out_earlier(&redactor);
        }
        let found = before.violations.found();
        self.violations.absorb(&found.first, found.total);
    }

    /// The buckets of one attempt.
    pub(crate) fn buckets(&self, deadline: Instant) -> keyvalue::Ctx {
        let limits = keyvalue::Limits {
            bucket: toolward_keyvalue::Limits {
                bucket_bytes: self.limits.bucket_bytes,
                bucket_keys: self.limits.bucket_keys,
                ..toolward_keyvalue::Limits::default()
            },
            ..keyvalue::Limits::default()
        };
        keyvalue::Ctx::new(
            self.access.grant.buckets(),
            self.services.buckets.clone(),
            &self.scope.principal,
            limits,
            self.budget.buckets.clone(),
            deadline,
            self.violations.clone(),
        )
    }

    /// The files of one attempt; none where none are granted.
    pub(crate) fn files(&self, held: &held::Shared) -> files::Ctx {
        let Ok(Some(plan)) = &self.access.files else {
            return files::Ctx::default();
        };
        let limits = FileLimits::of(&self.limits);
        files::Ctx::new(
            plan,
            limits.within(self.budget.file_limits),
            self.budget.files(),
            self.violations.clone(),
            held.clone(),
        )
    }
}
