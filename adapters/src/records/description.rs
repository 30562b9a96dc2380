//! All that is to be said of one tool of a host before it is called.

use std::time::SystemTime;

use serde::Serialize;

use crate::records::declaration::{Declaration, Described};
use crate::records::interface::{ExecutionProfile, Interface};
use crate::records::permission::PermissionProfile;
use crate::records::surface::{Namespace, Surface};
use crate::records::version::SchemaVersion;

/// The records of one tool. The declaration holds its input and output contracts, and its
/// external mappings.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ToolDescription {
    /// The version of Agent Tool.
    pub schema_version: SchemaVersion,
    /// What it is.
    pub tool_declaration: Declaration,
    /// What a runtime has to know of it.
    pub tool_interface: Interface,
    /// How each of its drivers runs, the preferred one first.
    pub tool_execution_profiles: Vec<ExecutionProfile>,
    /// What it may do through each of them.
    pub tool_permission_profiles: Vec<PermissionProfile>,
    /// The tools that its name could collide with.
    pub tool_namespace: Namespace,
    /// The tools beside it.
    pub tool_surface: Surface,
}

impl ToolDescription {
    /// That of a tool among all tools of its host, as a principal sees it at `at`.
    #[must_use]
    pub fn of(
        tool: &Described<'_>,
        all: &[Described<'_>],
        principal: &str,
        at: SystemTime,
    ) -> Self {
        let (info, drivers) = (tool.info, &tool.info.drivers);
        let execution = drivers.iter().map(|one| ExecutionProfile::of(info, one));
        let permission = drivers.iter().map(|one| PermissionProfile::of(info, one));
        Self {
            schema_version: SchemaVersion,
            tool_declaration: Declaration::of(tool),
            tool_interface: Interface::of(tool),
            tool_execution_profiles: execution.collect(),
            tool_permission_profiles: permission.collect(),
            tool_namespace: Namespace::of(tool, all),
            tool_surface: Surface::of(all, principal, at),
        }
    }
}
