//! Calls that were refused before they reached a host.

use toolward_ledger::record::Native;

use crate::api::facts::CallStage;
use crate::api::result::{CallError, ErrorClass};

/// A call that whoever passes calls on to a host has refused itself, for [`Host::refused`](crate::Host::refused):
/// the name is no tool's for this principal, the tool has to be loaded first, or the arguments can't be made an input.
#[derive(Debug, Clone, Copy)]
pub struct RefusedCall<'a> {
    /// On whose behalf it was made.
    pub principal: &'a str,
    /// What its caller called the tool: any text. It gets into no record and no event, only into a payload.
    pub name: &'a str,
    /// The tool that was meant, by a name of the host; `None` where the principal is not to learn that there is one.
    pub tool: Option<&'a str>,
    /// What its caller's protocol calls it.
    pub native: &'a Native,
    /// With what it ended.
    pub error: &'a CallError,
}

impl RefusedCall<'_> {
    /// The stage in which a host would have ended it.
    pub(crate) fn stage(&self, is_found: bool) -> CallStage {
        match self.error.class {
            _ if !is_found => CallStage::Resolve,
            ErrorClass::PolicyBlocked | ErrorClass::PermissionDenied => CallStage::Authorise,
            _ => CallStage::Validate,
        }
    }
}
