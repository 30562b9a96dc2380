//! Checks of the machine, the cache and the configuration.

use std::path::Path;

use toolward_host::confine::{self, Confinement, SystemCalls};
use toolward_host::{Cache, EngineProfile, Host, Limits, memory};

use super::{Check, State, mode};
use crate::config::{ConfigFile, default_config, is_missing};
use crate::environment::Environment;
use crate::trust::Trust;

/// Checks that the engine starts, with a pool of memories, which a limit on address space
/// prevents.
pub fn engine() -> Check {
    const NAME: &str = "engine";
    let starts = "the WebAssembly engine starts";
    let Err(without_pool) = EngineProfile::for_limits(&Limits::default()).engine() else {
        return Check::new(NAME, State::Ok, starts);
    };
    match Host::builder().build() {
        Ok(_) => Check::new(
            NAME,
            State::Note,
            format!(
                "{starts}, but without a pool of memories, so that calls are slower: {without_pool}"
            ),
        )
        .maybe_hint(without_pool.hint()),
        Err(error) => Check::new(NAME, State::Error, error.to_string()).maybe_hint(error.hint()),
    }
}

/// Checks that the kernel can report which pages of a memory were written.
pub fn memory_reset() -> Check {
    const NAME: &str = "memory-reset";
    if memory::finds_written_pages() {
        let known = "the kernel has PAGEMAP_SCAN: only the pages that a call wrote are reset";
        return Check::new(NAME, State::Ok, known);
    }
    let slow = "no PAGEMAP_SCAN: resetting memory between calls is slower";
    Check::new(NAME, State::Note, slow).hint("Linux 6.7 or newer has it")
}

/// Checks which confinement this machine supports.
pub fn confinement() -> Check {
    const NAME: &str = "confinement";
    let outlook = confine::outlook();
    let parts = |held: bool| {
        let parts = outlook.parts.iter().filter(|part| part.held == held);
        parts.map(|part| part.what).collect::<Vec<_>>().join(", ")
    };
    match outlook.state {
        confine::State::Full => match is_refused() {
            true => Check::new(
                NAME,
                State::Ok,
                format!("a process that runs drivers gives up: {}", parts(true)),
            ),
            false => Check::new(
                NAME,
                State::Error,
                "a confined thread could still read a directory",
            )
            .hint("see whether a container or a security module stands in the way"),
        },
        confine::State::Partial => Check::new(
            NAME,
            State::Warning,
            format!(
                "a process that runs drivers gives up: {}; but not: {}",
                parts(true),
                parts(false)
            ),
        )
        .hint(format!("missing: {}", outlook.missing())),
        confine::State::Unavailable => Check::new(
            NAME,
            State::Warning,
            "this kernel can't confine a process: whoever escapes the sandbox has your rights",
        )
        .hint(format!("missing: {}", outlook.missing())),
    }
}

/// Whether a confined thread is denied reading a directory.
fn is_refused() -> bool {
    let thread = std::thread::Builder::new().spawn(|| {
        let confined = Confinement::builder().apply_to_this_thread();
        confined.is_ok() && std::fs::read_dir("/").is_err()
    });
    thread.is_ok_and(|thread| thread.join().unwrap_or(false))
}

/// Checks which list of system calls applies to a process that runs drivers, and that
/// it is enforced.
pub fn system_calls(trust: &Trust, environment: &Environment) -> Check {
    const NAME: &str = "system-calls";
    let calls = match trust.system_calls(environment) {
        Ok(calls) => calls,
        Err(failure) => {
            return Check::failed(NAME, failure);
        }
    };
    if confine::outlook_with(calls).system_calls.is_none() {
        return Check::new(
            NAME,
            State::Warning,
            "this kernel can't refuse system calls, or none are known for this machine",
        )
        .hint("a kernel with CONFIG_SECCOMP_FILTER, on x86-64, arm64 or 64-bit RISC-V");
    }
    match (calls, refuses_what_is_not_listed(calls)) {
        (SystemCalls::AllowList, true) => Check::new(
            NAME,
            State::Ok,
            "allow-list: a process that runs drivers makes the system calls that it needs, and \
             no others",
        ),
        (SystemCalls::DenyList, false) => Check::new(
            NAME,
            State::Warning,
            "deny-list: a process that runs drivers makes every system call that is not known to \
             do harm",
        )
        .hint("take `system_calls` out of `[confine]` where the allow-list works"),
        (list, _) => Check::new(
            NAME,
            State::Error,
            format!("a confined thread is not under the {}", list.as_str()),
        )
        .hint("see whether a container or a security module stands in the way"),
    }
}

/// Whether a confined thread is denied a harmless system call that is in neither list.
fn refuses_what_is_not_listed(calls: SystemCalls) -> bool {
    let thread = std::thread::Builder::new().spawn(move || {
        let confinement = Confinement::builder().system_calls(calls);
        let confined = confinement.apply_to_this_thread();
        confined.is_ok() && rustix::process::getsid(None).is_err()
    });
    thread.is_ok_and(|thread| thread.join().unwrap_or(false))
}

/// Checks that compiled drivers can be cached.
pub fn cache(environment: &Environment) -> Check {
    const NAME: &str = "cache";
    let Some(directory) = &environment.cache_directory else {
        return Check::new(NAME, State::Warning, "there is no cache directory")
            .hint("set HOME or XDG_CACHE_HOME to an absolute path");
    };
    if !directory.exists() {
        return Check::new(
            NAME,
            State::Ok,
            format!(
                "{}: not there yet, the first call makes it",
                directory.display()
            ),
        );
    }
    match Cache::open(directory) {
        Ok(_) => Check::new(
            NAME,
            State::Ok,
            format!("{} (mode {})", directory.display(), mode(directory)),
        ),
        Err(error) => Check::new(NAME, State::Error, error.to_string()).maybe_hint(error.hint()),
    }
}

/// Checks that the configuration can be read, and that others can't change it.
pub fn configuration(named: Option<&Path>, environment: &Environment) -> Check {
    const NAME: &str = "configuration";
    let path = named.map(Path::to_owned);
    let Some(path) = path.or_else(|| default_config(environment)) else {
        return Check::new(NAME, State::Warning, "there is no configuration directory")
            .hint("set HOME or XDG_CONFIG_HOME to an absolute path");
    };
    if named.is_none() && is_missing(&path) {
        return Check::new(
            NAME,
            State::Note,
            format!("{}: not there; bundles need --trust-key", path.display()),
        );
    }
    if others_write(&path) || path.parent().is_some_and(others_write) {
        return Check::new(
            NAME,
            State::Error,
            format!("{}: others can change whom you trust", path.display()),
        )
        .hint("take the right to write from group and others: chmod go-w, the directory too");
    }
    match ConfigFile::read(&path).and_then(|file| file.trust_store()) {
        // A trust store never accepts the example key, so naming it is an error here.
        Err(failure) => Check::failed(NAME, failure),
        Ok(store) => match store.warnings().first() {
            Some(warning) => Check::new(NAME, State::Warning, warning.as_str()),
            None => Check::new(
                NAME,
                State::Ok,
                match store.publishers().count() {
                    1 => format!("{} (1 publisher)", path.display()),
                    count => format!("{} ({count} publishers)", path.display()),
                },
            ),
        },
    }
}

/// Checks that the publishers of `toolward trust` can be read.
pub fn publishers(trust: &Trust, environment: &Environment) -> Check {
    const NAME: &str = "publishers";
    match trust.trusted(environment) {
        Ok(trusted) => {
            let mut known = format!("{} trusted by their documents", trusted.known.len());
            if !trusted.keys.is_empty() {
                known.push_str(&format!(", {} by bare keys", trusted.keys.len()));
            }
            Check::new(NAME, State::Ok, known)
        }
        Err(failure) => Check::failed(NAME, failure),
    }
}

/// Whether group or others may write to a path.
fn others_write(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o022 != 0)
}
