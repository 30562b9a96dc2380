//! How linear memories lie in the address space.

/// How linear memories lie in the address space. Compiled code depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MemoryLayout {
    /// A pool in which each memory has 4 GiB, so that code needs no bounds checks.
    Pooled,
    /// Each memory takes what it uses: for processes without address space for the pool,
    /// as under `ulimit -v` or on kernels with 39 bits. Code checks bounds.
    Compact,
}
