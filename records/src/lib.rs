//! Tools and calls of a host as records of Agent Tool 0.2.0, for programs that keep or
//! exchange them. Projections only: what they say was decided by the host.
//!
//! The crate makes 16 of the 19 objects. It makes no `tool_hook`, `tool_scheduler_policy`
//! and `tool_result_persistence`: the host has no hooks, decides about each call alone, and
//! returns every result whole.
//!
//! ```
//! use toolward_host::Host;
//! use toolward_records::{Declaration, Described};
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
mod deferred;
mod description;
mod ended_call;
mod error;
mod event;
mod hints;
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

pub use amplifier::AmplifierResult;
pub use call::{CallRecords, Invocation};
pub use contracts::{InputContract, OutputContract};
pub use decision::{Behavior, PermissionDecision};
pub use declaration::{Declaration, Described, Lifecycle};
pub use deferred::{DeferredTool, LoadingState, SchemaVisibility};
pub use description::ToolDescription;
pub use ended_call::EndedCall;
pub use error::{Recoverability, ToolError};
pub use event::{Event, EventDetails, TraceRef, Transition};
pub use hints::Hints;
pub use interface::{ExecutionProfile, Interface};
pub use mapping::{ExternalMapping, amplifier_spec, function_definition};
pub use native::{NativeCall, NativeRefs};
pub use permission::{PermissionProfile, RiskLevel};
pub use progress::Progress;
pub use recorder::{Answer, Recorder};
pub use references::namespace_of;
pub use result::{ResultStatus, ToolResult};
pub use schemas::SCHEMAS;
pub use status::Status;
pub use surface::{BlockedTool, Namespace, Surface};
pub use version::SchemaVersion;
