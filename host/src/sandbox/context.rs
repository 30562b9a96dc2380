//! What all attempts of a driver share.

use std::sync::Arc;

use toolward_policy::Grant;

use super::access::Access;
use super::call_scope::CallScope;
use super::files::{self, FileLimits};
use super::held;
use crate::api::limits::CallLimits;
use crate::api::violations::Violations;
use crate::imports::{CallBudget, Imports};

/// One call, as its executor sees it.
pub struct CallContext {
    pub(crate) limits: CallLimits,
    pub(crate) access: Arc<Access>,
    pub(crate) budget: Arc<CallBudget>,
    pub(crate) violations: Violations,
    pub(crate) scope: Arc<CallScope>,
    /// What answers the driver's requests.
    pub(crate) imports: Arc<dyn Imports>,
}

impl CallContext {
    /// What answers the driver's requests.
    #[must_use]
    pub fn imports(&self) -> &dyn Imports {
        &*self.imports
    }

    /// Who calls.
    #[must_use]
    pub fn principal(&self) -> &str {
        &self.scope.principal
    }

    /// How much of what a driver prints is kept, in bytes.
    #[must_use]
    pub fn stdio_bytes(&self) -> u64 {
        self.limits.stdio_bytes
    }

    /// What policy grants the driver.
    #[must_use]
    pub fn grant(&self) -> &Grant {
        &self.access.grant
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
