//! What is known of ids in this process: which of their calls run, what the last ones replied, and which ran.
//!
//! Each principal has a share, and takes nothing from another one's.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::kept::{KeptReply, MAX_REPLY_BYTES};
use super::name::CallName;

/// Replies of one principal: their number, their bytes, and how long they are kept.
const MAX_REPLIES: usize = 64;
const REPLY_AGE: Duration = Duration::from_mins(10);
/// Replies of all principals together.
const MAX_TOTAL_BYTES: u64 = 64 << 20;
/// Calls of one principal that wait for the first call of their id. They hold no place in the queue.
pub(super) const MAX_WAITING: usize = 64;
/// Ids without a reply, of one principal and of all. They are kept where no ledger knows them: the oldest are
/// forgotten.
const MAX_IDS: usize = 4096;
const MAX_TOTAL_IDS: usize = 65_536;
/// An id is refused for its age after a day and 5 minutes.
const ID_AGE: Duration = Duration::from_hours(25);
/// Between two looks at what other principals may no longer keep.
const SWEEP_INTERVAL: Duration = Duration::from_secs(10);

type Hash = [u8; 32];

/// The ids of a process.
#[derive(Default)]
pub(super) struct Memory {
    /// By the hash of the principal.
    shares: HashMap<Hash, Share>,
    swept: Option<Instant>,
}

/// What one principal has.
#[derive(Default)]
struct Share {
    calls: HashMap<Hash, Call>,
    /// Kept replies, oldest first.
    replies: VecDeque<(Instant, Hash)>,
    bytes: u64,
    /// Ids without replies, oldest first.
    ids: VecDeque<(Instant, Hash)>,
    waiting: usize,
}

/// The call of an id.
struct Call {
    /// The digest of its input.
    input: Hash,
    state: CallState,
}

enum CallState {
    /// It runs, until the other end is dropped.
    Runs(watch::Receiver<()>),
    /// It has ended with this reply.
    Replied {
        reply: Arc<KeptReply>,
        /// Whether its id has to be known when the reply is gone.
        remembered: bool,
    },
    /// It has ended, and its reply is not kept.
    Ran,
}

/// What an id has at one moment.
pub(super) enum Found {
    /// Nothing: its call runs from now on, until this is dropped.
    New(watch::Sender<()>),
    /// A call that runs. One more waits for it, until [`Memory::waits_no_more`].
    Runs(watch::Receiver<()>),
    /// Such a call, and too many wait.
    Busy,
    /// A reply.
    Replied(Arc<KeptReply>),
    /// A call whose reply is not kept.
    Ran,
    /// A call with another input.
    Differs,
}

/// What becomes of an id when its call has ended.
pub(super) enum Ending {
    /// Another call of it may run.
    Forgotten,
    /// None may.
    Ran,
    /// Others get this reply. The flag says whether the id has to be known beyond it.
    Replied(Arc<KeptReply>, bool),
}

impl Memory {
    /// Looks for an id. One that is new runs.
    pub(super) fn find(&mut self, name: &CallName, now: Instant) -> Found {
        self.sweep(now);
        let share = self.shares.entry(name.principal()).or_default();
        share.expire(now);
        let Some(call) = share.calls.get(&name.key()) else {
            let (running, runs) = watch::channel(());
            let call = Call {
                input: name.input(),
                state: CallState::Runs(runs),
            };
            share.calls.insert(name.key(), call);
            return Found::New(running);
        };
        if call.input != name.input() {
            return Found::Differs;
        }
        match &call.state {
            CallState::Replied { reply, .. } => Found::Replied(Arc::clone(reply)),
            CallState::Ran => Found::Ran,
            CallState::Runs(_) if share.waiting >= MAX_WAITING => Found::Busy,
            CallState::Runs(runs) => {
                let runs = runs.clone();
                share.waiting = share.waiting.saturating_add(1);
                Found::Runs(runs)
            }
        }
    }

    /// A call of this principal waits no more.
    pub(super) fn waits_no_more(&mut self, principal: &Hash) {
        if let Some(share) = self.shares.get_mut(principal) {
            share.waiting = share.waiting.saturating_sub(1);
        }
    }

    /// The call of an id has ended.
    pub(super) fn end(&mut self, name: &CallName, ending: Ending, now: Instant) {
        let principal = name.principal();
        let Some(share) = self.shares.get_mut(&principal) else {
            return;
        };
        let key = name.key();
        share.calls.remove(&key);
        match ending {
            Ending::Forgotten => {}
            Ending::Ran => share.put(key, name.input(), CallState::Ran, now),
            Ending::Replied(reply, remembered) => {
                let state = CallState::Replied { reply, remembered };
                share.put(key, name.input(), state, now);
            }
        }
        if share.is_empty() {
            self.shares.remove(&principal);
        }
        self.bound(now);
    }

    /// Looks at all principals, now and then.
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

    /// Drops the oldest of the principal that has most, as long as there is more than all may have.
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
    fn put(&mut self, key: Hash, input: Hash, state: CallState, now: Instant) {
        match &state {
            CallState::Replied { reply, .. } => {
                self.bytes = self.bytes.saturating_add(reply.bytes());
                self.replies.push_back((now, key));
            }
            CallState::Ran => self.ids.push_back((now, key)),
            CallState::Runs(_) => {}
        }
        self.calls.insert(key, Call { input, state });
        let is_over = |own: &Self| own.replies.len() > MAX_REPLIES || own.bytes > MAX_REPLY_BYTES;
        while is_over(self) && self.drop_reply(now) {}
        while self.ids.len() > MAX_IDS && self.drop_id() {}
    }

    fn expire(&mut self, now: Instant) {
        let is_old = |entry: Option<&(Instant, Hash)>, age| {
            entry.is_some_and(|(at, _)| now.saturating_duration_since(*at) >= age)
        };
        while is_old(self.replies.front(), REPLY_AGE) && self.drop_reply(now) {}
        while is_old(self.ids.front(), ID_AGE) && self.drop_id() {}
    }

    /// Drops the oldest reply; its id stays where no ledger knows it.
    fn drop_reply(&mut self, now: Instant) -> bool {
        let Some((_, key)) = self.replies.pop_front() else {
            return false;
        };
        if let Some(call) = self.calls.remove(&key)
            && let CallState::Replied { reply, remembered } = call.state
        {
            self.bytes = self.bytes.saturating_sub(reply.bytes());
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

#[cfg(test)]
mod tests;
