//! For a process that starts one program over and over and writes into one
//! directory: a broker.

use std::path::Path;

use super::error::ConfineError;
use super::landlock_rules::{READ, Rules, WRITE};
use super::network::Network;
use super::{seccomp, system};

/// Confines this thread, and all that it starts from now on, to the program
/// that it is (with its libraries) and to `directory`.
///
/// # Errors
///
/// When the kernel has a part of this and refuses to use it.
pub(crate) fn confine(program: &Path, directory: Option<&Path>) -> Result<(), ConfineError> {
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
