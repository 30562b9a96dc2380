//! Runs other people's agent tools safely, in your own application: signed bundles
//! of WebAssembly components, verified, each call in a sandbox of its own with limits
//! on fuel, time, memory and output.
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
//! With the feature `installed` (on by default) a `LiveHost` has the tools that
//! `toolward install` put on this machine, under the operator's trust and policy, and
//! follows what is installed, removed and revoked:
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
//! A tool gets what the [`Policy`] grants, and what the builder is given for it: secrets,
//! buckets, the network, a person to ask.
//!
//! ```
//! use toolward::{Host, Policy, keyvalue, secrets};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
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
//!     .buckets(keyvalue::Store::in_memory()?)
//!     .transport(toolward::egress::Transport::builder().build())
//!     .policy(policy)
//!     .build()?;
//! assert_eq!(host.tools().count(), 0);
//! # Ok(())
//! # }
//! ```
//!
//! # Approval
//!
//! An [`Approver`] puts the question of the policy to a person. Show all of the
//! [`ApprovalRequest`]; its texts are untrusted, so escape them with [`text::visible`].
//!
//! ```
//! use std::pin::Pin;
//! use toolward::{ApprovalRequest, Approver, Host, Verdict};
//!
//! /// Denies what can't be undone, and approves the rest.
//! struct Careful;
//!
//! impl Approver for Careful {
//!     fn ask<'a>(
//!         &'a self,
//!         request: &'a ApprovalRequest,
//!     ) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>> {
//!         Box::pin(async move {
//!             match request.risk {
//!                 3 => Verdict::Denied(Some("it can't be undone".to_owned())),
//!                 _ => Verdict::Approved,
//!             }
//!         })
//!     }
//! }
//!
//! # fn main() -> Result<(), toolward::HostError> {
//! let host = Host::builder().approver(Careful).build()?;
//! # Ok(())
//! # }
//! ```
//!
//! # Progress and log
//!
//! An [`Observer`] hears what a driver reports during a call. It is called on the thread
//! that runs the guest: return quickly.
//!
//! ```
//! use std::sync::Arc;
//! use toolward::{LogRecord, Observer, Progress, Request, text};
//!
//! struct Printed;
//!
//! impl Observer for Printed {
//!     fn progress(&self, progress: &Progress) {
//!         println!("{} of {:?}", progress.done, progress.total);
//!     }
//!
//!     fn log(&self, record: &LogRecord) {
//!         println!("{}", text::visible(&record.message, 1000));
//!     }
//! }
//!
//! let request = Request::new("text.stats", r#"{"text": "Hello"}"#).observer(Arc::new(Printed));
//! ```
//!
//! # Secrets
//!
//! A [`secrets::SecretStore`] holds the values that the policy grants. The host
//! puts them into outgoing requests; a tool sees one only where the policy says so.
//!
//! ```
//! use std::collections::HashMap;
//! use std::sync::Mutex;
//! use toolward::Host;
//! use toolward::secrets::{SecretError, SecretStore, SecretValue};
//!
//! /// Keeps secrets of each publisher and principal in memory.
//! #[derive(Default)]
//! struct InMemory(Mutex<HashMap<[String; 3], SecretValue>>);
//!
//! impl SecretStore for InMemory {
//!     fn get(
//!         &self,
//!         publisher: &str,
//!         principal: &str,
//!         slug: &str,
//!     ) -> Result<Option<SecretValue>, SecretError> {
//!         let all = self.0.lock().map_err(|error| SecretError(error.to_string()))?;
//!         Ok(all.get(&[publisher, principal, slug].map(str::to_owned)).cloned())
//!     }
//!
//!     fn put(
//!         &self,
//!         publisher: &str,
//!         principal: &str,
//!         slug: &str,
//!         value: SecretValue,
//!     ) -> Result<(), SecretError> {
//!         let mut all = self.0.lock().map_err(|error| SecretError(error.to_string()))?;
//!         all.insert([publisher, principal, slug].map(str::to_owned), value);
//!         Ok(())
//!     }
//! }
//!
//! # fn main() -> Result<(), toolward::HostError> {
//! let host = Host::builder().secrets(InMemory::default()).build()?;
//! # Ok(())
//! # }
//! ```
//!
//! # Questions of a tool
//!
//! A tool with the grant may ask. Such a call ends with [`Reply::asked`]; make it again
//! with the answers:
//!
//! ```
//! use toolward::{Answer, Answerable, Host, Reply, Request, Resume};
//!
//! async fn call(host: &Host) -> Reply {
//!     let forms = Answerable { form: true, ..Answerable::default() };
//!     let request = Request::new("notes.ask", "{}").answerable(forms);
//!     let mut reply = host.call(request.clone()).await;
//!     while let Some(asked) = reply.asked.take() {
//!         let declined = |key: &String| (key.clone(), Answer::Declined);
//!         let answers = asked.questions.iter().map(|one| declined(&one.key)).collect();
//!         let resume = Resume { asked: *asked, answers };
//!         reply = host.call(request.clone().resume(resume)).await;
//!     }
//!     reply
//! }
//! ```
//!
//! # Compiling apart
//!
//! Compiling a component is work on hostile input. A [`Broker`] does it in limited
//! processes, which are this program, started with other arguments:
//!
//! ```no_run
//! use toolward::{Broker, BrokerCommand, Host, broker};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! match std::env::args().nth(1).as_deref() {
//!     Some("broker") => return Ok(broker::run_broker()?),
//!     Some("worker") => return Ok(broker::run_worker()?),
//!     _ => {}
//! }
//! let broker = Broker::builder(BrokerCommand {
//!     program: std::env::current_exe()?,
//!     broker: vec!["broker".into()],
//!     worker: vec!["worker".into()],
//! });
//! let host = Host::builder().broker(broker.start()?).build()?;
//! # Ok(())
//! # }
//! ```
//!
//! A [`Compiler`] of your own compiles elsewhere, with an engine of the same
//! [`EngineProfile`]:
//!
//! ```
//! use toolward::{CompileError, CompileReason, Compiler, EngineProfile, Host, InProcess};
//!
//! /// Refuses large components.
//! #[derive(Debug)]
//! struct Small;
//!
//! impl Compiler for Small {
//!     fn compile(&self, wasm: &[u8], profile: &EngineProfile) -> Result<Vec<u8>, CompileError> {
//!         if wasm.len() > 8 << 20 {
//!             let message = "a component of more than 8 MiB";
//!             return Err(CompileError::new(CompileReason::TooLarge, message));
//!         }
//!         InProcess.compile(wasm, profile)
//!     }
//! }
//!
//! # fn main() -> Result<(), toolward::HostError> {
//! let host = Host::builder().compiler(Small).build()?;
//! # Ok(())
//! # }
//! ```
//!
//! # Features
//!
//! | feature | what it brings |
//! |---|---|
//! | `installed` (default) | `LiveHost`, `Operator`, the module `operator` |
//! | `mcp` | the module `mcp`: serves a host's tools to clients of the Model Context Protocol |
//!
//! # The crates behind it
//!
//! This crate holds no logic but [`open`]. Each part is a crate of its own, whose
//! documentation has the rest.

mod open;

pub use open::{OpenError, open, open_with};

// What is verified, and against what.
pub use toolward_bundle::content::{Content, ContentError};
pub use toolward_bundle::text;
pub use toolward_signing::Refusal;
pub use toolward_signing::key::PublicKey;
pub use toolward_signing::trust::TrustStore;
pub use toolward_signing::verify::VerifyOptions;

// The host, and what its builder takes.
pub use toolward_egress as egress;
pub use toolward_host::compile::broker;
pub use toolward_host::{
    Broker, BrokerCommand, Cache, CompileError, CompileReason, Compiler, EngineProfile, Host,
    HostBuilder, HostError, InProcess, Limits, SharedState, confine, memory, secrets,
};
pub use toolward_keyvalue as keyvalue;
pub use toolward_policy::{Decision, Policy, PolicyError};

// A call: what it takes, what it tells on the way, and what it returns.
pub use toolward_host::{
    Answer, Answerable, ApprovalRequest, Approver, Ask, Asked, CallError, CallListener, CallStage,
    Canceled, Chained, Compiling, DriverInfo, ErrorClass, ErrorCode, FinishedCall, LOCAL, LogLevel,
    LogRecord, Metadata, Observer, Origin, Output, Progress, Question, Reply, Request, Resume,
    ToolInfo, Verdict, Violation,
};

#[cfg(feature = "mcp")]
pub use toolward_mcp as mcp;
#[cfg(feature = "installed")]
pub use toolward_operator::{self as operator, Environment, LiveHost, Operator, Report};
