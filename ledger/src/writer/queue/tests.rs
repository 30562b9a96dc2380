//! Tests when rows are taken out of the queue.

use std::sync::mpsc::channel;

use super::*;
use crate::record::Closed;

fn queued() -> Entry {
    Entry::new(Event::Closed(Closed { why: None }))
}

#[test]
fn so_many_rows_are_taken_without_waiting_for_more() {
    let queue = Queue::new(1 << 20, Gather::new(3_600_000, 3));
    let (sender, taken) = channel();
    let own = queue.clone();
    let thread = std::thread::spawn(move || {
        let batch = own.take(Instant::now() + Duration::from_secs(3600));
        sender.send(batch.rows.len())
    });
    for _ in 0..2 {
        queue.append(queued(), Durability::Queued).wait().unwrap();
    }
    let waited = taken.recv_timeout(Duration::from_millis(100));
    assert!(waited.is_err(), "{waited:?}");
    queue.append(queued(), Durability::Queued).wait().unwrap();
    assert_eq!(taken.recv_timeout(Duration::from_secs(60)), Ok(3));
    thread.join().unwrap().unwrap();
}

#[test]
fn a_row_is_taken_in_time_while_others_come_and_when_none_came_for_long() {
    let queue = Queue::new(1 << 20, Gather::new(50, 1000));
    let (sender, taken) = channel();
    let own = queue.clone();
    let thread = std::thread::spawn(move || {
        loop {
            let batch = own.take(Instant::now() + Duration::from_secs(3600));
            let next_look = own.state().next_look;
            if batch.closing || sender.send((batch.rows.len(), next_look)).is_err() {
                return;
            }
        }
    });
    let append = |durability| queue.append(queued(), durability);
    // The second row comes before the thread's next check, the third long after it.
    for pause in [0, 5, 300] {
        std::thread::sleep(Duration::from_millis(pause));
        append(Durability::Queued).wait().unwrap();
        let (rows, next_look) = taken.recv_timeout(Duration::from_secs(60)).unwrap();
        assert_eq!(rows, 1);
        assert!(next_look.is_some());
    }
    // An awaited row wakes the thread at once.
    let pending = append(Durability::Disk);
    let (rows, next_look) = taken.recv().unwrap();
    assert_eq!((rows, next_look), (1, None));
    drop(pending);
    queue.close(None);
    thread.join().unwrap();
}

#[test]
fn who_gives_up_wakes_the_thread_that_counts() {
    let queue = Queue::new(1, Gather::new(1, 1000));
    let _first = queue.append(queued(), Durability::Queued);
    let waits = queue.append(queued(), Durability::Queued);
    // The thread empties the queue and sleeps again before the caller continues.
    assert_eq!(queue.take(Instant::now()).rows.len(), 1);
    let own = queue.clone();
    let (sender, taken) = channel();
    let thread = std::thread::spawn(move || {
        // The thread's next check has passed by then.
        own.take(Instant::now() + Duration::from_millis(20));
        sender.send(0)?;
        let batch = own.take(Instant::now() + Duration::from_secs(3600));
        sender.send(batch.given_up)
    });
    assert_eq!(taken.recv(), Ok(0));
    std::thread::sleep(Duration::from_millis(100));
    drop(waits);
    assert_eq!(taken.recv_timeout(Duration::from_secs(60)), Ok(1));
    thread.join().unwrap().unwrap();
}
