//! Why a process is not confined.

use std::path::PathBuf;

use toolward_support::report::codes;

codes! {
    /// Why a process is not confined.
    #[derive(Debug)]
    pub enum ConfineError: Error {
        Threads(count: usize) = "confine-threads",
            "the process can't be confined: it has other threads already; `--no-confine` runs drivers without",
            ("the process has {count} threads; confine it while it has one")
            => "confine the process first thing, before the async runtime starts";
        Path { path: PathBuf, source: BoxError } = "confine-path",
            "the process can't be confined: a path that it keeps can't be opened; `--no-confine` runs drivers without",
            ("{}, which was to be kept, can't be opened: {source}", path.display())
            => "name what is there and may be opened";
        Incomplete(missing: String) = "confine-incomplete",
            "the kernel supports only a part of the confinement, and an embedder requires all",
            ("this kernel can't confine a process fully: {missing}")
            => "use a newer kernel, or do without the strict mode";
        Refused(source: BoxError) = "confine-refused",
            "the kernel refused the confinement of the process; `--no-confine` runs drivers without",
            ("the kernel refused the confinement: {source}")
            => "see whether something else forbids it, such as a container";
    }
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;
