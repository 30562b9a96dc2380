//! Checks that the configuration works on this machine. Most checks try the operation that they
//! report on.

mod policy;

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde::Serialize;
use toolward_host::confine::{self, Confinement, SystemCalls};
use toolward_host::{Cache, EngineProfile, Host, Limits, memory};
use toolward_ledger::Reader;

use crate::config::{ConfigFile, default_config, is_missing};
use crate::installed::{self, StoreLocation, next_step};
use crate::lasting_changes::LastingChanges;
use crate::trust::Trust;
use crate::{Environment, Error, Result, joined};

pub use policy::{policy, policy_warnings, unused_rule_warnings, unused_rules};

/// The outcome of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckState {
    /// It works.
    Ok,
    /// Something optional is missing.
    Note,
    /// It works only partly or badly.
    Warning,
    /// It does not work.
    Error,
}

/// One check and its outcome.
///
/// ```no_run
/// use toolward_operator::Environment;
/// use toolward_operator::doctor::{self, CheckState};
/// use toolward_operator::trust::Trust;
///
/// for check in doctor::machine(&Trust::default(), None, &Environment::of_process()) {
///     if check.state != CheckState::Ok {
///         println!("{}: {}", check.name, check.message);
///     }
/// }
/// ```
#[derive(Debug, Clone, Serialize)]
pub struct Check {
    /// What was checked, such as `confinement`.
    pub name: &'static str,
    /// The outcome.
    pub state: CheckState,
    /// What was found. May hold untrusted text.
    pub message: String,
    /// The next step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Check {
    pub(crate) fn ok(message: impl Into<String>) -> Self {
        Self::new(CheckState::Ok, message)
    }

    fn note(message: impl Into<String>) -> Self {
        Self::new(CheckState::Note, message)
    }

    pub(crate) fn warning(message: impl Into<String>) -> Self {
        Self::new(CheckState::Warning, message)
    }

    pub(crate) fn error(message: impl Into<String>) -> Self {
        Self::new(CheckState::Error, message)
    }

    /// A check with this outcome.
    pub fn new(state: CheckState, message: impl Into<String>) -> Self {
        Self {
            name: "",
            state,
            message: message.into(),
            hint: None,
        }
    }

    /// Returns the same check with a name.
    #[must_use]
    pub fn named(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    /// Adds the next step.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        self.maybe_hint(Some(hint.into()))
    }

    /// Adds the next step, if there is one.
    #[must_use]
    pub fn maybe_hint(self, hint: Option<impl Into<String>>) -> Self {
        let hint = hint.map(Into::into);
        Self { hint, ..self }
    }

    /// Returns the outcome of a check, or the error with which the check failed.
    pub(crate) fn of(checked: Result<Self>) -> Self {
        checked.unwrap_or_else(|error| {
            let hint = error.hints.into_iter().next();
            Self::error(error.message).maybe_hint(hint)
        })
    }
}

/// The permissions of a file or directory.
fn permissions(path: &Path) -> Option<u32> {
    let metadata = path.metadata().ok()?;
    Some(metadata.permissions().mode() & 0o7777)
}

/// The permissions in octal digits.
fn mode(path: &Path) -> String {
    permissions(path).map_or_else(|| "unknown".to_owned(), |mode| format!("{mode:04o}"))
}

/// Runs the checks of this machine and of the configuration (`config`, or the user's own).
pub fn machine(trust: &Trust, config: Option<&Path>, environment: &Environment) -> Vec<Check> {
    vec![
        engine().named("engine"),
        memory_reset().named("memory-reset"),
        confinement().named("confinement"),
        system_calls(trust, environment).named("system-calls"),
        cache(environment).named("cache"),
        configuration(config, environment).named("configuration"),
        publishers(trust, environment).named("publishers"),
        ledger(trust, environment).named("ledger"),
    ]
}

/// How many of the newest lasting changes are shown.
const MAX_CHANGES: usize = 10;

/// Returns one note for each of the newest lasting changes, or one error if they can't be read;
/// none without a state directory. A lasting change is a change of a file that a person confirmed;
/// the note shows it to other people.
pub fn lasting_changes(environment: &Environment) -> Vec<Check> {
    let Ok(changes) = LastingChanges::of(environment) else {
        return Vec::new();
    };
    match changes.all() {
        Ok(all) => {
            let newest = all.iter().skip(all.len().saturating_sub(MAX_CHANGES));
            let notes = newest.map(|one| Check::note(one.to_string()).named("changes"));
            notes.collect()
        }
        Err(error) => vec![Check::of(Err(error)).named("changes")],
    }
}

/// Checks whether calls are recorded, and whether the ledger (the record of calls) can be opened.
/// Only `ledger verify` checks its contents.
fn ledger(trust: &Trust, environment: &Environment) -> Check {
    let check = || {
        let settings = trust.ledger(environment)?;
        if settings.off {
            let off = "calls are not recorded: `[ledger]` says `off = true`";
            return Ok(Check::note(off));
        }
        let directory = settings.directory(environment)?;
        let shown = directory.display();
        if !directory.join("records.sqlite").exists() {
            return Ok(Check::ok(format!("calls will be recorded in {shown}")));
        }
        Reader::open(&directory, None)?;
        Ok(Check::ok(format!("calls are recorded in {shown}")))
    };
    Check::of(check())
}

/// Returns one check of the store, and one for each bundle that is not loaded.
pub fn installed(store: &StoreLocation, trust: &Trust, environment: &Environment) -> Vec<Check> {
    let check = || {
        let Some(store) = store.existing(environment)? else {
            return Ok(vec![Check::ok("nothing is installed")]);
        };
        let examined = installed::examined(&store, trust, environment)?;
        let sound = examined
            .iter()
            .filter(|one| one.content().is_some())
            .count();
        let message = format!("{sound} of {} installed bundles verify", examined.len());
        let mut checks = vec![Check::ok(message)];
        checks.extend(examined.iter().filter_map(|one| {
            let (id, failure) = (&one.installed.id, one.refusal()?);
            let message = format!("{id} is not loaded: {} ({})", failure.message, failure.code);
            Some(Check::warning(message).hint(next_step(id)))
        }));
        Ok(checks)
    };
    let checks = check().unwrap_or_else(|failure: Error| {
        let message = format!("{} ({})", failure.message, failure.code);
        let hint = failure.hints.into_iter().next();
        vec![Check::error(message).maybe_hint(hint)]
    });
    let checks = checks.into_iter();
    checks.map(|one| one.named("installed")).collect()
}

/// Checks that the engine starts with a pool of memories. A limit on address space can prevent
/// that.
fn engine() -> Check {
    let starts = "the WebAssembly engine starts";
    let Err(without_pool) = EngineProfile::for_limits(&Limits::default()).engine() else {
        return Check::ok(starts);
    };
    match Host::builder().build() {
        Ok(_) => {
            let slower = "but without a pool of memories, so that calls are slower";
            Check::note(format!("{starts}, {slower}: {without_pool}"))
                .maybe_hint(without_pool.hint())
        }
        Err(error) => Check::error(error.to_string()).maybe_hint(error.hint()),
    }
}

/// Checks that the kernel can report which pages of a memory were written.
fn memory_reset() -> Check {
    if memory::finds_written_pages() {
        let known = "the kernel has PAGEMAP_SCAN: only the pages that a call wrote are reset";
        return Check::ok(known);
    }
    let slow = "no PAGEMAP_SCAN: resetting memory between calls is slower";
    Check::note(slow).hint("Linux 6.7 or newer has it")
}

/// Checks which confinement this machine supports.
fn confinement() -> Check {
    let outlook = confine::outlook();
    let parts = |held: bool| {
        let parts = outlook.parts.iter().filter(|part| part.held == held);
        joined(parts.map(|part| part.what), ", ")
    };
    let gives_up = "a process that runs drivers gives up";
    match outlook.state {
        confine::State::Full => {
            match is_refused(Confinement::builder(), || std::fs::read_dir("/").is_err()) {
                true => Check::ok(format!("{gives_up}: {}", parts(true))),
                false => Check::error("a confined thread could still read a directory")
                    .hint("see whether a container or a security module stands in the way"),
            }
        }
        confine::State::Partial => {
            let found = format!("{gives_up}: {}; but not: {}", parts(true), parts(false));
            Check::warning(found).hint(format!("missing: {}", outlook.missing()))
        }
        confine::State::Unavailable => {
            let none =
                "this kernel can't confine a process: whoever escapes the sandbox has your rights";
            Check::warning(none).hint(format!("missing: {}", outlook.missing()))
        }
    }
}

/// Checks which list of system calls applies to a process that runs drivers, and tries it with one
/// system call.
fn system_calls(trust: &Trust, environment: &Environment) -> Check {
    let calls = match trust.system_calls(environment) {
        Ok(calls) => calls,
        Err(failure) => return Check::of(Err(failure)),
    };
    if confine::outlook_with(calls).system_calls.is_none() {
        return Check::warning(
            "this kernel can't refuse system calls, or none are known for this machine",
        )
        .hint("a kernel with CONFIG_SECCOMP_FILTER, on x86-64, arm64 or 64-bit RISC-V");
    }
    // A harmless system call that is in neither list: only the allow-list refuses it.
    let confinement = Confinement::builder().system_calls(calls);
    let refused = is_refused(confinement, || rustix::process::getsid(None).is_err());
    match (calls, refused) {
        (SystemCalls::AllowList, true) => Check::ok(
            "allow-list: a process that runs drivers makes the system calls that it needs, and \
             no others",
        ),
        (SystemCalls::DenyList, false) => Check::warning(
            "deny-list: a process that runs drivers makes every system call that is not known to \
             do harm",
        )
        .hint("take `system_calls` out of `[confine]` where the allow-list works"),
        (list, _) => {
            let list = list.as_str();
            Check::error(format!("a confined thread is not under the {list}"))
                .hint("see whether a container or a security module stands in the way")
        }
    }
}

/// Whether the operation `refused` fails on a thread with this confinement.
fn is_refused(confinement: Confinement, refused: fn() -> bool) -> bool {
    let thread = std::thread::Builder::new()
        .spawn(move || confinement.apply_to_this_thread().is_ok() && refused());
    thread.is_ok_and(|thread| thread.join().unwrap_or(false))
}

/// Checks that compiled drivers can be cached.
fn cache(environment: &Environment) -> Check {
    let later = "not there yet, the first call makes it";
    let cache = ("cache", environment.cache_directory.as_deref());
    directory(cache, later, |path| match Cache::open(path) {
        Ok(_) => Check::ok(format!("{} (mode {})", path.display(), mode(path))),
        Err(error) => Check::error(error.to_string()).maybe_hint(error.hint()),
    })
}

/// Checks one of the user's directories. `later` names the operation that creates it if it is
/// missing.
fn directory(
    (what, path): (&str, Option<&Path>),
    later: &str,
    check: impl FnOnce(&Path) -> Check,
) -> Check {
    match path {
        None => {
            let variable = format!("XDG_{}_HOME", what.to_uppercase());
            Check::warning(format!("there is no {what} directory"))
                .hint(format!("set HOME or {variable} to an absolute path"))
        }
        Some(path) if !path.exists() => Check::ok(format!("{}: {later}", path.display())),
        Some(path) => check(path),
    }
}

/// Checks that the configuration can be read, and that others can't change it.
fn configuration(named: Option<&Path>, environment: &Environment) -> Check {
    let path = named.map(Path::to_owned);
    let Some(path) = path.or_else(|| default_config(environment)) else {
        return Check::warning("there is no configuration directory")
            .hint("set HOME or XDG_CONFIG_HOME to an absolute path");
    };
    let shown = path.display();
    if named.is_none() && is_missing(&path) {
        return Check::note(format!("{shown}: not there; bundles need --trust-key"));
    }
    if others_write(&path) || path.parent().is_some_and(others_write) {
        return Check::error(format!("{shown}: others can change whom you trust"))
            .hint("take the right to write from group and others: chmod go-w, the directory too");
    }
    // No `[[publisher]]` may have the key of the example bundles, so a configuration that names
    // this key fails here.
    let store = ConfigFile::read(&path).and_then(|file| file.trust_store());
    let check = store.map(|store| match store.warnings().first() {
        Some(warning) => Check::warning(warning.as_str()),
        None => Check::ok(match store.publishers().count() {
            1 => format!("{shown} (1 publisher)"),
            count => format!("{shown} ({count} publishers)"),
        }),
    });
    Check::of(check)
}

/// Checks that the publishers that `toolward trust` recorded can be read.
fn publishers(trust: &Trust, environment: &Environment) -> Check {
    let check = trust.trusted(environment).map(|trusted| {
        let mut known = format!("{} trusted by their documents", trusted.known.len());
        if !trusted.keys.is_empty() {
            known.push_str(&format!(", {} by bare keys", trusted.keys.len()));
        }
        Check::ok(known)
    });
    Check::of(check)
}

/// Whether group or others may write to a path.
fn others_write(path: &Path) -> bool {
    permissions(path).is_some_and(|mode| mode & 0o022 != 0)
}
