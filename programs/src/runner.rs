//! The process that becomes the program of a table. It receives open files and a plan from the
//! broker, drops its rights, sets its limits, and executes the program through the descriptor that
//! was hashed.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Resource, Rlimit, Signal};
use toolward_policy::{ExecLimits, WorkspaceAccess};

use crate::kernel;
use crate::plan::{self, Files, Plan, READY};
use toolward_confine::program_profile::{self, ProgramRights};
use toolward_support::helper::connection;

/// The most open files of a program.
const OPEN_FILES: u64 = 128;

/// The most processes and threads of a broker and all its programs together. Applies if the kernel
/// counts them separately for each broker. The kernel does not count the tasks of root.
const TASKS: u64 = 512;

/// Memory that is allocated and freed before the memory limit is set, so that the remaining steps
/// can allocate it again.
const SLACK_BYTES: usize = 64 << 10;

/// The address space of a trial. The kernel finds, checks and loads the program, and then has no
/// room for its stack, so a signal of [`TRIAL_SIGNALS`] ends the process before the program's first
/// instruction.
pub(crate) const TRIAL_MEMORY: u64 = 0;

/// The signals that end a trial which has loaded its program. Kernels use one of the two.
pub(crate) const TRIAL_SIGNALS: [i32; 2] = [Signal::SEGV.as_raw(), Signal::KILL.as_raw()];

/// Becomes the program that a broker names. Meant for the process that a broker starts. The process
/// ends when this broker ends.
///
/// # Errors
///
/// If standard input is not a broker's socket. Later errors are reported to the broker.
pub fn run_runner() -> io::Result<()> {
    let mut broker = connection()?;
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // Leaves the session and the terminal of the host.
    rustix::process::setsid()?;
    broker.write_all(&[READY])?;
    let error = match plan::receive(&mut broker) {
        Ok((plan, files)) => execute(&plan, files),
        Err(error) => error,
    };
    broker.write_all(error.to_string().as_bytes())
}

/// Becomes the program. Returns only an error: if it succeeds, the socket is closed without a
/// message.
fn execute(plan: &Plan, files: Files<OwnedFd>) -> io::Error {
    let tried = || -> io::Result<io::Error> {
        toolward_support::helper::close_on_exec()?;
        let mut command = command(plan, &files)?;
        match files.workspaces.first() {
            Some(directory) => rustix::process::fchdir(directory)?,
            None => rustix::process::chdir("/")?,
        }
        let profile = program_profile::prepare(&ProgramRights {
            executed: files.interpreter.as_ref().unwrap_or(&files.command),
            read: files.interpreter.is_some().then_some(&files.command),
            workspaces: files.workspaces.iter().zip(
                plan.workspaces
                    .iter()
                    .map(|access| *access == WorkspaceAccess::ReadWrite),
            ),
            network: plan.network,
            processes: plan.processes,
        })
        .map_err(io::Error::other)?;
        command.stdin(Stdio::from(File::open("/dev/null")?));
        command.stdout(Stdio::from(files.stdout.try_clone()?));
        command.stderr(Stdio::from(files.stderr.try_clone()?));
        drop(std::hint::black_box(vec![0_u8; SLACK_BYTES]));
        kernel::drop_capabilities()?;
        let memory = match plan.trial {
            true => TRIAL_MEMORY,
            false => plan.limits.memory_mib.saturating_mul(1 << 20),
        };
        limits(&plan.limits, plan.counted, memory)?;
        profile.apply().map_err(io::Error::other)?;
        Ok(command.exec())
    };
    tried().unwrap_or_else(|error| error)
}

/// The command of the program, through the descriptors that were hashed.
fn command(plan: &Plan, files: &Files<OwnedFd>) -> io::Result<Command> {
    let executed = files.interpreter.as_ref().unwrap_or(&files.command);
    let mut command = Command::new(by_descriptor(executed));
    command.arg0(&plan.name).env_clear();
    if plan.is_script {
        command.args(&plan.argument);
        command.arg(kept_open(&files.command)?);
    }
    command.arg(kept_open(&files.input)?).args(&plan.args);
    for (name, value) in &plan.env {
        command.env(name, value);
    }
    Ok(command)
}

fn by_descriptor(file: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// The path of a file that the program opens itself.
fn kept_open(file: &OwnedFd) -> io::Result<PathBuf> {
    fcntl_setfd(file.as_fd(), FdFlags::empty())?;
    Ok(by_descriptor(file))
}

fn limits(limits: &ExecLimits, counted: bool, memory: u64) -> io::Result<()> {
    limit(Resource::Fsize, limits.file_bytes)?;
    limit(Resource::Cpu, limits.cpu_seconds)?;
    limit(Resource::Nofile, OPEN_FILES)?;
    if counted {
        limit(Resource::Nproc, TASKS)?;
    }
    limit(Resource::As, memory)
}

fn limit(resource: Resource, most: u64) -> io::Result<()> {
    let limit = Rlimit {
        current: Some(most),
        maximum: Some(most),
    };
    Ok(rustix::process::setrlimit(resource, limit)?)
}
