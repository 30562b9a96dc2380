//! A call that fails does not affect other calls.

use std::time::Duration;

use serde_json::json;
use toolward_host::{Limit, Limits, Request};
use toolward_policy::Policy;

use crate::fixture::{Extra, Fixture, limited, run, still_serves};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_beside_every_kind_of_bad_call_end_well_and_in_normal_time() {
    let limits = Limits {
        fuel: Limit::fixed(u64::MAX / 2),
        memory_bytes: Limit::fixed(16 << 20),
        ..Limits::default()
    };
    let host = limited(limits);
    still_serves(&host).await;

    let endless = [
        json!({"do": "loop"}),
        json!({"do": "loop-host-call"}),
        json!({"do": "progress-forever"}),
        json!({"do": "sleep", "n": 60_000}),
    ];
    let bad = [
        json!({"do": "allocate-forever"}),
        json!({"do": "print-forever", "name": "stdout"}),
        json!({"do": "log-forever"}),
        json!({"do": "recurse", "n": 0}),
        json!({"do": "trap"}),
    ];
    let start = |input| {
        let host = host.clone();
        tokio::spawn(async move { run(&host, input).await })
    };
    let endless = endless.map(start);
    let bad = bad.map(start);
    for number in 0..50 {
        let reply = run(&host, json!({"do": "echo", "value": number})).await;
        assert_eq!(reply.result.unwrap().structured["value"], json!(number));
    }
    // The contract gives the endless calls 30 seconds, and 50 good calls took less.
    assert!(endless.iter().all(|call| !call.is_finished()));
    for call in bad {
        assert!(call.await.unwrap().result.is_err());
    }
    for call in endless {
        call.abort();
        assert!(call.await.unwrap_err().is_cancelled());
    }
    still_serves(&host).await;
}

#[tokio::test]
async fn a_call_whose_future_is_dropped_is_gone_and_frees_its_slot() {
    let limits = Limits {
        concurrency: 1,
        queue: 0,
        ..Limits::default()
    };
    let host = limited(limits);
    still_serves(&host).await;
    let sleeper = host.call(Request::with_value(
        "hostile.run",
        json!({"do": "sleep", "n": 60_000}),
    ));
    tokio::time::timeout(Duration::from_millis(50), sleeper)
        .await
        .expect_err("still asleep");
    still_serves(&host).await;
}

/// On a single thread, no other task runs between a reply and the code that follows it.
#[tokio::test]
async fn a_reply_that_comes_first_leaves_instance_and_slot_to_a_task_unless_the_call_changes_something()
 {
    for (declared, is_left) in [("", true), ("mutates: [\"database:counters\"]\n", false)] {
        let fixture = Fixture::new(Extra {
            tool: declared,
            ..Extra::default()
        });
        let policy = format!(
            "[[grant]]\npublisher = \"dev:{}\"\npreapproved = true\n\
             mutates = [\"database:counters\"]\n",
            fixture.path().display()
        );
        let limits = Limits {
            concurrency: 1,
            queue: 0,
            ..Limits::default()
        };
        let builder = fixture.builder().limits(limits);
        let host = builder
            .policy(Policy::from_toml(&policy).unwrap())
            .build()
            .unwrap();
        still_serves(&host).await;
        let request = Request::with_value("hostile.run", json!({"do": "echo"})).answer_first();
        host.call(request).await.result.unwrap();
        let next = run(&host, json!({"do": "echo"})).await.result;
        assert_eq!(next.is_err(), is_left, "{declared}");
        if let Err(error) = next {
            assert_eq!(error.code.as_str(), "rate_limited");
        }
        tokio::task::yield_now().await;
        still_serves(&host).await;
    }
}

#[tokio::test]
async fn calls_that_pause_before_another_attempt_keep_no_instance() {
    let fixture = Fixture::new(Extra {
        tool: "retry:\n  max_attempts: 2\n  backoff: fixed\n  initial_ms: 20000\nidempotent: true\n",
        ..Extra::default()
    });
    let limits = Limits {
        concurrency: 1,
        ..Limits::default()
    };
    let host = fixture.builder().limits(limits).build().unwrap();
    still_serves(&host).await;
    // The engine has room for two instances per slot.
    let pausing: Vec<_> = (0..4)
        .map(|_| {
            let input = json!({"do": "flaky", "n": 9});
            let request = Request::with_value("hostile.run", input).answer_first();
            let host = host.clone();
            tokio::spawn(async move { host.call(request).await })
        })
        .collect();
    tokio::task::yield_now().await;
    // These calls wait for the slot until the others pause.
    for _ in 0..3 {
        still_serves(&host).await;
    }
    assert!(pausing.iter().all(|call| !call.is_finished()));
    pausing.iter().for_each(|call| call.abort());
}

#[tokio::test]
async fn a_full_host_says_when_to_come_back() {
    let limits = Limits {
        concurrency: 1,
        queue: 0,
        ..Limits::default()
    };
    let host = limited(limits);
    still_serves(&host).await;
    let (slow, refused) = tokio::join!(
        run(&host, json!({"do": "sleep", "n": 200})),
        run(&host, json!({"do": "echo"})),
    );
    assert!(slow.result.is_ok());
    let refused = refused.result.unwrap_err();
    assert_eq!(refused.code.as_str(), "rate_limited");
    assert!(refused.retryable && refused.retry_after.is_some());
}

#[tokio::test]
async fn nothing_of_one_call_is_left_for_the_next() {
    let host = Fixture::new(Extra::default()).host();
    for _ in 0..3 {
        let reply = run(&host, json!({"do": "count"})).await;
        assert_eq!(reply.result.unwrap().structured["value"], json!(1));
    }
}

#[tokio::test]
async fn on_a_single_thread_a_guest_that_only_calls_the_host_lets_others_run() {
    let limits = Limits {
        fuel: Limit::fixed(u64::MAX / 2),
        ..Limits::default()
    };
    let host = limited(limits);
    still_serves(&host).await;
    let greedy = {
        let host = host.clone();
        tokio::spawn(
            async move { run(&host, json!({"do": "large-host-calls", "n": 200_000})).await },
        )
    };
    tokio::task::yield_now().await;
    for _ in 0..20 {
        still_serves(&host).await;
    }
    assert!(!greedy.is_finished(), "it was to run beside them");
    greedy.abort();
    assert!(greedy.await.unwrap_err().is_cancelled());
}
