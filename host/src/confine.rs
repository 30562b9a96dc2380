//! Confines a process that runs guests, so that a guest that escapes the engine reaches little. The profiles are those of
//! `toolward-confine`; what a host needs of them is here.

pub use toolward_confine::{
    ALLOWED_CALLS, ConfineError, Confined, Confinement, FilesConfined, Group, Network, Part, State,
    SystemCalls, only_files, outlook, outlook_with,
};
