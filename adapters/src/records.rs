//! Tools and calls of a host as records of Agent Tool 0.2.0, for programs that keep or
//! exchange them. Projections only: what they say was decided by the host.
//!
//! It has 16 of the 19 objects, of which the MCP server makes `deferred_tool_ref`. It has no `tool_hook`, `tool_scheduler_policy`
//! and `tool_result_persistence`: the host has no hooks, decides about each call alone, and
//! returns every result whole.
//!
//! ```
//! use toolward_host::Host;
//! use toolward_adapters::records::{Declaration, Described};
//!
//! fn declare(host: &Host, tool: &str) -> Option<String> {
//!     let info = host.tool(tool)?;
//!     let declaration = Declaration::of(&Described { info: &info, name: "text_stats" });
//!     serde_json::to_string(&declaration).ok()
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
mod permission;
mod progress;
mod recorder;
mod references;
mod result;
mod schemas;
mod status;
mod surface;
mod version;

pub use self::amplifier::AmplifierResult;
pub use self::call::{CallRecords, Invocation};
pub use self::contracts::{InputContract, OutputContract};
pub use self::decision::{Behavior, PermissionDecision};
pub use self::declaration::{Declaration, Described, Lifecycle};
pub use self::description::ToolDescription;
pub use self::ended_call::EndedCall;
pub use self::error::{Recoverability, ToolError};
pub use self::event::{Event, EventDetails, TraceRef, Transition};
pub use self::interface::{ExecutionProfile, Interface, SchemaVisibility};
pub use self::mapping::{ExternalMapping, function_definition};
pub use self::native::{NativeCall, NativeRefs};
pub use self::permission::{PermissionProfile, RiskLevel};
pub use self::progress::Progress;
pub use self::recorder::{Answer, Recorder};
pub use self::result::{ResultStatus, ToolResult};
pub use self::schemas::SCHEMAS;
pub use self::status::Status;
pub use self::surface::{BlockedTool, Namespace, Surface};
pub use self::version::SchemaVersion;
