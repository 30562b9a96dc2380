//! Ids that callers give their calls, as idempotency keys: the first call with an id runs, and
//! others get its reply.

use std::sync::Arc;
use std::time::Instant;

use crate::BoxFuture;
use crate::error::StateError;
use crate::leases::Withdrawal;

/// The most bytes of kept replies for one principal.
pub const MAX_REPLY_BYTES: u64 = 4 << 20;

/// A BLAKE3 digest.
pub type CallDigest = [u8; 32];

/// The calls that have ids. Each principal has a separate share of the stored replies.
pub trait Calls: Send + Sync {
    /// Starts a call, or finds the result of the first call with its id. While the first call runs,
    /// this waits until the call has ended, at the latest until `deadline`.
    ///
    /// Repeating the operation with the same [`CallId`] starts the call only once. While this call
    /// runs, each repetition returns [`Begun::New`].
    ///
    /// # Errors
    ///
    /// [`StateError`].
    fn begin(&self, call: CallId, deadline: Instant) -> BoxFuture<'_, Result<Begun, StateError>>;

    /// Ends a running call. Does nothing if this call does not run, so the operation may be
    /// repeated.
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

/// A call with an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallId {
    /// The principal.
    pub principal: CallDigest,
    /// The id, with the tool and the session that it is bound to.
    pub id: CallDigest,
    /// A digest of everything that the caller gave, such as the input.
    pub input: CallDigest,
    /// Distinguishes calls with the same id; each call has a new value.
    pub call: [u8; 16],
}

/// The state of an id when a call with it starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begun {
    /// No earlier call: this call runs from now on, until it is [ended](Calls::end).
    New,
    /// Another call with the id still runs at the deadline.
    Running,
    /// Another call with the id runs, and this call may not wait for it: this many calls of the
    /// principal wait already, which is the maximum.
    Busy(usize),
    /// Another call with the id ran, and this is its reply.
    Replied(Arc<[u8]>),
    /// Another call with the id ran, but its reply is not kept, or a bundle that produced it was
    /// withdrawn.
    Ran,
    /// An earlier call with the id had another input.
    Differs,
}

/// The state of an id after its call has ended.
#[derive(Debug, Clone)]
pub enum CallEnding {
    /// Another call with the id may run.
    Forgotten,
    /// No other call with the id may run.
    Ran,
    /// Other calls with the id get this reply.
    Replied {
        /// The reply.
        reply: StoredReply,
        /// Whether the id is kept longer than the reply, so that no other call with it may run.
        remembered: bool,
    },
}

/// A reply that is kept.
#[derive(Debug, Clone)]
pub struct StoredReply {
    /// The reply, in the host's encoding.
    pub bytes: Arc<[u8]>,
    /// The bundles that produced it. Once a bundle is withdrawn, the reply is no longer returned.
    pub bundles: [Arc<Withdrawal>; 2],
}

impl StoredReply {
    /// Whether a bundle that produced the reply was withdrawn.
    pub fn is_withdrawn(&self) -> bool {
        let mut all = self.bundles.iter();
        all.any(|bundle| bundle.withdrawn().is_some())
    }
}
