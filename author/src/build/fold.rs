//! Makes the core modules of a component one, where a language's tools link many.
//!
//! An instance of the component is made in each call, and what one core module imports from
//! another is looked up each time: Python's libraries import thousands of functions. Afterwards
//! there are three: the merged one, and two small ones that give it functions from outside
//! ([`trampolines`]). Modules with a start function stay by themselves, too.
//!
//! A component that has something unusual is left as it is.

mod core;
mod emit;
mod link;
mod merge;
mod read;
#[cfg(test)]
mod tests;
mod trampolines;

use toolward_bundle::component::{MAX_INSTANCE_BYTES, Surface, SurfaceError, validate};

/// The fewest modules that are merged: three come out.
const FEWEST: usize = 4;

/// The most tables of a component that gets one more. The host takes 16.
const MAX_TABLES: u32 = 8;

/// Why a component is left as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Kept(String);

impl Kept {
    fn because(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

impl<E: std::fmt::Display> From<wasm_encoder::reencode::Error<E>> for Kept {
    fn from(error: wasm_encoder::reencode::Error<E>) -> Self {
        Self(error.to_string())
    }
}

impl From<wasmparser::BinaryReaderError> for Kept {
    fn from(error: wasmparser::BinaryReaderError) -> Self {
        Self(error.to_string())
    }
}

impl From<SurfaceError> for Kept {
    fn from(error: SurfaceError) -> Self {
        Self(error.to_string())
    }
}

impl std::fmt::Display for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// A component that does the same as this one, with fewer core modules.
pub(super) fn component(bytes: &[u8]) -> Result<Vec<u8>, Kept> {
    // What follows counts on the limits for depth, modules and instances, and on indices that
    // point backwards.
    bounded(bytes)?;
    read::no_outer_modules(bytes)?;
    let folded = level(bytes)?;
    bounded(&folded)?;
    if read::tables(&folded)? > MAX_TABLES {
        return Err(Kept::because("it has many tables"));
    }
    Ok(folded)
}

/// Refuses what the host would not take.
fn bounded(bytes: &[u8]) -> Result<(), Kept> {
    let surface = Surface::read(bytes)?;
    if surface.instance_bytes > MAX_INSTANCE_BYTES {
        return Err(Kept::because("its instances take much memory"));
    }
    Ok(validate(bytes)?)
}

/// One component, and those inside it.
fn level(bytes: &[u8]) -> Result<Vec<u8>, Kept> {
    let mut items = read::items(bytes)?;
    let mut inner = false;
    for item in &mut items {
        if let read::Item::Component(nested) = item
            && let Ok(folded) = level(nested)
        {
            *nested = folded.into();
            inner = true;
        }
    }
    match own(&items) {
        Err(_) if inner => emit::unchanged(&items),
        folded => folded,
    }
}

/// The modules of a component itself.
fn own(items: &[read::Item<'_>]) -> Result<Vec<u8>, Kept> {
    let spaces = link::Spaces::of(items)?;
    let group = link::Group::of(&spaces)?;
    emit::folded(items, &spaces, &group)
}
