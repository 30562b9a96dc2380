//! Ids that callers give their calls, as idempotency keys: the first call of an id runs, others get its reply.

use std::sync::Arc;
use std::time::Instant;

use crate::BoxFuture;
use crate::error::StateError;
use crate::leases::Withdrawal;

/// The most bytes of the replies that are kept for one principal.
pub const MAX_REPLY_BYTES: u64 = 4 << 20;

/// A BLAKE3 digest.
pub type CallDigest = [u8; 32];

/// The calls of ids. Each principal has a share, and takes nothing from another one's.
pub trait Calls: Send + Sync {
    /// Starts a call, or finds what came of the first call of its id. While that one runs, this waits until it has
    /// ended, and until `deadline` at the latest.
    ///
    /// Repeating it with the same [`CallId`] starts the call once: as long as that runs, each repetition returns
    /// [`Begun::New`].
    ///
    /// # Errors
    ///
    /// [`StateError`].
    fn begin(&self, call: CallId, deadline: Instant) -> BoxFuture<'_, Result<Begun, StateError>>;

    /// Ends a call that runs. Does nothing if this call does not run, so that it may be repeated.
    ///
    /// # Errors
    ///
    /// [`StateError`].
    fn end(
        &self,
        call: CallId,
        ending: CallEnding,
        deadline: Instant,
    ) -> BoxFuture<'static, Result<(), StateError>>;
}

/// A call of an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallId {
    /// The principal.
    pub principal: CallDigest,
    /// The id, with the tool and the session that it is bound to.
    pub id: CallDigest,
    /// What the caller gave.
    pub input: CallDigest,
    /// Tells calls of one id from each other: a new one for each call.
    pub call: [u8; 16],
}

/// What an id has when a call of it starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begun {
    /// Nothing: the call runs from now on, until it is [ended](Calls::end).
    New,
    /// A call that still runs at the deadline.
    Running,
    /// A call that runs, and this many others that wait for it: no more may.
    Busy(usize),
    /// The reply of the call that ran.
    Replied(Arc<[u8]>),
    /// A call that ran and whose reply is not kept.
    Ran,
    /// A call with another input.
    Differs,
}

/// What becomes of an id when its call has ended.
#[derive(Debug, Clone)]
pub enum CallEnding {
    /// Another call of it may run.
    Forgotten,
    /// No other call of it may run.
    Ran,
    /// Others get this reply.
    Replied {
        /// The reply.
        reply: StoredReply,
        /// Whether no other call may run once the reply is no longer kept.
        remembered: bool,
    },
}

/// A reply that is kept.
#[derive(Debug, Clone)]
pub struct StoredReply {
    /// The reply, in the host's own form.
    pub bytes: Arc<[u8]>,
    /// The bundles that it came from. Once one is withdrawn, it is not given any more.
    pub bundles: [Arc<Withdrawal>; 2],
}

impl StoredReply {
    /// Whether a bundle that it came from was withdrawn.
    pub fn is_withdrawn(&self) -> bool {
        let mut all = self.bundles.iter();
        all.any(|bundle| bundle.withdrawn().is_some())
    }
}
