use super::*;
use crate::api::result::ErrorCode;

fn admission(limits: &Limits) -> (Admission, Arc<Gate>, Arc<Gate>) {
    let admission = Admission::new(limits, Arc::new(toolward_state::Local::new(None, None)));
    let tool = admission.tool("acme", "text.stats@1");
    let publisher = admission.publisher("acme");
    (admission, tool, publisher)
}

fn in_time() -> Instant {
    Instant::now() + std::time::Duration::from_secs(20)
}

#[tokio::test]
async fn a_full_queue_refuses_and_a_freed_place_is_given_again() {
    let limits = Limits {
        concurrency: 1,
        queue: 1,
        ..Limits::default()
    };
    let (admission, tool, publisher) = admission(&limits);
    let path = admission.path(&tool, &publisher, "local");
    let running = path.enter(1 << 20, None).await.expect("a free slot");
    let mut waiting = Box::pin(path.enter(1 << 20, None));
    assert!(futures_util::poll!(waiting.as_mut()).is_pending());

    let refused = path
        .enter(1 << 20, None)
        .await
        .expect_err("the queue is full");
    assert_eq!(refused.code, ErrorCode::RATE_LIMITED);
    assert!(refused.retryable && refused.retry_after.is_some());

    drop(waiting);
    let mut again = Box::pin(path.enter(1 << 20, None));
    assert!(futures_util::poll!(again.as_mut()).is_pending());
    drop(running);
    let _slot = again.await.expect("the freed slot");
}

#[tokio::test]
async fn a_principal_that_waits_for_its_own_share_keeps_nobody_else_waiting() {
    let limits = Limits {
        concurrency: 2,
        concurrency_per_principal: 1,
        queue: 1,
        ..Limits::default()
    };
    let (admission, tool, publisher) = admission(&limits);
    let greedy = admission.path(&tool, &publisher, "greedy");
    let _running = greedy.enter(1 << 20, None).await.expect("a free slot");
    let mut waiting = Box::pin(greedy.enter(1 << 20, None));
    assert!(futures_util::poll!(waiting.as_mut()).is_pending());
    let refused = greedy
        .enter(1 << 20, None)
        .await
        .expect_err("its own queue is full");
    assert!(refused.message.contains("concurrency_per_principal"));

    let modest = admission.path(&tool, &publisher, "modest");
    let _slot = modest.enter(1 << 20, None).await.expect("the other slot");
}

#[tokio::test]
async fn a_parked_call_lends_its_slot_and_gets_one_again_past_the_queue() {
    let limits = Limits {
        concurrency: 1,
        queue: 0,
        ..Limits::default()
    };
    let (admission, tool, publisher) = admission(&limits);
    let path = admission.path(&tool, &publisher, "local");
    let parent = path.enter(1 << 20, None).await.expect("a free slot");
    let parked = path.park(parent).expect("room to park");
    let child = path.enter(1 << 20, None).await.expect("the lent slot");
    let mut resumed = Box::pin(path.resume(parked, in_time()));
    assert!(futures_util::poll!(resumed.as_mut()).is_pending());
    drop(child);
    let _slot = resumed.await.expect("a slot again");
}

#[tokio::test]
async fn a_principal_that_parks_all_it_may_keeps_nobody_else_from_parking() {
    let limits = Limits {
        concurrency: 2,
        concurrency_per_principal: 1,
        ..Limits::default()
    };
    let (admission, tool, publisher) = admission(&limits);
    let greedy = admission.path(&tool, &publisher, "greedy");
    let slot = greedy.enter(1 << 20, None).await.expect("a slot");
    let _parked = greedy.park(slot).expect("room to park");
    let slot = greedy.enter(1 << 20, None).await.expect("the lent slot");
    let (_slot, refused) = *greedy.park(slot).expect_err("its share is taken");
    let hit = refused.limit.expect("a limit");
    assert_eq!(
        (hit.limit, hit.allowed),
        (LimitName::ConcurrencyPerPrincipal, 1)
    );

    let modest = admission.path(&tool, &publisher, "modest");
    let slot = modest.enter(1 << 20, None).await.expect("a slot");
    let _parked = modest.park(slot).expect("room to park");
}

#[tokio::test]
async fn whoever_waits_for_a_tool_takes_no_place_of_its_publishers_other_tools() {
    let limits = Limits {
        concurrency_per_tool: 1,
        concurrency_per_publisher: 2,
        queue: 1,
        ..Limits::default()
    };
    let (admission, busy, publisher) = admission(&limits);
    let path = admission.path(&busy, &publisher, "local");
    let _running = path.enter(1 << 20, None).await.expect("a free slot");
    let mut waiting = Box::pin(path.enter(1 << 20, None));
    assert!(futures_util::poll!(waiting.as_mut()).is_pending());

    let other = admission.tool("acme", "text.other@1");
    let path = admission.path(&other, &publisher, "local");
    let mut entering = Box::pin(path.enter(1 << 20, None));
    assert!(futures_util::poll!(entering.as_mut()).is_ready());
}

#[tokio::test]
async fn so_many_calls_are_parked_and_no_more() {
    let limits = Limits {
        concurrency: 1,
        ..Limits::default()
    };
    let (admission, tool, publisher) = admission(&limits);
    let path = admission.path(&tool, &publisher, "local");
    let _parked = path
        .park(path.enter(1 << 20, None).await.expect("a slot"))
        .expect("room to park");
    let slot = path.enter(1 << 20, None).await.expect("the lent slot");
    let (_slot, refused) = *path.park(slot).expect_err("no more room");
    assert_eq!(refused.code, ErrorCode::RATE_LIMITED);
}

#[test]
fn one_principal_leaves_files_for_others_and_all_come_back() {
    let limits = Limits {
        open_files_total: Some(4),
        concurrency: 4,
        concurrency_per_principal: 3,
        concurrency_per_publisher: 4,
        ..Limits::default()
    };
    let admission = Admission::new(&limits, Arc::new(toolward_state::Local::new(None, None)));
    let (tool, publisher) = (admission.tool("a", "t@1"), admission.publisher("a"));
    let path = |principal| admission.path(&tool, &publisher, principal);
    let (greedy, modest) = (path("greedy"), path("modest"));
    let mut open: Vec<_> = (0..3).map(|_| greedy.open().expect("room")).collect();
    let exceeded = greedy.open().expect_err("its share is taken");
    assert_eq!(
        (exceeded.limit, exceeded.used, exceeded.allowed),
        (LimitName::OpenFilesTotal, 4, 3)
    );
    let last = modest.open().expect("room for others");
    assert!(modest.open().is_err());
    open.pop();
    drop(last);
    let _again = greedy.open().expect("room again");
}
