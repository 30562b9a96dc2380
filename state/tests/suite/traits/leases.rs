//! Tests every implementation of [`Leases`].

use std::sync::Arc;
use std::time::{Duration, Instant};

use toolward_state::{
    BoxFuture, CallPlace, Leases, Local, PlaceLimits, PlaceReply, Places, PlacesOf, ServedBundles,
    StateError,
};

use super::{Remote, over_both};

over_both! {
    Local::new(None, None), Remote::new();
    so_many_run_and_a_place_that_is_given_back_is_given_again,
    beyond_the_queue_a_call_is_refused,
    whoever_waits_decides_how_long_and_holds_nothing_then,
    a_call_that_is_not_bounded_waits_past_the_queue,
    of_many_at_once_no_more_run_than_may,
    a_bundle_is_withdrawn_for_those_who_serve_it_and_served_again_later,
    what_was_parted_with_is_withdrawn_alone,
}

fn in_time() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

fn places(leases: &dyn Leases, running: u32, waiting: u32) -> Arc<dyn Places> {
    leases.places(
        PlacesOf::Tool("acme", "a@1"),
        PlaceLimits { running, waiting },
    )
}

/// Enters, and retries if the answer is lost, in which case no place is held.
async fn enter(
    places: &Arc<dyn Places>,
    bounded: bool,
    deadline: Instant,
) -> Result<PlaceReply, StateError> {
    loop {
        if let Some(place) = places.clone().try_enter() {
            return Ok(PlaceReply::Entered(place));
        }
        match places.clone().enter(bounded, Some(deadline)).await {
            Err(StateError::Unknown) => tokio::time::sleep(Duration::from_millis(5)).await,
            known => return known,
        }
    }
}

async fn entered(places: &Arc<dyn Places>) -> CallPlace {
    match enter(places, true, in_time()).await {
        Ok(PlaceReply::Entered(place)) => place,
        other => panic!("{other:?}"),
    }
}

/// Returns a waiting call once it is in the queue. A call whose answer was lost may keep its place
/// there a little longer.
async fn waiting(places: &Arc<dyn Places>) -> BoxFuture<'static, Result<PlaceReply, StateError>> {
    let ends = in_time();
    while Instant::now() < ends {
        let places = places.clone();
        let mut enters: BoxFuture<'static, _> =
            Box::pin(async move { enter(&places, true, in_time()).await });
        match tokio::time::timeout(Duration::from_millis(40), &mut enters).await {
            Err(_waits) => return enters,
            Ok(Ok(PlaceReply::Full(_))) => tokio::time::sleep(Duration::from_millis(5)).await,
            Ok(other) => panic!("{other:?}"),
        }
    }
    panic!("the queue stays full");
}

async fn so_many_run_and_a_place_that_is_given_back_is_given_again(leases: &dyn Leases) {
    let places = places(leases, 2, 5);
    let (first, _second) = (entered(&places).await, entered(&places).await);
    let waits = waiting(&places).await;
    drop(first);
    assert!(matches!(waits.await, Ok(PlaceReply::Entered(_))));
}

async fn beyond_the_queue_a_call_is_refused(leases: &dyn Leases) {
    let places = places(leases, 1, 1);
    let _first = entered(&places).await;
    let mut waits = waiting(&places).await;
    let ends = in_time();
    // On a busy machine, the first call may reach the queue after the second, which then leaves the
    // queue.
    loop {
        let soon = Instant::now() + Duration::from_millis(200);
        match enter(&places, true, soon).await {
            Ok(PlaceReply::Full(full)) => break assert_eq!(full.waiting, 1),
            Err(StateError::Late) if Instant::now() < ends => {
                let more = tokio::time::timeout(Duration::from_millis(40), &mut waits);
                // If the call was refused, or its answer was lost, another call waits in its place.
                if more.await.is_ok() {
                    waits = waiting(&places).await;
                }
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(places.clone().reserve().is_err());
    // A call that stops waiting leaves the queue.
    drop(waits);
    drop(waiting(&places).await);
}

async fn whoever_waits_decides_how_long_and_holds_nothing_then(leases: &dyn Leases) {
    let places = places(leases, 1, 5);
    let first = entered(&places).await;
    let soon = Instant::now() + Duration::from_millis(30);
    let late = enter(&places, true, soon).await;
    assert!(matches!(late, Err(StateError::Late)), "{late:?}");
    drop(first);
    drop(entered(&places).await);
}

async fn a_call_that_is_not_bounded_waits_past_the_queue(leases: &dyn Leases) {
    let places = places(leases, 1, 0);
    let first = entered(&places).await;
    let ends = async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        drop(first);
    };
    let (entry, ()) = tokio::join!(enter(&places, false, in_time()), ends);
    assert!(matches!(entry, Ok(PlaceReply::Entered(_))));
}

async fn of_many_at_once_no_more_run_than_may(leases: &dyn Leases) {
    use std::sync::atomic::{AtomicU32, Ordering};

    let places = &places(leases, 3, 50);
    let (running, most) = (&AtomicU32::new(0), &AtomicU32::new(0));
    let each = (0..15).map(|_| async move {
        let place = entered(places).await;
        let now = running.fetch_add(1, Ordering::SeqCst) + 1;
        most.fetch_max(now, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(1)).await;
        running.fetch_sub(1, Ordering::SeqCst);
        drop(place);
    });
    futures_util::future::join_all(each).await;
    assert!((1..=3).contains(&most.load(Ordering::SeqCst)));
}

async fn a_bundle_is_withdrawn_for_those_who_serve_it_and_served_again_later(leases: &dyn Leases) {
    let (own, other) = (leases.watch("aa"), leases.watch("bb"));
    let again = leases.watch("aa");
    assert!(leases.withdraw(ServedBundles::One("aa"), "revoked"));
    for watch in [&own, &again] {
        assert_eq!(watch.withdrawn(), Some("revoked"));
    }
    assert_eq!(other.withdrawn(), None);
    assert_eq!(
        leases.watch("aa").withdrawn(),
        None,
        "it was verified again"
    );
    assert!(!leases.withdraw(ServedBundles::One("cc"), "unknown"));
}

async fn what_was_parted_with_is_withdrawn_alone(leases: &dyn Leases) {
    let before = leases.watch("aa");
    leases.part();
    let after = leases.watch("aa");
    leases.withdraw(ServedBundles::Earlier, "parted");
    assert_eq!(before.withdrawn(), Some("parted"));
    assert_eq!(after.withdrawn(), None);
    leases.withdraw(ServedBundles::All, "all");
    assert_eq!(after.withdrawn(), Some("all"));
}

#[tokio::test]
async fn another_client_learns_of_a_withdrawal_and_shares_places() {
    let one = Remote::new();
    let other = one.restarted();
    let watch = other.watch("aa");
    one.watch("aa");
    one.withdraw(ServedBundles::One("aa"), "revoked");
    let learns = async {
        while watch.withdrawn().is_none() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let learns = tokio::time::timeout(Duration::from_secs(20), learns);
    learns.await.expect("it is told");

    let (ours, theirs) = (places(&one, 1, 0), places(&other, 1, 0));
    let place = entered(&ours).await;
    let full = enter(&theirs, true, in_time()).await;
    assert!(matches!(full, Ok(PlaceReply::Full(_))), "{full:?}");
    drop(place);
    let freed = async {
        while !matches!(
            enter(&theirs, true, in_time()).await,
            Ok(PlaceReply::Entered(_))
        ) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let freed = tokio::time::timeout(Duration::from_secs(20), freed);
    freed.await.expect("it is given back");
}
