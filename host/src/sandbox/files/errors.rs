//! Maps failures to what a guest sees: a plain error, a refusal that
//! is recorded, or a limit that ends the call.

use std::io;

use rustix::io::Errno;
use wasmtime_wasi::p2::FsError;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use crate::api::violations::{ViolationKind, Violations};
use crate::sandbox::Exceeded;

/// Why an operation was not done.
#[derive(Debug)]
pub(super) enum Fail {
    /// Nothing out of the way.
    Code(ErrorCode),
    /// It lies beyond the grant.
    Refused(ErrorCode),
    /// It lies beyond a limit.
    Exceeded(Exceeded),
}

impl Fail {
    /// What the guest gets for it; a refusal of `path` is recorded.
    pub(super) fn raise(self, path: &str, violations: &Violations) -> FsError {
        match self {
            Self::Code(code) => code.into(),
            Self::Refused(code) => match violations.record(ViolationKind::Path, path) {
                Ok(()) => code.into(),
                Err(ends_call) => FsError::trap(ends_call),
            },
            Self::Exceeded(exceeded) => FsError::trap(exceeded),
        }
    }
}

impl From<ErrorCode> for Fail {
    fn from(code: ErrorCode) -> Self {
        Self::Code(code)
    }
}

impl From<Exceeded> for Fail {
    fn from(exceeded: Exceeded) -> Self {
        Self::Exceeded(exceeded)
    }
}

impl From<Errno> for Fail {
    fn from(errno: Errno) -> Self {
        match errno {
            // A symbolic link, a mount point, a device without a driver: none
            // of them exists for a guest.
            Errno::LOOP | Errno::XDEV | Errno::NXIO => Self::Refused(ErrorCode::NotPermitted),
            errno => Self::Code(code_of(errno)),
        }
    }
}

impl From<io::Error> for Fail {
    fn from(error: io::Error) -> Self {
        match Errno::from_io_error(&error) {
            Some(errno) => errno.into(),
            None => Self::Code(error.into()),
        }
    }
}

/// The code of an error of the operating system.
pub(super) fn code_of(errno: Errno) -> ErrorCode {
    match errno {
        Errno::AGAIN => ErrorCode::Busy,
        Errno::ROFS => ErrorCode::ReadOnly,
        Errno::DQUOT => ErrorCode::Quota,
        Errno::TXTBSY => ErrorCode::TextFileBusy,
        Errno::NODEV => ErrorCode::NoDevice,
        errno => io::Error::from(errno).into(),
    }
}
