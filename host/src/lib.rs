//! The embeddable host of Toolward: runs the tools of verified bundles in a
//! sandbox, under fuel, wall-clock, memory and output limits.
//!
//! A call goes through stages, each of which takes what only the one before it
//! makes: `resolve` → `validate` → `policy` → `approval` → `dispatch` (in the
//! `sandbox`) → `result`. Every call ends with a [`Reply`].
//!
//! ```no_run
//! use toolward_bundle::content::Content;
//! use toolward_host::{Host, Request};
//! use toolward_signing::key::PublicKey;
//! use toolward_signing::trust::TrustStore;
//! use toolward_signing::verify::{self, VerifyOptions};
//!
//! # async fn run(pem: &str) -> Result<(), Box<dyn std::error::Error>> {
//! let trust = TrustStore::for_key(PublicKey::from_pem(pem)?);
//! let bundle = verify::open("text-stats.toolbundle".as_ref(), &trust, &VerifyOptions::default())?;
//! let host = Host::builder().bundle(Content::from_verified(bundle)?).build()?;
//! let reply = host.call(Request::new("text.stats", r#"{"text": "Hello"}"#)).await;
//! println!("{}", reply.envelope());
//! # Ok(())
//! # }
//! ```

mod admission;
mod approval;
mod approve;
mod authorise;
mod builder;
mod call_record;
mod catalogue;
pub mod compile;
pub mod confine;
mod cores;
pub mod digest;
mod dispatch;
mod elicitation;
mod error;
mod exceeded;
mod host;
mod invocation;
mod limits;
mod listener;
pub mod memory;
mod observer;
mod preparation;
mod prepare;
mod principal;
mod redact;
mod request;
mod requirements;
mod resolve;
mod result;
mod sandbox;
pub mod secrets;
mod services;
mod shared_state;
mod tool_info;
mod validate;
mod validation_pool;
mod violations;
mod withdrawal;
mod workspace;

pub use approval::{ApprovalRequest, Approver, Chained, Verdict};
pub use builder::HostBuilder;
pub use catalogue::Icon;
pub use compile::{
    Broker, BrokerCommand, Cache, CompileError, CompileLimits, CompileReason, Compiler, InProcess,
};
pub use elicitation::{Answer, Answerable, Ask, Asked, Question, Resume, Spent};
pub use error::HostError;
pub use host::Host;
pub use listener::{CallListener, CallStage, FinishedCall};
pub use observer::{Canceled, Compiling, Observer, Progress};
pub use principal::LOCAL;
pub use request::Request;
pub use requirements::Requirements;
pub use result::{
    Annotations, Block, BlockContent, CallError, Captured, ErrorClass, ErrorCode, Hit, LogLevel,
    LogRecord, Metadata, Origin, Output, Reply, ResourceBody, Role,
};
pub use sandbox::engine::EngineProfile;
pub use shared_state::SharedState;
pub use tool_info::{DriverInfo, ToolInfo};
pub use toolward_policy::{Limit, LimitName, Limits};
pub use violations::{Violation, ViolationKind};
