//! Approvals "for this session". Each is for one principal, and for a tool exactly as it was shown
//! to the person. They are kept only in memory.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use toolward_support::helper::lock;

use crate::approvals::{ApprovalKey, RememberedApproval};

/// How long an approval "for this session" is valid.
const SESSION_LIFETIME: Duration = Duration::from_secs(8 * 3600);
/// The most approvals of one principal. The oldest is removed first.
const MAX_APPROVALS: usize = 256;

/// Approvals of one principal, the oldest first.
type Approved = VecDeque<Approval>;

struct Approval {
    key: ApprovalKey,
    /// When it ends.
    until: Instant,
    /// The same time by the system's clock, for records.
    shown: SystemTime,
}

/// Approvals by principal. Expired approvals stay until they are looked up or displaced.
pub(crate) struct RememberedApprovals {
    lifetime: Duration,
    approved: Mutex<HashMap<Arc<str>, Approved>>,
}

impl Default for RememberedApprovals {
    fn default() -> Self {
        Self {
            lifetime: SESSION_LIFETIME,
            approved: Mutex::default(),
        }
    }
}

impl RememberedApprovals {
    /// Keeps an approval. Returns when it ends.
    pub(crate) fn add(&self, principal: &Arc<str>, key: ApprovalKey) -> Option<SystemTime> {
        let until = Instant::now().checked_add(self.lifetime)?;
        let shown = SystemTime::now().checked_add(self.lifetime)?;
        let mut approved = lock(&self.approved);
        let own = approved.entry(principal.clone()).or_default();
        own.retain(|known| known.key != key);
        if own.len() >= MAX_APPROVALS {
            own.pop_front();
        }
        own.push_back(Approval { key, until, shown });
        Some(shown)
    }

    pub(crate) fn find(&self, principal: &str, key: &ApprovalKey) -> Option<RememberedApproval> {
        let now = Instant::now();
        let mut approved = lock(&self.approved);
        let own = approved.get_mut(principal)?;
        let at = own.iter().position(|known| known.key == *key)?;
        let known = own.get(at)?;
        if known.until > now {
            return Some(RememberedApproval::Valid(known.shown));
        }
        // Other expired approvals stay until a call looks them up. Their number is bounded.
        own.remove(at)
            .map(|old| RememberedApproval::Expired(old.shown))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(approvals: &RememberedApprovals, principal: &str, key: &ApprovalKey) -> bool {
        matches!(
            approvals.find(principal, key),
            Some(RememberedApproval::Valid(_))
        )
    }

    #[test]
    fn an_approval_stands_for_its_principal_and_key() {
        let approvals = RememberedApprovals::default();
        let kept = approvals.add(&"alice".into(), [1; 32]).unwrap();
        let left = kept.duration_since(SystemTime::now()).unwrap();
        assert!(left <= SESSION_LIFETIME && left > SESSION_LIFETIME - Duration::from_secs(60));
        assert_eq!(
            approvals.find("alice", &[1; 32]),
            Some(RememberedApproval::Valid(kept))
        );
        assert!(!has(&approvals, "alice", &[2; 32]));
        assert!(!has(&approvals, "bob", &[1; 32]));
    }

    #[test]
    fn an_approval_ends_in_time_which_is_said_once() {
        let approvals = RememberedApprovals {
            lifetime: Duration::ZERO,
            ..RememberedApprovals::default()
        };
        let kept = approvals.add(&"alice".into(), [1; 32]).unwrap();
        let other = approvals.add(&"alice".into(), [2; 32]).unwrap();
        let found = approvals.find("alice", &[1; 32]);
        assert_eq!(found, Some(RememberedApproval::Expired(kept)));
        assert_eq!(approvals.find("alice", &[1; 32]), None);
        let found = approvals.find("alice", &[2; 32]);
        assert_eq!(found, Some(RememberedApproval::Expired(other)));
    }

    #[test]
    fn the_oldest_of_too_many_goes() {
        let approvals = RememberedApprovals::default();
        let key = |number: usize| {
            let mut key = [0; 32];
            key[..8].copy_from_slice(&number.to_le_bytes());
            key
        };
        for number in 0..=MAX_APPROVALS {
            approvals.add(&"alice".into(), key(number));
        }
        assert!(!has(&approvals, "alice", &key(0)));
        assert!(has(&approvals, "alice", &key(1)) && has(&approvals, "alice", &key(MAX_APPROVALS)));
    }
}
