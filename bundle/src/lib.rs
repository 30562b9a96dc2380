//! Authoring and reading of Toolward bundles, without a WebAssembly runtime.
//!
//! * [`author`]: `bundle.toml`, pack, sign;
//! * [`content`]: from verified bytes to contracts, drivers and components;
//! * [`component`]: the imports and exports of a component;
//! * [`check`]: diagnostics over a directory or a file;
//! * [`surface`]: what a model or a policy sees of a bundle, and how two releases differ in it;
//! * [`shown`]: prompts and resources;
//! * [`scaffold`], [`build`]: a new bundle, and its components;
//! * [`text`]: other people's text, made safe to show.
//!
//! Who may publish what, and whether the bytes are the signed ones, is decided
//! in `toolward-signing`; what the documents mean, in `toolward-contract`.

pub mod arguments;
pub mod author;
pub mod build;
pub mod check;
pub mod codes;
pub mod component;
pub mod content;
mod declared;
pub mod documents;
pub mod files;
mod index;
pub mod inspect;
mod lints;
mod locate;
mod media;
mod names;
mod rules;
pub mod scaffold;
pub mod shown;
pub mod surface;
pub mod text;

pub use author::{AuthorError, Packed};
pub use component::Component;
pub use component::Surface;
pub use content::{Content, ContentError, DriverEntry, Origin, ToolEntry};
pub use shown::{PromptEntry, ResourceEntry};
