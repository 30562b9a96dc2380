//! A driver reaches limits on purpose. Each limit ends the call with its code, states the used
//! amount and the setting to raise, and leaves the host working.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolward_host::{CallError, Host, Limit, Limits, Observer, Progress, Request};

use crate::server::{Server, to_loopback};
use crate::world::{Bundle, Guest, call, error, value};

pub(crate) const TOOL: &str = "hostile.limits";

pub(crate) fn small() -> Limits {
    Limits {
        fuel: Limit::fixed(300_000_000),
        ..Limits::default()
    }
}

fn plain(limits: Limits) -> (Bundle, Host) {
    let bundle = Bundle::of(TOOL, Guest::Plain, "", "");
    let host = bundle.builder("").limits(limits).build().unwrap();
    (bundle, host)
}

/// Returns the code and the limit of an error, after asserting that it has a limit that was
/// reached, and a hint.
pub(crate) fn hit(error: &CallError) -> (&str, &'static str) {
    let hit = error
        .limit
        .unwrap_or_else(|| panic!("no limit in {error:#?}"));
    assert!(hit.used >= hit.allowed && hit.allowed > 0, "{error:#?}");
    assert!(
        error.hint.as_ref().is_some_and(|hint| !hint.is_empty()),
        "{error:#?}"
    );
    (error.code.as_str(), hit.limit.as_str())
}

pub(crate) async fn still_serves(host: &Host) {
    assert_eq!(
        value(host, TOOL, json!({"do": "echo", "value": 7})).await,
        json!(7)
    );
}

async fn ends(input: Value, limits: Limits) -> CallError {
    let (_bundle, host) = plain(limits);
    let error = error(&host, TOOL, input).await;
    still_serves(&host).await;
    error
}

#[tokio::test(flavor = "multi_thread")]
async fn one_record_too_many_and_one_too_long_end_the_call() {
    let error = ends(json!({"do": "log", "n": 1001}), small()).await;
    assert_eq!(hit(&error), ("toolward:limit_exceeded", "log_records"));
    assert_eq!(error.limit.unwrap().used, 1001);
    let limits = Limits {
        log_bytes: 10_000,
        ..small()
    };
    let error = ends(json!({"do": "log-huge", "n": 20_000}), limits).await;
    assert_eq!(hit(&error), ("toolward:limit_exceeded", "log_bytes"));
}

#[derive(Default)]
struct Counter {
    reports: AtomicUsize,
    bytes: AtomicUsize,
}

impl Observer for Counter {
    fn progress(&self, progress: &Progress) {
        self.reports.fetch_add(1, Ordering::Relaxed);
        let bytes = progress.message.as_ref().map_or(0, String::len);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        assert!(progress.done.is_finite());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_progress_reaches_nobody() {
    let (_bundle, host) = plain(small());
    let counter = Arc::new(Counter::default());
    let request =
        Request::with_value(TOOL, json!({"do": "progress-forever"})).observer(counter.clone());
    let error = host.call(request).await.result.unwrap_err();
    hit(&error);
    assert!(counter.reports.load(Ordering::Relaxed) <= 1000);

    let counter = Arc::new(Counter::default());
    let input = json!({"do": "progress-text", "name": "${fill:200000}"});
    let request = Request::with_value(TOOL, input).observer(counter.clone());
    host.call(request).await.result.unwrap();
    assert!(counter.bytes.load(Ordering::Relaxed) <= 1024);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_huge_string_for_any_import_ends_the_call_and_a_long_one_is_refused() {
    let (_bundle, host) = plain(Limits {
        log_bytes: 1 << 20,
        ..small()
    });
    for import in [
        "log",
        "log-fields",
        "progress",
        "placeholder",
        "reveal",
        "store-slug",
        "store",
        "tool",
        "tool-input",
        "path",
    ] {
        let started = Instant::now();
        let huge = json!({"do": "large-import", "name": import, "n": 4 << 20});
        let reply = call(&host, TOOL, huge).await;
        match reply.result {
            Err(error) => assert_eq!(
                hit(&error),
                ("toolward:limit_exceeded", "host_call_bytes"),
                "{import}"
            ),
            // The guest's own library refuses a path of this length.
            Ok(output) => assert!(import == "path", "{import}: {}", output.structured),
        }
        let long = json!({"do": "large-import", "name": import, "n": 100_000});
        let got = value(&host, TOOL, long).await;
        assert_ne!(got, json!("no such import"));
        assert!(started.elapsed() < Duration::from_secs(60), "{import}");
    }
    still_serves(&host).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_string_that_the_guest_never_had_is_not_read() {
    let (_bundle, host) = plain(small());
    for import in [
        "log",
        "log-fields",
        "placeholder",
        "reveal",
        "store-slug",
        "store",
        "progress",
        "tool-input",
    ] {
        for n in [1_u64 << 24, (1 << 31) - 1] {
            let input = json!({"do": "forged-import", "name": import, "n": n});
            let reply = call(&host, TOOL, input).await;
            let error = reply.result.expect_err(import);
            let codes = [
                "upstream_error",
                "toolward:memory_exceeded",
                "toolward:limit_exceeded",
            ];
            assert!(
                codes.contains(&error.code.as_str()),
                "{import} {n}: {error:?}"
            );
            assert!(error.hint.is_some(), "{error:?}");
            assert!(reply.metadata.peak_memory <= 64 << 20);
        }
    }
    still_serves(&host).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_that_claims_bytes_that_are_not_there_is_refused() {
    let (_bundle, host) = plain(small());
    for name in ["text", "bytes", "state"] {
        for n in [1_u64 << 26, 1 << 30, (1 << 31) - 1] {
            let input = json!({"do": "forged-output", "name": name, "n": n});
            let started = Instant::now();
            let error = call(&host, TOOL, input).await.result.expect_err(name);
            assert!(started.elapsed() < Duration::from_secs(60));
            assert!(error.hint.is_some(), "{name} {n}: {error:?}");
            assert!(serde_json::to_string(&error).unwrap().len() < 20_000);
        }
    }
    still_serves(&host).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn results_that_are_too_many_too_deep_or_too_long_are_refused_or_cut() {
    let (_bundle, host) = plain(Limits {
        output_bytes: Limit::fixed(64 << 10),
        ..small()
    });
    for input in [
        json!({"do": "many-blocks", "n": 100_000}),
        json!({"do": "deep", "n": 10_000}),
        json!({"do": "huge-content", "n": 1}),
        json!({"do": "huge-error", "n": 1 << 20}),
        json!({"do": "ask-huge-state", "n": 1 << 20}),
        json!({"do": "not-utf8"}),
        json!({"do": "duplicate-keys"}),
        json!({"do": "trailing-data"}),
    ] {
        let reply = call(&host, TOOL, input.clone()).await;
        let error = reply.result.expect_err(&input.to_string());
        assert!(
            serde_json::to_string(&error).unwrap().len() < 100_000,
            "{input}"
        );
    }
    still_serves(&host).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_for_what_never_comes_ends_at_the_deadline() {
    let (_bundle, host) = plain(Limits::default());
    for input in [
        json!({"do": "block-forever"}),
        json!({"do": "sleep", "n": u64::from(u32::MAX)}),
    ] {
        let started = Instant::now();
        let request = Request::with_value(TOOL, input.clone()).timeout(Duration::from_millis(300));
        let error = host.call(request).await.result.unwrap_err();
        assert_eq!(hit(&error), ("timeout", "timeout_ms"), "{input}");
        assert_eq!(error.limit.unwrap().allowed, 300);
        assert!(started.elapsed() < Duration::from_secs(20));
        still_serves(&host).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_host_makes_only_so_many_random_bytes_at_a_time() {
    let (_bundle, host) = plain(small());
    let reply = call(&host, TOOL, json!({"do": "random", "n": 1_u64 << 40})).await;
    assert!(reply.result.is_err());
    assert!(reply.metadata.peak_memory <= 64 << 20);
    still_serves(&host).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_input_that_is_too_large_too_deep_or_not_strict_never_reaches_the_driver() {
    let (_bundle, host) = plain(small());
    let deep = |depth: usize| {
        format!(
            "{{\"do\":\"echo\",\"value\":{}{}}}",
            "[".repeat(depth),
            "]".repeat(depth)
        )
    };
    for text in [
        format!("{{\"do\":\"echo\",\"value\":\"{}\"}}", "x".repeat(2 << 20)),
        deep(65),
        deep(10_000),
        deep(400_000),
        format!("{{\"do\":\"echo\",\"value\":[{}0]}}", "0,".repeat(300_000)),
        "{\"do\":\"echo\",\"do\":\"trap\"}".to_owned(),
        "{\"do\":\"echo\",\"value\":{\"a\":1,\"\\u0061\":2}}".to_owned(),
        "{\"do\":\"echo\"} {}".to_owned(),
        // 2^60 + 1: a program that reads numbers as `f64` would get another number.
        "{\"do\":\"echo\",\"value\":1152921504606846977}".to_owned(),
    ] {
        let started = Instant::now();
        let reply = host.call(Request::new(TOOL, text.as_str())).await;
        let error = reply.result.expect_err("an input like this");
        assert_eq!(error.code.as_str(), "input_invalid", "{error:?}");
        assert_eq!(reply.metadata.attempts, 0);
        assert!(started.elapsed() < Duration::from_secs(60));
    }
    let largest = (1_u64 << 53) - 1;
    let got = value(&host, TOOL, json!({"do": "echo", "value": largest})).await;
    assert_eq!(got, json!(largest));
}

/// A tool that may write to `api.test` and call itself.
fn networked(server: &Server, limits: Limits) -> (Bundle, Host) {
    let name = format!("api.test:{}", server.port());
    let bundle = Bundle::of(
        TOOL,
        Guest::Net,
        &format!(
            "requires:\n  tools: [{TOOL}]\nmutates: [\"network:{name}\"]\napproval: on-mutate\n"
        ),
        &format!("network:\n  egress: [\"{name}\"]\n"),
    );
    let host = bundle
        .builder(&format!(
            "[[grant]]\npublisher = \"PUBLISHER\"\npreapproved = true\nplain_http = true\n\
             addresses = [\"127.0.0.0/8\"]\nrequires = [\"tool:{TOOL}\"]\n\
             mutates = [\"network:{name}\"]\n"
        ))
        .transport(to_loopback())
        .limits(limits)
        .build()
        .unwrap();
    (bundle, host)
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_on_requests_hold_for_a_call_and_the_tools_that_it_calls() {
    let server = Server::start(|request| {
        // The host cuts the body off, so no complete request arrives.
        if request.starts_with("POST") {
            return None;
        }
        let size = if request.contains("/large") {
            50_000
        } else {
            10
        };
        Some(crate::server::ok(&"x".repeat(size)))
    });
    let url = |path: &str| format!("http://api.test:{}{path}", server.port());
    let body = Limits {
        http_body_bytes: Limit::fixed(10_000),
        ..small()
    };
    let (_bundle, host) = networked(&server, body);
    let sent = json!({"do": "http", "url": url("/"), "method": "POST", "body_bytes": 20_000});
    let got = value(&host, TOOL, sent).await;
    assert!(got["err"].is_string(), "{got}");
    assert!(server.seen().iter().all(|seen| seen.len() < 10_500));
    let got = value(&host, TOOL, json!({"do": "http", "url": url("/large")})).await;
    assert!(got.to_string().contains("HttpResponseBodySize"), "{got}");
    assert!(got["ok"]["bytes"].as_u64().unwrap_or(0) <= 10_000, "{got}");

    // The limit covers all requests of a call, including those of tools that it calls.
    let total = Limits {
        http_requests_total: Limit::fixed(5),
        ..small()
    };
    let (_bundle, host) = networked(&server, total);
    let before = server.seen().len();
    let get = json!({"do": "http", "url": url("/")});
    let repeat = json!({"do": "repeat", "times": 4, "step": get});
    let nested = json!({"do": "steps", "steps": [
        repeat, {"do": "call-tool", "tool": TOOL, "input": repeat},
        {"do": "call-tool", "tool": TOOL, "input": repeat},
    ]});
    value(&host, TOOL, nested).await;
    assert_eq!(server.seen().len() - before, 5);

    let bytes = Limits {
        egress_bytes: Limit::fixed(120_000),
        ..small()
    };
    let (_bundle, host) = networked(&server, bytes);
    let input = json!({"do": "repeat", "times": 20, "step": {"do": "http", "url": url("/large"), "show": 1}});
    let tally = value(&host, TOOL, input).await;
    let received: u64 = tally["results"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(result, times)| {
            let result: Value = serde_json::from_str(result).unwrap();
            result["ok"]["bytes"].as_u64().unwrap_or(0) * times.as_u64().unwrap()
        })
        .sum();
    assert!((50_000..120_000).contains(&received), "{tally}");
}

#[tokio::test(flavor = "multi_thread")]
async fn handles_of_any_kind_are_counted() {
    let server = Server::saying("fine");
    let (_bundle, host) = networked(&server, small());
    let error = error(&host, TOOL, json!({"do": "fields-flood", "n": 100_000})).await;
    assert_eq!(hit(&error), ("toolward:limit_exceeded", "resources"));
    still_serves(&host).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn called_tools_share_their_callers_memory() {
    let server = Server::saying("fine");
    let limits = Limits {
        memory_bytes: Limit::fixed(32 << 20),
        ..small()
    };
    let (_bundle, host) = networked(&server, limits);
    let deep = json!({"do": "call-tool", "tool": TOOL, "input": {"do": "allocate-once", "n": 20}});
    let alone = value(&host, TOOL, deep.clone()).await;
    assert!(alone["ok"].is_object(), "{alone}");
    let input = json!({"do": "steps", "steps": [{"do": "allocate-once", "n": 20}, deep]});
    match call(&host, TOOL, input).await.result {
        Ok(output) => {
            let told = output.structured["value"][1]["err"].clone();
            assert_eq!(
                told,
                json!("toolward:memory_exceeded"),
                "{}",
                output.structured
            );
        }
        Err(error) => panic!("{error:?}"),
    }
}
