//! Deserialises precompiled code: the one place where a forged byte would run as native
//! code. Each function names the check that makes its input trustworthy.
#![expect(
    unsafe_code,
    reason = "deserialising native code; each block names its check"
)]

use std::fs::File;
use std::os::fd::AsRawFd;

use wasmtime::component::Component;
use wasmtime::{Engine, Result};

/// Loads what this process's own compiler just returned, or bytes whose signature by
/// the broker has just been checked.
pub(super) fn from_own_bytes(engine: &Engine, bytes: &[u8]) -> Result<Component> {
    // SAFETY: the bytes come from `Compiler::compile` of this process, or from
    // the broker with a signature over component digest, engine hash and these
    // bytes; they have been in this process's memory ever since.
    unsafe { Component::deserialize(engine, bytes) }
}

/// Maps a file whose signature `open_genuine` has just checked over this
/// very open file.
pub(super) fn from_checked_file(engine: &Engine, file: &File) -> Result<Component> {
    // `/proc/self/fd/N` is the file that was checked, even if its path has been
    // replaced since.
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    // SAFETY: the signature over component digest, engine hash and content
    // matched, so the process that compiles wrote it for this engine; it lies
    // with mode 0400 in a 0700 directory that only this user can write to. The signature
    // after the artifact is mapped, too, and not read: the engine reads the sections that
    // the file's headers name, which the signature covers.
    unsafe { Component::deserialize_file(engine, path) }
}
