//! Files that a process has open because whoever started it left them open.

#![expect(unsafe_code, reason = "a call of the kernel that takes numbers")]

use std::io;

/// Has all files but the standard streams closed when a program is executed: whoever started this process may have
/// left some open.
///
/// # Errors
/// If the kernel is older than 5.11.
pub fn close_on_exec() -> io::Result<()> {
    const FIRST: libc::c_uint = 3;
    const CLOSE_RANGE_CLOEXEC: libc::c_uint = 4;
    // SAFETY: three numbers; it closes nothing in this program.
    let done = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            FIRST,
            libc::c_uint::MAX,
            CLOSE_RANGE_CLOEXEC,
        )
    };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
