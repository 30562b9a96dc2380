//! Records violations: operations that a driver tried beyond its grant. Each operation is refused
//! before it is recorded. The policy may end the call at its first violation.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use serde::{Serialize, Serializer};
use toolward_contract::capability::Class;
use toolward_policy::OnViolation;
use toolward_support::helper::lock;

/// The most distinct violations of one call that are kept. Further violations are only counted.
const MAX_KEPT: usize = 32;

/// The most violations of one driver that are logged, over all its calls, so that a driver can't
/// fill the disk.
const MAX_REPORTED: u32 = 64;

/// The most bytes of a subject that are kept.
const MAX_SUBJECT_BYTES: usize = 256;

/// The kind of a violation: the class of the capability that was not granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ViolationKind(Option<&'static Class>);

impl ViolationKind {
    /// A raw socket or a name lookup, which can't be granted.
    pub const SOCKET: Self = Self(None);

    /// The word for this kind.
    pub fn as_str(self) -> &'static str {
        match self.0 {
            None => "socket",
            Some(Class::Workspace) => "path",
            Some(class) => class.as_str(),
        }
    }

    /// A number that no other kind has: in the order of [`Class::KNOWN`], then
    /// [`ViolationKind::SOCKET`].
    pub fn number(self) -> usize {
        let place = Class::KNOWN.iter().position(|class| Some(class) == self.0);
        place.unwrap_or(Class::KNOWN.len())
    }
}

impl From<&'static Class> for ViolationKind {
    fn from(class: &'static Class) -> Self {
        Self(Some(class))
    }
}

impl Serialize for ViolationKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// An operation of a driver that was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{} {subject:?}", .kind.as_str())]
pub struct Violation {
    /// Its kind.
    pub kind: ViolationKind,
    /// The host, path or other thing that the driver tried to use. Untrusted text, truncated to 256
    /// bytes.
    pub subject: String,
}

/// Policy ends the call at its first violation. Raised as a host error, which ends the guest at
/// once.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("beyond its grant: {0}")]
pub struct EndsCall(pub Violation);

/// Redacts secrets in a text.
pub trait RedactText: fmt::Debug + Send + Sync {
    /// The redacted text; `None` without secrets.
    fn redacted(&self, text: &str) -> Option<String>;
}

/// The violations of one driver of a call, over all its attempts. The violations of earlier drivers
/// and of nested calls are added to them. Clones share everything.
#[derive(Debug, Clone, Default)]
pub struct Violations(Arc<CallViolations>);

#[derive(Debug, Default)]
struct CallViolations {
    found: Mutex<RecordedViolations>,
    on_violation: OnViolation,
    /// Redacts subjects.
    secrets: Option<Arc<dyn RedactText>>,
    reported: Reported,
    /// The violation at which policy ends the call; checked at each entry into the guest.
    ends: OnceLock<Violation>,
}

/// The number of logged violations of one driver.
#[derive(Debug, Clone, Default)]
pub struct Reported(Arc<AtomicU32>);

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

/// The violations so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordedViolations {
    /// The first 32 distinct violations, in order.
    pub first: Vec<Violation>,
    /// The number of all violations.
    pub total: u64,
    /// The number of each kind, without violations of nested calls.
    pub own: BTreeMap<ViolationKind, u64>,
}

impl Violations {
    /// The violations of a call. They are logged up to the driver's bound (`reported`). Subjects
    /// are redacted by `secrets`.
    pub fn new(
        on_violation: OnViolation,
        reported: &Reported,
        secrets: Option<Arc<dyn RedactText>>,
    ) -> Self {
        Self(Arc::new(CallViolations {
            on_violation,
            secrets,
            reported: reported.clone(),
            ..CallViolations::default()
        }))
    }

    /// Records a violation. An error means that policy ends the call; the caller raises it as a
    /// trap.
    pub fn record(&self, kind: impl Into<ViolationKind>, subject: &str) -> Result<(), EndsCall> {
        let kind = kind.into();
        let secrets = self.0.secrets.as_ref();
        let redacted = secrets.and_then(|secrets| secrets.redacted(subject));
        let subject = redacted.map_or(Cow::Borrowed(subject), Cow::Owned);
        let end = subject.floor_char_boundary(MAX_SUBJECT_BYTES);
        let violation = Violation {
            kind,
            subject: subject.get(..end).unwrap_or_default().to_owned(),
        };
        let mut found = lock(&self.0.found);
        found.total = found.total.saturating_add(1);
        let of_kind = found.own.entry(kind).or_default();
        *of_kind = of_kind.saturating_add(1);
        if found.first.len() < MAX_KEPT && !found.first.contains(&violation) {
            self.0.reported.report(&violation);
            found.first.push(violation.clone());
        }
        match self.0.on_violation {
            OnViolation::Record => Ok(()),
            OnViolation::End => Err(EndsCall(self.0.ends.get_or_init(|| violation).clone())),
        }
    }

    /// The violation that ends the call, if any. A guest does not always notice a refusal on
    /// another task, so this is checked when the guest is entered again.
    pub fn ends(&self) -> Option<Violation> {
        self.0.ends.get().cloned()
    }

    /// Adds the violations of a driver that was tried before in this call.
    pub fn follow(&self, before: &Self) {
        let before = before.found();
        self.absorb(&before.first, before.total);
        let mut found = lock(&self.0.found);
        for (kind, count) in before.own {
            let of_kind = found.own.entry(kind).or_default();
            *of_kind = of_kind.saturating_add(count);
        }
    }

    /// Adds the violations of a nested call, which counts them by kind itself.
    pub fn absorb(&self, first: &[Violation], total: u64) {
        let mut found = lock(&self.0.found);
        found.total = found.total.saturating_add(total);
        for violation in first {
            if found.first.len() < MAX_KEPT && !found.first.contains(violation) {
                found.first.push(violation.clone());
            }
        }
    }

    /// The violations so far.
    pub fn found(&self) -> RecordedViolations {
        lock(&self.0.found).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_violation_is_kept_once_and_all_are_counted() {
        let violations = Violations::new(OnViolation::Record, &Reported::default(), None);
        for _ in 0..3 {
            violations
                .record(&Class::Workspace, "/etc/passwd")
                .expect("goes on");
        }
        for n in 0..100 {
            violations
                .record(&Class::Network, &format!("h{n}.example"))
                .expect("goes on");
        }
        let found = violations.found();
        assert_eq!((found.first.len(), found.total), (MAX_KEPT, 103));
    }

    #[test]
    fn however_often_a_driver_is_called_so_many_violations_of_its_are_reported() {
        let reported = Reported::default();
        for call in 0..1000 {
            let violations = Violations::new(OnViolation::Record, &reported, None);
            let subject = format!("h{call}.example");
            violations
                .record(&Class::Network, &subject)
                .expect("goes on");
            assert_eq!(violations.found().total, 1);
        }
        assert_eq!(reported.0.load(Ordering::Relaxed), MAX_REPORTED);
    }

    #[test]
    fn each_kind_has_its_word_and_its_number() {
        let classes = Class::KNOWN.iter().map(ViolationKind::from);
        let kinds: Vec<ViolationKind> = classes.chain([ViolationKind::SOCKET]).collect();
        let numbers: Vec<usize> = kinds.iter().map(|kind| kind.number()).collect();
        assert_eq!(numbers, (0..kinds.len()).collect::<Vec<_>>());
        let words: Vec<&str> = kinds.iter().map(|kind| kind.as_str()).collect();
        let all = [
            "network", "path", "database", "secret", "external", "tool", "user", "socket",
        ];
        assert_eq!(words, all);
    }

    #[test]
    fn a_driver_that_follows_another_has_the_kinds_of_its_violations() {
        let new = || Violations::new(OnViolation::Record, &Reported::default(), None);
        let (first, nested, second) = (new(), new(), new());
        first.record(&Class::Secret, "token").expect("goes on");
        nested.record(&Class::Tool, "a.tool").expect("goes on");
        first.absorb(&nested.found().first, 1);
        second.record(&Class::Secret, "token").expect("goes on");
        second.follow(&first);
        let found = second.found();
        assert_eq!((found.first.len(), found.total), (2, 3));
        assert_eq!(found.own, [((&Class::Secret).into(), 2)].into());
    }

    #[test]
    fn the_violation_that_ends_a_call_is_its_own() {
        let nested = Violations::new(OnViolation::Record, &Reported::default(), None);
        nested.record(&Class::Tool, "a.tool").expect("goes on");
        let violations = Violations::new(OnViolation::End, &Reported::default(), None);
        violations.absorb(&nested.found().first, 1);
        assert_eq!(violations.ends(), None);
        let ended = violations.record(&Class::Secret, "token").unwrap_err();
        assert_eq!(violations.ends(), Some(ended.0));
        assert_eq!(violations.ends().unwrap().subject, "token");
    }

    #[test]
    fn policy_can_end_the_call_at_the_first() {
        let violations = Violations::new(OnViolation::End, &Reported::default(), None);
        assert!(violations.record(&Class::Secret, "token").is_err());
        assert_eq!(violations.found().total, 1);
    }

    #[test]
    fn a_long_subject_is_shortened_at_a_character() {
        let violations = Violations::default();
        violations
            .record(&Class::Workspace, &"ä".repeat(10_000))
            .expect("goes on");
        assert!(violations.found().first[0].subject.len() <= MAX_SUBJECT_BYTES);
    }
}
