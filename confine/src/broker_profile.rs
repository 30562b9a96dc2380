//! The confinement of a broker, which starts one program again and again and writes
//! into one directory.

use std::path::Path;

use super::error::ConfineError;
use super::landlock_rules::{READ, Rules, WRITE};
use super::{seccomp, system};
use crate::seccomp::Network;

/// Confines this thread, and all that it starts from now on, to its own program (with
/// its libraries) and to `directory`.
///
/// # Errors
///
/// If the kernel supports a part of this and fails to apply it.
pub fn confine(program: &Path, directory: Option<&Path>) -> Result<(), ConfineError> {
    let mut rules = Rules::new(&Network::None, true)?;
    rules.keep_program(program);
    for path in system::mapped_code() {
        rules.keep_program(&path);
    }
    rules.keep_if_there("/etc/ld.so.cache".as_ref());
    rules.keep_device("/dev/null".as_ref());
    if let Some(directory) = directory {
        rules.keep(directory, READ | WRITE)?;
    }
    rules.apply()?;
    seccomp::apply_to_broker()
}
