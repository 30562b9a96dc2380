//! The calls that take rights away or make namespaces, and that no library of this crate has.

#![expect(
    unsafe_code,
    reason = "calls of the kernel that take numbers, or a structure of numbers"
)]

use std::io;

/// A namespace that calls can be made in.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Namespace {
    /// Of users: in it this process has the rights that it takes to make others. Only while it has one thread.
    User,
    /// Of processes: for the children of this thread. All of them end with the first.
    Processes,
}

/// Leaves the namespace of this process, or of this thread's children.
pub(crate) fn leave(namespace: Namespace) -> io::Result<()> {
    let flag = match namespace {
        Namespace::User => libc::CLONE_NEWUSER,
        Namespace::Processes => libc::CLONE_NEWPID,
    };
    // SAFETY: a number; descriptors stay shared, since `CLONE_FILES` is not in it.
    let done = unsafe { libc::unshare(flag) };
    result(libc::c_long::from(done))
}

/// Gives up all capabilities of this thread, for good once it can gain no rights.
pub(crate) fn drop_capabilities() -> io::Result<()> {
    const VERSION_3: u32 = 0x2008_0522;
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    let header = Header {
        version: VERSION_3,
        pid: 0,
    };
    // Effective, permitted and inheritable, twice 32 bits each.
    let none = [0_u32; 6];
    // SAFETY: both live until the call returns, and have the layout of its version.
    let done = unsafe { libc::syscall(libc::SYS_capset, &raw const header, &raw const none) };
    result(done)
}

fn result(done: libc::c_long) -> io::Result<()> {
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
