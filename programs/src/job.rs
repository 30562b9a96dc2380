//! One run. Starts a runner, sends the plan to it, and watches it. Always ends and reaps the
//! runner, and all processes that the runner has started.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::process::{Pid, PidfdFlags};

use crate::broker::{Broker, OpenLine};
use crate::file::ExecProblem;
use crate::frame::{Ending, Run, STDERR_BYTES};
use crate::kernel::{self, Namespace};
use crate::plan::{self, Files, Plan, READY};
use toolward_confine::program_profile;

/// How often a run is checked for cancellation.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// How long each read or write may take until a runner has become its program. The first read waits
/// until the system has loaded and linked the runner.
const STARTING: Duration = Duration::from_secs(20);

/// The most bytes of a runner's error message.
const MESSAGE_BYTES: u64 = 1024;

/// Runs the program of a table. Without an input, only lets the kernel load it. Must run on a
/// separate thread, whose children get a process namespace.
pub(crate) fn run(
    broker: &Broker,
    line: &OpenLine,
    input: Option<&[u8]>,
    cancelled: impl Fn() -> bool,
) -> Run {
    let deadline = Instant::now().checked_add(line.rule.limits.timeout());
    let deadline = deadline.unwrap_or_else(Instant::now);
    if cancelled() {
        return Ending::Cancelled.into();
    }
    match started(broker, line, input) {
        Err(problem) => Ending::Refused(problem).into(),
        Ok(mut running) => {
            let output_bytes = usize::try_from(line.rule.limits.output_bytes).unwrap_or(usize::MAX);
            running.watch(deadline, output_bytes, cancelled)
        }
    }
}

fn started(broker: &Broker, line: &OpenLine, input: Option<&[u8]>) -> Result<Running, ExecProblem> {
    let program = line.program.as_ref().map_err(Clone::clone)?;
    program.check()?;
    let env = match input {
        Some(_) => line.environment()?,
        None => Vec::new(),
    };
    let isolated = broker.isolates && kernel::leave(Namespace::Processes).is_ok();
    program_profile::holds(isolated).map_err(ExecProblem::Unconfined)?;
    let plan = Plan {
        name: line.rule.command.path.to_string_lossy().into_owned(),
        is_script: program.interpreter.is_some(),
        argument: (program.interpreter.as_ref()).and_then(|script| script.argument.clone()),
        args: line.rule.args.clone(),
        env,
        network: line.rule.network,
        // Without isolation, processes that the program started could outlive it.
        processes: line.rule.processes && isolated,
        counted: broker.counted,
        workspaces: line.workspaces.iter().map(|(_, access)| *access).collect(),
        limits: line.rule.limits,
        trial: input.is_none(),
    };
    let unstarted = |error: io::Error| ExecProblem::Unstarted(error.to_string());
    let input = sealed(input.unwrap_or_default()).map_err(unstarted)?;
    let (stdout, their_stdout) = Stream::pipe().map_err(unstarted)?;
    let (stderr, their_stderr) = Stream::pipe().map_err(unstarted)?;
    let files = Files {
        stdout: their_stdout.as_fd(),
        stderr: their_stderr.as_fd(),
        input: input.as_fd(),
        command: program.command.file.as_fd(),
        interpreter: (program.interpreter.as_ref()).map(|script| script.file.file.as_fd()),
        workspaces: line
            .workspaces
            .iter()
            .map(|(open, _)| open.as_fd())
            .collect(),
    };
    let mut running = Running::start(broker, stdout, stderr).map_err(unstarted)?;
    running.become_program(&plan, &files).map_err(unstarted)?;
    Ok(running)
}

/// The input as a file in memory that can't be changed.
fn sealed(input: &[u8]) -> io::Result<File> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let memory = rustix::fs::memfd_create("input.json", flags | MemfdFlags::NOEXEC_SEAL)
        // Before Linux 6.3
        .or_else(|_| rustix::fs::memfd_create("input.json", flags))?;
    let mut file = File::from(memory);
    file.write_all(input)?;
    let seals = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
    rustix::fs::fcntl_add_seals(&file, seals)?;
    Ok(file)
}

/// A runner, which later becomes the program. Dropping this ends and reaps the process. If the
/// process is the first of its namespace, the kernel also ends all others of the namespace.
struct Running {
    child: Child,
    socket: UnixStream,
    exit: OwnedFd,
    stdout: Stream,
    stderr: Stream,
}

impl Running {
    fn start(broker: &Broker, stdout: Stream, stderr: Stream) -> io::Result<Self> {
        let (socket, theirs) = UnixStream::pair()?;
        let mut child = Command::new(&broker.program)
            .args(&broker.arguments)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let exit = rustix::process::pidfd_open(Pid::from_child(&child), PidfdFlags::empty())
            .inspect_err(|_| {
                let _ = child.kill();
                let _ = child.wait();
            })?;
        Ok(Self {
            child,
            socket,
            exit,
            stdout,
            stderr,
        })
    }

    /// Sends the plan. Returns once the runner has executed the program, or has ended.
    fn become_program(&mut self, plan: &Plan, files: &Files<BorrowedFd<'_>>) -> io::Result<()> {
        self.socket.set_read_timeout(Some(STARTING))?;
        self.socket.set_write_timeout(Some(STARTING))?;
        let mut ready = [0];
        self.socket.read_exact(&mut ready)?;
        if ready != [READY] {
            return Err(io::Error::other("the runner does not begin as one"));
        }
        plan::send(&mut self.socket, plan, files)?;
        let mut message = String::new();
        (&self.socket)
            .take(MESSAGE_BYTES)
            .read_to_string(&mut message)?;
        match message.is_empty() {
            true => Ok(()),
            false => Err(io::Error::other(message)),
        }
    }

    fn watch(
        &mut self,
        deadline: Instant,
        output_bytes: usize,
        cancelled: impl Fn() -> bool,
    ) -> Run {
        let ending = self.until_end(deadline, output_bytes, cancelled);
        let mut ending = ending
            .unwrap_or_else(|error| Ending::Refused(ExecProblem::Unstarted(error.to_string())));
        self.end();
        let mut stdout = std::mem::take(&mut self.stdout.bytes);
        if stdout.len() > output_bytes {
            stdout.clear();
            if matches!(ending, Ending::Exited(_) | Ending::Killed(_)) {
                ending = Ending::TooMuch;
            }
        }
        Run {
            ending,
            stdout,
            stderr: self.stderr.last(STDERR_BYTES),
        }
    }

    fn until_end(
        &mut self,
        deadline: Instant,
        output_bytes: usize,
        cancelled: impl Fn() -> bool,
    ) -> io::Result<Ending> {
        loop {
            if cancelled() {
                return Ok(Ending::Cancelled);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Ending::Late);
            }
            let exited = self.wait_for_something(left.min(POLL_INTERVAL))?;
            // One byte more shows whether the limit is exceeded.
            self.stdout.read(output_bytes.saturating_add(1))?;
            self.stderr.read_last(STDERR_BYTES)?;
            if self.stdout.bytes.len() > output_bytes {
                return Ok(Ending::TooMuch);
            }
            if !exited {
                continue;
            }
            // No process is left that could write, so all output is in the pipes.
            let status = self.child.wait()?;
            while self.stdout.read(output_bytes.saturating_add(1))? {}
            while self.stderr.read_last(STDERR_BYTES)? {}
            return Ok(match status.code() {
                Some(code) => Ending::Exited(code),
                None => Ending::Killed(status.signal().unwrap_or_default()),
            });
        }
    }

    /// Waits until the program writes or ends, at most for `most`. Returns whether it ended.
    fn wait_for_something(&self, most: Duration) -> io::Result<bool> {
        let timeout = Timespec {
            tv_sec: most.as_secs().cast_signed(),
            tv_nsec: most.subsec_nanos().into(),
        };
        let mut polled = vec![PollFd::new(&self.exit, PollFlags::IN)];
        for stream in [&self.stdout, &self.stderr] {
            if !stream.ended {
                polled.push(PollFd::new(&stream.pipe, PollFlags::IN));
            }
        }
        match poll(&mut polled, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let exit = polled.first().map(PollFd::revents);
        Ok(exit.is_some_and(|events| events.contains(PollFlags::IN)))
    }

    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Does nothing if the process was already reaped.
        self.end();
    }
}

/// One of a program's two output streams.
struct Stream {
    pipe: PipeReader,
    bytes: Vec<u8>,
    ended: bool,
}

/// The number of bytes that are read at a time.
const CHUNK_BYTES: usize = 64 << 10;

impl Stream {
    /// A stream, and the end to which the program writes.
    fn pipe() -> io::Result<(Self, PipeWriter)> {
        let (pipe, writer) = io::pipe()?;
        rustix::io::ioctl_fionbio(&pipe, true)?;
        let stream = Self {
            pipe,
            bytes: Vec::new(),
            ended: false,
        };
        Ok((stream, writer))
    }

    /// Reads the available bytes. Keeps at most `most` bytes, and leaves later bytes in the pipe.
    /// Returns whether more bytes may be available.
    fn read(&mut self, most: usize) -> io::Result<bool> {
        self.take(most.saturating_sub(self.bytes.len()))
    }

    /// Reads the available bytes, so that the program does not block. Keeps the last bytes, at most
    /// twice `most`. Returns whether more bytes may be available.
    fn read_last(&mut self, most: usize) -> io::Result<bool> {
        let more = self.take(CHUNK_BYTES)?;
        if self.bytes.len() > most.saturating_mul(2) {
            self.bytes = self.last(most);
        }
        Ok(more)
    }

    /// Takes the last `most` bytes of the kept bytes.
    fn last(&mut self, most: usize) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.bytes);
        let before = bytes.len().saturating_sub(most);
        bytes.drain(..before);
        bytes
    }

    /// Reads up to `room` of the available bytes. Returns whether more bytes may be available.
    fn take(&mut self, room: usize) -> io::Result<bool> {
        let room = room.min(CHUNK_BYTES) as u64;
        match (&mut self.pipe).take(room).read_to_end(&mut self.bytes) {
            Ok(count) if count as u64 == room => Ok(room > 0),
            Ok(_) => {
                self.ended = true;
                Ok(false)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_standard_error_the_end_is_kept_however_much_there_is() {
        const MOST: usize = 1000;
        let (mut stream, mut writer) = Stream::pipe().unwrap();
        let line = |number: usize| format!("{number:09}\n");
        for number in 0..50_000 {
            writer.write_all(line(number).as_bytes()).unwrap();
            if number % 100 == 0 {
                stream.read_last(MOST).unwrap();
                assert!(stream.bytes.len() <= 2 * MOST);
            }
        }
        drop(writer);
        while stream.read_last(MOST).unwrap() {}
        let expected: String = (49_900..50_000).map(line).collect();
        assert_eq!(stream.last(MOST), expected.into_bytes());
    }

    #[test]
    fn of_standard_output_no_more_is_read_than_is_allowed() {
        let (mut stream, mut writer) = Stream::pipe().unwrap();
        writer.write_all(&[b'o'; 100]).unwrap();
        drop(writer);
        for _ in 0..2 {
            stream.read(10).unwrap();
            assert_eq!(stream.bytes, [b'o'; 10]);
        }
        while stream.read(1000).unwrap() {}
        assert_eq!(stream.bytes.len(), 100);
        assert!(stream.ended);
    }
}
