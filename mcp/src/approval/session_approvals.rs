//! Approvals "for this session": a principal approved a tool exactly as it was when the
//! person was asked. They live in memory only.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::ApprovalKey;

/// How long an approval "for this session" is valid.
const SESSION_LIFETIME: Duration = Duration::from_secs(8 * 3600);
/// Approvals of one principal; the oldest goes first.
const MAX_APPROVALS: usize = 256;

/// Approvals of one principal and when they end, the oldest first.
type Approved = VecDeque<(ApprovalKey, Instant)>;

/// Valid approvals by principal.
pub(crate) struct SessionApprovals {
    lifetime: Duration,
    approved: Mutex<HashMap<Arc<str>, Approved>>,
}

impl SessionApprovals {
    pub(crate) fn new() -> Self {
        Self {
            lifetime: SESSION_LIFETIME,
            approved: Mutex::default(),
        }
    }

    pub(crate) fn add(&self, principal: &Arc<str>, key: ApprovalKey) {
        let Some(until) = Instant::now().checked_add(self.lifetime) else {
            return;
        };
        let mut approved = self.approved.lock().unwrap_or_else(PoisonError::into_inner);
        let own = approved.entry(principal.clone()).or_default();
        own.retain(|(known, _)| *known != key);
        if own.len() >= MAX_APPROVALS {
            own.pop_front();
        }
        own.push_back((key, until));
    }

    pub(crate) fn has(&self, principal: &str, key: &ApprovalKey) -> bool {
        let now = Instant::now();
        let mut approved = self.approved.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(own) = approved.get_mut(principal) else {
            return false;
        };
        while own.front().is_some_and(|(_, until)| *until <= now) {
            own.pop_front();
        }
        own.iter().any(|(known, _)| known == key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_approval_stands_for_its_principal_and_key() {
        let approvals = SessionApprovals::new();
        approvals.add(&"alice".into(), [1; 32]);
        assert!(approvals.has("alice", &[1; 32]));
        assert!(!approvals.has("alice", &[2; 32]));
        assert!(!approvals.has("bob", &[1; 32]));
    }

    #[test]
    fn an_approval_ends_in_time() {
        let approvals = SessionApprovals {
            lifetime: Duration::ZERO,
            ..SessionApprovals::new()
        };
        approvals.add(&"alice".into(), [1; 32]);
        assert!(!approvals.has("alice", &[1; 32]));
    }

    #[test]
    fn the_oldest_of_too_many_goes() {
        let approvals = SessionApprovals::new();
        let key = |number: usize| {
            let mut key = [0; 32];
            key[..8].copy_from_slice(&number.to_le_bytes());
            key
        };
        for number in 0..=MAX_APPROVALS {
            approvals.add(&"alice".into(), key(number));
        }
        assert!(!approvals.has("alice", &key(0)));
        assert!(approvals.has("alice", &key(1)) && approvals.has("alice", &key(MAX_APPROVALS)));
    }
}
