//! Schedules compilations. A bounded number runs at once. The component of the principal with the
//! fewest compilations comes next, so that a principal that calls all tools at once does not delay
//! others.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use toolward_support::helper::lock;

use super::super::limits::{CompileError, Result};
use super::super::{Callers, Stage, Watch};

/// How often a waiting call checks for cancellation.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Permits for requests to a broker, as many as it has workers.
#[derive(Debug)]
pub(super) struct Permits {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    left: usize,
    next: u64,
    waiting: Vec<Waiting>,
    /// The number of compilations per principal since the queue was last empty.
    had: HashMap<Arc<str>, u32>,
}

#[derive(Debug)]
struct Waiting {
    number: u64,
    callers: Vec<Arc<str>>,
}

impl Queue {
    /// The next component to compile: the one with the caller that has had the fewest compilations.
    /// Components that no call waits for come last, and the oldest wins a tie.
    fn first(&self) -> Option<u64> {
        let had = |caller: &Arc<str>| self.had.get(caller).copied().unwrap_or(0);
        let order = |one: &&Waiting| {
            let least = one.callers.iter().map(had).min();
            (least.unwrap_or(u32::MAX), one.number)
        };
        let first = self.waiting.iter().min_by_key(order);
        first.map(|one| one.number)
    }

    fn remove(&mut self, number: u64) -> Option<Waiting> {
        let place = self.waiting.iter().position(|one| one.number == number)?;
        Some(self.waiting.remove(place))
    }
}

impl Permits {
    pub(super) fn new(permits: usize) -> Self {
        Self {
            queue: Mutex::new(Queue {
                left: permits,
                ..Queue::default()
            }),
            changed: Condvar::new(),
        }
    }

    /// Waits for a permit. The list of callers is read again while this waits, so that later calls
    /// for the same component count, too.
    pub(super) fn take(&self, callers: &Callers, watch: &mut Watch<'_>) -> Result<Permit<'_>> {
        let mut queue = lock(&self.queue);
        let number = queue.next;
        queue.next = number.wrapping_add(1);
        queue.waiting.push(Waiting {
            number,
            callers: callers.now(),
        });
        loop {
            if let Some(own) = queue.waiting.iter_mut().find(|one| one.number == number) {
                own.callers = callers.now();
            }
            if queue.left > 0 && queue.first() == Some(number) {
                queue.left = queue.left.saturating_sub(1);
                for caller in queue.remove(number).into_iter().flat_map(|own| own.callers) {
                    let had = queue.had.entry(caller).or_default();
                    *had = had.saturating_add(1);
                }
                drop(queue);
                // Wakes the other waiters, since another permit may be free.
                self.changed.notify_all();
                return Ok(Permit(self));
            }
            if let ControlFlow::Break(()) = watch(Stage::Waiting) {
                queue.remove(number);
                drop(queue);
                self.changed.notify_all();
                return Err(CompileError::cancelled());
            }
            (queue, _) = self
                .changed
                .wait_timeout(queue, POLL_INTERVAL)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// The right to have one component compiled.
pub(super) struct Permit<'a>(&'a Permits);

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        let mut queue = lock(&self.0.queue);
        queue.left = queue.left.saturating_add(1);
        if queue.waiting.is_empty() {
            queue.had.clear();
        }
        drop(queue);
        // Each waiter checks whether it is first.
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;

    fn wanted(callers: &[&str]) -> Callers {
        let wanted = Callers::default();
        callers.iter().for_each(|caller| wanted.add(caller));
        wanted
    }

    fn on(_: Stage) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// Returns the order in which components get the only permit. They start to wait in the given
    /// order, while `greedy` holds the permit. `later` runs once all of them wait.
    fn order(waiting: &[(&'static str, &Callers)], later: impl FnOnce()) -> Vec<&'static str> {
        let permits = Permits::new(1);
        let held = permits.take(&wanted(&["greedy"]), &mut on).unwrap();
        let (sender, order) = channel();
        std::thread::scope(|scope| {
            for (number, (name, callers)) in (1..).zip(waiting) {
                let (permits, sender) = (&permits, sender.clone());
                scope.spawn(move || {
                    let _permit = permits.take(callers, &mut on).unwrap();
                    sender.send(*name).unwrap();
                });
                while lock(&permits.queue).waiting.len() < number {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            later();
            // Each waiter checks again after a tick.
            std::thread::sleep(POLL_INTERVAL * 3);
            drop(held);
        });
        drop(sender);
        let order: Vec<_> = order.into_iter().collect();
        let queue = lock(&permits.queue);
        assert!(queue.waiting.is_empty() && queue.had.is_empty() && queue.left == 1);
        order
    }

    #[test]
    fn whoever_wants_all_drivers_puts_nobody_elses_behind_them() {
        let (greedy, modest, nobody) = (wanted(&["greedy"]), wanted(&["modest"]), wanted(&[]));
        let found = order(
            &[
                ("ahead", &nobody),
                ("first", &greedy),
                ("second", &greedy),
                ("third", &greedy),
                ("modest", &modest),
            ],
            || {},
        );
        assert_eq!(found, ["modest", "first", "second", "third", "ahead"]);
    }

    #[test]
    fn a_driver_that_somebody_else_comes_to_want_is_theirs_too() {
        let (greedy, shared) = (wanted(&["greedy"]), wanted(&["greedy"]));
        let found = order(
            &[("first", &greedy), ("second", &greedy), ("shared", &shared)],
            || shared.add("modest"),
        );
        assert_eq!(found, ["shared", "first", "second"]);
    }

    #[test]
    fn one_that_is_cancelled_waits_no_more() {
        let permits = Permits::new(1);
        let held = permits.take(&wanted(&["a"]), &mut on).unwrap();
        let cancelled = permits.take(&wanted(&["b"]), &mut |_| ControlFlow::Break(()));
        assert!(cancelled.is_err() && lock(&permits.queue).waiting.is_empty());
        drop(held);
        permits.take(&wanted(&["a"]), &mut on).unwrap();
    }
}
