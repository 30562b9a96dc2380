//! `doctor`: whether this machine and installation are fit for the work. Every
//! check does what it speaks of.

use crate::flags::Flagged;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use serde_json::json;
use toolward_author::build;
use toolward_bundle::text::visible_line;
use toolward_host::confine::{self, Confinement, SystemCalls};
use toolward_host::{Cache, Host};

use super::build::guest_cargo;
use super::{doctor_policy, doctor_store};
use crate::environment::Environment;
use crate::failure::{Exit, Failure};
use crate::output::Output;
use toolward_operator::config::{ConfigFile, PolicyFiles, default_config, is_missing};
use toolward_operator::installed::StoreLocation;
use toolward_operator::trust::Trust;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The Cargo of the guest toolchain [default: TOOLWARD_GUEST_CARGO, else
    /// cargo]
    #[arg(long, value_name = "PROGRAM")]
    guest_cargo: Option<std::ffi::OsString>,

    /// Check this configuration [default: toolward.toml in the user's
    /// configuration directory]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    #[command(flatten)]
    policies: Flagged<PolicyFiles>,

    #[command(flatten)]
    store: Flagged<StoreLocation>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    Ok,
    /// Something is missing that not everybody needs.
    Note,
    Warning,
    Error,
}

#[derive(Debug, Serialize)]
pub(super) struct Check {
    name: &'static str,
    state: State,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl Check {
    pub(super) fn new(name: &'static str, state: State, message: impl Into<String>) -> Self {
        Self {
            name,
            state,
            message: message.into(),
            hint: None,
        }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

pub(crate) fn run(
    arguments: &Arguments,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let trust = Trust::of_config(arguments.config.clone());
    let mut checks = vec![
        Check::new("version", State::Ok, version()),
        engine(),
        memory_reset(),
        confinement(),
        system_calls(&trust, environment),
        cache(environment),
        configuration(arguments.config.as_deref(), environment),
        publishers(&trust, environment),
        guest_toolchain(arguments, environment),
    ];
    checks.extend(doctor_store::checks(
        &arguments.store,
        &trust,
        environment,
        output,
    ));
    checks.extend(doctor_policy::checks(
        &trust,
        &arguments.policies,
        environment,
    ));
    let failed = checks.iter().any(|check| check.state == State::Error);
    if output.json() {
        output.value(&json!({ "ok": !failed, "checks": checks }))?;
    } else {
        for check in &checks {
            let state = match check.state {
                State::Ok => "ok     ",
                State::Note => "note   ",
                State::Warning => "warning",
                State::Error => "ERROR  ",
            };
            output.line(format!(
                "{state}  {:<15}  {}",
                check.name,
                visible_line(&check.message, 1000)
            ))?;
            if let Some(hint) = &check.hint {
                output.line(format!("         hint: {}", visible_line(hint, 1000)))?;
            }
        }
    }
    Ok(if failed { Exit::Failed } else { Exit::Fine })
}

fn version() -> String {
    format!(
        "toolward {} on {} {}",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH
    )
}

/// The engine reserves its pool of memory; a limit on address space stops that.
fn engine() -> Check {
    match Host::builder().build() {
        Ok(_) => Check::new("engine", State::Ok, "the WebAssembly engine starts"),
        Err(error) => {
            let check = Check::new("engine", State::Error, error.to_string());
            match error.hint() {
                Some(hint) => check.hint(hint),
                None => check,
            }
        }
    }
}

fn memory_reset() -> Check {
    if wasmtime::PoolingAllocationConfig::is_pagemap_scan_available() {
        return Check::new(
            "memory-reset",
            State::Ok,
            "the kernel has PAGEMAP_SCAN: only the pages that a call wrote are reset",
        );
    }
    Check::new(
        "memory-reset",
        State::Note,
        "no PAGEMAP_SCAN: resetting memory between calls is slower",
    )
    .hint("Linux 6.7 or newer has it")
}

/// What a process that runs drivers gives up, here.
fn confinement() -> Check {
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

/// Confines a thread, and lets it try.
fn is_refused() -> bool {
    let thread = std::thread::spawn(|| {
        let confined = Confinement::builder().apply_to_this_thread();
        confined.is_ok() && std::fs::read_dir("/").is_err()
    });
    thread.join().unwrap_or(false)
}

/// Which list of system calls holds, and whether it does.
fn system_calls(trust: &Trust, environment: &Environment) -> Check {
    const NAME: &str = "system-calls";
    let calls = match trust.system_calls(environment) {
        Ok(calls) => calls,
        Err(failure) => {
            let check = Check::new(NAME, State::Error, failure.message);
            return match failure.hints.first() {
                Some(hint) => check.hint(hint.as_str()),
                None => check,
            };
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

/// Confines a thread, and lets it make a harmless call that neither list names.
fn refuses_what_is_not_listed(calls: SystemCalls) -> bool {
    let thread = std::thread::spawn(move || {
        let confinement = Confinement::builder().system_calls(calls);
        let confined = confinement.apply_to_this_thread();
        confined.is_ok() && rustix::process::getsid(None).is_err()
    });
    thread.join().unwrap_or(false)
}

fn cache(environment: &Environment) -> Check {
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
        Err(error) => {
            let check = Check::new(NAME, State::Error, error.to_string());
            match error.hint() {
                Some(hint) => check.hint(hint),
                None => check,
            }
        }
    }
}

fn configuration(named: Option<&Path>, environment: &Environment) -> Check {
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
        // A store never takes the example key: naming it is an error here.
        Err(failure) => {
            let check = Check::new(NAME, State::Error, failure.message);
            match failure.hints.first() {
                Some(hint) => check.hint(hint.as_str()),
                None => check,
            }
        }
        Ok(store) => match store.warnings().first() {
            Some(warning) => Check::new(NAME, State::Warning, warning.as_str()),
            None => Check::new(
                NAME,
                State::Ok,
                format!(
                    "{} ({} publishers)",
                    path.display(),
                    store.publishers().count()
                ),
            ),
        },
    }
}

/// The publishers that are trusted by their documents.
fn publishers(trust: &Trust, environment: &Environment) -> Check {
    const NAME: &str = "publishers";
    match trust.trusted(environment) {
        Ok(trusted) => {
            let known = format!("{} trusted by their documents", trusted.known.len());
            Check::new(NAME, State::Ok, known)
        }
        Err(failure) => {
            let check = Check::new(NAME, State::Error, failure.message);
            match failure.hints.first() {
                Some(hint) => check.hint(hint.as_str()),
                None => check,
            }
        }
    }
}

/// Only authors need it, so that its absence is no error.
fn guest_toolchain(arguments: &Arguments, environment: &Environment) -> Check {
    const NAME: &str = "guest-toolchain";
    let cargo = guest_cargo(arguments.guest_cargo.as_ref(), environment);
    let shown = cargo.to_string_lossy();
    match build::probe(&cargo) {
        Ok(()) => Check::new(
            NAME,
            State::Ok,
            format!("{shown} makes components for {}", build::TARGET),
        ),
        Err(error) => {
            let check = Check::new(
                NAME,
                State::Note,
                format!("{shown} makes no components, so that `build` won't work: {error}"),
            );
            match error.hint() {
                Some(hint) => check.hint(hint),
                None => check,
            }
        }
    }
}

#[cfg(unix)]
pub(super) fn mode(path: &Path) -> String {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).map_or_else(
        |_| "unknown".to_owned(),
        |metadata| format!("{:04o}", metadata.permissions().mode() & 0o7777),
    )
}

#[cfg(not(unix))]
pub(super) fn mode(_path: &Path) -> String {
    "not known on this system".to_owned()
}

#[cfg(unix)]
fn others_write(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o022 != 0)
}

#[cfg(not(unix))]
fn others_write(_path: &Path) -> bool {
    false
}
