//! `serve --metrics`: counts for Prometheus, with a separate token. Requests for the counts do not
//! hinder calls.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::raw::{PATIENCE, Raw};
use super::served::{Served, plain};
use crate::support::Machine;

/// A server of one client that counts calls, with the address of the counts.
struct Counting {
    machine: Machine,
    raw: Raw,
    address: String,
}

/// Returns an address that is free now.
fn free() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

fn counting() -> Counting {
    let machine = super::logs::machine();
    let address = free();
    let words = format!(
        "serve --bundle hostile.toolbundle --trust-key key.pub.pem \
         --bundle kv-counter.toolbundle --trust-key example.pub.pem \
         --metrics {address} --metrics-token-file metrics.token"
    );
    let raw = Raw::open(machine.toolward(&words).into_command(), json!({}));
    Counting {
        machine,
        raw,
        address,
    }
}

impl Counting {
    fn token(&self) -> String {
        self.machine.text("metrics.token").trim().to_owned()
    }

    fn call(&mut self, number: usize, tool: &str, arguments: &Value) {
        self.raw.call(number, tool, arguments);
        let answer = self.raw.answer(number);
        assert!(answer["result"].is_object(), "{answer}");
    }

    fn page(&self) -> String {
        let answer = get(&self.address, &self.address, &self.token());
        let (head, page) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 "), "{answer}");
        let kind = "content-type: text/plain; version=0.0.4; charset=utf-8";
        assert!(head.contains(kind), "{answer}");
        page.to_owned()
    }
}

/// Sends a request for a path with a token. Returns the complete answer.
fn request(address: &str, line: &str, host: &str, token: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let token = match token {
        "" => String::new(),
        token => format!("Authorization: Bearer {token}\r\n"),
    };
    let request = format!("{line} HTTP/1.1\r\nHost: {host}\r\n{token}Connection: close\r\n\r\n");
    // A server with too many connections may close this one during the write.
    let _ = stream.write_all(request.as_bytes());
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn get(address: &str, host: &str, token: &str) -> String {
    request(address, "GET /metrics", host, token)
}

/// Returns the sample of a page with this name and these labels.
fn sample<'a>(page: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = page.lines();
    lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
}

/// Asserts that the kernel limits this process to a list of system calls.
fn assert_confined(process: u32) {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    assert!(status.contains("Seccomp:\t2"), "{status}");
}

#[test]
fn a_page_after_a_script_of_calls_has_exactly_these() {
    let mut counting = counting();
    assert_confined(counting.raw.process());
    let error = json!({ "message": "m4rk", "cause": "m4rk" });
    let script = [
        ("hostile_run", json!({ "do": "echo", "value": "m4rk" })),
        ("hostile_run", json!({ "do": "echo", "value": "m4rk" })),
        (
            "hostile_run",
            json!({ "do": "error", "name": "hostile:m4rk", "value": error }),
        ),
        ("hostile_run", json!({ "do": ["m4rk"] })),
        ("kv_counter", json!({ "action": "get", "counter": "m4rk" })),
    ];
    for (number, (tool, arguments)) in script.iter().enumerate() {
        counting.call(number, tool, arguments);
    }
    // The server refuses this call itself, without its host.
    counting.raw.call(100, "m4rk_tool", &json!({}));
    counting.raw.answer(100);

    let page = counting.page();
    assert!(!page.contains("m4rk"), "{page}");
    let calls: Vec<&str> = page
        .lines()
        .filter(|line| line.starts_with("toolward_calls_total{"))
        .collect();
    let expected = [
        r#"toolward_calls_total{class="ok",mutating="false"} 2"#,
        r#"toolward_calls_total{class="ok",mutating="true"} 0"#,
        r#"toolward_calls_total{class="unknown_tool",mutating="false"} 1"#,
        r#"toolward_calls_total{class="schema_validation_failed",mutating="false"} 1"#,
        r#"toolward_calls_total{class="execution_failed",mutating="false"} 1"#,
        r#"toolward_calls_total{class="capability_gap",mutating="true"} 1"#,
    ];
    let sorted = |mut lines: Vec<&str>| {
        lines.sort_unstable();
        lines.join("\n")
    };
    assert_eq!(sorted(calls), sorted(expected.into()), "{page}");
    for (name, count) in [
        (
            r#"toolward_tool_calls_total{tool="hostile.run@1",result="ok"}"#,
            "2",
        ),
        (
            r#"toolward_tool_calls_total{tool="hostile.run@1",result="error"}"#,
            "2",
        ),
        (
            r#"toolward_tool_calls_total{tool="other",result="error"}"#,
            "1",
        ),
        ("toolward_calls_in_flight", "0"),
        (r#"toolward_driver_starts_total{kind="component"}"#, "3"),
        (r#"toolward_call_duration_seconds_bucket{le="+Inf"}"#, "6"),
        ("toolward_call_duration_seconds_count", "6"),
        (r#"toolward_approvals_total{answer="approved"}"#, "0"),
        ("toolward_events_lost_total", "0"),
        ("toolward_ledger_rows_lost_total", "0"),
        ("toolward_recorder_up", "1"),
    ] {
        assert_eq!(sample(&page, name), Some(count), "{name}\n{page}");
    }
    let sum = sample(&page, "toolward_call_duration_seconds_sum").unwrap();
    assert!(sum.parse::<f64>().unwrap() > 0.0, "{page}");
    well_formed(&page);

    // The recorder gets a row for each call soon, and a running call is in flight.
    let rows = |page: &str| sample(page, "toolward_ledger_rows_total") == Some("6");
    until(|| rows(&counting.page()));
    let endless = json!({ "do": "sleep", "n": 60_000 });
    counting.raw.call(101, "hostile_run", &endless);
    until(|| sample(&counting.page(), "toolward_calls_in_flight") == Some("1"));
    counting.raw.send(&json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 101 },
    }));
    let canceled = r#"toolward_calls_total{class="canceled",mutating="false"}"#;
    until(|| sample(&counting.page(), canceled) == Some("1"));
    assert_eq!(
        sample(&counting.page(), "toolward_calls_in_flight"),
        Some("0")
    );
}

#[track_caller]
fn until(mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < end, "it does not come to hold");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Asserts that each sample follows the head of its metric, and has a number as its value.
fn well_formed(page: &str) {
    assert!(page.ends_with('\n'));
    let mut metric = "";
    for line in page.lines() {
        if let Some(head) = line.strip_prefix("# TYPE ") {
            let (name, kind) = head.split_once(' ').unwrap();
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            metric = name;
        } else if !line.starts_with("# HELP ") {
            let (name, value) = line.rsplit_once(' ').unwrap();
            assert!(!metric.is_empty() && name.starts_with(metric), "{line}");
            assert!(value.parse::<f64>().is_ok(), "{line}");
        }
    }
}

#[test]
fn a_request_without_the_token_or_for_another_name_gets_no_count() {
    let counting = counting();
    let (address, token) = (&*counting.address, counting.token());
    let wrong = format!("{token}x");
    for (answer, status, code) in [
        (get(address, address, ""), 401, "token-missing"),
        (get(address, address, &wrong), 401, "token-unknown"),
        (
            get(address, "evil.example", &token),
            421,
            "host-not-allowed",
        ),
        (
            request(address, "GET /", address, &token),
            404,
            "path-unknown",
        ),
        (request(address, "POST /metrics", address, &token), 405, ""),
    ] {
        let head = format!("HTTP/1.1 {status} ");
        assert!(
            answer.starts_with(&head) && answer.contains(code),
            "{answer}"
        );
        assert!(!answer.contains("toolward_calls"), "{answer}");
    }
    let mode = std::fs::metadata(counting.machine.path("metrics.token")).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::mode(&mode.permissions());
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn metrics_without_a_token_are_refused_and_so_is_an_address_that_has_no_name() {
    let machine = plain();
    let serve = "serve --bundle plain.toolbundle --trust-key tests.pub.pem";
    let words = format!("{serve} --metrics 127.0.0.1:0");
    let ended = machine.toolward(&words).ends(2);
    assert!(
        ended
            .stderr
            .contains("<--metrics-token-file <FILE>|--metrics-tokens <FILE>>"),
        "{ended}"
    );
    let words = format!("{serve} --metrics 0.0.0.0:0 --metrics-token-file t");
    let ended = machine.toolward(&words).ends(2);
    ended.says("http-no-hosts");
    assert!(ended.stderr.contains("--metrics-allow-host"), "{ended}");
    assert!(
        !machine.path("t").exists(),
        "no token for what is not served"
    );
    machine.write("tokens.toml", "# clients\n");
    machine.write("one", "");
    std::os::unix::fs::symlink("one", machine.path("link")).unwrap();
    for (clients, own) in [
        ("--token-file t", "--metrics-token-file ./t"),
        ("--token-file one", "--metrics-token-file link"),
        ("--tokens tokens.toml", "--metrics-token-file tokens.toml"),
        ("--tokens tokens.toml", "--metrics-tokens tokens.toml"),
    ] {
        let words = format!("{serve} --http 127.0.0.1:0 {clients} --metrics 127.0.0.1:0 {own}");
        machine.toolward(&words).ends(2).says("flag-refused");
        assert_eq!(machine.text("tokens.toml"), "# clients\n", "{words}");
        assert!(!machine.path("t").exists(), "{words}");
    }
    let words = format!("{serve} --metrics-token-file t");
    let ended = machine.toolward(&words).ends(2);
    assert!(ended.stderr.contains("--metrics <ADDRESS>"), "{ended}");
}

#[test]
fn a_confined_server_over_http_serves_both_and_each_has_tokens_of_its_own() {
    let machine = plain();
    let address = free();
    let served = Served::plain(
        &machine,
        &format!("--token-file calls.token --metrics {address} --metrics-token-file metrics.token"),
    );
    assert_confined(served.process());
    let token = |name: &str| machine.text(name).trim().to_owned();
    let (calls, metrics) = (token("calls.token"), token("metrics.token"));
    let status = |answer: &str| answer.split(' ').nth(1).unwrap_or_default().to_owned();
    assert_eq!(status(&get(&address, &address, &metrics)), "200");
    assert_eq!(status(&get(&address, &address, &calls)), "401");
    let own = served.address();
    let messages = |token: &str| request(own, "PUT /mcp", own, token);
    assert_eq!(status(&messages(&calls)), "405");
    assert_eq!(status(&messages(&metrics)), "401");
}

#[test]
fn a_flood_of_scrapes_does_not_hinder_calls_and_loses_no_count() {
    const CALLS: usize = 40;
    let mut counting = counting();
    let (address, token) = (counting.address.clone(), counting.token());
    let (stop, pages) = (AtomicBool::new(false), AtomicU64::new(0));
    let echo = json!({ "do": "echo", "value": 1 });
    // This call compiles the driver.
    counting.call(0, "hostile_run", &echo);
    std::thread::scope(|scope| {
        for number in 0..12 {
            let token = if number % 3 == 0 { "wrong" } else { &token };
            let (address, stop, pages) = (&address, &stop, &pages);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    if get(address, address, token).contains("toolward_calls_total") {
                        pages.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
        let began = Instant::now();
        let mut longest = Duration::ZERO;
        for number in 1..CALLS {
            let one = Instant::now();
            counting.call(number, "hostile_run", &echo);
            longest = longest.max(one.elapsed());
        }
        while began.elapsed() < Duration::from_secs(2) {
            std::thread::sleep(Duration::from_millis(50));
        }
        stop.store(true, Ordering::Relaxed);
        // Scrapes continue until the calls have ended, so a call that waited for them would exceed
        // this time.
        assert!(longest < Duration::from_secs(20), "{longest:?}");
    });
    assert!(pages.load(Ordering::Relaxed) > 1, "{pages:?}");
    let name = r#"toolward_calls_total{class="ok",mutating="false"}"#;
    let expected = CALLS.to_string();
    assert_eq!(sample(&counting.page(), name), Some(&*expected));
}
