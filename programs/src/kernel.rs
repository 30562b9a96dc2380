//! System calls that drop rights or create namespaces. No library that this crate uses has them.

#![expect(
    unsafe_code,
    reason = "calls of the kernel that take numbers, or a structure of numbers"
)]

use std::io;

/// A kind of namespace.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Namespace {
    /// A user namespace, in which this process has the rights to create other namespaces. The
    /// process must have only one thread.
    User,
    /// A process namespace for the children of this thread. All children end with the first one.
    Processes,
}

/// Leaves the current namespace of this process, or of this thread's children, for a new one.
pub(crate) fn leave(namespace: Namespace) -> io::Result<()> {
    let flag = match namespace {
        Namespace::User => libc::CLONE_NEWUSER,
        Namespace::Processes => libc::CLONE_NEWPID,
    };
    // SAFETY: passes only a number. Descriptors stay shared, since the number does not include
    // `CLONE_FILES`.
    let done = unsafe { libc::unshare(flag) };
    result(libc::c_long::from(done))
}

/// Drops all capabilities of this thread. This is permanent once `no_new_privs` is set for the
/// thread.
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
    // The effective, permitted and inheritable sets, each of two times 32 bits.
    let none = [0_u32; 6];
    // SAFETY: both values are valid until the call returns, and have the layout of `VERSION_3`.
    let done = unsafe { libc::syscall(libc::SYS_capset, &raw const header, &raw const none) };
    result(done)
}

fn result(done: libc::c_long) -> io::Result<()> {
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
