use super::*;

const MIB: u64 = 1 << 20;

struct Calls {
    memory: Arc<CallMemory>,
    publisher: Arc<Gate>,
}

impl Calls {
    fn of(total: u64, share: u32) -> Self {
        let limits = Limits {
            memory_total: Some(total),
            concurrency: 4,
            concurrency_per_principal: share,
            concurrency_per_publisher: 4,
            ..Limits::default()
        };
        Self {
            memory: CallMemory::new(&limits),
            publisher: gate(),
        }
    }

    async fn start(&self, principal: &Arc<Gate>) -> Result<Arc<MemoryLease>, CallError> {
        let memory = &self.memory;
        memory.reserve(principal, &self.publisher, 256 * MIB).await
    }
}

fn gate() -> Arc<Gate> {
    let limits = toolward_state::PlaceLimits {
        running: 4,
        waiting: 4,
    };
    let places = toolward_state::places_of_process(limits);
    Gate::new(LimitName::Concurrency, limits, places)
}

#[tokio::test]
async fn the_newest_growth_of_the_largest_principal_ends_for_a_neighbour() {
    let calls = Calls::of(100 * MIB, 4);
    let [greedy, modest] = [gate(), gate()];
    let first = calls.start(&greedy).await.expect("room");
    let second = calls.start(&greedy).await.expect("room");
    first.cover(40 * MIB, 256 * MIB).expect("room");
    second.cover(40 * MIB, 256 * MIB).expect("room");
    first.cover(48 * MIB, 256 * MIB).expect("room");
    // If the principal with the most memory grows, its growing call ends.
    let refused = second.cover(64 * MIB, 256 * MIB).expect_err("no room");
    assert_eq!(refused.limit, LimitName::MemoryTotal);
    first.cover(48 * MIB, 256 * MIB).expect("covered before");

    let mut starting = Box::pin(calls.start(&modest));
    assert!(futures_util::poll!(starting.as_mut()).is_pending());
    assert!(second.is_ended() && !first.is_ended());
    drop(second);
    let neighbour = starting.await.expect("room");
    neighbour.cover(24 * MIB, 256 * MIB).expect("room");
    drop((first, neighbour));
    assert_eq!(calls.memory.sum.used(), 0);
    assert_eq!(greedy.memory.now(), 0);
    assert!(lock(&calls.memory.growing).is_empty());
}

#[tokio::test]
async fn a_growing_neighbour_need_not_wait_for_the_call_that_ends() {
    let calls = Calls::of(100 * MIB, 4);
    let [greedy, modest] = [gate(), gate()];
    let neighbour = calls.start(&modest).await.expect("room");
    let large = calls.start(&greedy).await.expect("room");
    large.cover(80 * MIB, 256 * MIB).expect("room");
    neighbour.cover(20 * MIB, 256 * MIB).expect("an overdraft");
    assert!(large.is_ended() && !neighbour.is_ended());
    // The overdraft is bounded.
    assert!(neighbour.cover(90 * MIB, 256 * MIB).is_err());
}

/// The client of unread results, and whether it was ended.
struct Client {
    principal: Arc<Gate>,
    progress: ReadProgress,
    ended: Arc<AtomicBool>,
}

impl Client {
    fn of(principal: &Arc<Gate>) -> Self {
        Self {
            principal: principal.clone(),
            progress: ReadProgress::default(),
            ended: Arc::default(),
        }
    }

    fn unread(&self, calls: &Calls, bytes: u64) -> Option<Arc<MemoryLease>> {
        let ended = self.ended.clone();
        let end = Box::new(move || ended.store(true, Ordering::Relaxed));
        (calls.memory).unread(&self.principal, bytes, &self.progress, end)
    }

    fn stalls(&self) {
        let now = std::time::Instant::now();
        self.progress
            .set(now.checked_sub(STALLED_AFTER).expect("a time"));
    }

    fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }
}

#[tokio::test]
async fn a_client_that_reads_nothing_goes_before_a_call_and_before_one_that_waited_longer() {
    let calls = Calls::of(200 * MIB, 4);
    let slow = gate();
    let working = calls.start(&slow).await.expect("room");
    working.cover(120 * MIB, 256 * MIB).expect("room");
    let [steady, stalled] = [Client::of(&slow), Client::of(&slow)];
    let _first = steady.unread(&calls, 30 * MIB).expect("room");
    let second = stalled.unread(&calls, 30 * MIB).expect("room");
    stalled.stalls();
    working.cover(140 * MIB, 256 * MIB).expect("an overdraft");
    assert!(stalled.is_ended() && !steady.is_ended() && !working.is_ended());
    drop(second);
    working.cover(160 * MIB, 256 * MIB).expect("room");
}

#[tokio::test]
async fn clients_that_read_stay_while_calls_fill_the_sum() {
    let calls = Calls::of(200 * MIB, 4);
    let own = gate();
    let oldest = calls.start(&own).await.expect("room");
    oldest.cover(80 * MIB, 256 * MIB).expect("room");
    let newest = calls.start(&own).await.expect("room");
    newest.cover(112 * MIB, 256 * MIB).expect("room");
    let client = Client::of(&own);
    let mut results: Vec<_> = (0..2).map(|_| client.unread(&calls, 16 * MIB)).collect();
    assert!(results.iter().all(Option::is_some), "an overdraft");
    assert!(newest.is_ended() && !oldest.is_ended() && !client.is_ended());
    assert!(client.unread(&calls, 16 * MIB).is_none(), "it is bounded");
    drop(newest);
    // The overdraft has been paid back.
    assert_eq!(calls.memory.sum.used(), 112 * MIB);
    results.push(client.unread(&calls, 16 * MIB));
    assert!(results.last().is_some_and(Option::is_some), "room");
    drop((results, oldest));
    assert_eq!(
        (calls.memory.sum.used(), calls.memory.unread.used()),
        (0, 0)
    );
    assert_eq!((own.memory.now(), own.unread.now()), (0, 0));
}

#[tokio::test]
async fn results_leave_room_for_calls_of_the_same_principal() {
    let calls = Calls::of(200 * MIB, 4);
    let own = gate();
    let client = Client::of(&own);
    let results: Vec<_> = (0..20).map(|_| client.unread(&calls, 10 * MIB)).collect();
    let held = results.iter().flatten().count() as u64 * 10 * MIB;
    assert_eq!(held, (100 + 30) * MIB);
    calls.start(&own).await.expect("room");

    // Unread results don't make a call wait for long.
    let full = calls.start(&own).await.expect("room");
    full.cover(56 * MIB, 256 * MIB).expect("room");
    let mut starting = Box::pin(calls.start(&own));
    assert!(futures_util::poll!(starting.as_mut()).is_pending());
    client.stalls();
    tokio::time::sleep(ROOM_INTERVAL).await;
    assert!(futures_util::poll!(starting.as_mut()).is_pending());
    assert!(client.is_ended() && !full.is_ended());
    drop(results);
    starting.await.expect("room");
}

#[tokio::test]
async fn one_principal_takes_no_more_than_its_share() {
    let calls = Calls::of(100 * MIB, 3);
    let [greedy, modest] = [gate(), gate()];
    let large = calls.start(&greedy).await.expect("room");
    large
        .cover(72 * MIB, 256 * MIB)
        .expect("within the share of 75 MiB");
    assert!(large.cover(80 * MIB, 256 * MIB).is_err());
    let refused = calls
        .start(&greedy)
        .await
        .expect_err("no room in its share");
    assert!(refused.retryable && refused.message.contains("memory_total"));
    calls.start(&modest).await.expect("room for others");
    assert!(!large.is_ended());
}

#[tokio::test]
async fn a_call_leases_no_more_than_its_limit_and_gives_back_what_it_needs_no_more() {
    let calls = Calls::of(100 * MIB, 4);
    let own = gate();
    let call = calls.start(&own).await.expect("room");
    assert_eq!(call.cover(17 * MIB, 20 * MIB), Ok(20 * MIB));
    assert_eq!(call.cover(60 * MIB, 20 * MIB), Ok(60 * MIB));
    assert_eq!(call.shrink(17 * MIB), 17 * MIB);
    assert_eq!(calls.memory.sum.used(), 17 * MIB);
    drop(call);
    assert_eq!((calls.memory.sum.used(), own.memory.now()), (0, 0));
}
