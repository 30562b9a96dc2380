//! The types of a contract's small values: approval, cost class, retry, constraints, requirements.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::capability::{Capability, CapabilitySet, Class};

/// Whether a person is asked before a call. Ordered by strictness.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Approval {
    /// Runs without a prompt.
    Auto,
    /// Prompts when the tool mutates something.
    OnMutate,
    /// Always prompts.
    Always,
    /// Defers to a named policy; counts as [`Approval::Always`] until the policy is resolved.
    Policy(String),
}

impl Approval {
    /// Reads the spelling of AIP-14.
    pub fn parse(text: &str) -> Option<Approval> {
        match text {
            "auto" => Some(Approval::Auto),
            "on-mutate" => Some(Approval::OnMutate),
            "always" => Some(Approval::Always),
            _ => {
                let reference = text.strip_prefix("policy:")?;
                let printable = |c: char| !c.is_control() && !c.is_whitespace();
                let fits = !reference.is_empty() && reference.chars().all(printable);
                fits.then(|| Approval::Policy(reference.to_owned()))
            }
        }
    }

    /// The class that applies until a policy is resolved; never [`Approval::Policy`].
    pub fn effective(&self) -> Approval {
        match self {
            Approval::Policy(_) => Approval::Always,
            other => other.clone(),
        }
    }
}

impl fmt::Display for Approval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Approval::Auto => f.write_str("auto"),
            Approval::OnMutate => f.write_str("on-mutate"),
            Approval::Always => f.write_str("always"),
            Approval::Policy(reference) => write!(f, "policy:{reference}"),
        }
    }
}

impl Serialize for Approval {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The rough cost of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CostClass {
    /// A call has no metered cost.
    #[default]
    Trivial,
    /// Counts against a quota. No host counts calls yet.
    Metered,
    /// A question for approval states this class; without a question, the command `call` warns of
    /// it.
    Expensive,
}

impl CostClass {
    pub(crate) const WORDS: &[(&str, CostClass)] = &[
        ("trivial", CostClass::Trivial),
        ("metered", CostClass::Metered),
        ("expensive", CostClass::Expensive),
    ];
}

impl fmt::Display for CostClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = CostClass::WORDS.iter().find(|(_, class)| class == self);
        f.write_str(found.map_or("", |(word, _)| word))
    }
}

/// How the wait between attempts grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Backoff {
    /// Always the initial wait.
    Fixed,
    /// Twice as long each time.
    Exponential,
}

/// A retry policy. A host retries only if the error is retryable and the tool is idempotent. If
/// only the driver claims that the error is retryable, the tool must also mutate nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Retry {
    /// Attempts in all, the first included; 1 to 100.
    pub max_attempts: u32,
    /// How the wait grows.
    pub backoff: Backoff,
    /// The wait before the second attempt; at most one hour.
    pub initial: Duration,
}

impl Retry {
    /// The wait before attempt `attempt` (from 2); zero before the first. At most one hour.
    pub fn wait_before(&self, attempt: u32) -> Duration {
        const MAX_WAIT: Duration = Duration::from_secs(3600);
        let Some(doublings) = attempt.checked_sub(2) else {
            return Duration::ZERO;
        };
        let factor = match self.backoff {
            Backoff::Fixed => 1,
            Backoff::Exponential => 1_u32.checked_shl(doublings).unwrap_or(u32::MAX),
        };
        self.initial
            .checked_mul(factor)
            .map_or(MAX_WAIT, |wait| wait.min(MAX_WAIT))
    }
}

/// The capabilities that a contract or driver needs without changing anything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct Requires {
    /// All requirements, as capabilities.
    pub capabilities: CapabilitySet,
}

impl Requires {
    /// Whether there are no requirements.
    pub fn is_empty(&self) -> bool {
        self.capabilities.is_empty()
    }

    /// `requires.secrets`: slugs.
    pub fn secrets(&self) -> impl Iterator<Item = String> {
        self.capabilities
            .of_class(&Class::Secret)
            .map(Capability::scope)
    }

    /// `requires.user`: `form`, `sample` or `roots`.
    pub fn user(&self) -> impl Iterator<Item = String> {
        self.capabilities
            .of_class(&Class::User)
            .map(Capability::scope)
    }
}

/// The kinds of driver that a contract permits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct DriverConstraints {
    /// Kinds that must not serve the tool.
    pub forbid: Vec<String>,
    /// The only kinds that may serve the tool; empty means any kind.
    pub require_kind: Vec<String>,
}

impl DriverConstraints {
    /// Whether a driver of this kind may serve the tool. A component counts as `component` and as
    /// `sdk`, because both run in the host's process.
    pub fn permits(&self, kind: &str) -> bool {
        let names: &[&str] = match kind {
            "component" => &["component", "sdk"],
            _ => &[kind],
        };
        let listed = |list: &[String]| list.iter().any(|item| names.contains(&item.as_str()));
        !listed(&self.forbid) && (self.require_kind.is_empty() || listed(&self.require_kind))
    }
}

/// An example input, optionally with the output that every driver must give.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToolExample {
    /// The example's name in reports; unique in the contract.
    pub name: String,
    /// The input, valid against `inputs`.
    pub input: serde_json::Value,
    /// The output, valid against `outputs`; drivers must give an equal value. `None` means any
    /// valid output.
    pub output: Option<serde_json::Value>,
    /// A note for readers.
    pub note: Option<String>,
}
