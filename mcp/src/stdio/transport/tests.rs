//! Which messages of a client are accepted, which are answered at once, and when reading stops.

mod ending;
mod lists;

use std::time::Duration;

use rmcp::model::{EmptyResult, RequestId};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, duplex};

use super::super::answers::MAX_QUEUED_FOR_UNADDRESSED;
use super::*;
use crate::open_requests::{MAX_ID_BYTES, MAX_OPEN_BYTES, MAX_OPEN_REQUESTS};

/// Longer than any step of these tests takes.
const TEST_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a test waits for a message that should not come.
const QUIET_INTERVAL: Duration = Duration::from_millis(200);

/// A transport, and the client's ends of it.
struct Both {
    server: StdioTransport<DuplexStream, DuplexStream>,
    to: DuplexStream,
    from: Lines<BufReader<DuplexStream>>,
}

impl Both {
    fn new() -> Self {
        let end = CancellationToken::new();
        // Large enough for a test to write everything before any of it is read.
        let (to, input) = duplex(64 << 20);
        let (output, from) = duplex(1 << 20);
        Self {
            server: StdioTransport::new(
                input,
                LineWriter::to(output),
                CallThreads::of_connection(),
                end.clone(),
                end,
            ),
            to,
            from: BufReader::new(from).lines(),
        }
    }

    async fn say(&mut self, text: &str) {
        self.to.write_all(text.as_bytes()).await.unwrap();
        self.to.write_all(b"\n").await.unwrap();
    }

    async fn call(&mut self, id: i64) {
        let params = json!({"name": "text.stats", "arguments": {}});
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        self.say(&call.to_string()).await;
    }

    async fn ask(&mut self, id: impl Into<Value>) {
        let id = id.into();
        let ping = json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
        self.say(&ping.to_string()).await;
    }

    /// Returns the next message that is handed on.
    async fn taken(&mut self) -> Incoming {
        let next = tokio::time::timeout(TEST_TIMEOUT, self.server.receive());
        next.await.unwrap().unwrap()
    }

    async fn takes_request(&mut self, id: i64) {
        match self.taken().await {
            JsonRpcMessage::Request(request) => assert_eq!(request.id, RequestId::Number(id)),
            other => panic!("{other:?}"),
        }
    }

    async fn takes_nothing(&mut self) {
        let next = tokio::time::timeout(QUIET_INTERVAL, self.server.receive()).await;
        assert!(next.is_err(), "{next:?}");
    }

    /// Returns the next line that the client gets.
    async fn told(&mut self) -> Value {
        let line = tokio::time::timeout(TEST_TIMEOUT, self.from.next_line());
        serde_json::from_str(&line.await.unwrap().unwrap().unwrap()).unwrap()
    }

    async fn is_refused(&mut self, id: impl Into<Value>, number: i64, code: &str) -> Value {
        let told = self.told().await;
        // The member is present even if it is null.
        assert_eq!(told.get("id"), Some(&id.into()), "{told}");
        assert_eq!(told["error"]["code"], number, "{told}");
        assert_eq!(told["error"]["data"]["code"], code, "{told}");
        told
    }

    async fn answer(&mut self, id: i64) {
        let result = ServerResult::EmptyResult(EmptyResult {});
        let sent = self
            .server
            .send(Outgoing::response(result, RequestId::Number(id)));
        sent.await.unwrap();
        assert_eq!(self.told().await["id"], id);
    }
}

#[tokio::test]
async fn an_id_in_use_is_refused_and_the_first_request_goes_on() {
    let mut both = Both::new();
    for id in [1, 1, 2] {
        both.ask(id).await;
    }
    both.takes_request(1).await;
    both.takes_request(2).await;
    both.is_refused(1, -32600, "id-in-use").await;
    both.answer(1).await;
    both.ask(1).await;
    both.takes_request(1).await;
    both.ask("x".repeat(MAX_ID_BYTES + 1)).await;
    both.takes_nothing().await;
    both.is_refused(Value::Null, -32600, "no-message").await;
}

#[tokio::test]
async fn beyond_the_limit_requests_are_refused_and_all_else_gets_through() {
    let mut both = Both::new();
    let last = i64::try_from(MAX_OPEN_REQUESTS).unwrap();
    for id in 1..=last + 1 {
        both.ask(id).await;
    }
    for id in 1..=last {
        both.takes_request(id).await;
    }
    both.takes_nothing().await;
    let told = both.is_refused(last + 1, -32000, "rate_limited").await;
    let data = &told["error"]["data"];
    assert_eq!(
        (&data["retryable"], &data["retry_after_ms"]),
        (&json!(true), &json!(1000))
    );

    both.say(r#"{"jsonrpc":"2.0","id":0,"result":{"roots":[]}}"#)
        .await;
    assert!(matches!(both.taken().await, JsonRpcMessage::Response(_)));
    both.say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#)
        .await;
    assert!(matches!(
        both.taken().await,
        JsonRpcMessage::Notification(_)
    ));
    // Its handler may still send something.
    both.ask(7).await;
    both.takes_nothing().await;
    both.is_refused(7, -32600, "id-in-use").await;
    // A cancelled or answered request makes room.
    both.ask(last + 2).await;
    both.takes_request(last + 2).await;
    both.answer(9).await;
    both.ask(last + 3).await;
    both.takes_request(last + 3).await;
    both.ask(last + 4).await;
    both.takes_nothing().await;
    both.is_refused(last + 4, -32000, "rate_limited").await;
}

/// A call with this many values.
fn call(id: impl Into<Value>, values: usize) -> String {
    let arguments = json!({"numbers": vec![0; values]});
    let params = json!({"name": "sum", "arguments": arguments});
    json!({"jsonrpc": "2.0", "id": id.into(), "method": "tools/call", "params": params}).to_string()
}

#[tokio::test]
async fn open_requests_take_no_more_memory_together_than_there_is() {
    let mut both = Both::new();
    let cost = messages::scan(call(1, 200_000).as_bytes())
        .cost(messages::LARGE)
        .unwrap();
    let fit = i64::try_from(MAX_OPEN_BYTES / cost).unwrap();
    assert!((2..20).contains(&fit), "{fit}");
    for id in 1..=fit + 1 {
        both.say(&call(id, 200_000)).await;
    }
    both.ask(100).await;
    for id in 1..=fit {
        both.takes_request(id).await;
    }
    // A small one still fits.
    both.takes_request(100).await;
    both.is_refused(fit + 1, -32000, "rate_limited").await;
    both.answer(1).await;
    both.say(&call(fit + 2, 200_000)).await;
    both.takes_request(fit + 2).await;
}

#[tokio::test]
async fn what_takes_too_much_is_refused_by_its_id_and_the_next_message_is_taken() {
    let mut both = Both::new();
    both.say(&call("many", 1_000_000)).await;
    let nested = "[".repeat(100) + &"]".repeat(100);
    both.say(&format!(
        r#"{{"id":3,"method":"ping","params":{nested},"jsonrpc":"2.0"}}"#
    ))
    .await;
    // The end of a line that is too long is never seen.
    let long = "x".repeat(3 << 20);
    both.say(&format!(r#"{{"id":4,"method":"{long}"}}"#)).await;
    both.say(&format!(r#"{{"id":5,"method":"ping","params":"{long}"}}"#))
        .await;
    // An id counts if the library takes it for one. Otherwise the message is not a notification,
    // either.
    let odd = |id: &str| call(1, 270_000).replace(r#""id":1,"#, &format!("{id},"));
    both.say(&odd(r#""id":78.0"#)).await;
    both.say(&odd(r#""\u0069d":79"#)).await;
    both.say(&odd(r#""id":1.5"#)).await;
    // A notification has no answer.
    let notification = call(1, 30_000)
        .replace(r#""id":1,"#, "")
        .replace("tools/call", "x");
    both.say(&notification).await;
    both.say(r#"{"id":6,"method":"ping","params":{"a":NaN}}"#)
        .await;
    both.say(r#"{"jsonrpc":"1.0","id":7,"method":"ping"}"#)
        .await;
    both.ask(8).await;
    both.takes_request(8).await;
    both.is_refused("many", -32600, "message-too-complex").await;
    both.is_refused(3, -32600, "message-too-complex").await;
    both.is_refused(Value::Null, -32600, "message-too-large")
        .await;
    both.is_refused(5, -32600, "message-too-large").await;
    for id in [json!(78), json!(79), Value::Null] {
        both.is_refused(id, -32600, "message-too-complex").await;
    }
    both.is_refused(6, -32700, "not-json").await;
    both.is_refused(7, -32600, "no-message").await;
}

#[tokio::test]
async fn a_line_that_is_not_json_is_answered_with_a_parse_error_and_a_null_id() {
    let mut both = Both::new();
    let bad = [
        "{",
        "hello",
        "{\"method\":\"ping\",}",
        "\u{0}\u{1}",
        "{\"a\":NaN}",
        // An answer has an id of the server.
        "{\"id\":4,\"result\":NaN}",
    ];
    for line in bad {
        both.say(line).await;
    }
    // JSON, but not a message.
    let odd = [
        "null",
        "[]",
        "42",
        "{}",
        r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
    ];
    for line in odd {
        both.say(line).await;
    }
    both.say(r#"{"jsonrpc":"2.0","id":"a","method":7}"#).await;
    both.ask(1).await;
    both.takes_request(1).await;
    for _ in bad {
        both.is_refused(Value::Null, -32700, "not-json").await;
    }
    for _ in odd {
        both.is_refused(Value::Null, -32600, "no-message").await;
    }
    both.is_refused("a", -32600, "no-message").await;
}

#[tokio::test]
async fn a_flood_of_lines_that_are_not_json_fills_no_queue_and_stops_no_message() {
    let mut both = Both::new();
    // Many times the capacity of the client's end, and none of it is read.
    let line = "x\n".repeat(1000);
    for _ in 0..60 {
        both.to.write_all(line.as_bytes()).await.unwrap();
    }
    both.ask(1).await;
    both.takes_request(1).await;
    let waiting = both.server.messages.answers.writer.queued_bytes();
    assert!(waiting < 2 * MAX_QUEUED_FOR_UNADDRESSED, "{waiting}");
    // A request is still answered.
    both.ask("x".repeat(MAX_ID_BYTES)).await;
    both.taken().await;
    both.say(r#"{"jsonrpc":"1.0","id":2,"method":"ping"}"#)
        .await;
    both.takes_nothing().await;
    let mut told = both.told().await;
    while told["id"].is_null() {
        told = both.told().await;
    }
    assert_eq!(
        (&told["id"], &told["error"]["code"]),
        (&json!(2), &json!(-32600))
    );
}

#[tokio::test]
async fn a_question_whose_answer_takes_too_much_has_failed() {
    let mut both = Both::new();
    let answer = json!({"jsonrpc": "2.0", "id": 3, "result": {"a": vec![0; 100_000]}});
    both.say(&answer.to_string()).await;
    match both.taken().await {
        JsonRpcMessage::Error(error) => assert_eq!(error.id, Some(RequestId::Number(3))),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_question_whose_answer_is_too_long_to_be_read_has_failed() {
    let mut both = Both::new();
    let long = "x".repeat(3 << 20);
    both.say(&format!(r#"{{"jsonrpc":"2.0","id":3,"result":"{long}"}}"#))
        .await;
    match both.taken().await {
        JsonRpcMessage::Error(error) => assert_eq!(error.id, Some(RequestId::Number(3))),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_never_fits_is_not_told_to_come_back() {
    let mut both = Both::new();
    let objects = vec![json!({"": {"": 0}}); 84_000];
    let params = json!({"name": "sum", "arguments": {"a": objects}});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    both.say(&call.to_string()).await;
    both.takes_nothing().await;
    both.is_refused(1, -32600, "message-too-complex").await;
}

#[tokio::test]
async fn while_answers_wait_to_be_read_nothing_more_is_read() {
    let mut both = Both::new();
    let text = "x".repeat(1 << 20);
    for id in 1..=20 {
        let error = ErrorData::internal_error(text.clone(), None);
        // The future is dropped, so nothing waits until the message is read.
        drop(
            both.server
                .send(Outgoing::error(error, Some(RequestId::Number(id)))),
        );
    }
    both.ask(21).await;
    both.takes_nothing().await;
    for id in 1..=20 {
        assert_eq!(both.told().await["id"], id);
    }
    both.takes_request(21).await;
}

#[tokio::test]
async fn a_message_that_breaks_the_strict_rules_is_no_other_message() {
    let mut both = Both::new();
    let call = |id: u32, params: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#)
    };
    both.say(&call(1, r#"{"name":"x","arguments":{"a":{"b":1,"b":2}}}"#))
        .await;
    match both.taken().await {
        JsonRpcMessage::Request(request) => {
            let ClientRequest::CallToolRequest(call) = request.request else {
                panic!("{request:?}");
            };
            let found = call.extensions.get::<Malformed>().unwrap();
            assert_eq!(found.code(), "json-duplicate-key");
        }
        other => panic!("{other:?}"),
    }
    both.say(&call(2, r#"{"name":"x","name":"y"}"#)).await;
    let answers = r#"{"name":"x","inputResponses":{"q":{"content":{"n":9007199254740993}}}}"#;
    both.say(&call(3, answers)).await;
    both.takes_nothing().await;
    both.is_refused(2, -32600, "json-duplicate-key").await;
    both.is_refused(3, -32602, "json-integer-range").await;
    // An answer with two meanings is invalid, so the question has failed.
    let said = r#"{"action":"decline","action":"accept","content":{"decision":"allow this call"}}"#;
    both.say(&format!(r#"{{"jsonrpc":"2.0","id":7,"result":{said}}}"#))
        .await;
    match both.taken().await {
        JsonRpcMessage::Error(error) => assert_eq!(error.id, Some(RequestId::Number(7))),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_is_wrong_in_a_member_that_nobody_reads_does_not_pass_for_json() {
    let mut both = Both::new();
    for (id, unread) in [(1, r#""\ud800""#), (2, "1e999"), (3, r#""\udfff\ud800""#)] {
        both.say(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"x":{unread},"name":"t","arguments":{{"n":1,"n":2}}}}}}"#
        ))
        .await;
    }
    both.say(r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":[null,"t",{"n":1,"n":2},null,null]}"#)
        .await;
    both.ask(5).await;
    both.takes_request(5).await;
    for id in 1..=3 {
        both.is_refused(id, -32700, "not-json").await;
    }
    both.is_refused(4, -32602, "params-invalid").await;
}

#[tokio::test]
async fn a_call_that_comes_while_other_calls_are_open_is_marked() {
    let mut both = Both::new();
    // Not a call: a client may keep this request open as long as it listens.
    both.ask(0).await;
    both.takes_request(0).await;
    for (id, others_open) in [(1, false), (2, true), (3, false)] {
        both.call(id).await;
        let JsonRpcMessage::Request(request) = both.taken().await else {
            panic!("no request");
        };
        let ClientRequest::CallToolRequest(call) = request.request else {
            panic!("no call");
        };
        let marked = call.extensions.get::<OthersOpen>().is_some();
        assert_eq!(marked, others_open, "{id}");
        if id == 2 {
            both.answer(1).await;
            both.answer(2).await;
        }
    }
}

/// Answers a request, and returns whether the answer waits to be written.
fn waits(both: &mut Both, id: i64) -> bool {
    let result = ServerResult::EmptyResult(EmptyResult {});
    drop(
        both.server
            .send(Outgoing::response(result, RequestId::Number(id))),
    );
    both.server.messages.answers.writer.queued_bytes() > 0
}

#[tokio::test]
async fn answers_wait_for_others_only_while_many_calls_run_on_other_threads() {
    let mut both = Both::new();
    let hour = Duration::from_secs(3600);
    for elsewhere in [false, true] {
        if elsewhere {
            both.server.messages.read_ahead = ReadAhead::of_one_thread(hour);
        }
        for id in 1..=6 {
            both.call(id).await;
            both.takes_request(id).await;
        }
        // The first call runs on this thread, perhaps for long.
        assert!(!waits(&mut both, 2));
        assert_eq!(waits(&mut both, 1), elsewhere);
        // Few calls are left.
        assert!(!waits(&mut both, 3));
        for id in [4, 5, 6] {
            assert!(!waits(&mut both, id));
        }
        for id in [2, 1, 3, 4, 5, 6] {
            assert_eq!(both.told().await["id"], id);
        }
    }
}

#[tokio::test]
async fn calls_are_read_no_further_ahead_than_others_end() {
    let mut both = Both::new();
    both.server.messages.read_ahead = ReadAhead::of_one_thread(Duration::from_secs(3600));
    // Only calls count.
    for id in 1001..=1150 {
        both.ask(id).await;
        both.takes_request(id).await;
    }
    for id in 1..=200 {
        both.call(id).await;
    }
    for id in 1..=32 {
        both.takes_request(id).await;
    }
    both.takes_nothing().await;
    for id in 1..=23 {
        both.answer(id).await;
    }
    both.takes_nothing().await;
    both.answer(24).await;
    both.takes_request(33).await;
}
