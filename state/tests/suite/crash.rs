//! A process that is killed while it writes leaves a valid store.

use std::time::Duration;

use crate::process::Other;
use crate::{Place, all_keys, bucket, check};

#[test]
fn a_writer_that_is_killed_leaves_every_confirmed_write_and_no_part_of_another() {
    let place = Place::new();
    let mut last_seen = 0;
    for round in 0..6_u64 {
        let mut other = Other::start("write", &place.file());
        let mut confirmed: u64 = 0;
        // Enough writes that the log is sometimes written back into the file.
        for _ in 0..(20 + round * 60) {
            let line = other.line_with("written ");
            let (_, number) = line.split_once("written ").unwrap();
            confirmed = number.parse().unwrap();
        }
        std::thread::sleep(Duration::from_micros(round * 371));
        other.child.kill().unwrap();
        other.child.wait().unwrap();

        let store = place.open();
        check(&store);
        let own = bucket(&store, "acme", "alice", "shared");
        let last = own.get("last").unwrap().expect("was written");
        let last: u64 = String::from_utf8(last).unwrap().parse().unwrap();
        assert!(last >= confirmed, "{last} {confirmed}");
        // Both keys of a pair exist, or neither.
        let keys = all_keys(&own);
        for n in 0..50 {
            let (a, b) = (format!("a-{n}"), format!("b-{n}"));
            assert_eq!(keys.contains(&a), keys.contains(&b));
            assert_eq!(own.get(&a).unwrap(), own.get(&b).unwrap());
        }
        own.set("after", b"writable").unwrap();
        last_seen += last;
    }
    assert!(last_seen > 0);
}
