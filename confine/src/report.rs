//! Reports which parts of a confinement this kernel enforces.

use landlock::{ABI, LandlockStatus, RestrictSelf};
use serde::Serialize;

use super::seccomp::{self, SystemCalls};

/// How much of a confinement is enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// All parts.
    Full,
    /// Some parts.
    Partial,
    /// No part.
    Unavailable,
}

/// One part of a confinement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Part {
    /// The resource or action that this part of the confinement restricts.
    pub what: &'static str,
    /// Whether this part is enforced here.
    pub held: bool,
    /// The kernel features that it needs.
    pub needs: &'static str,
}

/// The parts of a process's confinement, and whether each is enforced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Confined {
    /// Whether all, some or no parts are enforced.
    pub state: State,
    /// The parts, the most important first.
    pub parts: Vec<Part>,
    /// The allowed system calls; `None` if the kernel has no filters, or this code has none for the
    /// machine.
    pub system_calls: Option<SystemCalls>,
}

impl Confined {
    /// A warning for the operator, unless all parts are enforced.
    pub fn warning(&self) -> Option<String> {
        let missing = self.missing();
        let files = self
            .parts
            .iter()
            .any(|part| part.what == FILES && part.held);
        let consequence = match (self.state, files) {
            (State::Full, _) => return None,
            (State::Unavailable, _) => {
                "this kernel can't confine a process, so that whoever escapes the sandbox has all \
                 your rights"
            }
            (State::Partial, false) => {
                "this kernel can't keep a process from your files, so that whoever escapes the \
                 sandbox reads and changes what you may"
            }
            (State::Partial, true) => {
                "this kernel confines a process in part, so that whoever escapes the sandbox is \
                 not kept from all else"
            }
        };
        Some(format!("{consequence}; missing: {missing}"))
    }

    /// The parts that are not enforced, with the features that they need; empty if all are
    /// enforced.
    pub fn missing(&self) -> String {
        let missing = self.parts.iter().filter(|part| !part.held);
        missing
            .map(|part| format!("{} (needs {})", part.what, part.needs))
            .collect::<Vec<_>>()
            .join(", ")
    }
}

const FILES: &str = "files";

const TERMINAL: &str = "typing into the terminal, limits and priorities of other processes";

/// Returns the parts that a confinement would enforce on this machine, without confining anything.
///
/// ```
/// use toolward_confine::{SystemCalls, outlook, outlook_with};
///
/// for part in outlook().parts {
///     println!("{}: {} (needs {})", part.what, part.held, part.needs);
/// }
/// let denied = outlook_with(SystemCalls::DenyList).system_calls;
/// assert_ne!(denied, Some(SystemCalls::AllowList));
/// ```
pub fn outlook() -> Confined {
    outlook_with(SystemCalls::default())
}

/// As [`outlook`], for a confinement with these [`crate::Confinement::system_calls`].
pub fn outlook_with(calls: SystemCalls) -> Confined {
    let landlock = landlock();
    let seccomp = seccomp::is_available();
    let has = |abi| landlock >= abi;
    let parts = [
        (FILES, has(ABI::V1), "Landlock, Linux 5.13"),
        ("truncating files", has(ABI::V3), "Linux 6.2"),
        (
            "starting programs",
            has(ABI::V1) || seccomp,
            "Landlock or seccomp",
        ),
        (
            "TCP ports",
            has(ABI::V4) && seccomp,
            "Linux 6.7 and seccomp",
        ),
        ("devices", has(ABI::V5), "Linux 6.10"),
        ("signals to other processes", has(ABI::V6), "Linux 6.12"),
        ("other sockets", seccomp, "seccomp"),
        (TERMINAL, seccomp, "seccomp"),
        ("owners, rights and attributes of files", seccomp, "seccomp"),
    ];
    let parts = Vec::from(parts.map(|(what, held, needs)| Part { what, held, needs }));
    let held = parts.iter().filter(|part| part.held).count();
    let state = match held {
        0 => State::Unavailable,
        held if held == parts.len() => State::Full,
        _ => State::Partial,
    };
    Confined {
        state,
        parts,
        system_calls: seccomp.then_some(calls),
    }
}

/// The version of Landlock in this kernel.
pub(super) fn landlock() -> ABI {
    // Without flags, this call only queries the ABI version.
    let status = RestrictSelf::default().no_new_privs(false).apply();
    match status.map(|status| status.landlock) {
        Ok(LandlockStatus::Available { effective_abi, .. }) => effective_abi,
        _ => ABI::Unsupported,
    }
}
