//! Starts, feeds and watches one worker, and always reaps it.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::super::artifact::MAX_FACTS_BYTES;
use super::super::limits::{CompileCost, CompileError, CompileLimits, CompileReason, Result};
use super::super::worker::{self, Bounds, END_BYTES};
use crate::limiter::MemoryLayout;

/// How often a worker is checked for cancellation and timeout.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The time for a worker to exit once it has answered.
const ENDING: Duration = Duration::from_secs(5);

/// The most bytes that are kept of a worker's standard error.
const COMPLAINT: u64 = 4096;

/// The most threads of a worker. More threads would need more address space.
const MAX_THREADS: u32 = 4;

/// The command and the limits of a worker.
pub(super) struct Worker {
    pub(super) program: OsString,
    pub(super) arguments: Vec<OsString>,
    pub(super) limits: CompileLimits,
}

/// The part of a worker's answer that has arrived.
#[derive(Default)]
struct Reply {
    kind: Option<u8>,
    body: Vec<u8>,
}

/// Why the exchange with a worker ended early. `None` if the connection failed; then the exit
/// status of the worker shows the reason.
type Interrupted = Option<CompileError>;

/// Compiled code.
pub(super) struct Compiled {
    pub(super) code: Vec<u8>,
    /// The facts about the component.
    pub(super) facts: Vec<u8>,
    /// The processor time that compiling took.
    processor: Duration,
}

impl Worker {
    /// Compiles one component in a separate process, within the limits and `budget`. The process
    /// has been reaped when this returns. The first value is the processor time that was used, or
    /// an upper bound if compiling failed.
    pub(super) fn compile(
        &self,
        layout: MemoryLayout,
        wasm: &[u8],
        budget: CompileCost,
        cancelled: impl Fn() -> bool,
    ) -> (Duration, Result<Compiled>) {
        let started = Instant::now();
        let limits = self.limits.within(budget);
        let compiled = something_is_left(&limits)
            .and_then(|()| self.run(&limits, layout, wasm, started, cancelled));
        // A worker that failed does not report its time; this is the upper bound.
        let most = started
            .elapsed()
            .saturating_mul(threads())
            .min(limits.most().processor);
        match compiled {
            Ok(compiled) => (compiled.processor.min(most), Ok(compiled)),
            Err(error) => (most, Err(error)),
        }
    }

    fn run(
        &self,
        limits: &CompileLimits,
        layout: MemoryLayout,
        wasm: &[u8],
        started: Instant,
        cancelled: impl Fn() -> bool,
    ) -> Result<Compiled> {
        let unavailable = |error: io::Error| {
            CompileError::unavailable(format!("no compiler could be started: {error}"))
        };
        let (socket, theirs) = UnixStream::pair().map_err(unavailable)?;
        let child = Command::new(&self.program)
            .args(&self.arguments)
            .env_clear()
            .env("RAYON_NUM_THREADS", threads().to_string())
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(unavailable)?;
        let mut running = Running {
            child,
            socket,
            deadline: started.checked_add(limits.wall).unwrap_or(started),
            wall: limits.wall,
        };
        let stderr = running.child.stderr.take();
        let complaint = stderr.map(|mut stderr| {
            std::thread::Builder::new().spawn(move || {
                let mut text = Vec::new();
                let _ = stderr.by_ref().take(COMPLAINT).read_to_end(&mut text);
                // Drains the rest, so that the worker does not block on a full pipe.
                let _ = io::copy(&mut stderr, &mut io::sink());
                String::from_utf8_lossy(&text).trim().to_owned()
            })
        });
        let complaint = complaint.transpose().map_err(unavailable)?;
        let bounds = Bounds {
            cpu_seconds: limits.cpu_seconds,
            memory_bytes: limits.memory_bytes,
            layout,
        };
        let talk = running.talk(bounds, wasm, limits.artifact_bytes, &cancelled);
        let status = running.end(talk.is_err()).map_err(unavailable)?;
        let complaint = complaint
            .and_then(|thread| thread.join().ok())
            .unwrap_or_default();
        verdict(limits, talk, status, &complaint)
    }
}

fn verdict(
    limits: &CompileLimits,
    talk: Result<Reply, Interrupted>,
    status: ExitStatus,
    complaint: &str,
) -> Result<Compiled> {
    let refused = |reason, message: String| Err(CompileError::new(reason, message));
    let answer = match talk {
        Ok(answer) => answer,
        Err(None) => Reply::default(),
        Err(Some(interrupted)) => return Err(interrupted),
    };
    let (memory_bytes, cpu_seconds) = (limits.memory_bytes, limits.cpu_seconds);
    let memory = || {
        let message = format!("compiling it takes more than {memory_bytes} bytes of memory");
        refused(CompileReason::Memory, message)
    };
    let signal = status.signal().and_then(Signal::from_named_raw);
    match answer.kind.filter(|_| status.success()) {
        Some(worker::COMPILED) => {
            if let Some(compiled) = compiled(answer.body) {
                return match compiled.code.len() as u64 > limits.artifact_bytes {
                    true => Err(too_much_code(limits.artifact_bytes)),
                    false => Ok(compiled),
                };
            }
        }
        Some(worker::NO_MEMORY) => return memory(),
        Some(worker::NO_THREADS) => {
            let text = String::from_utf8_lossy(&answer.body);
            return Err(CompileError::unavailable(format!(
                "the compiler can't start its threads: {text}"
            )));
        }
        Some(worker::INVALID) => {
            let text = String::from_utf8_lossy(&answer.body);
            let message = format!("it does not compile: {text}");
            return refused(CompileReason::Invalid, message);
        }
        _ => {}
    }
    match signal {
        Some(Signal::XCPU) => refused(
            CompileReason::Processor,
            format!("compiling it takes more than {cpu_seconds} s of processor time"),
        ),
        // Usually the kernel's out-of-memory killer sent this signal.
        Some(Signal::KILL) => Err(CompileError::unavailable(
            "the compiler was killed, perhaps because the machine is short of memory",
        )),
        // The messages of Rust's runtime and of the compiler when memory runs out.
        _ if complaint.contains("memory allocation of") || complaint.contains("out of memory") => {
            memory()
        }
        _ => refused(
            CompileReason::Crashed,
            format!("the compiler crashed over it ({status}): {complaint}"),
        ),
    }
}

fn too_much_code(limit: u64) -> CompileError {
    let problem = format!("its compiled code has more than {limit} bytes");
    CompileError::new(CompileReason::Output, problem)
}

/// Splits the artifact from the facts and the time that follow it.
fn compiled(mut body: Vec<u8>) -> Option<Compiled> {
    let mut end = |length: usize| Some(body.split_off(body.len().checked_sub(length)?));
    let mut number = || Some(u64::from_le_bytes(end(END_BYTES / 2)?.try_into().ok()?));
    let processor = Duration::from_micros(number()?);
    let length = usize::try_from(number()?).ok();
    let facts = end(length.filter(|length| *length <= MAX_FACTS_BYTES)?)?;
    Some(Compiled {
        code: body,
        facts,
        processor,
    })
}

/// Fails if the budget is used up, so that no worker is started.
fn something_is_left(limits: &CompileLimits) -> Result<()> {
    let (reason, what) = match (limits.cpu_seconds, limits.artifact_bytes) {
        (0, _) => (CompileReason::Processor, "processor time"),
        (_, 0) => (CompileReason::Output, "room for compiled code"),
        _ => return Ok(()),
    };
    let message = format!("no {what} is left for it");
    Err(CompileError::new(reason, message))
}

/// The number of threads of a worker.
fn threads() -> u32 {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    u32::try_from(cores).map_or(MAX_THREADS, |cores| cores.min(MAX_THREADS))
}

struct Running {
    child: Child,
    socket: UnixStream,
    deadline: Instant,
    wall: Duration,
}

impl Running {
    /// Sends the component and reads the whole answer, whose artifact has at most `limit` bytes.
    fn talk(
        &mut self,
        bounds: Bounds,
        wasm: &[u8],
        limit: u64,
        cancelled: &impl Fn() -> bool,
    ) -> Result<Reply, Interrupted> {
        let gone = |_: io::Error| None;
        self.socket
            .set_read_timeout(Some(POLL_INTERVAL))
            .map_err(gone)?;
        self.socket
            .set_write_timeout(Some(POLL_INTERVAL))
            .map_err(gone)?;
        let most = limit.saturating_add((MAX_FACTS_BYTES + END_BYTES) as u64);
        self.send(&bounds.to_bytes(), cancelled)?;
        self.send(wasm, cancelled)?;
        self.socket.shutdown(Shutdown::Write).map_err(gone)?;

        let mut answer = Reply::default();
        let mut chunk = vec![0; 64 << 10];
        loop {
            self.look(cancelled)?;
            let mut read = match self.socket.read(&mut chunk) {
                Ok(0) => return Ok(answer),
                Ok(count) => chunk.get(..count).unwrap_or_default(),
                Err(error) if is_tick(&error) => continue,
                Err(_) => return Err(None),
            };
            if answer.kind.is_none() {
                answer.kind = read.split_off_first().copied();
            }
            if answer.body.len().saturating_add(read.len()) as u64 > most {
                return Err(Some(too_much_code(limit)));
            }
            answer.body.extend_from_slice(read);
        }
    }

    fn send(&mut self, mut bytes: &[u8], cancelled: &impl Fn() -> bool) -> Result<(), Interrupted> {
        while !bytes.is_empty() {
            self.look(cancelled)?;
            match self.socket.write(bytes) {
                Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
                Err(error) if is_tick(&error) => {}
                Err(_) => return Err(None),
            }
        }
        Ok(())
    }

    fn look(&self, cancelled: &impl Fn() -> bool) -> Result<(), Interrupted> {
        if cancelled() {
            return Err(Some(CompileError::cancelled()));
        }
        if Instant::now() < self.deadline {
            return Ok(());
        }
        let problem = format!("compiling it takes longer than {:?}", self.wall);
        Err(Some(CompileError::new(CompileReason::Time, problem)))
    }

    /// Waits for the process to exit. Kills it if it was `interrupted` or does not exit in time.
    fn end(&mut self, interrupted: bool) -> io::Result<ExitStatus> {
        let patience = match interrupted {
            // The process may be exiting because of its own limits.
            true => POLL_INTERVAL,
            false => ENDING,
        };
        let until = Instant::now().checked_add(patience);
        while until.is_some_and(|until| Instant::now() < until) {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        self.child.kill()?;
        self.child.wait()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Does nothing if the process was already reaped.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn is_tick(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}
