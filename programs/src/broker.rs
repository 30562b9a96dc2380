//! The shared state of all runs of a broker, the process that starts the programs: the `[[exec]]`
//! tables with their files open.

use std::ffi::OsString;
use std::fs::File;
use std::io;

use rustix::fs::{Mode, OFlags};
use toolward_host::secrets::read_file;
use toolward_policy::WorkspaceAccess;

use crate::file::{ExecProblem, Program};
use crate::frame::Start;
use crate::kernel::{self, Namespace};
use crate::line::{Line, Source};

/// The file in which a kernel states whether a program without an AppArmor profile is restricted in
/// user namespaces. If so, creating a namespace succeeds, but mapping a user into it fails.
const NAMESPACES_RESTRICTED: &str = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";

/// The shared state of all runs.
pub(crate) struct Broker {
    pub(crate) program: OsString,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) lines: Vec<OpenLine>,
    /// Whether children of a thread can get a separate process namespace.
    pub(crate) isolates: bool,
    /// Whether the kernel counts tasks (processes and threads) separately for this broker.
    pub(crate) counted: bool,
}

impl Broker {
    pub(crate) fn new(start: Start) -> io::Result<Self> {
        // Opened before entering the namespace, in which other users' files appear to belong to
        // `nobody`.
        let lines = start.lines.into_iter().map(OpenLine::open).collect();
        let counted = own_users()?;
        let tried =
            std::thread::Builder::new().spawn(|| kernel::leave(Namespace::Processes).is_ok());
        Ok(Self {
            program: start.program,
            arguments: start.arguments,
            lines,
            // If no thread can be started, each run finds out itself.
            isolates: tried.map_or(true, |tried| tried.join().unwrap_or_default()),
            counted,
        })
    }
}

/// Moves this process into a user namespace in which it may create other namespaces. Returns
/// whether this is allowed. The process must have only one thread. The user keeps its id. It is an
/// error if no id can be mapped, since the process could then not check the owner of a file.
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

/// A table whose files are open.
pub(crate) struct OpenLine {
    pub(crate) rule: Line,
    /// The program, or why it can't be run.
    pub(crate) program: Result<Program, ExecProblem>,
    pub(crate) workspaces: Vec<(File, WorkspaceAccess)>,
}

impl OpenLine {
    pub(crate) fn open(rule: Line) -> Self {
        let mut program = Program::open(&rule.command, rule.interpreter.as_ref());
        let mut workspaces = Vec::new();
        for (path, access) in &rule.workspaces {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            match rustix::fs::open(path, flags, Mode::empty()) {
                Ok(open) => workspaces.push((File::from(open), *access)),
                Err(error) => {
                    program = Err(ExecProblem::Workspace {
                        path: path.clone(),
                        problem: error.to_string(),
                    });
                }
            }
        }
        Self {
            rule,
            program,
            workspaces,
        }
    }

    /// The variables, with their current values.
    pub(crate) fn environment(&self) -> Result<Vec<(String, String)>, ExecProblem> {
        let each = self.rule.env.iter().map(|(name, source)| {
            let missing = |problem: &str| ExecProblem::Secret {
                name: name.clone(),
                problem: problem.to_owned(),
            };
            let value = match source {
                Source::Value(value) => value.clone(),
                Source::File(path) => {
                    let read = read_file(path).map_err(|error| missing(&error.to_string()))?;
                    let value = read.ok_or_else(|| missing("there is no such file"))?;
                    let text = String::from_utf8(value.bytes().to_vec());
                    text.map_err(|_| missing("it is no text"))?
                }
                Source::Missing => return Err(missing("it is not set")),
            };
            match value.contains('\0') {
                true => Err(missing("it holds a zero byte")),
                false => Ok((name.clone(), value)),
            }
        });
        each.collect()
    }
}
