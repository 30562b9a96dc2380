//! The confinement of a process that reads and writes a few files and does nothing else, such as the recorder of
//! calls: no other files, no programs, no network.

use std::path::Path;

use super::confinement;
use super::error::ConfineError;
use super::landlock_rules::{READ, Rules, WRITE};
use super::network::Network;
use super::seccomp::{Calls, SystemCalls};

/// Confines this process, for good, to reading and writing these files, and directories with all below. It has the
/// system calls that a process has which runs guests without a network.
///
/// # Errors
///
/// [`ConfineError`] if there is more than one thread, a path can't be opened, or the kernel supports a part of this
/// and fails to apply it.
pub fn only_files<'p>(paths: impl IntoIterator<Item = &'p Path>) -> Result<(), ConfineError> {
    confinement::alone(confinement::threads)?;
    // No path may be executed.
    let mut rules = Rules::new(&Network::None, true)?;
    for path in paths {
        rules.keep(path, READ | WRITE)?;
    }
    rules.keep_device("/dev/null".as_ref());
    rules.apply()?;
    let calls = Calls {
        list: SystemCalls::AllowList,
        network: Network::None,
        listeners: Vec::new(),
        page_maps: Vec::new(),
    };
    calls.apply()
}
