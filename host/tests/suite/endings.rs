//! Each limit ends the call with its own code, reports the usage, and leaves the host able to
//! serve.

use std::time::{Duration, Instant};

use serde_json::json;
use toolward_host::{CallError, Limit, Limits, Request};

use crate::fixture::{self, Extra, Fixture, error, limited, run, still_serves};

fn small() -> Limits {
    Limits {
        fuel: Limit::fixed(50_000_000),
        memory_bytes: Limit::fixed(8 << 20),
        output_bytes: Limit::fixed(64 << 10),
        ..Limits::default()
    }
}

/// Limits of which only the time limit matters.
fn endless() -> Limits {
    Limits {
        fuel: Limit::fixed(u64::MAX / 2),
        ..Limits::default()
    }
}

fn hit(error: &CallError) -> (&str, &'static str) {
    let hit = error
        .limit
        .unwrap_or_else(|| panic!("no limit in {error:#?}"));
    assert!(hit.used > 0 && hit.allowed > 0, "{error:#?}");
    assert!(error.hint.is_some(), "{error:#?}");
    (error.code.as_str(), hit.limit.as_str())
}

async fn ends(input: serde_json::Value, limits: Limits) -> CallError {
    let host = limited(limits);
    let error = error(&host, input).await;
    still_serves(&host).await;
    error
}

/// The error of a call with this timeout. The next call has the full time of its contract.
async fn late(input: serde_json::Value, allowed: Duration) -> CallError {
    let host = limited(endless());
    let started = Instant::now();
    let request = Request::with_value("hostile.run", input).timeout(allowed);
    let error = host.call(request).await.result.unwrap_err();
    assert!(started.elapsed() < Duration::from_secs(25), "{error}");
    still_serves(&host).await;
    error
}

#[tokio::test]
async fn an_endless_loop_ends_when_its_fuel_is_spent() {
    let error = ends(json!({"do": "loop"}), small()).await;
    assert_eq!(hit(&error), ("toolward:fuel_exhausted", "fuel"));
    assert!(error.limit.unwrap().used >= 49_000_000);
}

#[tokio::test]
async fn an_endless_loop_ends_at_the_deadline_if_that_comes_first() {
    let error = late(json!({"do": "loop"}), Duration::from_millis(100)).await;
    assert_eq!(hit(&error), ("timeout", "timeout_ms"));
}

#[tokio::test]
async fn a_loop_of_host_calls_ends_too() {
    let error = late(json!({"do": "loop-host-call"}), Duration::from_millis(100)).await;
    assert_eq!(hit(&error).0, "timeout");
}

#[tokio::test]
async fn a_loop_of_host_calls_with_large_arguments_ends_at_the_deadline() {
    let input = json!({"do": "large-host-calls", "n": 200_000});
    let error = late(input, Duration::from_millis(300)).await;
    assert_eq!(hit(&error), ("timeout", "timeout_ms"));
}

#[tokio::test]
async fn one_host_call_takes_so_many_bytes_and_no_more() {
    let error = ends(json!({"do": "large-host-calls", "n": 1 << 20}), small()).await;
    assert_eq!(hit(&error), ("toolward:limit_exceeded", "host_call_bytes"));
}

#[tokio::test]
async fn a_guest_that_sleeps_past_the_deadline_is_ended_there() {
    let input = json!({"do": "sleep", "n": 60_000});
    let error = late(input, Duration::from_millis(300)).await;
    assert_eq!(hit(&error), ("timeout", "timeout_ms"));
}

#[tokio::test]
async fn deep_recursion_ends_at_the_stack_limit() {
    let mut limits = small();
    limits.fuel = Limits::default().fuel;
    let error = ends(json!({"do": "recurse-lean", "n": 24}), limits).await;
    assert_eq!(hit(&error), ("toolward:limit_exceeded", "stack"));
    // Most guests run out of the stack in their own memory first.
    let error = ends(json!({"do": "recurse", "n": 0}), small()).await;
    assert_eq!(error.code.as_str(), "upstream_error");
    assert!(error.message.contains("out of bounds"), "{error}");
}

#[tokio::test]
async fn memory_taken_in_steps_ends_at_the_limit() {
    let error = ends(json!({"do": "allocate", "n": 64}), small()).await;
    assert_eq!(hit(&error), ("toolward:memory_exceeded", "memory_bytes"));
}

#[tokio::test]
async fn memory_taken_at_once_ends_at_the_limit() {
    let error = ends(json!({"do": "allocate-once", "n": 64}), small()).await;
    assert_eq!(hit(&error), ("toolward:memory_exceeded", "memory_bytes"));
}

#[tokio::test]
async fn a_guest_with_more_initial_memory_than_allowed_never_starts() {
    let mut limits = small();
    limits.memory_bytes = Limit {
        default: 64 << 10,
        maximum: 8 << 20,
    };
    let host = limited(limits);
    let error = error(&host, json!({"do": "echo"})).await;
    assert_eq!(hit(&error), ("toolward:memory_exceeded", "memory_bytes"));
}

#[tokio::test]
async fn printing_without_end_ends_at_the_cap_of_each_stream() {
    for stream in ["stdout", "stderr"] {
        let host = limited(small());
        let reply = run(&host, json!({"do": "print-forever", "name": stream})).await;
        let captured = match stream {
            "stdout" => &reply.captured.stdout,
            _ => &reply.captured.stderr,
        };
        assert_eq!(captured.len(), 64 << 10, "what fits is kept");
        let error = reply.result.unwrap_err();
        assert_eq!(hit(&error), ("toolward:limit_exceeded", "stdio_bytes"));
        still_serves(&host).await;
    }
}

#[tokio::test]
async fn logging_without_end_ends_at_the_record_limit() {
    let error = ends(json!({"do": "log-forever"}), small()).await;
    assert_eq!(hit(&error), ("toolward:limit_exceeded", "log_records"));
}

#[tokio::test]
async fn a_result_over_the_limit_is_refused() {
    // The host counts these bytes; the limit is lower than one copy out of the guest may be.
    let mut limits = small();
    limits.output_bytes = Limit::fixed(1 << 20);
    let error = ends(json!({"do": "huge-result", "n": 1}), limits).await;
    assert_eq!(hit(&error), ("toolward:result_too_large", "output_bytes"));
    let error = ends(json!({"do": "huge-content", "n": 1}), small()).await;
    assert_eq!(hit(&error), ("toolward:result_too_large", "output_bytes"));
}

#[tokio::test]
async fn a_result_that_is_too_large_to_cross_the_boundary_is_refused() {
    let mut limits = small();
    limits.memory_bytes = Limit::fixed(64 << 20);
    let error = ends(json!({"do": "huge-result", "n": 4}), limits).await;
    assert_eq!(hit(&error), ("toolward:result_too_large", "output_bytes"));
}

#[tokio::test]
async fn a_result_with_too_many_values_is_refused() {
    let limits = Limits {
        json_values: 10,
        ..small()
    };
    let error = ends(json!({"do": "call"}), limits).await;
    assert_eq!(hit(&error), ("toolward:result_too_large", "json_values"));
}

#[tokio::test]
async fn handles_without_end_end_at_the_limit() {
    let error = ends(json!({"do": "handles", "n": 1_000_000}), small()).await;
    assert_eq!(hit(&error), ("toolward:limit_exceeded", "resources"));
}

#[tokio::test]
async fn a_trap_says_how_it_happened() {
    for (what, words) in [
        ("trap", "unreachable"),
        ("out-of-bounds", "out of bounds"),
        ("divide-by-zero", "divide by zero"),
    ] {
        let error = ends(json!({"do": what}), small()).await;
        assert_eq!(error.code.as_str(), "upstream_error", "{error:#?}");
        let text = serde_json::to_string(&error).unwrap();
        assert!(text.contains(words), "{what}: {text}");
    }
}

#[tokio::test]
async fn a_panic_brings_its_message_and_no_more_than_a_bounded_part_of_it() {
    let error = ends(
        json!({"do": "panic", "name": "the cat ate it", "n": 0}),
        small(),
    )
    .await;
    assert_eq!(error.code.as_str(), "upstream_error");
    assert!(
        error
            .message
            .starts_with("the driver panicked: the cat ate it"),
        "{error}"
    );

    let error = ends(json!({"do": "panic", "name": "x", "n": 4 << 20}), small()).await;
    assert!(serde_json::to_string(&error).unwrap().len() < 16 << 10);
}

#[tokio::test]
async fn an_exit_of_the_guest_does_not_end_the_host() {
    let error = ends(json!({"do": "exit", "n": 0}), small()).await;
    assert_eq!(error.code.as_str(), "upstream_error");
}

#[tokio::test]
async fn a_second_call_gets_limits_of_its_own() {
    let host = limited(small());
    let allowed = Duration::from_millis(300);
    for _ in 0..3 {
        let sleep = json!({"do": "sleep", "n": 60_000});
        let request = Request::with_value("hostile.run", sleep).timeout(allowed);
        let error = host.call(request).await.result.unwrap_err();
        assert_eq!(error.code.as_str(), "timeout");
        still_serves(&host).await;
    }
}

#[tokio::test]
async fn a_driver_may_ask_for_less_and_never_for_more_than_the_maximum() {
    let fixture = Fixture::new(Extra {
        driver: "limits:\n  fuel: 90000000000000\n  memory_mib: 4\n",
        ..Extra::default()
    });
    let host = fixture.builder().limits(small()).build().unwrap();
    let spent = error(&host, json!({"do": "loop"})).await;
    assert_eq!(spent.limit.unwrap().allowed, 50_000_000);
    let grown = error(&host, json!({"do": "allocate", "n": 64})).await;
    assert_eq!(grown.limit.unwrap().allowed, 4 << 20);
}

#[tokio::test]
async fn the_contract_and_the_request_can_only_lower_the_deadline() {
    let fixture = Fixture::new(Extra {
        tool: "timeout_ms: 200\n",
        ..Extra::default()
    });
    let host = fixture.host();
    let slept = error(&host, json!({"do": "sleep", "n": 60_000})).await;
    assert_eq!(slept.limit.unwrap().allowed, 200);

    for (asked, allowed) in [(100, 100), (10_000, 200)] {
        let request = Request::with_value("hostile.run", json!({"do": "sleep", "n": 60_000}))
            .timeout(Duration::from_millis(asked));
        let error = host.call(request).await.result.unwrap_err();
        assert_eq!(error.limit.unwrap().allowed, allowed);
    }
}

#[tokio::test]
async fn usage_is_reported_for_good_and_bad_endings() {
    let host = fixture::hostile();
    let good = run(&host, json!({"do": "echo"})).await.metadata;
    assert!(good.fuel > 1000 && good.peak_memory >= 64 << 10 && good.milliseconds > 0.0);
    let more = run(&host, json!({"do": "allocate-once", "n": 8}))
        .await
        .metadata;
    assert!(more.peak_memory >= good.peak_memory + (8 << 20));
}
