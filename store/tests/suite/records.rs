//! The record of decisions.

use toolward_store::audit_log::{DecisionFilter, MAX_DECISIONS, NewDecision, TrustVerdict};

use crate::support::{Place, Release, install, now, refused, verifier};

fn decision(number: i64) -> NewDecision {
    NewDecision {
        action: "trust-add".to_owned(),
        subject: format!("publisher {number}"),
        publisher: None,
        digest: None,
        verdict: TrustVerdict::Accepted,
        code: None,
        reason: "fingerprint compared".to_owned(),
    }
}

#[test]
fn installing_refusing_loading_and_removing_are_recorded_with_their_reason() {
    let place = Place::new();
    let store = place.open();
    let installed = install(&store, &Release::new(2));
    refused(&store, &Release::new(1));
    store
        .load_all_as(&|file, _| verifier()(file), &|bundle| bundle, now())
        .unwrap();
    store.remove("demo.greet", now()).unwrap();
    let all = store.decisions(&DecisionFilter::default()).unwrap();
    let found: Vec<_> = all
        .iter()
        .map(|one| (one.decision.action.as_str(), one.decision.verdict))
        .collect();
    assert_eq!(
        found,
        [
            ("remove", TrustVerdict::Accepted),
            ("load", TrustVerdict::Accepted),
            ("install", TrustVerdict::Refused),
            ("install", TrustVerdict::Accepted),
        ]
    );
    assert_eq!(all[2].decision.code.as_deref(), Some("rollback"));
    assert_eq!(all[3].decision.digest, Some(installed.digest));
    assert!(all[3].decision.reason.contains("from a test"));
    assert_eq!(all[3].at.to_string(), "2027-01-15T08:00:00Z");
    let filter = DecisionFilter {
        verdict: Some(TrustVerdict::Refused),
        ..DecisionFilter::default()
    };
    assert_eq!(store.decisions(&filter).unwrap().len(), 1);
}

#[test]
fn the_record_is_bounded_and_the_oldest_go_first() {
    let place = Place::new();
    let store = place.open();
    // Recording so many decisions, each in its own transaction, is slow on a busy disk. The limit
    // is on the number, so a row with a high number is enough.
    let path = place.state();
    drop(store);
    {
        let sql = rusqlite::Connection::open(&path).unwrap();
        sql.execute(
            "INSERT INTO decision (number, at, action, subject, verdict, reason)
             VALUES (1, 0, 'old', 'old', 'accepted', ''), (?1, 0, 'new', 'new', 'accepted', '')",
            [MAX_DECISIONS],
        )
        .unwrap();
    }
    let store = place.open();
    store.record(&decision(1), now()).unwrap();
    let kept = store.decisions(&DecisionFilter::default()).unwrap();
    let kept: Vec<_> = kept
        .iter()
        .map(|one| one.decision.action.as_str())
        .collect();
    assert_eq!(kept, ["trust-add", "new"]);
}

#[test]
fn a_list_goes_on_where_the_last_one_ended() {
    let place = Place::new();
    let store = place.open();
    for number in 0..5 {
        store.record(&decision(number), now()).unwrap();
    }
    let first = store
        .decisions(&DecisionFilter {
            limit: 3,
            ..DecisionFilter::default()
        })
        .unwrap();
    let before = Some(first[2].number);
    let rest = store
        .decisions(&DecisionFilter {
            before,
            ..DecisionFilter::default()
        })
        .unwrap();
    assert_eq!((first.len(), rest.len()), (3, 2));
    assert_eq!(rest[0].decision.subject, "publisher 1");
}

#[test]
fn the_log_of_processes_that_were_killed_is_short_again_when_the_state_is_opened() {
    let place = Place::new();
    let mut log = place.state().into_os_string();
    log.push("-wal");
    let length = || std::fs::metadata(&log).unwrap().len();
    let store = place.open();
    let mut count = 0;
    while length() < 300 * 1024 {
        store.record(&decision(count), now()).unwrap();
        count += 1;
    }
    // As after a process that was killed before it closed the store.
    std::mem::forget(store);
    // The log stays while another connection reads an older state.
    let reader = rusqlite::Connection::open(place.state()).unwrap();
    let read = "BEGIN; SELECT count(*) FROM decision";
    reader.execute_batch(read).unwrap();
    place.open().record(&decision(count), now()).unwrap();
    drop(place.open());
    assert!(length() > 300 * 1024);
    drop(reader);
    count += 1;
    let store = place.open();
    assert_eq!(length(), 0);
    let all = store.decisions(&DecisionFilter::default()).unwrap();
    assert_eq!(i64::try_from(all.len()).unwrap(), count);
}
