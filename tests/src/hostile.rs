//! A driver that loops, recurses, allocates, prints, traps and lies: every call ends in bounded
//! time with its own code, and nothing outside is changed.

use std::net::TcpListener;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Ended, Machine, copy, root, tree};

/// Copies the hostile bundle into the work directory. Its contract allows five seconds for each
/// call.
pub(crate) fn add(machine: &Machine, name: &str) {
    let from = root().join("tests/guests/hostile");
    let component = "drivers/hostile/driver.wasm";
    assert!(
        from.join(component).is_file(),
        "run `cargo xtask guests` first"
    );
    for part in ["bundle.toml", "tools", "drivers"] {
        copy(&from.join(part), &machine.path(&format!("{name}/{part}")));
    }
}

fn machine() -> Machine {
    let machine = Machine::new();
    add(&machine, "hostile");
    machine
}

fn call(machine: &Machine, input: &Value) -> Ended {
    machine
        .toolward("call hostile.run --dev hostile --json --input")
        .arg(input.to_string())
        .end()
}

/// Returns the envelope of a call that the host must end with one of these codes.
#[track_caller]
fn fails(machine: &Machine, input: &Value, codes: &[&str]) -> Value {
    let ended = call(machine, input);
    assert_eq!(ended.code, Some(1), "{ended}");
    let envelope = ended.json();
    let error = &envelope["error"];
    let code = error["code"].as_str().unwrap();
    assert!(codes.contains(&code), "{input}: {envelope}");
    assert_eq!(error["origin"], "host", "{input}: {envelope}");
    assert!(!error["message"].as_str().unwrap().is_empty());
    // Five seconds of the call, and ample time to start and compile.
    assert!(
        ended.took < Duration::from_secs(120),
        "{input} took {:?}",
        ended.took
    );
    envelope
}

/// Returns the value of a call, which must succeed.
#[track_caller]
fn value(machine: &Machine, input: &Value) -> Value {
    let ended = call(machine, input);
    assert_eq!(ended.code, Some(0), "{ended}");
    ended.json()["value"]["value"].clone()
}

const ENDLESS: [&str; 2] = ["timeout", "toolward:fuel_exhausted"];

#[test]
fn an_endless_loop_ends() {
    fails(&machine(), &json!({ "do": "loop" }), &ENDLESS);
}

#[test]
fn an_endless_loop_of_host_calls_ends() {
    fails(&machine(), &json!({ "do": "loop-host-call" }), &ENDLESS);
}

#[test]
fn waiting_longer_than_the_contract_allows_ends_at_its_deadline() {
    let envelope = fails(
        &machine(),
        &json!({ "do": "sleep", "n": 600_000 }),
        &["timeout"],
    );
    assert_eq!(envelope["error"]["class"], "timeout");
    let waited = envelope["meta"]["milliseconds"].as_f64().unwrap();
    assert!((4_900.0..60_000.0).contains(&waited), "{envelope}");
}

#[test]
fn endless_recursion_is_a_trap() {
    let machine = machine();
    fails(
        &machine,
        &json!({ "do": "recurse", "n": 0 }),
        &["upstream_error"],
    );
    assert!(value(&machine, &json!({ "do": "recurse", "n": 10 })).is_number());
}

#[test]
fn memory_beyond_the_limit_is_refused_however_it_is_asked_for() {
    let machine = machine();
    for input in [
        json!({ "do": "allocate-forever" }),
        json!({ "do": "allocate", "n": 100 }),
        json!({ "do": "allocate-once", "n": 1000 }),
    ] {
        let envelope = fails(&machine, &input, &["toolward:memory_exceeded"]);
        let limit = &envelope["error"]["limit"];
        assert_eq!(limit["allowed"], 64 << 20, "{envelope}");
        assert!(
            limit["used"].as_u64() > limit["allowed"].as_u64(),
            "{envelope}"
        );
        assert!(
            envelope["meta"]["peak_memory"].as_u64().unwrap() <= 64 << 20,
            "{envelope}"
        );
    }
    assert_eq!(value(&machine, &json!({ "do": "allocate", "n": 10 })), 10);
}

#[test]
fn printing_without_end_ends() {
    let machine = machine();
    for stream in ["stdout", "stderr"] {
        let codes = [
            "timeout",
            "toolward:fuel_exhausted",
            "toolward:limit_exceeded",
        ];
        let envelope = fails(
            &machine,
            &json!({ "do": "print-forever", "name": stream }),
            &codes,
        );
        assert!(
            envelope.to_string().len() < 1 << 20,
            "{} bytes",
            envelope.to_string().len()
        );
    }
}

#[test]
fn logging_and_reporting_without_end_end() {
    let machine = machine();
    let codes = [
        "timeout",
        "toolward:fuel_exhausted",
        "toolward:limit_exceeded",
    ];
    for what in ["log-forever", "progress-forever"] {
        fails(&machine, &json!({ "do": what }), &codes);
    }
}

#[test]
fn a_trap_is_an_error_of_the_driver_named_by_the_host() {
    let machine = machine();
    for input in [
        json!({ "do": "trap" }),
        json!({ "do": "divide-by-zero", "n": 1 }),
        json!({ "do": "out-of-bounds" }),
        json!({ "do": "exit", "n": 1 }),
        json!({ "do": "exit", "n": 0 }),
    ] {
        let envelope = fails(&machine, &input, &["upstream_error"]);
        assert_eq!(envelope["error"]["class"], "execution_failed", "{envelope}");
        assert_eq!(envelope["meta"]["driver"], "hostile");
    }
}

#[test]
fn a_panic_says_what_it_said_as_the_drivers_words() {
    let input = json!({ "do": "panic", "name": "the jar is empty" });
    let ended = call(&machine(), &input);
    assert_eq!(ended.code, Some(1), "{ended}");
    let error = &ended.json()["error"];
    assert_eq!(error["code"], "upstream_error", "{error}");
    assert_eq!(error["origin"], "driver", "{error}");
    assert!(error.to_string().contains("the jar is empty"), "{error}");
}

#[test]
fn a_result_that_is_not_what_the_contract_says_is_not_passed_on() {
    let machine = machine();
    for what in [
        "wrong-output",
        "null-output",
        "invalid-json",
        "not-json",
        "trailing-data",
        "duplicate-keys",
        "big-integer",
        "not-utf8",
    ] {
        let envelope = fails(&machine, &json!({ "do": what }), &["upstream_error"]);
        assert_eq!(envelope.get("value"), None);
    }
    fails(
        &machine,
        &json!({ "do": "deep", "n": 100 }),
        &["upstream_error"],
    );
}

#[test]
fn a_result_that_is_too_large_is_not_passed_on() {
    let machine = machine();
    for input in [
        json!({ "do": "huge-result", "n": 8 }),
        json!({ "do": "huge-content", "n": 8 }),
    ] {
        let envelope = fails(&machine, &input, &["toolward:result_too_large"]);
        assert_eq!(envelope["error"]["limit"]["allowed"], 4 << 20, "{envelope}");
    }
}

#[test]
fn a_question_is_not_asked_where_nobody_can_answer() {
    let machine = machine();
    for what in ["ask", "ask-nothing", "ask-twice-the-same", "ask-huge-state"] {
        let input = json!({ "do": what, "n": 3_000_000 });
        let envelope = fails(&machine, &input, &["input_unavailable"]);
        assert_eq!(envelope["error"]["class"], "setup_required", "{envelope}");
    }
}

#[test]
fn a_driver_cannot_pass_its_errors_off_as_the_hosts() {
    let machine = machine();
    for code in ["toolward:fuel_exhausted", "toolward", "Not A Code"] {
        let envelope = call(&machine, &json!({ "do": "error", "name": code })).json();
        assert_eq!(envelope["error"]["code"], "upstream_error", "{envelope}");
        assert_eq!(envelope["error"]["origin"], "driver", "{envelope}");
    }
    // The driver's own "unauthorised" is not a denial by policy.
    let ended = call(&machine, &json!({ "do": "error", "name": "unauthorised" }));
    assert_eq!(ended.code, Some(1), "{ended}");
    assert_eq!(ended.json()["error"]["origin"], "driver");
}

#[test]
fn what_may_be_retried_is_retried_as_often_as_the_contract_says() {
    let machine = machine();
    let ended = call(&machine, &json!({ "do": "flaky", "n": 3 }));
    assert_eq!(
        (ended.code, &ended.json()["meta"]["attempts"]),
        (Some(0), &json!(3)),
        "{ended}"
    );
    let ended = call(&machine, &json!({ "do": "flaky", "n": 4 }));
    assert_eq!(
        (ended.code, &ended.json()["meta"]["attempts"]),
        (Some(1), &json!(3)),
        "{ended}"
    );
}

#[test]
fn every_call_has_a_fresh_instance() {
    let machine = machine();
    for _ in 0..2 {
        assert_eq!(value(&machine, &json!({ "do": "count" })), 1);
    }
}

#[test]
fn a_driver_sees_nothing_of_the_host() {
    let machine = machine();
    let ended = machine
        .toolward("call hostile.run --dev hostile --input")
        .arg(json!({ "do": "environment" }).to_string())
        .env("TOOLWARD_TEST_SECRET", "hunter2")
        .ends(0);
    assert!(!ended.stdout.contains("hunter2"));
    let seen = &ended.json()["value"];
    for (what, nothing) in [
        ("variables", json!([])),
        ("arguments", json!([])),
        ("directory", json!(null)),
        ("preopens", json!(0)),
        ("stdin", json!(0)),
        ("terminal", json!(false)),
    ] {
        assert_eq!(seen[what], nothing, "{what} of {seen}");
    }
}

#[test]
fn a_driver_reaches_no_file() {
    let machine = machine();
    let planted = machine.path("planted").to_str().unwrap().to_owned();
    let before = tree(&machine.work());
    for (what, name) in [
        ("read-file", "/etc/passwd"),
        ("read-file", "hostile/bundle.toml"),
        ("list-directory", "/"),
        ("list-directory", "."),
        ("write-file", &planted),
        ("write-file", "planted"),
    ] {
        let got = value(&machine, &json!({ "do": what, "name": name }));
        assert!(got["refused"].is_string(), "{what} {name}: {got}");
    }
    assert_eq!(tree(&machine.work()), before);
}

#[test]
fn a_driver_reaches_no_network() {
    let machine = machine();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    for (what, name) in [
        ("connect", address.as_str()),
        ("listen", "127.0.0.1:0"),
        ("send-datagram", &address),
        ("resolve", "localhost"),
    ] {
        let got = value(&machine, &json!({ "do": what, "name": name }));
        assert!(got["refused"].is_string(), "{what} {name}: {got}");
    }
    let nobody = listener.accept().unwrap_err();
    assert_eq!(nobody.kind(), std::io::ErrorKind::WouldBlock);
}

#[test]
fn a_driver_gets_no_secret_and_calls_no_tool() {
    let machine = machine();
    for input in [
        json!({ "do": "secret", "name": "api-key" }),
        json!({ "do": "secret", "name": "api-key", "value": "reveal" }),
        json!({ "do": "secret", "name": "api-key", "value": "store" }),
        json!({ "do": "tool", "name": "hostile.run", "value": { "do": "echo" } }),
    ] {
        let got = value(&machine, &input);
        assert!(got["refused"].is_string(), "{input}: {got}");
    }
}

/// A bundle whose contract also has these lines.
fn declaring(lines: &str) -> Machine {
    let machine = machine();
    let name = "hostile/tools/hostile.run/TOOL.md";
    let contract = machine.text(name);
    machine.write(
        name,
        contract.replacen("tags: [test]\n", &format!("tags: [test]\n{lines}\n"), 1),
    );
    assert_ne!(machine.text(name), contract);
    machine
}

/// Makes the driver request the host that its contract declares, since capabilities that no driver
/// uses are not requested.
fn uses_the_network(machine: &Machine) {
    let name = "hostile/drivers/hostile/DRIVER.md";
    let driver = machine.text(name);
    let egress = "network:\n  egress: [api.example.org]\nimplements:\n";
    machine.write(name, driver.replacen("implements:\n", egress, 1));
    assert_ne!(machine.text(name), driver);
}

#[test]
fn what_is_declared_and_not_granted_is_denied_before_anything_runs() {
    for (lines, missing) in [
        (
            "requires: { network: [api.example.org] }",
            "network:api.example.org",
        ),
        ("requires: { secrets: [api-key] }", "secret:api-key"),
        ("requires: { tools: [text.stats] }", "tool:text.stats"),
        ("requires: { workspace: [/data] }", "workspace:/data"),
        ("mutates: [\"external:payments\"]", "external:payments"),
        ("mutates: [\"nuclear:launch\"]", "nuclear:launch"),
    ] {
        let machine = declaring(lines).with_own_cache();
        if lines.contains("network") {
            uses_the_network(&machine);
        }
        let ended = call(&machine, &json!({ "do": "echo" }));
        assert_eq!(ended.code, Some(4), "{lines}: {ended}");
        let envelope = ended.json();
        assert_eq!(envelope["error"]["code"], "unauthorised", "{envelope}");
        assert_eq!(envelope["error"]["class"], "capability_gap", "{envelope}");
        assert!(
            envelope["error"].to_string().contains(missing),
            "{envelope}"
        );
        assert_eq!(envelope["meta"]["attempts"], 0, "{envelope}");
        assert_eq!(envelope["meta"]["fuel"], 0, "{envelope}");
        // People see the same, and a next step.
        let ended = machine
            .toolward("call hostile.run --dev hostile --set do=echo")
            .ends(4);
        ended.says("unauthorised");
        assert!(ended.stderr.contains(missing), "{ended}");
    }
}

#[test]
fn what_needs_a_persons_approval_is_denied_where_nobody_is_asked() {
    for lines in [
        "approval: always",
        "approval: \"policy:finance\"",
        "risk_level: 3",
    ] {
        let machine = declaring(lines);
        let ended = call(&machine, &json!({ "do": "echo" }));
        assert_eq!(ended.code, Some(4), "{lines}: {ended}");
        let envelope = ended.json();
        assert_eq!(
            envelope["error"]["code"], "toolward:approval_denied",
            "{envelope}"
        );
        assert_eq!(
            envelope["error"]["class"], "approval_rejected",
            "{envelope}"
        );
        assert_eq!(envelope["meta"]["attempts"], 0, "{envelope}");
    }
}
