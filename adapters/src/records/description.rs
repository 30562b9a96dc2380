//! All that is to be said of one tool of a host before it is called.

use std::time::SystemTime;

use serde_json::Value;

use crate::records::declaration::{Described, tool_declaration};
use crate::records::interface::{execution_profile, tool_interface};
use crate::records::object::record;
use crate::records::permission::permission_profile;
use crate::records::surface::{tool_namespace, tool_surface};

/// The records of a tool among all tools of its host, as a principal sees it at `at`. The declaration has its input and
/// output contracts and its external mappings; the preferred one of its drivers comes first.
#[must_use]
pub fn tool_records(
    tool: &Described<'_>,
    all: &[Described<'_>],
    principal: &str,
    at: SystemTime,
) -> Value {
    let (info, drivers) = (tool.info, &tool.info.drivers);
    let execution = drivers.iter().map(|one| execution_profile(info, one));
    let permission = drivers.iter().map(|one| permission_profile(info, one));
    record! {
        tool_declaration = tool_declaration(tool);
        tool_interface = tool_interface(tool);
        tool_execution_profiles = execution.collect::<Vec<_>>();
        tool_permission_profiles = permission.collect::<Vec<_>>();
        tool_namespace = tool_namespace(tool, all);
        tool_surface = tool_surface(all, principal, at);
    }
}
