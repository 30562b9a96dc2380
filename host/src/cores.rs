//! How many processors this process may use.

use std::sync::OnceLock;

/// The processors that this process may use. Cached, since finding out reads files.
pub(crate) fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}
