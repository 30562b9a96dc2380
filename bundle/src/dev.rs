//! A directory under work, unsigned: its `bundle.toml`, and the files and the
//! manifest that `pack` makes of it, in memory. Writes nothing, runs nothing and
//! needs no key; `toolward-author` does the rest.

pub mod bundle_toml;
mod pack;
mod relative_path;

pub use bundle_toml::{BuildEntry, BuildKind, BundleToml, World};
pub use pack::{PackOptions, Packed, pack, read_bundle_toml};
