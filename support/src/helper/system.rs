//! System calls without a safe function, and signals that end a process unless it handles them.

#![expect(
    unsafe_code,
    reason = "calls of the kernel, and the handler of a signal"
)]

use std::io;

/// Makes a write beyond the limit on the size of files (`ulimit -f`) fail with `EFBIG`. Otherwise
/// the signal `SIGXFSZ` ends the process. The signal is not ignored, but gets a handler that does
/// nothing. So programs that this process executes start with the default again. An application's
/// own handler stays.
///
/// # Errors
/// If the system refuses.
pub fn survive_file_limit() -> io::Result<()> {
    survive(libc::SIGXFSZ)
}

/// Makes `SIGTERM`, `SIGINT` and `SIGHUP` do nothing. A service manager sends these to all
/// processes of a service, but a helper must run until its host has sent everything and closes the
/// connection. Needs neither files nor threads.
///
/// # Errors
/// If the system refuses.
pub fn survive_termination() -> io::Result<()> {
    [libc::SIGTERM, libc::SIGINT, libc::SIGHUP]
        .into_iter()
        .try_for_each(survive)
}

/// Sets a handler that does nothing, if the signal still has its default disposition.
fn survive(signal: libc::c_int) -> io::Result<()> {
    extern "C" fn nothing(_signal: libc::c_int) {}

    // SAFETY: the structure has numbers and pointers, for which zero is valid.
    let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: the call only writes the current disposition into `before`.
    let done = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut before) };
    succeeded(done == 0)?;
    if before.sa_sigaction != libc::SIG_DFL {
        return Ok(());
    }
    // SAFETY: as above; the mask is empty.
    let mut handler: libc::sigaction = unsafe { std::mem::zeroed() };
    handler.sa_sigaction = nothing as *const () as libc::sighandler_t;
    handler.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
    // SAFETY: the handler does nothing, so it may run at any time on any thread.
    let done = unsafe { libc::sigaction(signal, &raw const handler, std::ptr::null_mut()) };
    succeeded(done == 0)
}

/// The error of the last system call, unless it succeeded.
fn succeeded(success: bool) -> io::Result<()> {
    match success {
        true => Ok(()),
        false => Err(io::Error::last_os_error()),
    }
}

/// Makes all files except the standard streams close when a program is executed, since this process
/// may have inherited open files.
///
/// # Errors
/// If the system refuses, for example because the kernel is older than 5.11.
pub fn close_on_exec() -> io::Result<()> {
    const FIRST: libc::c_uint = 3;
    const CLOSE_RANGE_CLOEXEC: libc::c_uint = 4;
    // SAFETY: the arguments are three numbers, and the call closes no file in this process.
    let done = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            FIRST,
            libc::c_uint::MAX,
            CLOSE_RANGE_CLOEXEC,
        )
    };
    succeeded(done == 0)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::Command;

    use super::*;

    /// The variable with the file for the process that the test starts. Without the variable, this
    /// is the parent.
    const FILE: &str = "TOOLWARD_TEST_LIMITED_FILE";

    #[test]
    fn a_write_beyond_the_limit_fails_and_a_program_that_is_executed_has_the_default() {
        if let Some(path) = std::env::var_os(FILE) {
            return write_beyond(std::path::Path::new(&path));
        }
        let directory = tempfile::tempdir().unwrap();
        let name = "system::tests::\
                    a_write_beyond_the_limit_fails_and_a_program_that_is_executed_has_the_default";
        let status = Command::new("sh")
            .args(["-c", "ulimit -f 8; exec \"$0\" \"$@\""])
            .arg(std::env::current_exe().unwrap())
            .args([name, "--exact", "--nocapture"])
            .env(FILE, directory.path().join("file"))
            .output()
            .unwrap();
        assert!(status.status.success(), "{status:?}");
    }

    fn write_beyond(path: &std::path::Path) {
        survive_file_limit().unwrap();
        let mut file = std::fs::File::create(path).unwrap();
        let block = vec![b'x'; 1 << 20];
        let error = file.write_all(&block).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EFBIG));
        let mut program = Command::new("sh");
        program.args(["-c", "kill -XFSZ $$; exit 0"]);
        assert!(!program.status().unwrap().success(), "it has the default");
    }
}
