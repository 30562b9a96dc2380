//! The process that compiles one component and ends: it has its own limits, and no access to files,
//! network or other programs. It reads its limits and then the component from standard input, which
//! is a socket, and writes its answer to the same socket.

use std::io::{self, Read, Write};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, Signal};
use rustix::time::{ClockId, clock_gettime};
use toolward_confine::compile_profiles;
use toolward_support::helper::connection;

use super::artifact;
use crate::engine::compiling_engine;
use crate::limiter::MemoryLayout;

/// The first byte of the answer.
pub(super) const COMPILED: u8 = b'+';
pub(super) const INVALID: u8 = b'-';
pub(super) const NO_MEMORY: u8 = b'm';
pub(super) const NO_THREADS: u8 = b't';

/// Bytes after an artifact and the facts about its component: the length of the facts, and the
/// processor time that this process took, in microseconds.
pub(super) const END_BYTES: usize = 16;

/// The most open files of a worker, which needs the standard streams and a duplicate of the socket.
const OPEN_FILES: u64 = 8;

/// The limits that a worker sets on itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) cpu_seconds: u64,
    pub(super) memory_bytes: u64,
    pub(super) layout: MemoryLayout,
}

impl Bounds {
    pub(super) fn to_bytes(self) -> [u8; 24] {
        let mut bytes = [0; 24];
        let all = [
            self.cpu_seconds.to_le_bytes(),
            self.memory_bytes.to_le_bytes(),
            u64::from(self.layout == MemoryLayout::Compact).to_le_bytes(),
        ];
        bytes.copy_from_slice(all.as_flattened());
        bytes
    }

    fn read(from: &mut impl Read) -> io::Result<Self> {
        let mut next = || {
            let mut number = [0; 8];
            from.read_exact(&mut number)?;
            io::Result::Ok(u64::from_le_bytes(number))
        };
        Ok(Self {
            cpu_seconds: next()?,
            memory_bytes: next()?,
            layout: match next()? {
                0 => MemoryLayout::Pooled,
                _ => MemoryLayout::Compact,
            },
        })
    }

    fn set(self) -> io::Result<()> {
        let limit = |resource, current: u64, maximum: u64| {
            let limit = Rlimit {
                current: Some(current),
                maximum: Some(maximum),
            };
            rustix::process::setrlimit(resource, limit)
        };
        limit(Resource::Core, 0, 0)?;
        limit(Resource::Fsize, 0, 0)?;
        // At the soft limit, the kernel sends a signal that shows which limit was reached. At the
        // hard limit, it kills the process.
        let kill = self.cpu_seconds.saturating_add(5);
        limit(Resource::Cpu, self.cpu_seconds, kill)?;
        // The process may have a lower limit already (`ulimit -v`).
        let most = rustix::process::getrlimit(Resource::As).maximum;
        let memory = most.map_or(self.memory_bytes, |most| most.min(self.memory_bytes));
        limit(Resource::As, memory, memory)?;
        limit(Resource::Nofile, OPEN_FILES, OPEN_FILES)?;
        Ok(())
    }
}

/// Compiles the component that it reads from standard input. Meant for the process that a broker
/// starts; ends when the broker ends.
///
/// # Errors
///
/// If standard input is not a broker's connection, or can't be read or written.
pub fn run_worker() -> io::Result<()> {
    let mut broker = connection()?;
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    let bounds = Bounds::read(&mut broker)?;
    bounds.set()?;
    // Lowers the priority below running calls, but only slightly: on a busy machine, compiling
    // would otherwise starve.
    let _ = rustix::process::nice(5);
    compile_profiles::worker()?;

    let mut wasm = Vec::new();
    broker.read_to_end(&mut wasm)?;
    // Starts the compiler's threads here, since the compiler panics if it can't start them itself.
    if let Err(error) = rayon::ThreadPoolBuilder::new().build_global() {
        broker.write_all(&[NO_THREADS])?;
        return broker.write_all(error.to_string().as_bytes());
    }
    let compiled =
        compiling_engine(bounds.layout).and_then(|engine| engine.precompile_component(&wasm));
    match compiled {
        Ok(artifact) => {
            broker.write_all(&[COMPILED])?;
            broker.write_all(&artifact)?;
            let facts = artifact::facts(&wasm);
            broker.write_all(&facts)?;
            broker.write_all(&(facts.len() as u64).to_le_bytes())?;
            let microseconds = u64::try_from(processor_time().as_micros()).unwrap_or(u64::MAX);
            broker.write_all(&microseconds.to_le_bytes())
        }
        Err(error) => {
            let kind = match is_out_of_memory(&error) {
                true => NO_MEMORY,
                false => INVALID,
            };
            broker.write_all(&[kind])?;
            broker.write_all(format!("{error:#}").as_bytes())
        }
    }
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or(Duration::MAX)
}

fn is_out_of_memory(error: &wasmtime::Error) -> bool {
    error.chain().any(|cause| {
        cause.is::<wasmtime::OutOfMemory>()
            || cause
                .downcast_ref::<io::Error>()
                .is_some_and(|error| error.kind() == io::ErrorKind::OutOfMemory)
    })
}
