//! What a driver tried beyond its grant: recorded, counted, and, where policy
//! says so, the end of the call. Denying is not done here: by the time
//! something is recorded it has been refused.

use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use toolward_policy::OnViolation;

/// Violations of one call that are kept; more are only counted.
const MAX_KEPT: usize = 32;

/// Violations of one driver that are reported to the log, over all its calls: what
/// it tries is for it to choose, and must not fill a disk.
const MAX_REPORTED: u32 = 64;

/// Bytes of a subject that are kept.
const MAX_SUBJECT_BYTES: usize = 256;

/// What kind of thing was tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ViolationKind {
    /// A request to a host, or in a way, that is not granted.
    Network,
    /// A raw socket or a name lookup; nobody is granted these.
    Socket,
    /// A path that is not granted, or a change of one that is read-only.
    Path,
    /// A secret that is not granted, or its use in another place.
    Secret,
    /// A call of a tool that is not granted.
    Tool,
    /// A bucket that is not granted, or a change of one that is read-only.
    Database,
    /// A question of a kind that is not granted.
    User,
}

/// One thing that was tried and refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// What kind of thing.
    pub kind: ViolationKind,
    /// Which one: a host, a path, a secret's name. Untrusted text, shortened.
    pub subject: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            ViolationKind::Network => "network",
            ViolationKind::Socket => "socket",
            ViolationKind::Path => "path",
            ViolationKind::Secret => "secret",
            ViolationKind::Tool => "tool",
            ViolationKind::Database => "database",
            ViolationKind::User => "user",
        };
        write!(f, "{kind} {:?}", self.subject)
    }
}

/// Policy ends the call at its first violation. Raised as a host error, so that
/// the guest is ended where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EndsCall(pub(crate) Violation);

impl fmt::Display for EndsCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "beyond its grant: {}", self.0)
    }
}

impl std::error::Error for EndsCall {}

/// Takes secrets out of a text before it is shown.
pub(crate) trait RedactText: fmt::Debug + Send + Sync {
    /// The text without them; `None` where there is nothing to look for.
    fn redacted(&self, text: &str) -> Option<String>;
}

/// The violations of one call, all attempts together. Clones share everything.
#[derive(Debug, Clone, Default)]
pub(crate) struct Violations {
    found: Arc<Mutex<Found>>,
    on_violation: OnViolation,
    /// Whose values no subject shows.
    secrets: Option<Arc<dyn RedactText>>,
    reported: Reported,
    /// Whether policy ends the call: looked at whenever the guest is entered.
    ends: Arc<AtomicBool>,
}

/// How many violations of one driver the log has.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reported(Arc<AtomicU32>);

impl Reported {
    fn report(&self, violation: &Violation) {
        let one_more = |count: u32| (count < MAX_REPORTED).then(|| count.saturating_add(1));
        let count = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        let Ok(before) = count else {
            return;
        };
        tracing::warn!(%violation, "a driver tried what it was not granted");
        if before.saturating_add(1) == MAX_REPORTED {
            tracing::warn!(
                "what else this driver tries is not reported here; its calls' results say it"
            );
        }
    }
}

/// What was found so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// The first of each, in order.
    pub(crate) first: Vec<Violation>,
    /// How many there were.
    pub(crate) total: u64,
}

impl Violations {
    pub(crate) fn new(on_violation: OnViolation) -> Self {
        Self {
            found: Arc::default(),
            on_violation,
            secrets: None,
            reported: Reported::default(),
            ends: Arc::default(),
        }
    }

    /// The same, reported to the log as far as the driver is not yet.
    pub(crate) fn of(self, reported: &Reported) -> Self {
        Self {
            reported: reported.clone(),
            ..self
        }
    }

    /// The same, without the secrets of a call in any subject.
    pub(crate) fn hiding(self, secrets: Arc<dyn RedactText>) -> Self {
        Self {
            secrets: Some(secrets),
            ..self
        }
    }

    /// Records one. An error says that policy ends the call: raise it as a trap.
    pub(crate) fn record(&self, kind: ViolationKind, subject: &str) -> Result<(), EndsCall> {
        let secrets = self.secrets.as_ref();
        let redacted = secrets.and_then(|secrets| secrets.redacted(subject));
        let subject = redacted.map_or(Cow::Borrowed(subject), Cow::Owned);
        let end = subject.floor_char_boundary(MAX_SUBJECT_BYTES);
        let violation = Violation {
            kind,
            subject: subject.get(..end).unwrap_or_default().to_owned(),
        };
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.total = found.total.saturating_add(1);
        if found.first.len() < MAX_KEPT && !found.first.contains(&violation) {
            self.reported.report(&violation);
            found.first.push(violation.clone());
        }
        match self.on_violation {
            OnViolation::Record => Ok(()),
            OnViolation::End => {
                self.ends.store(true, Ordering::Release);
                Err(EndsCall(violation))
            }
        }
    }

    /// The violation that ends the call, where policy says so and there was one:
    /// what a guest does may be refused on another task.
    pub(crate) fn ends(&self) -> Option<Violation> {
        if !self.ends.load(Ordering::Acquire) {
            return None;
        }
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.first.first().cloned()
    }

    /// Adds what a call below this one tried.
    pub(crate) fn absorb(&self, first: &[Violation], total: u64) {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.total = found.total.saturating_add(total);
        for violation in first {
            if found.first.len() < MAX_KEPT && !found.first.contains(violation) {
                found.first.push(violation.clone());
            }
        }
    }

    /// What was found so far.
    pub(crate) fn found(&self) -> Found {
        self.found
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_violation_is_kept_once_and_all_are_counted() {
        let violations = Violations::new(OnViolation::Record);
        for _ in 0..3 {
            violations
                .record(ViolationKind::Path, "/etc/passwd")
                .expect("goes on");
        }
        for n in 0..100 {
            violations
                .record(ViolationKind::Network, &format!("h{n}.example"))
                .expect("goes on");
        }
        let found = violations.found();
        assert_eq!((found.first.len(), found.total), (MAX_KEPT, 103));
    }

    #[test]
    fn however_often_a_driver_is_called_so_many_violations_of_its_are_reported() {
        let reported = Reported::default();
        for call in 0..1000 {
            let violations = Violations::new(OnViolation::Record).of(&reported);
            let subject = format!("h{call}.example");
            violations
                .record(ViolationKind::Network, &subject)
                .expect("goes on");
            assert_eq!(violations.found().total, 1);
        }
        assert_eq!(reported.0.load(Ordering::Relaxed), MAX_REPORTED);
    }

    #[test]
    fn policy_can_end_the_call_at_the_first() {
        let violations = Violations::new(OnViolation::End);
        assert!(violations.record(ViolationKind::Secret, "token").is_err());
        assert_eq!(violations.found().total, 1);
    }

    #[test]
    fn a_long_subject_is_shortened_at_a_character() {
        let violations = Violations::default();
        violations
            .record(ViolationKind::Path, &"ä".repeat(10_000))
            .expect("goes on");
        assert!(violations.found().first[0].subject.len() <= MAX_SUBJECT_BYTES);
    }
}
