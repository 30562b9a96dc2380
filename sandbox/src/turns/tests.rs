//! Tests turns; the test itself polls each guest.

use super::*;
use std::sync::atomic::AtomicUsize;
use std::task::Wake;

/// Counts how often it is woken.
#[derive(Default)]
struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// One guest with its task.
struct Guest<'a> {
    turn: Turn<'a>,
    bell: Arc<Bell>,
    waker: Waker,
}

impl<'a> Guest<'a> {
    fn of(turns: &'a Turns, principal: &'a str) -> Self {
        let bell = Arc::new(Bell::default());
        Self {
            turn: Turn::new(Spender {
                turns,
                principal,
                publisher: "acme",
            }),
            waker: Waker::from(bell.clone()),
            bell,
        }
    }

    fn begins(&mut self) -> bool {
        let context = Context::from_waker(&self.waker);
        self.turn.begin(&context).is_ready()
    }

    fn ends(&mut self, yields: bool) {
        let context = Context::from_waker(&self.waker);
        self.turn.end(Duration::from_millis(5), yields, &context);
    }

    fn woken(&self) -> usize {
        self.bell.0.load(Ordering::SeqCst)
    }
}

fn is_free(turns: &Turns) -> bool {
    let queue = lock(&turns.queue);
    turns.counts.load(Ordering::SeqCst) == 0
        && queue.waiting.is_empty()
        && !queue.given.iter().any(|(given, _)| given.seat.is(GIVEN))
}

#[test]
fn while_permits_are_free_nobody_waits_or_has_an_account() {
    let turns = Turns::new(2);
    let [mut one, mut two] = ["a", "b"].map(|who| Guest::of(&turns, who));
    for _ in 0..3 {
        assert!(one.begins() && two.begins());
        for guest in [&mut one, &mut two] {
            let context = Context::from_waker(&guest.waker);
            let took = Duration::from_micros(10);
            guest.turn.end(took, true, &context);
            assert!(guest.turn.payer.is_none());
        }
    }
    drop((one, two));
    assert!(is_free(&turns));
}

#[test]
fn one_that_waits_is_woken_once_its_turn_has_come() {
    let turns = Turns::new(1);
    let [mut runs, mut waits] = ["a", "b"].map(|who| Guest::of(&turns, who));
    assert!(runs.begins());
    assert!(!waits.begins());
    assert!(!waits.begins());
    assert_eq!(waits.woken(), 0);
    runs.ends(true);
    assert_eq!(waits.woken(), 1);
    assert!(!runs.begins(), "it has spent more");
    assert!(waits.begins());
    waits.ends(false);
    assert_eq!(runs.woken(), 1);
    assert!(runs.begins());
    runs.ends(false);
    drop((runs, waits));
    assert!(is_free(&turns));
}

#[test]
fn whoever_has_spent_least_goes_on_though_others_wait() {
    let turns = Turns::new(1);
    let mut greedy: Vec<_> = (0..9).map(|_| Guest::of(&turns, "greedy")).collect();
    assert!(greedy[0].begins());
    for guest in &mut greedy[1..] {
        assert!(!guest.begins());
    }
    // The time that they spent before any other guest came.
    for index in (0..9).cycle().take(20) {
        assert!(greedy[index].begins());
        greedy[index].ends(true);
    }
    let mut modest = Guest::of(&turns, "modest");
    assert!(!modest.begins());
    assert!(greedy[2].begins());
    greedy[2].ends(true);
    for _ in 0..20 {
        assert!(modest.begins());
        modest.ends(true);
    }
}

#[test]
fn one_that_waits_in_the_host_keeps_no_permit() {
    let turns = Turns::new(1);
    let [mut sleeps, mut runs] = ["a", "b"].map(|who| Guest::of(&turns, who));
    assert!(sleeps.begins());
    sleeps.ends(false);
    assert!(runs.begins());
    assert!(!sleeps.begins(), "when it wakes, it waits like all");
}

#[test]
fn one_that_is_dropped_gives_back_its_turn_and_its_place() {
    let turns = Turns::new(1);
    let [mut runs, mut given, mut waits, mut last] =
        ["a", "b", "c", "d"].map(|who| Guest::of(&turns, who));
    assert!(runs.begins());
    assert!(!given.begins() && !waits.begins() && !last.begins());
    drop(waits);
    drop(runs);
    assert_eq!((given.woken(), last.woken()), (1, 0));
    // The guest never took its turn.
    drop(given);
    assert_eq!(last.woken(), 1);
    assert!(last.begins());
    drop(last);
    assert!(is_free(&turns));
    assert!(Guest::of(&turns, "e").begins());
}

#[test]
fn a_turn_that_is_not_taken_goes_to_another() {
    let turns = Turns::new(1);
    let [mut runs, mut silent, mut waits] = ["a", "b", "c"].map(|who| Guest::of(&turns, who));
    assert!(runs.begins());
    assert!(!silent.begins() && !waits.begins());
    runs.ends(false);
    assert_eq!((silent.woken(), waits.woken()), (1, 0));
    turns.reclaim(Duration::MAX);
    assert_eq!(waits.woken(), 0, "it has some time");
    turns.reclaim(Duration::ZERO);
    assert_eq!(waits.woken(), 1);
    assert!(!silent.begins());
    assert!(waits.begins());
    waits.ends(false);
    assert!(silent.begins());
    silent.ends(false);
    drop((runs, silent, waits));
    assert!(is_free(&turns));
}

#[test]
fn another_task_may_go_on_with_it() {
    let turns = Turns::new(1);
    let [mut runs, mut moved] = ["a", "b"].map(|who| Guest::of(&turns, who));
    assert!(runs.begins());
    assert!(!moved.begins());
    let bell = Arc::new(Bell::default());
    let before = std::mem::replace(&mut moved.bell, bell.clone());
    moved.waker = Waker::from(bell);
    assert!(!moved.begins());
    runs.ends(false);
    assert_eq!((before.0.load(Ordering::SeqCst), moved.woken()), (0, 1));
}

#[test]
fn no_more_run_at_once_than_there_are_permits_and_none_is_forgotten() {
    let turns = Turns::new(3);
    let running = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for number in 0..12 {
            let (turns, running) = (&turns, &running);
            scope.spawn(move || {
                let principal = format!("principal{}", number % 3);
                for round in 0..200 {
                    let mut guest = Guest::of(turns, &principal);
                    for slice in 0..5 {
                        while !guest.begins() {
                            std::thread::yield_now();
                        }
                        assert!(running.fetch_add(1, Ordering::SeqCst) < 3);
                        std::hint::spin_loop();
                        running.fetch_sub(1, Ordering::SeqCst);
                        guest.ends((round + slice) % 3 != 0);
                    }
                }
            });
        }
    });
    assert!(is_free(&turns));
}
