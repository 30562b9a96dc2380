//! Calls of the second implementation.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use toolward_state::{Begun, BoxFuture, CallEnding, CallId, Calls, StateError, StoredReply};

use super::Remote;

/// How often a waiting client asks the server.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// The calls by principal and id.
pub(super) type StoredCalls = HashMap<[[u8; 32]; 2], StoredCall>;

pub(super) struct StoredCall {
    input: [u8; 32],
    state: State,
}

enum State {
    Runs([u8; 16]),
    Ran,
    Replied(StoredReply),
}

impl Calls for Remote {
    fn begin(&self, call: CallId, deadline: Instant) -> BoxFuture<'_, Result<Begun, StateError>> {
        Box::pin(async move {
            loop {
                match self.send(deadline, |server| begin(server, call)).await? {
                    Begun::Running if Instant::now() + POLL_INTERVAL < deadline => {
                        tokio::time::sleep(POLL_INTERVAL).await;
                    }
                    Begun::Running => {
                        tokio::time::sleep_until(deadline.into()).await;
                        return Ok(Begun::Running);
                    }
                    known => return Ok(known),
                }
            }
        })
    }

    fn end(
        &self,
        call: CallId,
        ending: CallEnding,
        deadline: Instant,
    ) -> BoxFuture<'static, Result<(), StateError>> {
        let own = self.clone();
        Box::pin(async move {
            Ok(own
                .send(deadline, |server| end(server, call, ending))
                .await?)
        })
    }
}

/// Compares with the stored call, and stores the call if none is stored.
fn begin(server: &mut super::Server, call: CallId) -> Begun {
    let runs = StoredCall {
        input: call.input,
        state: State::Runs(call.call),
    };
    let stored = server.calls.entry([call.principal, call.id]);
    let stored = stored.or_insert(runs);
    if stored.input != call.input {
        return Begun::Differs;
    }
    match &stored.state {
        State::Runs(running) if *running == call.call => Begun::New,
        State::Runs(_) => Begun::Running,
        State::Ran => Begun::Ran,
        State::Replied(reply) if reply.is_withdrawn() => Begun::Ran,
        State::Replied(reply) => Begun::Replied(Arc::clone(&reply.bytes)),
    }
}

fn end(server: &mut super::Server, call: CallId, ending: CallEnding) {
    let key = [call.principal, call.id];
    let Some(stored) = server.calls.get_mut(&key) else {
        return;
    };
    if !matches!(stored.state, State::Runs(running) if running == call.call) {
        return;
    }
    match ending {
        CallEnding::Forgotten => {
            server.calls.remove(&key);
        }
        CallEnding::Ran => stored.state = State::Ran,
        CallEnding::Replied { reply, .. } => stored.state = State::Replied(reply),
    }
}
