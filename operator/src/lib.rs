//! The operator's half of Toolward: installed bundles, trust, policy, and a host that is set up
//! from them.
//!
//! A command or an application reads the operator's files through this crate, and adds its own
//! flags, output and prompts. Nothing here prints: warnings and progress go to a [`Report`].
//! Environment variables are read only by [`Environment::of_process`] and
//! [`directory_of_variable`], and through [`Environment::variable`].

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod bundles;
pub mod client_file;
pub mod config;
pub mod demo;
pub mod doctor;
mod environment;
mod error;
pub mod examples;
pub mod file;
pub mod granted;
pub mod host_setup;
pub mod installed;
pub mod lasting_changes;
pub mod ledger;
mod live_host;
pub mod network;
mod operator;
pub mod policy_review;
pub mod processes;
#[cfg(feature = "programs")]
pub mod programs;
pub mod recorder;
pub mod registries;
pub mod releases;
pub mod reload;
pub mod replay;
mod runtime;
pub mod settings;

pub mod trust;

pub use environment::{Environment, Progress, Report, Silent, directory_of_variable, unix_seconds};
pub use error::{Code, Error, Kind, content_error};
pub(crate) use error::{Result, joined};
pub use live_host::LiveHost;
pub use operator::Operator;
pub use runtime::{RUNTIME_THREAD, runtime, runtime_with};

// Crates whose types occur in this crate's signatures, and that an application does not use
// otherwise.
pub use {toolward_registry as registry, toolward_store as store};
