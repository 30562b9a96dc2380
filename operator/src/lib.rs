//! The operator's half of Toolward: what is installed, whom and what the operator
//! trusts, what they grant, and a host that is set up from it.
//!
//! A command or an application reads the operator's files through this crate; it
//! adds flags, output and prompts of its own. Nothing here prints: what a person
//! should hear of on the way goes to a [`Report`]. Only
//! [`Environment::of_process`] reads environment variables.

pub mod bundles;
pub mod compile_cache;
pub mod config;
pub mod confine;
pub mod doctor;
mod environment;
mod error;
pub mod file;
pub mod host_setup;
pub mod installed;
mod live_host;
pub mod network;
mod operator;
pub mod releases;
pub mod reload;
mod report;
mod runtime;
pub mod trust;

pub use environment::Environment;
pub use error::{Error, Kind, content_error};
pub use live_host::LiveHost;
pub use operator::Operator;
pub use report::{Progress, Report, Silent};
pub use runtime::runtime;
