//! A process that is traced and made to execute system calls.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::time::{Duration, Instant};

use super::SKIP;
use super::ptrace::{self, Event, Registers, Thread};

/// How long a call may take before it counts as waiting.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long a call may sleep before it counts as waiting. A call that waits for a processor does
/// not sleep.
const SLEEP: Duration = Duration::from_millis(100);

/// How long a process may take to stop.
const STOPS: Duration = Duration::from_secs(60);

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// The call returned this value.
    Value(i64),
    /// The call continued until it was interrupted.
    Waits,
    /// The process ended.
    Ended,
}

/// The first thread of a process, stopped.
pub(super) struct Tracee {
    process: Thread,
    /// The registers before the first call.
    registers: Registers,
    /// The address of an instruction for a system call.
    site: u64,
    memory: File,
}

impl Tracee {
    /// Stops a process. Its other threads continue.
    pub(super) fn stop(process: u32) -> Self {
        let process = process.try_into().unwrap();
        assert!(seize(process, 0), "it is there");
        ptrace::interrupt(process).unwrap();
        let stopped = wait(process, STOPS).expect("it stops");
        assert_eq!(stopped, Event::Stopped);
        let memory = format!("/proc/{process}/mem");
        Self {
            process,
            registers: ptrace::registers(process).unwrap(),
            site: site(process),
            memory: File::options().read(true).write(true).open(memory).unwrap(),
        }
    }

    /// Writes to its memory.
    pub(super) fn write(&self, address: u64, bytes: &[u8]) {
        self.memory.write_all_at(bytes, address).unwrap();
    }

    /// Makes it do a call.
    pub(super) fn call(&self, number: u64, arguments: [u64; 6]) -> Answer {
        self.call_at(self.site, number, arguments)
    }

    /// Makes it execute a 32-bit call. `None` if the kernel has no such calls.
    pub(super) fn call_of_32_bits(&self, number: u64, arguments: [u64; 3]) -> Option<Answer> {
        const INTERRUPT: [u8; 2] = [0xcd, 0x80];
        let mut before = [0; 2];
        self.memory.read_exact_at(&mut before, self.site).unwrap();
        self.write(self.site, &INTERRUPT);
        let [first, second, third] = arguments;
        let mut registers = self.registers;
        registers.rbx = first;
        registers.rcx = second;
        registers.rdx = third;
        let answer = self.step(registers, self.site, number);
        self.write(self.site, &before);
        answer
    }

    fn call_at(&self, site: u64, number: u64, arguments: [u64; 6]) -> Answer {
        let mut registers = self.registers;
        [
            registers.rdi,
            registers.rsi,
            registers.rdx,
            registers.r10,
            registers.r8,
            registers.r9,
        ] = arguments;
        self.step(registers, site, number)
            .expect("the instruction is done")
    }

    /// Executes one instruction. Returns `None` if that was not possible.
    fn step(&self, mut registers: Registers, site: u64, number: u64) -> Option<Answer> {
        registers.rip = site;
        registers.rax = number;
        // The kernel must not repeat an interrupted call.
        registers.orig_rax = u64::MAX;
        ptrace::set_registers(self.process, &registers).unwrap();
        ptrace::step(self.process).unwrap();
        let mut interrupted = false;
        loop {
            let status = match interrupted {
                true => wait(self.process, STOPS),
                false => wait_unless_it_sleeps(self.process),
            };
            match status {
                Some(Event::Signal(libc::SIGSEGV | libc::SIGILL)) => return None,
                Some(Event::Ended) => return Some(Answer::Ended),
                Some(_) => {}
                None if !interrupted => {
                    interrupted = true;
                    ptrace::interrupt(self.process).unwrap();
                    continue;
                }
                None => panic!("it does not stop"),
            }
            let now = ptrace::registers(self.process).unwrap();
            if interrupted {
                return Some(Answer::Waits);
            }
            if now.rip != site {
                return Some(Answer::Value(now.rax.cast_signed()));
            }
            // A signal came before it.
            ptrace::step(self.process).unwrap();
        }
    }

    /// Lets the process continue where it was stopped.
    pub(super) fn release(self) {
        ptrace::set_registers(self.process, &self.registers).unwrap();
        ptrace::detach(self.process).unwrap();
    }
}

/// Starts to trace a thread. Returns `false` if the thread has ended, or is traced already, like a
/// new thread of a traced one. Panics if tracing is forbidden.
pub(super) fn seize(thread: Thread, options: usize) -> bool {
    let Err(error) = ptrace::seize(thread, options) else {
        return true;
    };
    match error.raw_os_error() {
        Some(libc::ESRCH) => false,
        Some(libc::EPERM) if is_traced(thread) => false,
        _ => panic!(
            "no process can be traced here ({error}): allow ptrace (in a container \
             --cap-add=SYS_PTRACE), or set {SKIP} to leave this out"
        ),
    }
}

/// Whether a process traces the thread.
fn is_traced(thread: Thread) -> bool {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).unwrap_or_default();
    let mut lines = status.lines();
    let tracer = lines.find_map(|line| line.strip_prefix("TracerPid:"));
    tracer.is_some_and(|tracer| tracer.trim() != "0")
}

fn wait(process: Thread, patience: Duration) -> Option<Event> {
    let end = Instant::now() + patience;
    loop {
        match ptrace::event(process).unwrap() {
            Some((_, event)) => return Some(event),
            None if Instant::now() > end => return None,
            None => std::thread::sleep(Duration::from_micros(50)),
        }
    }
}

/// Waits for the next event of the process, until [`PATIENCE`] is over or the process sleeps for
/// [`SLEEP`].
fn wait_unless_it_sleeps(process: Thread) -> Option<Event> {
    let end = Instant::now() + PATIENCE;
    let mut awake = Instant::now();
    loop {
        if let Some(event) = wait(process, Duration::from_millis(1)) {
            return Some(event);
        }
        let now = Instant::now();
        if !sleeps(process) {
            awake = now;
        }
        if now > end || now > awake + SLEEP {
            return None;
        }
    }
}

fn sleeps(process: Thread) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").map(|(_, state)| state);
    state.is_some_and(|state| state.starts_with('S'))
}

/// Finds an instruction for a system call in the memory that the kernel maps into each process.
fn site(process: Thread) -> u64 {
    const SYSCALL: [u8; 2] = [0x0f, 0x05];
    let maps = fs::read_to_string(format!("/proc/{process}/maps")).unwrap();
    let line = maps.lines().find(|line| line.ends_with("[vdso]")).unwrap();
    let (from, rest) = line.split_once('-').unwrap();
    let (to, _) = rest.split_once(' ').unwrap();
    let [from, to] = [from, to].map(|text| u64::from_str_radix(text, 16).unwrap());
    let mut code = vec![0; usize::try_from(to - from).unwrap()];
    let memory = File::open(format!("/proc/{process}/mem")).unwrap();
    memory.read_exact_at(&mut code, from).unwrap();
    let place = code.windows(2).position(|bytes| bytes == SYSCALL);
    from + u64::try_from(place.expect("the vDSO has the instruction")).unwrap()
}
