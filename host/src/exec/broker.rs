//! What all runs of a broker share.

use std::ffi::OsString;
use std::io;

use super::frame::Start;
use super::kernel::{self, Namespace};
use super::open_line::OpenLine;

/// Where a kernel says whether a program without a profile of its own may use a namespace of users. Where it may not,
/// making one succeeds, and mapping a user into it fails.
const NAMESPACES_RESTRICTED: &str = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";

/// What all runs share.
pub(super) struct Broker {
    pub(super) program: OsString,
    pub(super) arguments: Vec<OsString>,
    pub(super) lines: Vec<OpenLine>,
    /// Whether children of a thread can be given a namespace of processes.
    pub(super) isolates: bool,
    /// Whether the kernel counts tasks for this broker alone.
    pub(super) counted: bool,
}

impl Broker {
    pub(super) fn new(start: Start) -> io::Result<Self> {
        // Before the namespace: in it the files of others are nobody's.
        let lines = start.lines.into_iter().map(OpenLine::open).collect();
        let counted = own_users()?;
        let tried =
            std::thread::Builder::new().spawn(|| kernel::leave(Namespace::Processes).is_ok());
        Ok(Self {
            program: start.program,
            arguments: start.arguments,
            lines,
            // Where no thread can be started, each run finds out.
            isolates: tried.map_or(true, |tried| tried.join().unwrap_or_default()),
            counted,
        })
    }
}

/// Puts this process, while it has one thread, into a namespace of users in which it may make others, if it may.
/// The user keeps its id. If no id can be mapped, the process could not tell whose a file is, so that is an error.
fn own_users() -> io::Result<bool> {
    let user = rustix::process::geteuid().as_raw();
    let group = rustix::process::getegid().as_raw();
    let restricted = std::fs::read_to_string(NAMESPACES_RESTRICTED);
    let restricted = user != 0 && restricted.is_ok_and(|text| text.trim() == "1");
    if restricted || kernel::leave(Namespace::User).is_err() {
        return Ok(false);
    }
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    Ok(true)
}
