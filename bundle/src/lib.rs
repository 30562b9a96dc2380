//! Reads Toolward bundles, without a WebAssembly runtime.
//!
//! * [`content`]: from verified bytes to contracts, drivers and components;
//! * [`component`]: the imports and exports of a component;
//! * [`libraries`]: where actions are found;
//! * [`surface`]: what a model or a policy sees of a bundle, and how two releases differ in it;
//! * [`shown`]: prompts and resources;
//! * [`inspect`]: a bundle as plain values to show;
//! * [`dev`], [`files`]: a directory under work;
//! * [`rules`], [`index`], [`codes`]: what a host refuses, as diagnostics;
//! * [`parallel`]: work on many bundles at once;
//! * [`text`]: other people's text, made safe to show;
//! * [`tool_names`]: what to write instead of the name of a tool that is not there.
//!
//! `toolward-signing` decides who may publish what, and whether the bytes are
//! the signed ones; `toolward-contract` decides what the documents mean;
//! `toolward-author` makes bundles.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod arguments;
pub mod codes;
pub mod component;
pub mod content;
mod declared;
pub mod dev;
pub mod documents;
mod duplicates;
mod error;
pub mod files;
pub mod index;
pub mod inspect;
pub mod libraries;
pub mod locate;
mod media;
pub mod parallel;
pub mod rules;
pub mod shown;
mod sizes;
pub mod surface;
pub mod text;
pub mod tool_names;

pub use component::Component;
pub use component::Surface;
pub use content::{Content, ContentOrigin, DriverEntry, ToolEntry};
pub use error::{ContentError, ReadError};
pub use shown::{PromptEntry, ResourceEntry};
