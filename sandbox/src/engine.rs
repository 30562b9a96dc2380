//! The engine's settings: the WebAssembly features for guests, the pooling of instances, and the
//! interruption of running guests.

use std::hash::{Hash, Hasher};
use std::num::NonZeroUsize;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use toolward_bundle::component::{MAX_CORE_INSTANCES, MAX_INSTANCE_BYTES};
use toolward_policy::Limits;
use wasmtime::component::Linker;
use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, ModuleVersionStrategy,
    PoolingAllocationConfig,
};
use wasmtime_wasi::p2::bindings::random::insecure_seed;

use crate::error::HostError;
use crate::limiter::{MEMORIES, MemoryLayout, TABLES};
use crate::state::{InsecureSeed, State};
use crate::{files, http, imports, sockets};

/// Fuel between two yields, which is well below a millisecond of work. At this interval, yields
/// have no measurable cost.
pub(crate) const YIELD_INTERVAL: u64 = 1_000_000;

/// The most bytes of dirty memory that a slot of the pool clears itself, instead of returning the
/// pages to the kernel. A small driver dirties less.
const KEEP_RESIDENT: usize = 512 << 10;

/// Bytes of call stack that a guest may use.
const STACK_BYTES: usize = toolward_policy::own::STACK_BYTES as usize;

/// The most unused slots that stay warm: they keep memory so that the next call starts faster.
/// Together with [`KEEP_RESIDENT`], this bounds that memory in an idle host.
const WARM_SLOTS: u32 = 32;

/// Bytes of address space by which a [compact](MemoryLayout::Compact) memory may grow before it
/// moves.
const COMPACT_GROWTH: u64 = 1 << 20;

/// Bytes of inaccessible address space around a compact memory.
const COMPACT_GUARD: u64 = 64 << 10;

/// The version that is added to the engine's hash, since wasmtime's own hash distinguishes only
/// major versions of wasmtime.
const BUILD: &str = concat!("toolward-", env!("CARGO_PKG_VERSION"));

/// The settings that decide how components are compiled and run. On one machine, processes of the
/// same build with equal profiles make and accept the same artifacts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineProfile {
    /// The number of slots of the pool: one for each call that runs, or that is parked (waits for a
    /// nested call).
    slots: u32,
    /// The largest memory that any call may have, in bytes.
    max_memory: usize,
    /// The most elements that any table may have.
    max_table: usize,
    layout: MemoryLayout,
}

impl EngineProfile {
    /// The profile of a host with these limits.
    pub fn for_limits(limits: &Limits) -> Self {
        Self {
            // Twice as many, since an equal number of calls may be parked with their instances.
            slots: limits.concurrency.max(1).saturating_mul(2),
            max_memory: usize::try_from(limits.memory_bytes.maximum).unwrap_or(usize::MAX),
            max_table: usize::try_from(limits.table_elements).unwrap_or(usize::MAX),
            layout: MemoryLayout::Pooled,
        }
    }

    /// Whether the two profiles are for the same limits. Their memory layouts may differ.
    pub fn has_limits_of(&self, other: &Self) -> bool {
        let layout = other.layout;
        Self {
            layout,
            ..self.clone()
        } == *other
    }

    pub(crate) fn layout(&self) -> MemoryLayout {
        self.layout
    }

    /// An engine with this profile.
    ///
    /// # Errors
    ///
    /// If the machine can't provide the resources of the profile, mainly address space for the
    /// pool.
    pub fn engine(&self) -> Result<Engine, HostError> {
        Engine::new(&self.config()).map_err(|source| HostError::Engine(source.into()))
    }

    /// An engine with this profile, with its linker. If the pool can't be created, usually for lack
    /// of address space, the memories are compact.
    ///
    /// # Errors
    /// If no engine with compact memories can be created either.
    pub fn ready(&self) -> Result<Arc<Ready>, HostError> {
        let (profile, engine) = match self.engine() {
            Ok(engine) => (self.clone(), engine),
            Err(error) => {
                let compact = Self {
                    layout: MemoryLayout::Compact,
                    ..self.clone()
                };
                let engine = compact.engine()?;
                tracing::warn!(
                    %error,
                    "too little address space for a pool of memories: calls are slower; \
                     `ulimit -v unlimited` lifts the limit"
                );
                (compact, engine)
            }
        };
        let linker = linker(&engine).map_err(|error| HostError::Engine(error.into()))?;
        Ok(Arc::new(Ready {
            profile,
            engine_hash: EngineHash::of(&engine),
            engine,
            linker,
        }))
    }

    fn config(&self) -> Config {
        let mut config = code_config(self.layout);
        if self.layout == MemoryLayout::Compact {
            return config;
        }
        let mut pool = PoolingAllocationConfig::new();
        let instance_bytes = usize::try_from(MAX_INSTANCE_BYTES).unwrap_or(usize::MAX);
        pool.total_component_instances(self.slots)
            // Room for the maximum of each slot, so that a driver with many instances does not
            // starve others. The pool only counts instances; an instance takes memory when it is
            // created.
            .total_core_instances(self.slots.saturating_mul(MAX_CORE_INSTANCES))
            .total_memories(self.slots.saturating_mul(MEMORIES))
            .total_tables(self.slots.saturating_mul(TABLES))
            .total_stacks(self.slots)
            .max_component_instance_size(instance_bytes)
            .max_core_instance_size(instance_bytes)
            .max_core_instances_per_component(MAX_CORE_INSTANCES)
            .max_memories_per_component(MEMORIES)
            .max_tables_per_component(TABLES)
            .max_memories_per_module(MEMORIES)
            .max_tables_per_module(TABLES)
            .max_memory_size(self.max_memory)
            .table_elements(self.max_table)
            .max_unused_warm_slots(WARM_SLOTS)
            .linear_memory_keep_resident(KEEP_RESIDENT)
            .table_keep_resident(64 << 10)
            .async_stack_keep_resident(64 << 10)
            .pagemap_scan(Enabled::Auto);
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
        config
    }
}

/// An engine, with its linker.
pub struct Ready {
    /// The profile that the engine was made for.
    pub profile: EngineProfile,
    pub(crate) engine: Engine,
    pub(crate) engine_hash: EngineHash,
    pub(crate) linker: Linker<State>,
}

toolward_support::opaque!(Ready);

/// A linker with WASI 0.2 and the imports of all versions of the driver world. Built once per
/// engine.
fn linker(engine: &Engine) -> wasmtime::Result<Linker<State>> {
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    files::add_to_linker(&mut linker, State::files)?;
    imports::add_to_linker(&mut linker, State::answered)?;
    sockets::add_to_linker(&mut linker)?;
    // Replaces the seed of wasmtime-wasi with the host's own.
    linker.allow_shadowing(true);
    insecure_seed::add_to_linker::<_, InsecureSeed>(&mut linker, |state| {
        &mut state.import().insecure_seed
    })?;
    linker.allow_shadowing(false);
    http::view::add_to_linker(&mut linker, State::http)?;
    Ok(linker)
}

/// Whether the kernel can list the written pages of a memory (`PAGEMAP_SCAN`), so that only these
/// are reset between calls. Call this before the process confines itself, unless a broker was
/// opened: the first call opens a file, which a confined process can't do.
pub fn finds_written_pages() -> bool {
    PoolingAllocationConfig::is_pagemap_scan_available()
}

/// An engine that compiles for every profile with this layout: no other part of a profile changes
/// the code. It has no pool, and so needs no address space for one.
pub(crate) fn compiling_engine(layout: MemoryLayout) -> wasmtime::Result<Engine> {
    Engine::new(&code_config(layout))
}

/// The settings that code depends on.
fn code_config(layout: MemoryLayout) -> Config {
    let mut config = Config::new();
    if layout == MemoryLayout::Compact {
        config
            .memory_reservation(0)
            .memory_reservation_for_growth(COMPACT_GROWTH)
            .memory_guard_size(COMPACT_GUARD)
            .memory_may_move(true);
    }
    // Each WebAssembly proposal that no driver needs is attack surface. Threads, garbage
    // collection, exceptions and async components are not compiled in.
    config
        .shared_memory(false)
        .wasm_memory64(false)
        .wasm_tail_call(false)
        .wasm_relaxed_simd(false)
        .wasm_wide_arithmetic(false);
    config
        .consume_fuel(true)
        .max_wasm_stack(STACK_BYTES)
        .async_stack_size(1 << 20)
        .native_unwind_info(false)
        .wasm_backtrace_max_frames(NonZeroUsize::new(8));
    // The strategy only fails for strings over 255 bytes.
    let _ = config.module_version(ModuleVersionStrategy::Custom(BUILD.to_owned()));
    config
}

/// A hash of everything that compiled code depends on, except the component: compiler version,
/// target, CPU features, settings and the version of this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EngineHash([u8; 32]);

impl EngineHash {
    pub(crate) fn of(engine: &Engine) -> Self {
        struct Blake3(blake3::Hasher);
        impl Hasher for Blake3 {
            fn write(&mut self, bytes: &[u8]) {
                self.0.update(bytes);
            }
            fn finish(&self) -> u64 {
                0
            }
        }
        let mut hasher = Blake3(blake3::Hasher::new());
        engine.precompile_compatibility_hash().hash(&mut hasher);
        env!("CARGO_PKG_VERSION").hash(&mut hasher);
        Self(*hasher.0.finalize().as_bytes())
    }

    #[cfg(test)]
    pub(crate) fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub(crate) fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The first 32 hexadecimal digits, for a file's name. The signature covers the whole hash.
    pub(crate) fn short(&self) -> String {
        let mut hex = blake3::Hash::from_bytes(self.0).to_hex().to_string();
        hex.truncate(32);
        hex
    }
}
