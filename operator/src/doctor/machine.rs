//! Checks of the machine, the cache and the configuration.

use std::path::Path;

use toolward_host::confine::{self, Confinement, SystemCalls};
use toolward_host::{Cache, EngineProfile, Host, Limits, memory};

use super::{Check, mode, permissions};
use crate::config::{ConfigFile, default_config, is_missing};
use crate::environment::Environment;
use crate::trust::Trust;

/// Checks that the engine starts, with a pool of memories, which a limit on address space
/// prevents.
pub fn engine() -> Check {
    const NAME: &str = "engine";
    let starts = "the WebAssembly engine starts";
    let Err(without_pool) = EngineProfile::for_limits(&Limits::default()).engine() else {
        return Check::ok(NAME, starts);
    };
    match Host::builder().build() {
        Ok(_) => {
            let slower = "but without a pool of memories, so that calls are slower";
            Check::note(NAME, format!("{starts}, {slower}: {without_pool}"))
                .maybe_hint(without_pool.hint())
        }
        Err(error) => Check::error(NAME, error.to_string()).maybe_hint(error.hint()),
    }
}

/// Checks that the kernel can report which pages of a memory were written.
pub fn memory_reset() -> Check {
    const NAME: &str = "memory-reset";
    if memory::finds_written_pages() {
        let known = "the kernel has PAGEMAP_SCAN: only the pages that a call wrote are reset";
        return Check::ok(NAME, known);
    }
    let slow = "no PAGEMAP_SCAN: resetting memory between calls is slower";
    Check::note(NAME, slow).hint("Linux 6.7 or newer has it")
}

/// Checks which confinement this machine supports.
pub fn confinement() -> Check {
    const NAME: &str = "confinement";
    let outlook = confine::outlook();
    let parts = |held: bool| {
        let parts = outlook.parts.iter().filter(|part| part.held == held);
        parts.map(|part| part.what).collect::<Vec<_>>().join(", ")
    };
    let gives_up = "a process that runs drivers gives up";
    match outlook.state {
        confine::State::Full => {
            match is_refused(Confinement::builder(), || std::fs::read_dir("/").is_err()) {
                true => Check::ok(NAME, format!("{gives_up}: {}", parts(true))),
                false => Check::error(NAME, "a confined thread could still read a directory")
                    .hint("see whether a container or a security module stands in the way"),
            }
        }
        confine::State::Partial => {
            let found = format!("{gives_up}: {}; but not: {}", parts(true), parts(false));
            Check::warning(NAME, found).hint(format!("missing: {}", outlook.missing()))
        }
        confine::State::Unavailable => {
            let none =
                "this kernel can't confine a process: whoever escapes the sandbox has your rights";
            Check::warning(NAME, none).hint(format!("missing: {}", outlook.missing()))
        }
    }
}

/// Checks which list of system calls applies to a process that runs drivers, and that
/// it is enforced.
pub fn system_calls(trust: &Trust, environment: &Environment) -> Check {
    const NAME: &str = "system-calls";
    let calls = match trust.system_calls(environment) {
        Ok(calls) => calls,
        Err(failure) => return Check::of(NAME, Err(failure)),
    };
    if confine::outlook_with(calls).system_calls.is_none() {
        return Check::warning(
            NAME,
            "this kernel can't refuse system calls, or none are known for this machine",
        )
        .hint("a kernel with CONFIG_SECCOMP_FILTER, on x86-64, arm64 or 64-bit RISC-V");
    }
    // A harmless system call that is in neither list.
    let confinement = Confinement::builder().system_calls(calls);
    let refused = is_refused(confinement, || rustix::process::getsid(None).is_err());
    match (calls, refused) {
        (SystemCalls::AllowList, true) => Check::ok(
            NAME,
            "allow-list: a process that runs drivers makes the system calls that it needs, and \
             no others",
        ),
        (SystemCalls::DenyList, false) => Check::warning(
            NAME,
            "deny-list: a process that runs drivers makes every system call that is not known to \
             do harm",
        )
        .hint("take `system_calls` out of `[confine]` where the allow-list works"),
        (list, _) => Check::error(
            NAME,
            format!("a confined thread is not under the {}", list.as_str()),
        )
        .hint("see whether a container or a security module stands in the way"),
    }
}

/// Whether a thread with this confinement is refused something.
fn is_refused(confinement: Confinement, refused: fn() -> bool) -> bool {
    let thread = std::thread::Builder::new()
        .spawn(move || confinement.apply_to_this_thread().is_ok() && refused());
    thread.is_ok_and(|thread| thread.join().unwrap_or(false))
}

/// Checks that compiled drivers can be cached.
pub fn cache(environment: &Environment) -> Check {
    const NAME: &str = "cache";
    let Some(directory) = &environment.cache_directory else {
        return Check::warning(NAME, "there is no cache directory")
            .hint("set HOME or XDG_CACHE_HOME to an absolute path");
    };
    let shown = directory.display();
    if !directory.exists() {
        let later = format!("{shown}: not there yet, the first call makes it");
        return Check::ok(NAME, later);
    }
    match Cache::open(directory) {
        Ok(_) => Check::ok(NAME, format!("{shown} (mode {})", mode(directory))),
        Err(error) => Check::error(NAME, error.to_string()).maybe_hint(error.hint()),
    }
}

/// Checks that the configuration can be read, and that others can't change it.
pub fn configuration(named: Option<&Path>, environment: &Environment) -> Check {
    const NAME: &str = "configuration";
    let path = named.map(Path::to_owned);
    let Some(path) = path.or_else(|| default_config(environment)) else {
        return Check::warning(NAME, "there is no configuration directory")
            .hint("set HOME or XDG_CONFIG_HOME to an absolute path");
    };
    if named.is_none() && is_missing(&path) {
        return Check::note(
            NAME,
            format!("{}: not there; bundles need --trust-key", path.display()),
        );
    }
    if others_write(&path) || path.parent().is_some_and(others_write) {
        return Check::error(
            NAME,
            format!("{}: others can change whom you trust", path.display()),
        )
        .hint("take the right to write from group and others: chmod go-w, the directory too");
    }
    // A trust store never accepts the example key, so naming it is an error here.
    let store = ConfigFile::read(&path).and_then(|file| file.trust_store());
    let check = store.map(|store| match store.warnings().first() {
        Some(warning) => Check::warning(NAME, warning.as_str()),
        None => Check::ok(
            NAME,
            match store.publishers().count() {
                1 => format!("{} (1 publisher)", path.display()),
                count => format!("{} ({count} publishers)", path.display()),
            },
        ),
    });
    Check::of(NAME, check)
}

/// Checks that the publishers of `toolward trust` can be read.
pub fn publishers(trust: &Trust, environment: &Environment) -> Check {
    const NAME: &str = "publishers";
    let check = trust.trusted(environment).map(|trusted| {
        let mut known = format!("{} trusted by their documents", trusted.known.len());
        if !trusted.keys.is_empty() {
            known.push_str(&format!(", {} by bare keys", trusted.keys.len()));
        }
        Check::ok(NAME, known)
    });
    Check::of(NAME, check)
}

/// Whether group or others may write to a path.
fn others_write(path: &Path) -> bool {
    permissions(path).is_some_and(|mode| mode & 0o022 != 0)
}
