//! Clients on standard input and output that forge, flood, stall and vanish. (For HTTP see
//! `mcp/tests/suite`.)

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::process::{memory, standing};
use super::raw::{PATIENCE, Raw};
use super::served::{machine, stdio};

const SUM: &str = "test_sum";
const ENDLESS: &str = "test_endless";

#[track_caller]
fn sums(raw: &mut Raw, id: &str) {
    raw.call(id, SUM, &json!({"numbers": [1, 2]}));
    let answer = raw.answer(id);
    let structured = &answer["result"]["structuredContent"];
    assert_eq!(structured, &json!({"sum": 3, "count": 2}), "{answer}");
}

#[test]
fn what_is_not_a_message_is_answered_and_the_server_goes_on() {
    let machine = machine("");
    let mut raw = Raw::open(stdio(&machine), json!({}));
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for line in [
        "",
        "{",
        "null",
        "[]",
        "\u{feff}{}",
        "{\"jsonrpc\": \"1.0\", \"id\": 1, \"method\": \"ping\"}",
        "{\"jsonrpc\": \"2.0\", \"id\": {}, \"method\": \"ping\"}",
        "{\"jsonrpc\": \"2.0\", \"id\": 1e999, \"method\": \"ping\"}",
        "{\"jsonrpc\": \"2.0\", \"id\": 9, \"result\": {\"never\": \"asked\"}}",
        "{\"jsonrpc\": \"2.0\", \"method\": \"notifications/cancelled\", \"params\": {\"requestId\": 77}}",
        "\u{0}\u{1}\u{2}",
        &deep,
    ] {
        raw.line(line);
    }
    for (id, method, params) in [
        ("unknown", "tools/destroy", json!({})),
        ("untyped", "tools/call", json!({"name": 7, "arguments": []})),
        ("unnamed", "tools/call", json!({})),
        ("missing", "tools/call", json!({"name": "no_such_tool"})),
        ("cursor", "tools/list", json!({"cursor": "../../etc"})),
        ("level", "logging/setLevel", json!({"level": "deafening"})),
    ] {
        raw.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let answer = raw.answer(id);
        let code = answer["error"]["code"].as_i64().unwrap();
        assert!((-32700..=-32600).contains(&code), "{answer}");
    }
    let nested = |levels: u32| (0..levels).fold(json!(1), |inner, _| json!([inner]));
    raw.call("far too deep", SUM, &json!({"numbers": nested(100)}));
    let error = &raw.answer("far too deep")["error"];
    assert_eq!(error["data"]["code"], "message-too-complex", "{error}");
    raw.call("nested", SUM, &json!({"numbers": nested(65)}));
    let answer = raw.answer("nested");
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let code = &answer["result"]["_meta"]["toolward/error"]["code"];
    assert_eq!(code, "input_invalid", "{answer}");
    sums(&mut raw, "after");
    // Three of the lines are not JSON.
    let rest = raw.rest();
    let parse_errors = rest.iter().filter(|message| {
        message.get("id") == Some(&Value::Null) && message["error"]["code"] == -32700
    });
    assert_eq!(parse_errors.count(), 3, "{rest:?}");
}

#[test]
fn a_message_beyond_all_measure_is_not_kept() {
    let machine = machine("");
    let mut raw = Raw::open(stdio(&machine), json!({}));
    let huge = "x".repeat(64 << 20);
    raw.line(&format!(
        "{{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"ping\", \"params\": \"{huge}\"}}"
    ));
    drop(huge);
    let error = &raw.answer(1)["error"];
    assert_eq!(error["data"]["code"], "message-too-large", "{error}");
    sums(&mut raw, "after");
    let resident = memory(raw.process(), "VmRSS:");
    assert!(resident < 200 << 10, "{resident} KiB");
}

#[test]
fn a_message_of_a_million_values_is_refused_before_it_takes_memory() {
    let machine = machine("");
    let mut raw = Raw::open(stdio(&machine), json!({}));
    let zeros = "0,".repeat(900_000);
    for id in 0..8 {
        raw.line(&format!(
            "{{\"jsonrpc\": \"2.0\", \"id\": {id}, \"method\": \"tools/call\", \"params\": \
             {{\"name\": \"{SUM}\", \"arguments\": {{\"numbers\": [{zeros}0]}}}}}}"
        ));
        let error = &raw.answer(id)["error"];
        assert_eq!(error["code"], -32600, "{error}");
        assert_eq!(error["data"]["code"], "message-too-complex", "{error}");
    }
    sums(&mut raw, "after");
    let peak = memory(raw.process(), "VmHWM:");
    assert!(peak < 200 << 10, "{peak} KiB");
}

#[test]
fn memory_that_a_large_message_took_goes_back_to_the_kernel() {
    let machine = machine("");
    let mut raw = Raw::open(stdio(&machine), json!({}));
    sums(&mut raw, "before");
    let idle = memory(raw.process(), "VmRSS:");
    let objects = "{\"a\":0},".repeat(119_999);
    raw.line(&format!(
        "{{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"tools/call\", \"params\": \
         {{\"name\": \"{SUM}\", \"arguments\": {{\"numbers\": [{objects}{{}}]}}}}}}"
    ));
    raw.answer(1);
    let peak = memory(raw.process(), "VmHWM:");
    // The server must free the memory although no further message arrives.
    let until = Instant::now() + Duration::from_secs(15);
    let resident = loop {
        let resident = memory(raw.process(), "VmRSS:");
        if resident < idle + (64 << 10) || Instant::now() > until {
            break resident;
        }
        std::thread::sleep(Duration::from_millis(200));
    };
    println!("{idle} KiB, at most {peak} KiB, then {resident} KiB");
    assert!(
        resident < idle + (64 << 10),
        "{idle} KiB, then {resident} KiB"
    );
    sums(&mut raw, "after");
}

#[test]
fn an_id_in_use_is_refused_and_its_first_request_goes_on() {
    let machine = machine("");
    let mut raw = Raw::open(stdio(&machine), json!({}));
    raw.call("twice", ENDLESS, &json!({}));
    raw.call("twice", SUM, &json!({"numbers": [1]}));
    let error = &raw.answer("twice")["error"];
    assert_eq!(error["code"], -32600, "{error}");
    assert_eq!(error["data"]["code"], "id-in-use", "{error}");
    std::thread::sleep(Duration::from_millis(300));
    let rest = raw.rest();
    assert!(rest.is_empty(), "the first one runs: {rest:?}");
    let params = json!({"requestId": "twice"});
    raw.send(&json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params,
    }));
    raw.call("twice", SUM, &json!({"numbers": [1]}));
    let error = &raw.answer("twice")["error"];
    assert_eq!(error["data"]["code"], "id-in-use", "{error}");
    sums(&mut raw, "after");
}

#[test]
fn answers_and_cancellations_get_through_when_as_many_calls_wait_as_may() {
    let machine = machine("");
    let mut raw = Raw::open(stdio(&machine), json!({"elicitation": {}}));
    // As many calls as the host's queue accepts.
    let mut questions = Vec::new();
    for batch in 0..8 {
        for number in 0..256 {
            let id = batch * 256 + number;
            raw.call(id, "test_elicitation", &json!({"message": "Who?"}));
        }
        for _ in 0..256 {
            let question = raw.next(PATIENCE).expect("a question of each");
            assert_eq!(question["method"], "elicitation/create", "{question}");
            questions.push(question["id"].clone());
        }
    }
    raw.call("beyond", SUM, &json!({"numbers": [1]}));
    let error = &raw.answer("beyond")["error"];
    assert_eq!(error["data"]["code"], "rate_limited", "{error}");
    assert!(
        error["data"]["retry_after_ms"].as_u64().unwrap() > 0,
        "{error}"
    );

    let params = json!({"requestId": 2047});
    raw.send(&json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params,
    }));
    sums(&mut raw, "in the place of the cancelled one");
    raw.send(&json!({"jsonrpc": "2.0", "id": questions[0], "result": {"action": "decline"}}));
    // Before the result, the question of the cancelled call is withdrawn.
    let results = |message: &Value| message["result"]["content"].is_array();
    while !results(&raw.next(PATIENCE).expect("the result")) {}
    sums(&mut raw, "in the place of the answered one");
}

#[test]
fn a_thousand_calls_at_once_are_each_answered_once_or_told_to_come_again() {
    let machine = machine("");
    let mut raw = Raw::open(stdio(&machine), json!({}));
    for number in 0..1000 {
        raw.call(number, SUM, &json!({"numbers": [number, 1]}));
    }
    let mut seen = vec![0; 1000];
    let mut worked = 0;
    for _ in 0..1000 {
        let answer = raw.next(PATIENCE).expect("an answer to each");
        let number = usize::try_from(answer["id"].as_u64().unwrap()).unwrap();
        seen[number] += 1;
        let result = &answer["result"];
        if result["isError"] == json!(true) {
            let error = &result["_meta"]["toolward/error"];
            assert_eq!(error["code"], "rate_limited", "{answer}");
            assert!(error["retry_after_ms"].as_u64().unwrap() > 0, "{answer}");
        } else {
            worked += 1;
            assert_eq!(result["structuredContent"]["sum"], number + 1, "{answer}");
        }
    }
    assert!(seen.iter().all(|count| *count == 1), "{seen:?}");
    assert!(worked > 0);
    sums(&mut raw, "after");
}

#[test]
fn a_client_that_asks_and_reads_nothing_fills_its_own_pipe_and_not_our_memory() {
    let machine = machine("");
    let mut command = stdio(&machine);
    command.stdout(std::process::Stdio::piped());
    let mut child = command
        .stdin(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let process = child.id();
    let mut stdin = child.stdin.take().unwrap();
    let flood = std::thread::spawn(move || {
        use std::io::Write as _;
        let line = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
        for number in 0..200_000_u32 {
            let line = line.replace("\"id\":1", &format!("\"id\":{number}"));
            if writeln!(stdin, "{line}").is_err() {
                return;
            }
        }
    });
    std::thread::sleep(Duration::from_secs(5));
    let resident = memory(process, "VmRSS:");
    let waits = !flood.is_finished();
    child.kill().unwrap();
    child.wait().unwrap();
    flood.join().unwrap();
    assert!(waits, "all of it was read");
    assert!(resident < 400 << 10, "{resident} KiB");
}

/// Starts an endless call, and waits until its guest reports that it runs.
fn runs(raw: &mut Raw, id: &str) {
    let meta = json!({"progressToken": id});
    raw.send(&json!({
        "jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": {"name": ENDLESS, "arguments": {}, "_meta": meta},
    }));
    let told = raw.next(PATIENCE).expect("it reports progress");
    assert_eq!(told["params"]["progressToken"], id, "{told}");
}

#[test]
fn a_call_that_never_ends_delays_no_other_and_ends_when_it_is_cancelled() {
    let machine = machine("[limits]\nconcurrency = 2\n\n");
    let mut raw = Raw::open(stdio(&machine), json!({}));
    runs(&mut raw, "endless");
    // The call takes one of two places, and the other place continues to serve.
    for number in 0..20 {
        sums(&mut raw, &format!("beside {number}"));
    }
    // Requests that come together start in any order.
    runs(&mut raw, "endless too");
    raw.call("waits", SUM, &json!({"numbers": [1]}));
    std::thread::sleep(Duration::from_millis(300));
    let rest = raw.rest();
    assert!(rest.is_empty(), "both places are taken: {rest:?}");
    let cancel = |id: &str| {
        let params = json!({"requestId": id, "reason": "enough"});
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
    };
    raw.send(&cancel("endless"));
    let answer = raw.answer("waits");
    assert_eq!(answer["result"]["structuredContent"]["sum"], 1, "{answer}");
    raw.send(&cancel("endless too"));
    sums(&mut raw, "after");
    let rest = raw.rest();
    assert!(rest.is_empty(), "no answer to what was cancelled: {rest:?}");
}

#[test]
fn a_client_that_says_no_more_gets_its_answers_and_the_server_ends() {
    let machine = machine("");
    let mut raw = Raw::open(stdio(&machine), json!({}));
    raw.call("last", SUM, &json!({"numbers": [4, 5]}));
    raw.hang_up();
    let answer = raw.answer("last");
    assert_eq!(answer["result"]["structuredContent"]["sum"], 9, "{answer}");
    let status = raw.ended(Duration::from_secs(30)).expect("it ends");
    assert!(status.success(), "{status}");
}

#[test]
fn a_client_that_vanishes_takes_its_calls_with_it() {
    let machine = machine("");
    let mut raw = Raw::open(stdio(&machine), json!({}));
    raw.call("endless", ENDLESS, &json!({}));
    std::thread::sleep(Duration::from_millis(300));
    raw.hang_up();
    let status = raw
        .ended(Duration::from_secs(25))
        .expect("it ends, before the call would");
    assert!(status.success(), "{status}");
}

#[test]
fn threads_and_open_files_are_back_after_a_storm() {
    let machine = machine("");
    let mut raw = Raw::open(stdio(&machine), json!({}));
    let storm = |raw: &mut Raw, round: u32| {
        for number in 0..200 {
            let id = format!("{round} {number}");
            let tool = match number % 4 {
                0 => "test_error_handling",
                1 => "no_such_tool",
                2 => ENDLESS,
                _ => SUM,
            };
            raw.call(id.as_str(), tool, &json!({"numbers": [1]}));
            if tool == ENDLESS {
                let params = json!({"requestId": id});
                raw.send(&json!({
                    "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params,
                }));
            } else {
                raw.answer(id);
            }
        }
        sums(raw, &format!("after {round}"));
    };
    storm(&mut raw, 0);
    let before = standing(raw.process());
    for round in 1..4 {
        storm(&mut raw, round);
    }
    let after = standing(raw.process());
    assert!(
        after.threads <= before.threads + 2,
        "threads: {before:?} before, {after:?} after"
    );
    assert!(
        after.files <= before.files,
        "files: {before:?} before, {after:?} after"
    );
}

#[test]
fn nothing_but_messages_reaches_standard_output() {
    let machine = machine("");
    let mut raw = Raw::open(stdio(&machine), json!({}));
    for tool in ["test_error_handling", "test_tool_with_logging", SUM] {
        raw.call(tool, tool, &json!({"numbers": []}));
        raw.answer(tool);
    }
    // Each line was already parsed as a message.
    let rest: Vec<Value> = raw.rest();
    assert!(
        rest.iter().all(|message| message["jsonrpc"] == "2.0"),
        "{rest:?}"
    );
}

#[test]
fn a_server_with_little_address_space_answers_its_client() {
    let machine = machine("");
    // The pool of an engine takes five hundred times as much memory.
    let mut shell = machine.program("sh");
    shell.args(["-c", "ulimit -v 8388608 && exec \"$0\" \"$@\""]);
    let served = stdio(&machine);
    shell.arg(served.get_program()).args(served.get_args());
    let mut raw = Raw::open(shell, json!({}));
    for number in 0..20 {
        sums(&mut raw, &format!("call {number}"));
    }
    raw.hang_up();
    let status = raw.ended(Duration::from_secs(30)).expect("it ends");
    assert!(status.success(), "{status}");
}
