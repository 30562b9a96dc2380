//! Runs other people's agent tools safely, in your own application: verifies signed bundles of
//! WebAssembly components, and runs each call in a separate sandbox with limits on fuel, time,
//! memory and output.
//!
//! # A tool of a bundle
//!
//! ```no_run
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! use toolward::{Host, PublicKey, Request, TrustStore};
//!
//! let key = PublicKey::from_pem(&std::fs::read_to_string("example.pub.pem")?)?;
//! let bundle = toolward::open("text-stats.toolbundle", &TrustStore::for_key(key))?;
//! let host = Host::builder().bundle(bundle).build()?;
//! let reply = host.call(Request::new("text.stats", r#"{"text": "Hello"}"#)).await;
//! println!("{}", reply.envelope());
//! # Ok(())
//! # }
//! ```
//!
//! # What the operator installed
//!
//! With the feature `installed` (on by default), a `LiveHost` has the tools that `toolward install`
//! put on this machine, under the operator's trust and policy. It follows later installations,
//! removals and revocations:
//!
//! ```no_run
//! # #[cfg(feature = "installed")]
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! use toolward::{LiveHost, Operator, Request};
//!
//! let host = LiveHost::start(Operator::of_process(), |builder| builder)?;
//! let reply = host.call(Request::new("text.stats", r#"{"text": "Hello"}"#)).await;
//! println!("{}", reply.envelope());
//! # Ok(())
//! # }
//! ```
//!
//! # Grants
//!
//! A tool gets the grants of the [`Policy`], and the resources that the builder is given: secrets,
//! buckets, the network, a person to ask.
//!
//! ```
//! # #[cfg(not(all(feature = "http", feature = "keyvalue")))]
//! # fn main() {}
//! # #[cfg(all(feature = "http", feature = "keyvalue"))]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use toolward::{Host, Policy, secrets, state};
//!
//! let policy = Policy::from_toml(
//!     r#"
//!     [[grant]]
//!     publisher = "acme"
//!     requires = ["database:counters"]
//!     "#,
//! )?;
//! let variables = |name: &str| std::env::var(name).ok();
//! let host = Host::builder()
//!     .secrets(secrets::Sources::new(&policy, "/".as_ref(), variables))
//!     .buckets(state::Store::in_memory()?)
//!     .transport(toolward::egress::TransportSettings::default().build())
//!     .policy(policy)
//!     .build()?;
//! assert_eq!(host.tools().count(), 0);
//! # Ok(())
//! # }
//! ```
//!
//! # What an application may bring
//!
//! The documentation of each type below has an example. It imports from the underlying crate, but
//! the names are the same in this crate.
//!
//! | to | give |
//! |---|---|
//! | ask a person before a call changes something | an [`Approver`] to the builder or the request |
//! | follow progress and log records of a call | an [`Observer`] to the request |
//! | hear of each call that ended | a [`CallListener`] to the builder |
//! | record calls in a ledger | a [`ledger::Recorder`] to the builder: `ledger::Writer`, with the feature `ledger` |
//! | keep secrets in your own store | a [`secrets::SecretStore`] to the builder |
//! | keep buckets in your own store | [`state::Buckets`] to the builder |
//! | answer the questions of tools | [`Answerable`] to the request; see [`Asked`] |
//! | compile in limited processes | a [`Broker`] to the builder |
//! | compile in another way | a [`Compiler`] to the builder |
//! | replace the host while calls run | a [`SharedState`] to the builders |
//!
//! # Features
//!
//! | feature | what it brings |
//! |---|---|
//! | `http` (default) | the module `egress`: requests of tools leave the host |
//! | `installed` (default) | `LiveHost`, `Operator`, the module `operator`; it brings `http` and `keyvalue` |
//! | `keyvalue` (default) | `state::Store`: buckets of tools, stored in SQLite |
//! | `ledger` (default) | `ledger::Writer` and `ledger::Reader`: records of calls, stored in SQLite |
//! | `mcp` | the module `mcp`: serves a host's tools to clients of the Model Context Protocol |
//! | `programs` | the module `programs`: native programs run outside the sandbox, if the policy has an `[[exec]]` for them |
//! | `records` | `Recorder`, `call_records`, `tool_records`, the module `records`: tools and calls as records of Agent Tool |
//!
//! Without `http`, a call of a tool that was granted network access is refused with `unauthorised`.
//! Without `keyvalue`, a tool can't open a granted bucket.
//!
//! # The crates behind it
//!
//! The only logic in this crate is [`open`]. Each part is a separate crate, and a module here. If a
//! type in a function's signature is not in this crate's root, it is in [`bundle`], [`contract`],
//! [`egress`], [`host`], [`ledger`], [`policy`], [`signing`] or [`state`].

mod open;

pub use open::{OpenError, open, open_with};

// Verified content, and the trust for verifying it.
pub use toolward_bundle::content::{Content, ContentError};
pub use toolward_bundle::text;
pub use toolward_signing::Refusal;
pub use toolward_signing::key::PublicKey;
pub use toolward_signing::revocation::Revocations;
pub use toolward_signing::trust::TrustStore;
pub use toolward_signing::verify::{Mode, VerifyOptions};

// The host, and the arguments of its builder.
pub use toolward_host::compile::broker;
pub use toolward_host::{
    Broker, BrokerCommand, Cache, CompileError, CompileReason, Compiler, EngineProfile, Host,
    HostBuilder, HostError, InProcess, Limits, SharedState, confine, memory, secrets,
};
pub use toolward_policy::{Decision, Policy, PolicyError};

// A call: its arguments, its reports while it runs, and its result.
pub use toolward_host::{
    Answer, Answerable, ApprovalRequest, ApprovalScope, Approver, Ask, Asked, CallError, CallFacts,
    CallListener, CallStage, Cancellation, Chained, Compiling, DriverFacts, ErrorClass, ErrorCode,
    LOCAL, LogLevel, LogRecord, Native, NativeId, Observer, Origin, Output, Progress, Question,
    Remembered, Reply, Request, Resume, SharedCancellation, ShownRequest, ToolFacts, TraceParent,
    Verdict, Violation,
};

// The crates, with every type in a signature of the items above.
pub use toolward_bundle as bundle;
pub use toolward_contract as contract;
#[cfg(feature = "http")]
pub use toolward_egress as egress;
pub use toolward_host as host;
pub use toolward_ledger as ledger;
pub use toolward_policy as policy;
pub use toolward_signing as signing;
pub use toolward_state as state;

#[cfg(feature = "records")]
pub use toolward_adapters::records::{
    self, Described, EndedCall, NativeCall, Recorder, amplifier_result, call_records, tool_records,
};
#[cfg(feature = "mcp")]
pub use toolward_mcp as mcp;
#[cfg(feature = "installed")]
pub use toolward_operator::{self as operator, Environment, LiveHost, Operator, Report};
#[cfg(feature = "programs")]
pub use toolward_programs as programs;
