//! Locks.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use toolward_support::files::{Folder, Lock, Protection, lock};

use crate::Place;

#[test]
fn one_who_is_alone_keeps_all_others_out_and_those_who_share_only_him() {
    let place = Place::new();
    let path = place.path("folder");
    let open = || Folder::make(&path, Protection::Private).unwrap();
    let none = Duration::ZERO;
    let (first, second) = (open(), open());
    lock(&first, Lock::Shared, none).unwrap();
    lock(&second, Lock::Shared, none).unwrap();
    let busy = lock(&second, Lock::Exclusive, none).unwrap_err();
    assert_eq!(busy.kind(), ErrorKind::WouldBlock);
    drop(first);
    lock(&second, Lock::Exclusive, none).unwrap();
    let third = open();
    let start = Instant::now();
    let wait = Duration::from_millis(30);
    lock(&third, Lock::Shared, wait).unwrap_err();
    assert!(start.elapsed() >= wait);
    drop(second);
    lock(&third, Lock::Shared, none).unwrap();
}
