//! Installed bundles on disk, and the state behind trust: the installed bundles and their
//! publishers, the highest sequence of each bundle, the versions of the documents of publishers and
//! channels, and every decision.
//!
//! * [`Store`]: install, update, remove, load, verify, collect garbage;
//! * [`InstallOutcome`]: the result of an installation. An update is held if its surface (what a
//!   model or a policy sees of the bundle) differs;
//! * [`rollback`]: numbers that may not fall;
//! * [`audit_log`]: the recorded decisions;
//! * [`search`]: the installed tools that match a query.
//!
//! Files on disk are not trusted: each time a bundle is loaded, the caller's function ([`Verify`])
//! verifies the bytes that were read. This crate reads no clock and no environment, and prints
//! nothing.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod audit_log;
mod decide;
mod error;
mod install;
mod load;
mod model;
mod objects;
pub mod rollback;
pub mod search;
mod state;
mod store;

pub use error::Error;
pub use install::{InstallOptions, InstallOutcome};
pub use load::{LoadedBundle, Verify, VerifyObject, VerifyResult};
pub use model::{Acceptance, HeldUpdate, InstalledBundle, StoredRelease};
pub use search::InstalledTool;
pub use store::Store;
