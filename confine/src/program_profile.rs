//! The confinement of a program that an operator lets run outside the sandbox. The program can
//! access its own file, the system's libraries, a few devices, and the workspaces that its table in
//! the policy names. It can make sockets and start processes only if that table allows them.

use std::os::fd::{AsFd, OwnedFd};

use landlock::{ABI, AccessFs};
use seccompiler::BpfProgram;

use crate::ConfineError;
use crate::landlock_rules::{DEVICE, PROGRAM, READ, Rules, WRITE};
use crate::report;
use crate::seccomp::{self, Network};
use crate::system;

/// The rights that a program keeps.
#[derive(Debug)]
pub struct ProgramRights<'a, W> {
    /// The file that is executed.
    pub executed: &'a OwnedFd,
    /// The script, if the program is an interpreter.
    pub read: Option<&'a OwnedFd>,
    /// Open directories, each with whether it may be written.
    pub workspaces: W,
    /// Whether the program may make connections.
    pub network: bool,
    /// Whether the program may start processes.
    pub processes: bool,
}

/// A prepared confinement. Applying it allocates no memory.
#[must_use]
pub struct Profile {
    rules: Rules,
    calls: Option<BpfProgram>,
}

/// Checks that this kernel can confine a program. `isolated` states that the program has a separate
/// process namespace.
///
/// # Errors
///
/// The missing parts, as text for people.
pub fn holds(isolated: bool) -> Result<(), String> {
    // Without a process namespace, only Landlock keeps the program from sending signals to other
    // processes.
    let (needed, words) = match isolated {
        true => (ABI::V3, "Landlock of Linux 6.2"),
        false => (ABI::V6, "Landlock of Linux 6.12"),
    };
    let landlock = (report::landlock() < needed).then_some(words);
    let seccomp = (!seccomp::is_available()).then_some("seccomp");
    let missing: Vec<&str> = landlock.into_iter().chain(seccomp).collect();
    match missing.is_empty() {
        true => Ok(()),
        false => Err(format!("missing: {}", missing.join(", "))),
    }
}

/// Prepares the confinement of one program.
///
/// # Errors
///
/// If the kernel supports a part of this profile, but setting up that part fails.
pub fn prepare<'a>(
    kept: &'a ProgramRights<'a, impl Iterator<Item = (&'a OwnedFd, bool)> + Clone>,
) -> Result<Profile, ConfineError> {
    let network = match kept.network {
        true => Network::Any,
        false => Network::None,
    };
    let mut rules = Rules::new(&network, true)?;
    rules.keep_open(kept.executed.as_fd(), PROGRAM)?;
    if let Some(script) = kept.read {
        rules.keep_open(script.as_fd(), AccessFs::ReadFile.into())?;
    }
    for (directory, writable) in kept.workspaces.clone() {
        let access = match writable {
            false => READ,
            true => READ | WRITE,
        };
        rules.keep_open(directory.as_fd(), access)?;
    }
    rules.keep_if_there(system::LOADERS, PROGRAM);
    rules.keep_if_there(system::LIBRARIES, READ);
    if kept.network {
        rules.keep_if_there(system::files(), READ);
    }
    rules.keep_if_there(["/dev/null"], DEVICE);
    rules.keep_if_there(["/dev/zero", "/dev/urandom", "/dev/random"], READ);
    Ok(Profile {
        rules,
        calls: seccomp::for_program(network, kept.processes)?,
    })
}

impl Profile {
    /// Confines this thread permanently.
    ///
    /// # Errors
    ///
    /// If the kernel refuses, or this code has no system-call filter for the machine.
    pub fn apply(self) -> Result<(), ConfineError> {
        let refused = |what: &str| ConfineError::Incomplete(what.to_owned());
        let calls = self.calls.ok_or_else(|| refused("seccomp"))?;
        self.rules.apply()?;
        seccompiler::apply_filter(&calls).map_err(|error| ConfineError::Refused(error.into()))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::OwnedFd;

    use rustix::fs::{MemfdFlags, Mode, Timestamps, fchmod, futimens, memfd_create};
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn a_program_holds_no_memory_in_files_and_changes_none_that_it_may_only_read() {
        if holds(true).is_err() {
            eprintln!("SKIPPED: this kernel confines no program");
            return;
        }
        let confined = std::thread::spawn(|| {
            let executed = OwnedFd::from(File::open("/proc/self/exe").unwrap());
            let own = File::open("/proc/self/exe").unwrap();
            let profile = prepare(&ProgramRights {
                executed: &executed,
                read: None,
                workspaces: std::iter::empty(),
                network: false,
                processes: false,
            });
            profile.unwrap().apply().unwrap();
            let times = Timestamps {
                last_access: rustix::fs::Timespec {
                    tv_sec: 0,
                    tv_nsec: rustix::fs::UTIME_OMIT,
                },
                last_modification: rustix::fs::Timespec {
                    tv_sec: 0,
                    tv_nsec: rustix::fs::UTIME_OMIT,
                },
            };
            [
                memfd_create("memory", MemfdFlags::empty()).map(|_| ()),
                fchmod(&own, Mode::from_raw_mode(0o755)),
                futimens(&own, &times),
            ]
        });
        assert_eq!(confined.join().unwrap(), [Err(Errno::PERM); 3]);
    }
}
