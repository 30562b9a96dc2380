//! The embeddable host of Toolward: runs the tools of verified bundles in a
//! sandbox, under fuel, wall-clock, memory and output limits.
//!
//! A call goes through the stages of [`CallStage`], and each stage takes a value that only the
//! stage before it makes: `resolve` → `validate` → `authorise` → `approve` → `prepare` → `admit` →
//! `run`. Every call ends with a [`Reply`].
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
//!
//! Without the feature `http` the host can't grant network access, and without `keyvalue` it can't
//! grant buckets. The libraries of a missing feature are not linked. Both features are on by
//! default.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod access;
mod admission;
/// The types that an embedder and a host exchange.
mod api {
    pub(crate) mod approval;
    pub(crate) mod event;
    pub(crate) mod facts;
    pub(crate) mod request;
    pub(crate) mod result;

    /// The principal of calls that name none: the user who runs the host's process.
    pub const LOCAL: &str = "local";
}
mod call_context;
mod call_scope;
mod catalogue;
pub mod digest;
mod elicitation;
mod events;
mod executor;
mod extensions;
mod health;
mod host;
mod imports;
pub mod memory;
#[cfg(feature = "metrics")]
pub mod metrics;
mod named;
/// The stages of a call. Each takes a value that only the stage before it makes: `resolve`,
/// `validate`, `authorise`, `approve`, then `dispatch`, which prepares the driver, admits the call
/// and runs it. [`crate::host`] takes a call through the stages, and writes their results to
/// `call_record`.
mod pipeline {
    pub(crate) mod approve;
    pub(crate) mod authorise;
    pub(crate) mod call_record;
    pub(crate) mod candidates;
    pub(crate) mod dispatch;
    pub(crate) mod resolve;
    pub(crate) mod validate;
}
mod recording;
mod redact;
mod requirements;
pub mod secrets;
mod services;
mod shared_state;
mod tape;
mod validation_pool;

pub use admission::ReadProgress;
/// Confines a process that runs guests, so that a guest that escapes the engine reaches little.
pub use toolward_confine as confine;
pub use toolward_sandbox::compile;

pub use api::LOCAL;
pub use api::approval::{
    ApprovalKeys, ApprovalRequest, ApprovalScope, Approver, Chained, NamedDriver, Remembered,
    ShownRequest, Verdict,
};
pub use api::event::{
    CallCost, CallDecision, CallEvent, CallEventKind, Compiling, EventFilter, Observer, PrincipalId,
};
pub use api::facts::{CALL_LOG, CallFacts, CallListener, CallStage, RefusedCall, Tried};
pub use api::facts::{Cancellation, SharedCancellation};
pub use api::request::Request;
pub use api::result::{
    Annotations, Block, BlockContent, CallError, Captured, ErrorClass, ErrorCode, LogLevel,
    LogRecord, Origin, Output, Reply, ResourceBody, Role, WorldErrorCode,
};
pub use call_context::CallContext;
pub use call_scope::CallScope;
pub use catalogue::{
    DriverFacts, Icon, LoadedDriver, ToolFacts, Unserved, UnservedDriver, WithheldReason,
    WithheldTool,
};
pub use compile::{
    Ahead, Broker, BrokerCommand, Cache, CompileCost, CompileError, CompileLimits, CompileReason,
    Compiler, InProcess,
};
pub use elicitation::{Answer, Answerable, Ask, Asked, Question, Resume, Spent};
pub use events::{Events, Heard};
pub use executor::{Attempt, AttemptReport, Executor, Features, Job, RequestValues, ResultSource};
pub use host::{Host, HostBuilder};
pub use imports::{
    BoxFuture, BucketError, BucketOperation, BucketReply, BucketRequest, CallerBudget, GuestEnd,
    HttpError, HttpRequest, HttpResponse, Imports, LogMessage, Progress, SecretError, ToolReply,
};
pub use requirements::Requirements;
pub use shared_state::{SharedState, UnreadResult};
pub use tape::{Replayed, Tape};
pub use toolward_ledger::record::{Native, NativeId, TraceParent};
pub use toolward_policy::{Limit, LimitName, Limits};
pub use toolward_sandbox::engine::EngineProfile;
pub use toolward_sandbox::error::HostError;
pub use toolward_sandbox::exceeded::{DeadlinePassed, Exceeded};
pub use toolward_sandbox::invocation::{
    CallEnd, DriverAsk, DriverForm, DriverOutput, DriverQuestion, InputRequest, Invocation,
    QuestionAnswer, QuestionReply, Resumption, ToolCall,
};
pub use toolward_sandbox::violations::{EndsCall, Violation, ViolationKind};

/// The codes for tools that are blocked because this host can't provide a granted capability.
pub const BLOCKED_TABLES: &[&[toolward_support::report::Code]] = &[
    executor::CODES,
    toolward_sandbox::files::workspaces::Unusable::CODES,
    toolward_sandbox::files::PlanError::CODES,
];
pub use toolward_state::{Denials, DenialsError};

toolward_support::opaque!(
    Request,
    HostBuilder,
    Host,
    SharedState,
    Tape,
    ToolFacts,
    DriverFacts,
    Icon
);
