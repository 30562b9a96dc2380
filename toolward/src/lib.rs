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
//! With the feature `installed` (on by default) a [`LiveHost`] has the tools that
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
//! # Features
//!
//! | feature | what it brings |
//! |---|---|
//! | `installed` (default) | [`LiveHost`], [`operator`] |
//! | `mcp` | the module `mcp`: serves a host's tools to clients of the Model Context Protocol |
//!
//! # The crates behind it
//!
//! This crate holds no logic but [`open`]. Each part has a crate of its own, whose
//! documentation has the rest.

use std::path::Path;

use toolward_bundle::content::ContentError;
use toolward_signing::Refusal;
use toolward_signing::verify::{self, VerifyOptions};

pub use toolward_bundle::content::Content;
pub use toolward_host::{
    Answer, Answerable, ApprovalRequest, Approver, Broker, BrokerCommand, CallError, CallListener,
    CallStage, Compiler, ErrorClass, ErrorCode, FinishedCall, Host, HostBuilder, HostError, Limits,
    Metadata, Observer, Output, Reply, Request, SharedState, Verdict, confine, secrets,
};
pub use toolward_policy::Policy;
pub use toolward_signing::key::PublicKey;
pub use toolward_signing::trust::TrustStore;

#[cfg(feature = "mcp")]
pub use toolward_mcp as mcp;
#[cfg(feature = "installed")]
pub use toolward_operator::{self as operator, Environment, LiveHost, Operator};

/// Why a bundle can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// It was not verified: changed, signed by nobody who is trusted, expired.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// It was verified, and what is in it can't be used.
    #[error(transparent)]
    Content(#[from] ContentError),
}

impl OpenError {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Refused(refusal) => refusal.code(),
            Self::Content(error) => error.code(),
        }
    }
}

/// Verifies a bundle, a directory or an archive, and reads what is in it. The verified
/// bytes are those that are used: nothing is opened twice.
///
/// Ages are judged by this machine's clock, and nothing is known to be revoked; for
/// more use [`toolward_signing::verify`] yourself.
///
/// # Errors
///
/// [`OpenError::Refused`] where it is not verified, [`OpenError::Content`] where what
/// is in it can't be used.
pub fn open(path: impl AsRef<Path>, trust: &TrustStore) -> Result<Content, OpenError> {
    let bundle = verify::open(path.as_ref(), trust, &VerifyOptions::default())?;
    Ok(Content::from_verified(bundle)?)
}
