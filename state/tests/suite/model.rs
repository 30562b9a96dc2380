//! Any sequence of operations has the same effect as on a map in memory.

use std::collections::BTreeMap;

use proptest::prelude::*;
use toolward_state::{Access, Limits, Store};

use crate::bucket::{Bucket, OpenBucket as _};

use crate::check;

type Model = BTreeMap<String, Vec<u8>>;

#[derive(Debug, Clone)]
enum Step {
    Set(Vec<(String, Vec<u8>)>),
    Delete(Vec<String>),
    Increment(String, u64),
    Read(Vec<String>),
    Reopen,
}

/// A few keys, so that steps often use the same key.
fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        "[ab]{1,2}",
        Just("a\0b".to_owned()),
        Just("ä".to_owned()),
    ]
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..20),
        any::<u64>().prop_map(|number| number.to_string().into_bytes()),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    use proptest::collection::vec;
    prop_oneof![
        4 => vec((key(), value()), 0..4).prop_map(Step::Set),
        2 => vec(key(), 0..4).prop_map(Step::Delete),
        2 => (key(), any::<u64>()).prop_map(|(key, by)| Step::Increment(key, by)),
        2 => vec(key(), 0..6).prop_map(Step::Read),
        1 => Just(Step::Reopen),
    ]
}

const LIMITS: Limits = Limits {
    key_bytes: 8,
    value_bytes: 20,
    bucket_keys: 6,
    bucket_bytes: 80,
    buckets: 2,
    batch_keys: 10,
    batch_bytes: 1000,
    page_keys: 2,
    page_bytes: 4,
};

fn bytes(model: &Model) -> usize {
    model
        .iter()
        .map(|(key, value)| key.len() + value.len())
        .sum()
}

/// Whether a change between the two states is within the quotas.
fn allowed(before: &Model, after: &Model) -> bool {
    let keys = after.len() <= 6 || after.len() <= before.len();
    let bytes = bytes(after) <= 80 || bytes(after) <= bytes(before);
    keys && bytes
}

fn apply(own: &Bucket, model: &mut Model, step: &Step) -> Result<(), TestCaseError> {
    let mut after = model.clone();
    match step {
        Step::Set(pairs) => {
            after.extend(pairs.iter().cloned());
            let done = own.set_many(pairs);
            prop_assert_eq!(done.is_ok(), allowed(model, &after), "{:?}", done);
            if done.is_ok() {
                *model = after;
            }
        }
        Step::Delete(keys) => {
            own.delete_many(keys).expect("deletes");
            model.retain(|key, _| !keys.contains(key));
        }
        Step::Increment(key, by) => {
            let number = match model.get(key) {
                None => Some(0),
                Some(value) => std::str::from_utf8(value)
                    .ok()
                    .filter(|text| text.chars().all(|c| c.is_ascii_digit()))
                    .and_then(|text| text.parse::<u64>().ok()),
            };
            let sum = number.and_then(|number| number.checked_add(*by));
            if let Some(sum) = sum {
                after.insert(key.clone(), sum.to_string().into_bytes());
            }
            let expected = sum.filter(|_| allowed(model, &after));
            prop_assert_eq!(own.increment(key, *by).ok(), expected);
            if expected.is_some() {
                *model = after;
            }
        }
        Step::Read(keys) => {
            let expected: Vec<_> = keys.iter().map(|key| model.get(key).cloned()).collect();
            prop_assert_eq!(own.get_many(keys).expect("reads"), expected.clone());
            for (key, value) in keys.iter().zip(expected) {
                prop_assert_eq!(own.exists(key).expect("reads"), value.is_some());
                prop_assert_eq!(own.get(key).expect("reads"), value);
            }
        }
        Step::Reopen => {}
    }
    Ok(())
}

/// The keys of a listing, and whether a key occurred twice.
fn listed(own: &Bucket) -> (Vec<String>, bool) {
    let mut keys = crate::all_keys(own);
    let count = keys.len();
    keys.sort();
    keys.dedup();
    let twice = keys.len() != count;
    (keys, twice)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_bucket_does_what_a_map_does_and_lists_every_key_once(
        steps in proptest::collection::vec(step(), 1..40),
    ) {
        let place = crate::Place::new();
        let mut store = place.open();
        let mut model = Model::new();
        for step in &steps {
            if matches!(step, Step::Reopen) {
                drop(store);
                store = place.open();
            }
            let own = store.bucket("acme", "alice", "b", Access::Write, LIMITS);
            apply(&own, &mut model, step)?;
            let (keys, twice) = listed(&own);
            prop_assert!(!twice);
            prop_assert!(keys.iter().eq(model.keys()));
        }
        check(&store);
    }

    /// Between two pages, keys are added and removed.
    #[test]
    fn a_key_that_stays_is_on_exactly_one_page_whatever_happens_to_others(
        stay in proptest::collection::btree_set("[a-z]{1,3}", 0..60),
        changes in proptest::collection::vec((any::<bool>(), "[A-Z]{1,2}"), 0..120),
        page_keys in 1..7_u64,
        first in 0..60_usize,
    ) {
        let store = Store::in_memory().expect("a store");
        let limits = Limits { page_keys, ..Limits::default() };
        let own = store.bucket("acme", "alice", "b", Access::Write, limits);
        let mut changes = changes.iter();
        let mut change = |count: usize| {
            for (set, key) in changes.by_ref().take(count) {
                if *set {
                    own.set(key, b"").expect("sets");
                } else {
                    own.delete(key).expect("deletes");
                }
            }
        };
        for key in &stay {
            change(1);
            own.set(key, b"").expect("sets");
        }
        change(first);
        let mut seen = Vec::new();
        let mut cursor = None;
        loop {
            let page = own.list_keys(cursor).expect("a page");
            prop_assert!(page.keys.len() as u64 <= page_keys);
            seen.extend(page.keys.into_iter().filter(|key| stay.contains(key)));
            cursor = page.cursor;
            if cursor.is_none() {
                break;
            }
            change(2);
            // A new value does not change the position of a key.
            if let Some(key) = stay.first() {
                own.set(key, b"again").expect("sets");
            }
        }
        seen.sort();
        prop_assert!(seen.iter().eq(stay.iter()), "{:?} {:?}", seen, stay);
        check(&store);
    }
}
