//! From an authoring directory to a signed bundle: `bundle.toml`, `pack`,
//! `sign`. Decides nothing about trust: that is the reader's side.

pub mod bundle_toml;
mod error;
pub(crate) mod output;
mod pack;
mod provenance;
mod sign;

pub use bundle_toml::{BuildEntry, BundleToml};
pub use error::AuthorError;
pub use pack::{PackOptions, Packed, pack, read_bundle_toml};
pub use provenance::provenance;
pub use sign::Sealed;

/// The name of the machine index in a bundle.
pub const TOOLS_JSON: &str = toolward_signing::manifest::TOOLS_FILE;

/// The ending of an archive's name.
pub const ARCHIVE_EXTENSION: &str = "toolbundle";
