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
//!     let declaration = tool_declaration(&Described { info: &info, name: "text_stats" });
//!     Some(declaration.to_string())
//! }
//! ```

mod amplifier;
mod call;
mod contracts;
mod decision;
mod declaration;
mod description;
mod ended_call;
mod error;
mod event;
mod interface;
mod mapping;
mod native;
mod object;
mod permission;
mod progress;
mod recorder;
mod references;
mod result;
mod schemas;
mod status;
mod surface;

pub use self::amplifier::amplifier_result;
pub use self::call::call_records;
pub use self::declaration::{Described, tool_declaration};
pub use self::description::tool_records;
pub use self::ended_call::EndedCall;
pub use self::event::event_record;
pub use self::mapping::{amplifier_spec, function_definition};
pub use self::native::NativeCall;
pub use self::recorder::{Answer, Recorder};
pub use self::schemas::SCHEMAS;
pub use self::status::Status;
