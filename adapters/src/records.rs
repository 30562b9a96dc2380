//! Tools and calls of a host as records of Agent Tool 0.2.0, for programs that keep or
//! exchange them. Projections only: what they say was decided by the host.
//!
//! It has 16 of the 19 objects, of which the MCP server makes `deferred_tool_ref`. It has no `tool_hook`, `tool_scheduler_policy`
//! and `tool_result_persistence`: the host has no hooks, decides about each call alone, and
//! returns every result whole.
//!
//! ```
//! use toolward_host::Host;
//! use toolward_adapters::records::{Described, tool_declaration};
//!
//! fn declare(host: &Host, tool: &str) -> Option<String> {
//!     let info = host.tool(tool)?;
//!     let declaration = tool_declaration(&Described { info, name: "text_stats" });
//!     Some(declaration.to_string())
//! }
//! ```

mod amplifier;
mod call;
mod declaration;
mod ended_call;
mod event;
mod interface;
mod permission;
mod recorder;
mod references;
mod result;
mod schemas;
mod surface;

use std::time::SystemTime;

use serde_json::Value;

pub use self::amplifier::amplifier_result;
pub use self::call::call_records;
pub use self::declaration::{Described, amplifier_spec, function_definition, tool_declaration};
pub use self::ended_call::{EndedCall, NativeCall};
pub use self::event::{Status, event_record};
use self::interface::{execution_profile, tool_interface};
use self::permission::permission_profile;
pub use self::recorder::{Answer, Recorder};
use self::references::record;
pub use self::schemas::SCHEMAS;
use self::surface::{tool_namespace, tool_surface};

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
