//! Floods: a full queue, and counted refusals.

use std::sync::Arc;
use std::time::Duration;

use toolward_ledger::{Durability, Recorder};

use crate::support::{Place, invocation, queued, read_only, refused};

#[test]
fn a_flood_of_refusals_is_counted_and_one_of_another_principal_has_its_row() {
    let place = Place::new();
    let writer = place.open();
    let count = 20_000;
    for number in 0..count {
        let code = if number % 2 == 0 {
            "not_found"
        } else {
            "input_invalid"
        };
        queued(&writer, refused(invocation(number), code));
    }
    queued(
        &writer,
        refused(invocation(count), "no_route").principal("bob"),
    );
    writer.close().unwrap();
    let rows = place.count("refused") + place.count("refused-more");
    assert!(rows < 300, "{rows}");
    let mut counted = place.count("refused") as u64;
    for line in place.lines() {
        let line: serde_json::Value = serde_json::from_str(&line).unwrap();
        if line["kind"] == "refused-more" {
            let codes = line["body"]["codes"].as_object().unwrap();
            counted += codes
                .values()
                .map(|count| count.as_u64().unwrap())
                .sum::<u64>();
        }
    }
    assert_eq!(counted, count + 1);
    assert_eq!(
        place
            .lines()
            .iter()
            .filter(|line| line.contains("no_route"))
            .count(),
        1
    );
    let size = std::fs::metadata(place.ledger().join("records.sqlite"))
        .unwrap()
        .len();
    assert!(size < 1024 * 1024, "{size}");
}

#[test]
fn a_full_queue_makes_callers_wait_and_drops_nothing() {
    let place = Place::new();
    let writer = Arc::new(place.open());
    // Another connection locks the file, so that nothing is written for a while.
    let holder = place.records();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let sent = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let thread = std::thread::spawn({
        let (writer, sent) = (writer.clone(), sent.clone());
        move || {
            for number in 0..400 {
                let entry = read_only(invocation(number)).payload(
                    toolward_ledger::payload::PayloadKind::Output,
                    vec![0; 50_000],
                );
                queued(&writer, entry);
                sent.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            }
        }
    });
    std::thread::sleep(Duration::from_millis(900));
    let sent = sent.load(std::sync::atomic::Ordering::Relaxed);
    // The queue took 8 MiB, and the writer had taken some rows before, but not all 20 MB were sent.
    assert!((100..390).contains(&sent), "{sent}");
    holder.execute_batch("COMMIT").unwrap();
    thread.join().unwrap();
    writer.close().unwrap();
    assert_eq!(place.count("ended"), 400);
    assert_eq!(place.count("gap"), 0);
}

#[test]
fn a_row_that_is_given_up_while_the_queue_is_full_is_counted() {
    let place = Place::new();
    let writer = place.open();
    let holder = place.records();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let large = |number| {
        let entry = read_only(invocation(number));
        let output = vec![0; 3_000_000];
        writer.append(
            entry.payload(toolward_ledger::payload::PayloadKind::Output, output),
            Durability::Queued,
        )
    };
    // The writer waits with the first row, and two more fill the queue.
    large(1).wait().unwrap();
    std::thread::sleep(Duration::from_millis(200));
    large(2).wait().unwrap();
    large(3).wait().unwrap();
    drop(large(4));
    holder.execute_batch("COMMIT").unwrap();
    writer.close().unwrap();
    assert_eq!(place.count("ended"), 3);
    assert!(
        place
            .lines()
            .iter()
            .any(|line| line.contains(r#""missing":1"#))
    );
}
