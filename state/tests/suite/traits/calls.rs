//! Tests every implementation of [`Calls`].

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use toolward_state::{Begun, CallEnding, CallId, Calls, Local, StoredReply, Withdrawal, settled};

use super::{Remote, over_both};

over_both! {
    Local::new(None, None), Remote::new();
    the_first_call_of_an_id_runs_and_others_get_its_reply,
    a_call_that_is_started_again_runs_once,
    of_many_at_once_one_runs,
    whoever_waits_for_a_call_decides_how_long,
    a_call_that_waits_runs_when_the_first_is_forgotten,
    another_input_differs,
    only_the_call_that_runs_ends_it,
    a_reply_of_a_withdrawn_bundle_is_not_given,
}

/// A call with an id that no other test uses.
fn call(id: u8) -> CallId {
    static LAST: AtomicU8 = AtomicU8::new(0);
    CallId {
        principal: [1; 32],
        id: [id; 32],
        input: [3; 32],
        call: [LAST.fetch_add(1, Ordering::Relaxed); 16],
    }
}

fn in_time() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

async fn begin(calls: &dyn Calls, call: CallId) -> Begun {
    let deadline = in_time();
    let begun = settled(deadline, || calls.begin(call, deadline)).await;
    begun.expect("in time")
}

async fn end(calls: &dyn Calls, call: CallId, ending: &CallEnding) {
    let deadline = in_time();
    let ended = settled(deadline, || calls.end(call, ending.clone(), deadline)).await;
    ended.expect("in time");
}

fn reply(bundle: &Arc<Withdrawal>) -> CallEnding {
    CallEnding::Replied {
        reply: StoredReply {
            bytes: b"reply"[..].into(),
            bundles: [bundle.clone(), bundle.clone()],
        },
        remembered: true,
    }
}

fn bundle() -> Arc<Withdrawal> {
    Arc::new(Withdrawal::new("aa"))
}

async fn the_first_call_of_an_id_runs_and_others_get_its_reply(calls: &dyn Calls) {
    let first = call(1);
    assert_eq!(begin(calls, first).await, Begun::New);
    end(calls, first, &reply(&bundle())).await;
    let replied = Begun::Replied(b"reply"[..].into());
    assert_eq!(begin(calls, call(1)).await, replied);
    assert_eq!(begin(calls, call(2)).await, Begun::New, "another id");
    let other = CallId {
        principal: [9; 32],
        ..call(1)
    };
    assert_eq!(begin(calls, other).await, Begun::New, "another principal");
}

async fn a_call_that_is_started_again_runs_once(calls: &dyn Calls) {
    let first = call(1);
    assert_eq!(begin(calls, first).await, Begun::New);
    assert_eq!(begin(calls, first).await, Begun::New);
    end(calls, first, &CallEnding::Ran).await;
    end(calls, first, &CallEnding::Ran).await;
    assert_eq!(begin(calls, first).await, Begun::Ran);
}

async fn of_many_at_once_one_runs(calls: &dyn Calls) {
    let each = (0..10).map(|_| async {
        let own = call(1);
        let begun = begin(calls, own).await;
        if begun == Begun::New {
            tokio::time::sleep(Duration::from_millis(5)).await;
            end(calls, own, &reply(&bundle())).await;
        }
        begun
    });
    let all = futures_util::future::join_all(each).await;
    let replied = Begun::Replied(b"reply"[..].into());
    assert_eq!(all.iter().filter(|one| **one == Begun::New).count(), 1);
    assert_eq!(all.iter().filter(|one| **one == replied).count(), 9);
}

async fn whoever_waits_for_a_call_decides_how_long(calls: &dyn Calls) {
    assert_eq!(begin(calls, call(1)).await, Begun::New);
    let start = Instant::now();
    let soon = start + Duration::from_millis(60);
    let waits = call(1);
    let begun = settled(in_time(), || calls.begin(waits, soon)).await;
    // If the last answer was lost, the repetition fails, since it is late.
    assert!(
        matches!(begun, Ok(Begun::Running)) || begun.is_err(),
        "{begun:?}"
    );
    assert!(start.elapsed() >= Duration::from_millis(60));
}

async fn a_call_that_waits_runs_when_the_first_is_forgotten(calls: &dyn Calls) {
    let first = call(1);
    assert_eq!(begin(calls, first).await, Begun::New);
    let ends = async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        end(calls, first, &CallEnding::Forgotten).await;
    };
    let (begun, ()) = tokio::join!(begin(calls, call(1)), ends);
    assert_eq!(begun, Begun::New);
}

async fn another_input_differs(calls: &dyn Calls) {
    assert_eq!(begin(calls, call(1)).await, Begun::New);
    let other = CallId {
        input: [4; 32],
        ..call(1)
    };
    assert_eq!(begin(calls, other).await, Begun::Differs);
}

async fn only_the_call_that_runs_ends_it(calls: &dyn Calls) {
    let first = call(1);
    assert_eq!(begin(calls, first).await, Begun::New);
    end(calls, call(1), &CallEnding::Forgotten).await;
    assert_eq!(begin(calls, first).await, Begun::New, "it runs still");
    end(calls, first, &CallEnding::Ran).await;
    assert_eq!(begin(calls, call(1)).await, Begun::Ran);
}

async fn a_reply_of_a_withdrawn_bundle_is_not_given(calls: &dyn Calls) {
    let (first, own) = (call(1), bundle());
    assert_eq!(begin(calls, first).await, Begun::New);
    end(calls, first, &reply(&own)).await;
    own.withdraw("revoked");
    assert_eq!(begin(calls, call(1)).await, Begun::Ran);
}

#[tokio::test]
async fn a_client_that_restarts_starts_its_call_again_and_no_other_does() {
    let remote = Remote::new();
    let first = call(1);
    assert_eq!(begin(&remote, first).await, Begun::New);
    let restarted = remote.restarted();
    assert_eq!(begin(&restarted, first).await, Begun::New);
    let soon = Instant::now() + Duration::from_millis(30);
    let other = call(1);
    let begun = settled(soon, || restarted.begin(other, soon)).await;
    assert!(!matches!(begun, Ok(Begun::New)), "{begun:?}");
}
