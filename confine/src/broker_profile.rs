//! The confinement of a broker, which starts one program again and again and writes
//! into one directory.

use std::path::Path;

use crate::error::ConfineError;
use crate::landlock_rules::{DEVICE, PROGRAM, READ, Rules, WRITE};
use crate::seccomp::{self, Network};
use crate::system;

/// Confines this thread, and all that it starts from now on, to its own program (with
/// its libraries) and to `directory`.
///
/// # Errors
///
/// If the kernel supports a part of this and fails to apply it.
pub fn confine(program: &Path, directory: Option<&Path>) -> Result<(), ConfineError> {
    let mut rules = Rules::new(&Network::None, true)?;
    rules.keep_if_there(program, PROGRAM);
    for path in system::mapped_code() {
        rules.keep_if_there(&path, PROGRAM);
    }
    rules.keep_if_there("/etc/ld.so.cache".as_ref(), READ);
    rules.keep_if_there("/dev/null".as_ref(), DEVICE);
    if let Some(directory) = directory {
        rules.keep(directory, READ | WRITE)?;
    }
    rules.apply()?;
    seccomp::apply_to_broker()
}
