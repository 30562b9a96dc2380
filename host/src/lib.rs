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

mod access;
mod admission;
mod approval;
mod asking;
mod builder;
mod checks;
pub mod compile;
pub mod confine;
mod continuity;
pub mod digest;
mod dispatch;
mod error;
mod grant;
mod host;
mod limits;
mod lineage;
pub mod memory;
mod needs;
mod observer;
mod prepare;
mod redact;
mod registry;
mod request;
mod resolve;
mod result;
mod sandbox;
pub mod secrets;
mod services;
mod validate;
mod violations;
mod workspace;

pub use approval::{ApprovalRequest, Approver, Chained, Verdict};
pub use asking::{Answer, Answerable, Ask, Asked, Question, Resume, Spent};
pub use builder::HostBuilder;
pub use compile::{
    Broker, BrokerCommand, Cache, CompileError, CompileLimits, CompileReason, Compiler, InProcess,
};
pub use continuity::Continuity;
pub use error::HostError;
pub use host::{DriverInfo, Host, ToolInfo};
pub use limits::{Limit, Limits};
pub use needs::Needs;
pub use observer::{Canceled, Compiling, LogLevel, LogRecord, Observer, Progress};
pub use registry::Icon;
pub use request::{LOCAL, Request};
pub use result::{
    Annotations, Block, BlockContent, CallError, Captured, ErrorClass, ErrorCode, Hit, Metadata,
    Origin, Output, Reply, ResourceBody, Role,
};
pub use sandbox::engine::EngineProfile;
pub use violations::{Violation, ViolationKind};
