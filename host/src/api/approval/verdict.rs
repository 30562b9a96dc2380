//! What an approver says: that a person is being asked, and what came of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use tokio::sync::Notify;

/// The answer to an [`ApprovalRequest`](super::ApprovalRequest), and how it was obtained: events and the ledger say
/// whether a person was asked about this call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// A person was asked now, and approved this call.
    Approved,
    /// A person was asked now, and approved this call and later ones like it.
    ApprovedFor(Remembered),
    /// A person approved it earlier. Nobody is asked now.
    Remembered(Remembered),
    /// A person was asked by an earlier call, which ended with [`Verdict::Later`], and this call brings the answer.
    Answered {
        /// Whether they approved it.
        approved: bool,
        /// What they approved beyond this call.
        remembered: Option<Remembered>,
    },
    /// A person was asked now, and denied it; with a reason for the caller, if they gave one.
    Denied(Option<String>),
    /// A person was asked now, and did not answer in time.
    Unanswered,
    /// A person was asked now, and the question was taken back: they denied another one about the same tool.
    Withdrawn,
    /// No person could be asked.
    Unavailable,
    /// A person has been asked and has not answered yet: the call ends with
    /// [`ErrorCode::APPROVAL_PENDING`](crate::ErrorCode::APPROVAL_PENDING), and is made again with the answer.
    Later,
}

impl Verdict {
    /// Whether it says that a person was asked about the call that it is for, and while that was made.
    pub(crate) fn is_asked_now(&self) -> bool {
        match self {
            Self::Approved
            | Self::ApprovedFor(_)
            | Self::Denied(_)
            | Self::Unanswered
            | Self::Withdrawn
            | Self::Later => true,
            Self::Remembered(_) | Self::Answered { .. } | Self::Unavailable => false,
        }
    }
}

/// A person's approval that was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remembered {
    /// What it covers.
    pub scope: ApprovalScope,
    /// When it ends, by the system's clock; `None`: with what it covers.
    pub until: Option<SystemTime>,
}

/// What a person's approval covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ApprovalScope {
    /// One call, also when it resumes after its driver's questions.
    Call,
    /// Calls of the tool as it was shown, with any input.
    Session,
}

impl ApprovalScope {
    /// Its name, for records.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Session => "session",
        }
    }
}

/// What an approver says of a request before its verdict. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Marks(Arc<Marked>);

#[derive(Debug, Default)]
struct Marked {
    asked: AtomicBool,
    changed: Notify,
    expired: OnceLock<Remembered>,
}

impl Marks {
    pub(super) fn mark_asked(&self) {
        self.0.asked.store(true, Ordering::Release);
        self.0.changed.notify_one();
    }

    pub(super) fn mark_expired(&self, earlier: Remembered) {
        // The first one counts.
        let _ = self.0.expired.set(earlier);
    }

    /// Waits until a person is asked. One task may wait.
    pub(crate) async fn asked(&self) {
        self.0.changed.notified().await;
    }

    pub(crate) fn is_asked(&self) -> bool {
        self.0.asked.load(Ordering::Acquire)
    }

    pub(crate) fn expired(&self) -> Option<Remembered> {
        self.0.expired.get().copied()
    }
}
