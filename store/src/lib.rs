//! Installed bundles on disk, and the state that trust rests on: what was installed from whom, the highest
//! sequence of each bundle, the versions of the documents of publishers and channels, and every decision.
//!
//! * [`Store`]: install, update, remove, load, verify, collect garbage;
//! * [`InstallOutcome`]: what an installation came to: an update with another surface is held;
//! * [`rollback`]: what may not go back;
//! * [`audit_log`]: the decisions that were made;
//! * [`search`]: tools for a query.
//!
//! Nothing on disk is trusted for being there: a bundle is verified again from the bytes read, each time, by
//! the function that the caller gives ([`Verify`]). No clock and no environment is read, and nothing printed.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod accept;
mod arrivals;
pub mod audit_log;
mod decide;
mod error;
mod garbage;
mod install;
mod load;
mod lock;
mod model;
mod object;
mod renew;
pub mod rollback;
mod schema;
pub mod search;
mod state;
mod store;
mod times;
mod tools;

pub use error::Error;
pub use garbage::Collected;
pub use install::{InstallOptions, InstallOutcome};
pub use load::{Checked, Loaded, Verify};
pub use model::{Acceptance, Held, Installed};
pub use store::Store;
pub use tools::InstalledTool;
