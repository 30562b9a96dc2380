//! Files: what a guest sees of the workspaces it was granted.
//!
//! Implements `wasi:filesystem` in place of wasmtime-wasi. Each path is resolved as
//! text ([`path`]), compared with the grant ([`rules`], [`plan`]), and opened beneath
//! the workspace's directory and through no link ([`resolve_beneath`]). Only files and
//! directories exist: no links, devices, FIFOs or sockets. A descriptor of a directory
//! is a path and not an inode: access is decided by the path at each step, so that
//! renaming a directory does not move a grant with it.

mod counters;
mod descriptors;
mod errors;
mod file;
mod listing;
mod metadata;
mod path;
mod plan;
mod resolve_beneath;
mod resolved_path;
mod rules;
mod shared;
mod streams;
#[cfg(test)]
mod tests;
mod threads;

use std::sync::{Arc, OnceLock};

use wasmtime::component::{HasData, Linker, ResourceTable};
use wasmtime_wasi::p2::bindings::filesystem::{preopens, types};

pub(crate) use counters::{FileCounters, FileLimits};
pub(crate) use plan::{Plan, PlanError};
pub(crate) use resolve_beneath::Root;

pub(crate) use shared::{FILE_STREAM, LISTING, OPEN_FILE};

use shared::Shared;

use super::{Exceeded, held};
use crate::api::violations::Violations;

/// What one attempt may do with files. The default: nothing, there are none.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ctx(Option<Arc<Shared>>);

impl Ctx {
    /// For one attempt of a call; its attempts share counters and violations.
    pub(crate) fn new(
        plan: &Arc<Plan>,
        limits: FileLimits,
        counters: Arc<FileCounters>,
        violations: Violations,
        held: held::Shared,
    ) -> Self {
        Self(Some(Arc::new(Shared {
            plan: plan.clone(),
            limits,
            counters,
            violations,
            exceeded: OnceLock::new(),
            held,
        })))
    }

    /// The limit that something written by this attempt came to and was dropped
    /// for, if any: what the guest returns is not what it has done.
    pub(crate) fn exceeded(&self) -> Option<Exceeded> {
        self.0.as_ref()?.exceeded.get().copied()
    }
}

/// The files of a store, borrowed for one call of the host.
pub(crate) struct View<'a> {
    /// What may be done.
    pub(crate) ctx: &'a mut Ctx,
    /// Where the guest's descriptors are.
    pub(crate) table: &'a mut ResourceTable,
}

struct Files;

impl HasData for Files {
    type Data<'a> = View<'a>;
}

/// Puts the view in the place of what `linker` has for `wasi:filesystem`.
pub(crate) fn add_to_linker<T: Send + 'static>(
    linker: &mut Linker<T>,
    view: fn(&mut T) -> View<'_>,
) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    preopens::add_to_linker::<T, Files>(linker, view)?;
    types::add_to_linker::<T, Files>(linker, view)?;
    linker.allow_shadowing(false);
    Ok(())
}
