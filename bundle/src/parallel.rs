//! Processes many bundles in parallel, on all processors.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Calls `work` for each item, on all processors. The results are in the order of the items.
///
/// When this returns, all its threads have ended, since a process can confine itself only while it
/// has one thread.
///
/// # Panics
/// If `work` panics.
pub fn each<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let take = || {
        let number = next.fetch_add(1, Ordering::Relaxed);
        items.get(number).map(|item| (number, work(item)))
    };
    let share = || std::iter::from_fn(take).collect::<Vec<_>>();
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let mut done = thread::scope(|scope| {
        // If a thread can't be started, the other threads do its share.
        let spawn = |_| thread::Builder::new().spawn_scoped(scope, share).ok();
        let others = (1..threads.min(items.len())).filter_map(spawn);
        let others: Vec<_> = others.collect();
        let mut done = share();
        // `thread::scope` alone may return before the threads have fully ended.
        for other in others {
            done.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        done
    });
    done.sort_unstable_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;
    use std::time::{Duration, Instant};

    use super::each;

    #[test]
    fn as_many_items_are_under_way_as_there_are_processors() {
        let processors = thread::available_parallelism().unwrap().get();
        let begun = AtomicUsize::new(0);
        let meets_all = |_: &()| {
            begun.fetch_add(1, Ordering::Relaxed);
            let failed = Instant::now() + Duration::from_secs(60);
            while begun.load(Ordering::Relaxed) < processors && Instant::now() < failed {
                thread::yield_now();
            }
            begun.load(Ordering::Relaxed) == processors
        };
        let met = each(&vec![(); processors], meets_all);
        assert!(met.into_iter().all(|met| met));
    }

    #[test]
    fn results_are_in_the_order_of_the_items() {
        let items: Vec<u64> = (0..1000).collect();
        let slow_first = |item: &u64| {
            let rounds = if *item < 2 { 100_000 } else { 1 };
            (0..rounds).fold(*item, |sum, _| std::hint::black_box(sum));
            item * 2
        };
        let expected: Vec<u64> = items.iter().map(|item| item * 2).collect();
        assert_eq!(each(&items, slow_first), expected);
        assert_eq!(each(&items[..1], slow_first), expected[..1]);
        assert!(each(&items[..0], slow_first).is_empty());
    }
}
