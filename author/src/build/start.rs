//! Runs the start of a Go program while the program is built, so that no call must run the start.
//! The memory and globals after the start become part of the program's WebAssembly module.
//! `wasmtime-wizer` takes that module apart and puts it together; the code here provides the
//! environment of the start. The environment contains nothing of this machine, so that two builds
//! give the same bytes.

mod adapter;

use futures_util::FutureExt as _;
use wasmtime::{
    Caller, Config, Engine, Extern, ExternType, Instance, Linker, Memory, Module, OptLevel, Store,
    StoreLimits, StoreLimitsBuilder, Val,
};
use wasmtime_wizer::{InstanceState, SnapshotVal, ValType, Wizer};

#[cfg(test)]
mod tests;

/// The function of WASI preview 1 that starts a reactor.
const START: &str = "_initialize";

/// The function of Toolward's library for Go that returns the address of memory for the adapter of
/// WASI preview 1.
const ADAPTER_MEMORY: &str = "toolward_adapter_memory";

const WASI: &str = "wasi_snapshot_preview1";

/// Results of WASI preview 1: success, and an unknown descriptor.
const DONE: i32 = 0;
const BADF: i32 = 8;

/// The size of the description of a descriptor.
const FDSTAT_BYTES: usize = 24;

/// The most fuel of a start. Go's own start takes a million and a half.
const MAX_FUEL: u64 = 1_000_000_000;

/// The most memory of a start, in bytes, and the most entries of its table. All of the memory
/// becomes part of the component.
const MAX_MEMORY_BYTES: usize = 64 << 20;
const MAX_TABLE_ELEMENTS: usize = 1 << 20;

/// The most bytes that a start may print, and the most pieces in one write.
const MAX_SAID_BYTES: usize = 4096;
const MAX_PIECES: u32 = 64;

/// How often a start may wait. Waits take no time. Go waits before it prints a panic.
const MAX_WAITS: u32 = 64;

/// The state of a start while it runs.
struct Started {
    limits: StoreLimits,
    /// The random bytes for Go's own seeds, which are the first that Go takes; `None` after that.
    random: Option<blake3::OutputReader>,
    /// What it printed.
    said: Vec<u8>,
    waits: u32,
}

type Host<'a> = Caller<'a, Started>;

/// Returns the module after its start.
///
/// The error names an operation of the start that can't be done when a driver is built.
pub(super) fn run(wasm: &[u8]) -> Result<Vec<u8>, String> {
    start(wasm, MAX_FUEL).map_err(|error| format!("{error:#}"))
}

fn start(wasm: &[u8], fuel: u64) -> wasmtime::Result<Vec<u8>> {
    let mut wizer = Wizer::new();
    wizer.init_func(START);
    let (module, instrumented) = wizer.instrument(wasm)?;
    let mut config = Config::new();
    // The code runs once, so it is not optimised.
    config
        .consume_fuel(true)
        .cranelift_opt_level(OptLevel::None)
        // The result must be the same on all machines.
        .cranelift_nan_canonicalization(true)
        .wasm_relaxed_simd(false);
    // Names of functions are stripped, and offsets help no one.
    config.wasm_backtrace_max_frames(None);
    let engine = Engine::new(&config)?;
    let compiled = Module::new(&engine, &instrumented)?;
    let mut linker = Linker::new(&engine);
    linker.allow_shadowing(true);
    refuse(&mut linker, &compiled)?;
    wasi(&mut linker)?;
    let mut random = blake3::Hasher::new();
    random.update(wasm);
    let mut store = Store::new(
        &engine,
        Started {
            limits: StoreLimitsBuilder::new()
                .memory_size(MAX_MEMORY_BYTES)
                .memories(1)
                .table_elements(MAX_TABLE_ELEMENTS)
                .tables(1)
                .trap_on_grow_failure(true)
                .build(),
            random: Some(random.finalize_xof()),
            said: Vec::new(),
            waits: 0,
        },
    );
    store.limiter(|started| &mut started.limits);
    store.set_fuel(fuel)?;
    let instance = linker.instantiate(&mut store, &compiled)?;
    let start = instance.get_typed_func::<(), ()>(&mut store, START)?;
    let ran = start.call(&mut store, ());
    let ran = ran.and_then(|()| {
        let memory = instance.get_typed_func::<(), u32>(&mut store, ADAPTER_MEMORY);
        memory
            .ok()
            .map(|memory| memory.call(&mut store, ()))
            .transpose()
    });
    let said = String::from_utf8_lossy(&store.data().said).into_owned();
    let pages = match ran {
        Err(error) if said.is_empty() => return Err(error),
        Err(error) => wasmtime::bail!("{error:#}; it printed {said:?}"),
        // Calls of a driver with a snapshot would not print this text again.
        Ok(_) if !said.is_empty() => wasmtime::bail!("it prints {said:?}"),
        Ok(None) => wasmtime::bail!(
            "its library is older than snapshots: take that of a new bundle (`toolward new`)"
        ),
        Ok(Some(pages)) => pages,
    };
    let mut state = State {
        store,
        instance,
        is_whole: true,
    };
    // No operation of the snapshot waits.
    let snapshot = wizer.snapshot(&module, &mut state).now_or_never();
    match snapshot {
        Some(snapshot) if state.is_whole => adapter::with_pages(&snapshot?, pages),
        _ => wasmtime::bail!("the module's state can't be read"),
    }
}

/// Defines the functions that a start may call. There are no files, arguments or variables, and the
/// time is just after 1970. Go's seeds depend only on the module.
fn wasi(linker: &mut Linker<Started>) -> wasmtime::Result<()> {
    let none = |mut host: Host<'_>, count: u32, bytes: u32| {
        write(&mut host, count, &[0; 4])?;
        write(&mut host, bytes, &[0; 4])
    };
    linker.func_wrap(WASI, "args_sizes_get", none)?;
    linker.func_wrap(WASI, "environ_sizes_get", none)?;
    linker.func_wrap(WASI, "args_get", |_: u32, _: u32| DONE)?;
    linker.func_wrap(WASI, "environ_get", |_: u32, _: u32| DONE)?;
    linker.func_wrap(WASI, "sched_yield", || DONE)?;
    linker.func_wrap(WASI, "fd_prestat_get", |_: u32, _: u32| BADF)?;
    // The adapter gives the same answer when the driver runs.
    linker.func_wrap(WASI, "fd_fdstat_set_flags", |_: u32, _: u32| BADF)?;
    linker.func_wrap(
        WASI,
        "fd_fdstat_get",
        |mut host: Host<'_>, descriptor: u32, at: u32| match descriptor {
            0..=2 => write(&mut host, at, &[0; FDSTAT_BYTES]),
            _ => Ok(BADF),
        },
    )?;
    linker.func_wrap(
        WASI,
        "clock_time_get",
        // Go takes 0 for an error.
        |mut host: Host<'_>, _: u32, _: u64, at: u32| write(&mut host, at, &1_u64.to_le_bytes()),
    )?;
    linker.func_wrap(WASI, "random_get", random)?;
    linker.func_wrap(WASI, "fd_write", print)?;
    linker.func_wrap(WASI, "poll_oneoff", wait)?;
    linker.func_wrap(WASI, "proc_exit", |status: u32| -> wasmtime::Result<()> {
        wasmtime::bail!("it ends the program with status {status}")
    })?;
    Ok(())
}

/// Makes each imported function fail, with an error that names the function. `wasi` then replaces
/// some of them.
fn refuse(linker: &mut Linker<Started>, module: &Module) -> wasmtime::Result<()> {
    for import in module.imports() {
        let (from, name) = (import.module(), import.name());
        if let ExternType::Func(shape) = import.ty() {
            let called = format!("it calls `{from}#{name}`, which is there only in a call");
            linker.func_new(from, name, shape, move |_, _, _| {
                wasmtime::bail!("{called}")
            })?;
        }
    }
    Ok(())
}

fn random(mut host: Host<'_>, at: u32, length: u32) -> wasmtime::Result<i32> {
    let memory = memory(&mut host)?;
    let (memory, started) = memory.data_and_store_mut(&mut host);
    let Some(mut random) = started.random.take() else {
        wasmtime::bail!("it takes random bytes, which would be the same in each call, and known");
    };
    random.fill(part(memory, at, length)?);
    Ok(DONE)
}

/// Ends a wait at once, since the clock stands still. Fails after [`MAX_WAITS`] waits.
fn wait(
    mut host: Host<'_>,
    _awaited: u32,
    _events: u32,
    count: u32,
    happened: u32,
) -> wasmtime::Result<i32> {
    let waits = &mut host.data_mut().waits;
    *waits = waits.saturating_add(1);
    if *waits > MAX_WAITS {
        wasmtime::bail!("it waits, and the clock stands still");
    }
    write(&mut host, happened, &count.to_le_bytes())
}

/// Stores the printed bytes for the error message.
fn print(
    mut host: Host<'_>,
    _descriptor: u32,
    pieces: u32,
    count: u32,
    written: u32,
) -> wasmtime::Result<i32> {
    let memory = memory(&mut host)?;
    let (memory, started) = memory.data_and_store_mut(&mut host);
    if count > MAX_PIECES {
        wasmtime::bail!("it prints in more than {MAX_PIECES} pieces at once");
    }
    let mut all = 0_u32;
    for piece in part(memory, pieces, count.saturating_mul(8))?
        .to_vec()
        .chunks_exact(8)
    {
        let [at, length] = [0, 4].map(|from| {
            let number = piece.get(from..).and_then(|piece| piece.first_chunk());
            u32::from_le_bytes(number.copied().unwrap_or_default())
        });
        let said = part(memory, at, length)?;
        let room = MAX_SAID_BYTES.saturating_sub(started.said.len());
        started.said.extend(said.iter().take(room));
        if said.len() > room {
            wasmtime::bail!("it prints more than {MAX_SAID_BYTES} bytes");
        }
        all = all.saturating_add(length);
    }
    write(&mut host, written, &all.to_le_bytes())
}

fn write(host: &mut Host<'_>, at: u32, bytes: &[u8]) -> wasmtime::Result<i32> {
    let memory = memory(host)?.data_mut(host);
    part(memory, at, bytes.len() as u32)?.copy_from_slice(bytes);
    Ok(DONE)
}

fn memory(host: &mut Host<'_>) -> wasmtime::Result<Memory> {
    let memory = host.get_export("memory").and_then(Extern::into_memory);
    memory.ok_or_else(|| wasmtime::format_err!("it exports no memory"))
}

fn part(memory: &mut [u8], at: u32, length: u32) -> wasmtime::Result<&mut [u8]> {
    let (at, length) = (at as usize, length as usize);
    let part = at
        .checked_add(length)
        .and_then(|end| memory.get_mut(at..end));
    part.ok_or_else(|| wasmtime::format_err!("it names an address outside of its memory"))
}

/// The module's instance after its start.
struct State {
    store: Store<Started>,
    instance: Instance,
    /// Whether everything that the snapshot has read exists. This should always be so, since
    /// `instrument` exports all of it, and accepts only globals that are numbers.
    is_whole: bool,
}

impl InstanceState for State {
    async fn global_get(&mut self, name: &str, _: ValType) -> SnapshotVal {
        let global = self.instance.get_global(&mut self.store, name);
        match global.map(|global| global.get(&mut self.store)) {
            Some(Val::I32(value)) => SnapshotVal::I32(value),
            Some(Val::I64(value)) => SnapshotVal::I64(value),
            Some(Val::F32(value)) => SnapshotVal::F32(value),
            Some(Val::F64(value)) => SnapshotVal::F64(value),
            Some(Val::V128(value)) => SnapshotVal::V128(value.as_u128()),
            _ => {
                self.is_whole = false;
                SnapshotVal::I32(0)
            }
        }
    }

    async fn memory_contents(&mut self, name: &str, contents: impl FnOnce(&[u8]) + Send) {
        match self.instance.get_memory(&mut self.store, name) {
            Some(memory) => contents(memory.data(&self.store)),
            None => {
                self.is_whole = false;
                contents(&[]);
            }
        }
    }
}
