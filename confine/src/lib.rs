//! Confines processes. Each profile is a set of Landlock rules and a filter for system calls.
//!
//! | profile | for | files | system calls |
//! |---|---|---|---|
//! | [`Confinement`] | a process that runs guests | the named ones | an allow-list |
//! | [`compile_profiles::worker`] | a process that compiles a component | none | memory, threads, open files |
//! | [`compile_profiles::broker`] | the process that starts the workers | its program, the cache | all but a deny-list |
//! | [`program_profile`] | a program that an operator names | itself, libraries, workspaces | all but a longer deny-list |
//! | [`only_files`] | the recorder of calls | its files | the allow-list without network |
//! | [`build_profile`] | the programs of a bundle's build | system and checkout; scratch to write | all but a deny-list; modes and times through an overseer |
//!
//! # Processes that run guests
//!
//! [`Confinement`] confines a process that runs guests. So a guest that escapes from the engine can
//! access little: the files and the network that the confinement names, and no other programs. A
//! process can't regain a right that it gave up.
//!
//! There are two layers. The first restricts **files** and the network; the process can still start
//! helpers, under the same rules. The second forbids **programs**: no file can be executed any
//! more, even if the first layer allows it. Start helpers before the second layer.
//!
//! A confinement applies to the thread that confines itself, and to all threads that this thread
//! starts later. So apply it while the process has only one thread: before the runtime or a
//! progress bar starts.

pub mod build_profile;
pub mod compile_profiles;
mod confinement;
mod landlock_rules;
pub mod program_profile;
mod report;
mod seccomp;
mod system;

use std::path::PathBuf;

use toolward_support::report::codes;

pub use confinement::{Confinement, FilesConfined, only_files};
pub use report::{Confined, Part, State, outlook, outlook_with};
pub use seccomp::allowed::{GROUPS as ALLOWED_CALLS, Group};
pub use seccomp::{Network, SystemCalls};

codes! {
    /// Why a process is not confined.
    #[derive(Debug)]
    pub enum ConfineError: Error {
        Threads(count: usize) = "confine-threads",
            "the process can't be confined: it has other threads already; `--no-confine` runs drivers without confinement",
            ("the process has {count} threads; confine it while it has one")
            => "confine the process first thing, before the async runtime starts";
        Path(path: PathBuf, source: BoxError) = "confine-path",
            "the process can't be confined: a path that it needs can't be opened; `--no-confine` runs drivers without confinement",
            ("{}, which was to be kept, can't be opened: {source}", path.display())
            => "name what is there and may be opened";
        Incomplete(missing: String) = "confine-incomplete",
            "the kernel supports only a part of the confinement, and the embedder requires all of it",
            ("this kernel can't confine a process fully: {missing}")
            => "use a newer kernel, or do without the strict mode";
        Refused(source: BoxError) = "confine-refused",
            "the kernel refused the confinement of the process; `--no-confine` runs drivers without confinement",
            ("the kernel refused the confinement: {source}")
            => "see whether something else forbids it, such as a container";
    }
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;
