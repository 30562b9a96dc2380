//! The calls that have ids, in the memory of this process.

use std::collections::{HashMap, VecDeque};
use std::future::ready;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use toolward_support::helper::lock;

use super::Local;
use crate::BoxFuture;
use crate::calls::{Begun, CallDigest, CallEnding, CallId, Calls, MAX_REPLY_BYTES, StoredReply};
use crate::error::StateError;

/// The limits of one principal's replies: their number, the overhead of each in bytes, and how long
/// they are kept.
const MAX_REPLIES: usize = 64;
const OVERHEAD: u64 = 1024;
const REPLY_AGE: Duration = Duration::from_mins(10);
/// The most bytes of replies of all principals together.
const MAX_TOTAL_BYTES: u64 = 64 << 20;
/// The most calls of one principal that wait for the first call with their id. They hold no place
/// in the queue.
const MAX_WAITING: usize = 64;
/// The most ids without a reply, of one principal and of all principals. They are kept only if no
/// ledger, the record of calls, has them. The oldest are forgotten first.
const MAX_IDS: usize = 4096;
const MAX_TOTAL_IDS: usize = 65_536;
/// How long an id is kept. Hosts refuse an id for its age before that, after a day and 5 minutes.
const ID_AGE: Duration = Duration::from_hours(25);
/// The time between two sweeps of other principals' expired replies and ids.
const SWEEP_INTERVAL: Duration = Duration::from_secs(10);

impl Calls for Local {
    fn begin(&self, call: CallId, deadline: Instant) -> BoxFuture<'_, Result<Begun, StateError>> {
        Box::pin(async move {
            loop {
                let mut runs = match lock(&self.calls).find(&call, Instant::now()) {
                    Found::Known(begun) => return Ok(begun),
                    Found::Runs(runs) => runs,
                };
                let _waiting = Waiting(&self.calls, call.principal);
                // An error means that the call has ended.
                let ends = tokio::time::timeout_at(deadline.into(), runs.changed());
                if ends.await.is_err() {
                    return Ok(Begun::Running);
                }
            }
        })
    }

    fn end(
        &self,
        call: CallId,
        ending: CallEnding,
        _deadline: Instant,
    ) -> BoxFuture<'static, Result<(), StateError>> {
        lock(&self.calls).end(&call, ending, Instant::now());
        Box::pin(ready(Ok(())))
    }
}

/// A waiting call.
struct Waiting<'a>(&'a Mutex<Memory>, CallDigest);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        lock(self.0).waits_no_more(&self.1);
    }
}

/// The ids of a process.
#[derive(Default)]
pub(super) struct Memory {
    /// Shares by the hash of the principal.
    shares: HashMap<CallDigest, Share>,
    swept: Option<Instant>,
}

/// The calls of one principal.
#[derive(Default)]
struct Share {
    calls: HashMap<CallDigest, Call>,
    /// Kept replies, oldest first.
    replies: VecDeque<(Instant, CallDigest)>,
    bytes: u64,
    /// Ids without replies, oldest first.
    ids: VecDeque<(Instant, CallDigest)>,
    waiting: usize,
}

/// The call with an id.
struct Call {
    /// The digest of its input.
    input: CallDigest,
    state: CallState,
}

enum CallState {
    /// The call runs. Calls that wait for it continue once the sender is dropped.
    Runs([u8; 16], watch::Sender<()>),
    /// The call has ended with this reply.
    Replied {
        reply: StoredReply,
        /// Whether its id must be kept once the reply is dropped.
        remembered: bool,
    },
    /// The call has ended, and its reply is not kept.
    Ran,
}

/// The state of an id at one time.
enum Found {
    Known(Begun),
    /// Another call runs. This call counts as waiting for it, until [`Memory::waits_no_more`].
    Runs(watch::Receiver<()>),
}

impl Memory {
    /// Looks an id up. A call with a new id runs.
    fn find(&mut self, wanted: &CallId, now: Instant) -> Found {
        self.sweep(now);
        let share = self.shares.entry(wanted.principal).or_default();
        share.expire(now);
        let Some(call) = share.calls.get(&wanted.id) else {
            let call = Call {
                input: wanted.input,
                state: CallState::Runs(wanted.call, watch::Sender::new(())),
            };
            share.calls.insert(wanted.id, call);
            return Found::Known(Begun::New);
        };
        if call.input != wanted.input {
            return Found::Known(Begun::Differs);
        }
        Found::Known(match &call.state {
            CallState::Replied { reply, .. } if reply.is_withdrawn() => Begun::Ran,
            CallState::Replied { reply, .. } => Begun::Replied(Arc::clone(&reply.bytes)),
            CallState::Ran => Begun::Ran,
            CallState::Runs(running, _) if *running == wanted.call => Begun::New,
            CallState::Runs(..) if share.waiting >= MAX_WAITING => Begun::Busy(share.waiting),
            CallState::Runs(_, running) => {
                share.waiting = share.waiting.saturating_add(1);
                return Found::Runs(running.subscribe());
            }
        })
    }

    /// Notes that a call of this principal no longer waits.
    fn waits_no_more(&mut self, principal: &CallDigest) {
        if let Some(share) = self.shares.get_mut(principal) {
            share.waiting = share.waiting.saturating_sub(1);
        }
    }

    /// Notes that a running call has ended.
    fn end(&mut self, ended: &CallId, ending: CallEnding, now: Instant) {
        let Some(share) = self.shares.get_mut(&ended.principal) else {
            return;
        };
        let runs =
            |call: &Call| matches!(call.state, CallState::Runs(call, _) if call == ended.call);
        if !share.calls.get(&ended.id).is_some_and(runs) {
            return;
        }
        share.calls.remove(&ended.id);
        let state = match ending {
            CallEnding::Forgotten => None,
            CallEnding::Ran => Some(CallState::Ran),
            // This reply alone would displace all others.
            CallEnding::Replied { reply, remembered } if size(&reply) > MAX_REPLY_BYTES => {
                remembered.then_some(CallState::Ran)
            }
            CallEnding::Replied { reply, remembered } => {
                Some(CallState::Replied { reply, remembered })
            }
        };
        if let Some(state) = state {
            share.put(ended.id, ended.input, state, now);
        }
        if share.is_empty() {
            self.shares.remove(&ended.principal);
        }
        self.bound(now);
    }

    /// Drops the expired replies and ids of all principals, once per interval.
    fn sweep(&mut self, now: Instant) {
        let due = self.swept.and_then(|at| at.checked_add(SWEEP_INTERVAL));
        if due.is_none_or(|due| due <= now) {
            self.swept = Some(now);
            self.shares.retain(|_, share| {
                share.expire(now);
                !share.is_empty()
            });
        }
    }

    /// Drops the oldest entries of the principal with the most, until the total limits are met.
    fn bound(&mut self, now: Instant) {
        let bytes = |memory: &Self| memory.shares.values().map(|one| one.bytes).sum::<u64>();
        while bytes(self) > MAX_TOTAL_BYTES {
            let most = self.shares.values_mut().max_by_key(|one| one.bytes);
            if !most.is_some_and(|share| share.drop_reply(now)) {
                break;
            }
        }
        let ids = |memory: &Self| {
            memory
                .shares
                .values()
                .map(|one| one.ids.len())
                .sum::<usize>()
        };
        while ids(self) > MAX_TOTAL_IDS {
            let most = self.shares.values_mut().max_by_key(|one| one.ids.len());
            if !most.is_some_and(Share::drop_id) {
                break;
            }
        }
    }
}

impl Share {
    fn put(&mut self, key: CallDigest, input: CallDigest, state: CallState, now: Instant) {
        match &state {
            CallState::Replied { reply, .. } => {
                self.bytes = self.bytes.saturating_add(size(reply));
                self.replies.push_back((now, key));
            }
            CallState::Ran => self.ids.push_back((now, key)),
            CallState::Runs(..) => {}
        }
        self.calls.insert(key, Call { input, state });
        let is_over = |own: &Self| own.replies.len() > MAX_REPLIES || own.bytes > MAX_REPLY_BYTES;
        while is_over(self) && self.drop_reply(now) {}
        while self.ids.len() > MAX_IDS && self.drop_id() {}
    }

    fn expire(&mut self, now: Instant) {
        let is_old = |entry: Option<&(Instant, CallDigest)>, age| {
            entry.is_some_and(|(at, _)| now.saturating_duration_since(*at) >= age)
        };
        while is_old(self.replies.front(), REPLY_AGE) && self.drop_reply(now) {}
        while is_old(self.ids.front(), ID_AGE) && self.drop_id() {}
    }

    /// Drops the oldest reply. Its id stays if it is `remembered`.
    fn drop_reply(&mut self, now: Instant) -> bool {
        let Some((_, key)) = self.replies.pop_front() else {
            return false;
        };
        if let Some(call) = self.calls.remove(&key)
            && let CallState::Replied { reply, remembered } = call.state
        {
            self.bytes = self.bytes.saturating_sub(size(&reply));
            if remembered {
                self.put(key, call.input, CallState::Ran, now);
            }
        }
        true
    }

    fn drop_id(&mut self) -> bool {
        let Some((_, key)) = self.ids.pop_front() else {
            return false;
        };
        self.calls.remove(&key);
        true
    }

    fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.waiting == 0
    }
}

/// About how much memory a reply takes.
fn size(reply: &StoredReply) -> u64 {
    (reply.bytes.len() as u64).saturating_add(OVERHEAD)
}

#[cfg(test)]
mod tests;
