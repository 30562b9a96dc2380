//! The messages from the broker to a runner: first the open files, then the plan that describes
//! their use.

use std::io::{self, IoSlice, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};
use toolward_policy::{ExecLimits, WorkspaceAccess};

use toolward_support::helper::frames::{Body, frame, head};

/// The most files that a runner is given: see [`Files`].
const MAX_FILES: usize = 48;

/// The most bytes of a plan, which has the arguments of a table and the values of its secrets.
const PLAN_BYTES: usize = 8 << 20;

const PLAN: u8 = 1;

/// Describes the program that a runner becomes.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Plan {
    /// The name that the program gets (`argv[0]`).
    pub(crate) name: String,
    pub(crate) is_script: bool,
    /// The argument of the script's interpreter.
    pub(crate) argument: Option<String>,
    /// The program's arguments, after the path of the input.
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) network: bool,
    pub(crate) processes: bool,
    /// Whether tasks are counted separately for this broker.
    pub(crate) counted: bool,
    pub(crate) workspaces: Vec<WorkspaceAccess>,
    pub(crate) limits: ExecLimits,
    /// Whether the kernel only loads the program; see
    /// [`TRIAL_MEMORY`](super::runner::TRIAL_MEMORY).
    pub(crate) trial: bool,
}

/// The open files of a run.
pub(crate) struct Files<F> {
    pub(crate) stdout: F,
    pub(crate) stderr: F,
    pub(crate) input: F,
    pub(crate) command: F,
    pub(crate) interpreter: Option<F>,
    /// The workspaces, in the same order as in the plan.
    pub(crate) workspaces: Vec<F>,
}

/// Sends the files and the plan. The runner must receive them while it has one thread.
pub(crate) fn send(
    to: &mut UnixStream,
    plan: &Plan,
    files: &Files<BorrowedFd<'_>>,
) -> io::Result<()> {
    let fixed = [files.stdout, files.stderr, files.input, files.command];
    let others = files.interpreter.iter().chain(&files.workspaces).copied();
    let all: Vec<BorrowedFd<'_>> = fixed.into_iter().chain(others).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FILES))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if all.len() > MAX_FILES || !ancillary.push(SendAncillaryMessage::ScmRights(&all)) {
        return Err(io::Error::other("too many files"));
    }
    sendmsg(
        &*to,
        &[IoSlice::new(b"f")],
        &mut ancillary,
        SendFlags::NOSIGNAL,
    )?;
    frame(to, PLAN, &[&serde_json::to_vec(plan)?])
}

/// Receives the files and the plan.
pub(crate) fn receive(from: &mut (impl Read + AsFd)) -> io::Result<(Plan, Files<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FILES))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let flags = RecvFlags::CMSG_CLOEXEC;
    recvmsg(
        from.as_fd(),
        &mut [IoSliceMut::new(&mut byte)],
        &mut ancillary,
        flags,
    )?;
    let mut files = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            files.extend(rights);
        }
    }
    let Some((PLAN, length)) = head(from)? else {
        return Err(io::Error::other("no plan"));
    };
    let plan = Body::of(from, length, PLAN_BYTES)?.rest()?;
    let plan: Plan = serde_json::from_slice(&plan)?;
    let mut files = files.into_iter();
    let mut next = || {
        files
            .next()
            .ok_or_else(|| io::Error::other("a file is missing"))
    };
    let files = Files {
        stdout: next()?,
        stderr: next()?,
        input: next()?,
        command: next()?,
        interpreter: plan.is_script.then(&mut next).transpose()?,
        workspaces: (plan.workspaces.iter())
            .map(|_| next())
            .collect::<io::Result<_>>()?,
    };
    Ok((plan, files))
}

/// The byte with which a runner reports that it is ready, and will not outlive its broker.
pub(crate) const READY: u8 = b'r';

#[cfg(test)]
mod tests {
    use super::*;

    fn received(is_script: bool, argument: Option<String>) -> (Plan, Files<OwnedFd>) {
        let (mut broker, mut runner) = UnixStream::pair().unwrap();
        let null = std::fs::File::open("/dev/null").unwrap();
        let interpreter = is_script.then(|| null.as_fd());
        let plan = Plan {
            name: "program".to_owned(),
            is_script,
            argument,
            args: Vec::new(),
            env: Vec::new(),
            network: false,
            processes: false,
            counted: false,
            workspaces: Vec::new(),
            limits: ExecLimits::default(),
            trial: false,
        };
        let files = Files {
            stdout: null.as_fd(),
            stderr: null.as_fd(),
            input: null.as_fd(),
            command: null.as_fd(),
            interpreter,
            workspaces: Vec::new(),
        };
        send(&mut broker, &plan, &files).unwrap();
        receive(&mut runner).unwrap()
    }

    #[test]
    fn a_script_without_an_argument_stays_a_script() {
        for argument in [None, Some("-u".to_owned())] {
            let (plan, files) = received(true, argument.clone());
            assert_eq!(plan.argument, argument);
            assert!(plan.is_script && files.interpreter.is_some());
        }
        let (plan, files) = received(false, None);
        assert!(!plan.is_script && files.interpreter.is_none());
    }
}
