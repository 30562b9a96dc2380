//! Tests threads and processes that use one file.

use std::sync::{Arc, Barrier};
use std::thread;

use crate::process::{COUNT, Other};
use crate::{Place, all_keys, bucket, check};

const THREADS: u64 = 8;
const ROUNDS: u64 = 100;

#[test]
fn eight_threads_lose_no_write_and_see_their_own() {
    let place = Place::new();
    let store = place.open();
    let barrier = Arc::new(Barrier::new(THREADS as usize));
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let (store, barrier) = (store.clone(), barrier.clone());
            thread::spawn(move || {
                let shared = bucket(&store, "acme", "alice", "shared");
                let own = bucket(&store, "acme", "alice", &format!("own-{thread}"));
                barrier.wait();
                for round in 0..ROUNDS {
                    shared.increment("number", 1).expect("increments");
                    let key = format!("{thread}-{round}");
                    shared.set(&key, key.as_bytes()).expect("sets");
                    assert_eq!(
                        shared.get(&key).expect("reads").expect("own"),
                        key.as_bytes()
                    );
                    assert_eq!(own.increment("number", 1).expect("increments"), round + 1);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("ends well");
    }
    let shared = bucket(&store, "acme", "alice", "shared");
    assert_eq!(
        shared.get("number").unwrap().unwrap(),
        (THREADS * ROUNDS).to_string().as_bytes()
    );
    assert_eq!(all_keys(&shared).len() as u64, THREADS * ROUNDS + 1);
    check(&store);
}

#[test]
fn two_processes_lose_no_write() {
    let place = Place::new();
    let store = place.open();
    let own = bucket(&store, "acme", "alice", "shared");
    let mut other = Other::start("increment", &place.file());
    other.line_with("ready");
    for n in 0..COUNT {
        own.increment("number", 1).expect("increments");
        own.set(&format!("own-{n}"), b"").expect("sets");
    }
    assert!(other.child.wait().expect("ends").success());
    assert_eq!(
        own.get("number").unwrap().unwrap(),
        (2 * COUNT).to_string().as_bytes()
    );
    assert_eq!(all_keys(&own).len() as u64, 2 * COUNT + 1);
    check(&store);
}

#[test]
fn many_may_make_and_open_one_store_at_the_same_time() {
    for _ in 0..10 {
        let place = Arc::new(Place::new());
        let barrier = Arc::new(Barrier::new(THREADS as usize));
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                let (place, barrier) = (place.clone(), barrier.clone());
                thread::spawn(move || {
                    barrier.wait();
                    let store = place.open();
                    bucket(&store, "acme", "alice", "b")
                        .increment("number", 1)
                        .expect("increments");
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("ends well");
        }
        let store = place.open();
        let number = bucket(&store, "acme", "alice", "b").get("number").unwrap();
        assert_eq!(number.unwrap(), THREADS.to_string().as_bytes());
        let left = std::fs::read_dir(place.file().parent().unwrap())
            .unwrap()
            .filter(|entry| entry.as_ref().unwrap().file_name().as_encoded_bytes()[0] == b'.')
            .count();
        assert_eq!(left, 0);
    }
}

#[test]
fn what_one_connection_wrote_every_later_read_of_another_sees() {
    let place = Place::new();
    let (one, two) = (place.open(), place.open());
    let (one, two) = (
        bucket(&one, "acme", "alice", "b"),
        bucket(&two, "acme", "alice", "b"),
    );
    for n in 0..200_u64 {
        one.set("key", &n.to_be_bytes()).unwrap();
        assert_eq!(two.get("key").unwrap().unwrap(), n.to_be_bytes());
    }
}
