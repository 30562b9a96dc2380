//! Makes Toolward bundles: everything that an author needs and a serving host must not link.
//!
//! * [`scaffold`]: a new bundle;
//! * [`check`]: diagnostics about a directory or a file;
//! * [`against`]: how a release breaks promises of the earlier one;
//! * [`build`]: the components, built with the tools of their languages;
//! * [`pack`]: `tools.json` and the manifest;
//! * [`Sealed`]: signatures, and the bundle as a directory or an archive;
//! * [`provenance()`]: the sources from which the components were built;
//! * [`keys`]: the files of a key pair;
//! * [`documents`]: the documents that a publisher signs in addition to its bundles.
//!
//! This crate makes no decisions about trust. The code that reads bundles decides, in
//! `toolward-signing` and `toolward-bundle`.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod against;
pub mod build;
pub mod check;
pub mod documents;
mod error;
pub mod keys;
mod lints;
mod output;
mod pack;
pub mod scaffold;
mod sign;
mod stale;

pub use error::AuthorError;
pub use output::directory as create_directory;
pub use pack::{compilers, current, pack, provenance};
pub use sign::Sealed;
pub use toolward_bundle::ReadError;
pub use toolward_bundle::dev::{BuildKind, BundleToml, PackOptions, PackedBundle, World};

/// The ending of an archive's name.
pub const ARCHIVE_EXTENSION: &str = "toolbundle";
