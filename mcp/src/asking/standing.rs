//! What a principal approved for as long as this server runs: a tool exactly as it
//! stood when the person was asked.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long an approval "for this session" stands.
const STANDS: Duration = Duration::from_secs(8 * 3600);
/// Approvals of one principal; the oldest goes first.
const APPROVALS: usize = 256;

/// What identifies an approved tool: see [`super::approval`].
pub(crate) type Key = [u8; 32];

/// Approvals of one principal and when they end, the oldest first.
type Approved = VecDeque<(Key, Instant)>;

/// Approvals that stand, by principal.
pub(crate) struct Standing {
    stands: Duration,
    approved: Mutex<HashMap<Arc<str>, Approved>>,
}

impl Standing {
    pub(crate) fn new() -> Self {
        Self {
            stands: STANDS,
            approved: Mutex::default(),
        }
    }

    pub(crate) fn add(&self, principal: &Arc<str>, key: Key) {
        let Some(until) = Instant::now().checked_add(self.stands) else {
            return;
        };
        let mut approved = self.approved.lock().unwrap_or_else(PoisonError::into_inner);
        let own = approved.entry(principal.clone()).or_default();
        own.retain(|(known, _)| *known != key);
        if own.len() >= APPROVALS {
            own.pop_front();
        }
        own.push_back((key, until));
    }

    pub(crate) fn has(&self, principal: &str, key: &Key) -> bool {
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
        let standing = Standing::new();
        standing.add(&"alice".into(), [1; 32]);
        assert!(standing.has("alice", &[1; 32]));
        assert!(!standing.has("alice", &[2; 32]));
        assert!(!standing.has("bob", &[1; 32]));
    }

    #[test]
    fn an_approval_ends_in_time() {
        let standing = Standing {
            stands: Duration::ZERO,
            ..Standing::new()
        };
        standing.add(&"alice".into(), [1; 32]);
        assert!(!standing.has("alice", &[1; 32]));
    }

    #[test]
    fn the_oldest_of_too_many_goes() {
        let standing = Standing::new();
        let key = |number: usize| {
            let mut key = [0; 32];
            key[..8].copy_from_slice(&number.to_le_bytes());
            key
        };
        for number in 0..=APPROVALS {
            standing.add(&"alice".into(), key(number));
        }
        assert!(!standing.has("alice", &key(0)));
        assert!(standing.has("alice", &key(1)) && standing.has("alice", &key(APPROVALS)));
    }
}
