//! Reads Toolward bundles, without a WebAssembly runtime.
//!
//! * [`content`]: contracts, drivers and components from verified bytes;
//! * [`component`]: the imports and exports of a component;
//! * [`libraries`]: the actions of other bundles;
//! * [`surface`]: the parts of a bundle that a model or a policy sees, and how they differ between
//!   two releases;
//! * [`shown`]: prompts and resources;
//! * [`inspect`]: a bundle as plain values to show;
//! * [`dev`], [`files`]: an unsigned working directory;
//! * [`rules`], [`index`], [`codes`]: the rules of a host, as diagnostics;
//! * [`parallel`]: work on many bundles at once;
//! * [`text`]: untrusted text that is safe to show, and hints for unknown tool names.
//!
//! `toolward-signing` decides who may publish what, and verifies the bytes; `toolward-contract`
//! parses the documents; `toolward-author` makes bundles.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod arguments;
pub mod codes;
pub mod component;
pub mod content;
mod declared;
pub mod dev;
pub mod documents;
mod error;
pub mod files;
pub mod index;
pub mod inspect;
pub mod libraries;
pub mod locate;
pub mod parallel;
pub mod rules;
pub mod shown;
pub mod surface;
pub mod text;

pub use component::Component;
pub use component::Surface;
pub use content::{Content, ContentOrigin, DriverEntry, ToolEntry};
pub use error::{ContentError, ReadError};
pub use shown::ResourceEntry;
