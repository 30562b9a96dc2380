//! Text of bundles, drivers, servers and callers in records: misleading characters are escaped in
//! every text except the data of the call itself.

use serde_json::{Value, json};
use toolward_adapters::records::{EndedCall, NativeCall, Recorder, call_records};
use toolward_host::{
    Block, BlockContent, CallError, ErrorClass, ErrorCode, Native, NativeId, Observer as _,
    Progress, Verdict,
};

use crate::calls::Says;
use crate::fixture::Fixture;

/// Moves the cursor, reverses the text direction, hides text, and starts a line.
const HOSTILE: &str = "a\u{1b}[2J\u{9b}1A\u{202e}\u{2066}\u{200b}\u{e0041}\u{2028}\rb";

fn hidden(character: char) -> bool {
    (character.is_control() && character != '\n')
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(character, '\u{e0000}'..='\u{e0fff}')
}

/// Finds the misleading texts of a record, by their places.
fn misleading(value: &Value, place: &str, found: &mut Vec<String>) {
    match value {
        Value::String(text) if text.contains(hidden) => found.push(place.to_owned()),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                misleading(item, &format!("{place}/{index}"), found);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                if name.contains(hidden) {
                    found.push(format!("{place}/(a name)"));
                }
                misleading(member, &format!("{place}/{name}"), found);
            }
        }
        _ => {}
    }
}

fn native() -> NativeCall {
    NativeCall {
        session: Some(HOSTILE.to_owned()),
        protocol_version: Some(HOSTILE.to_owned()),
        ..NativeCall::default()
    }
}

#[tokio::test]
async fn no_foreign_word_misleads_who_reads_a_record() {
    let fixture = Fixture::new();
    for tool in [
        "test.run",
        "test.asks",
        "test.denied",
        "test.missing",
        "test.none",
    ] {
        let host = fixture.host(Some(Says(Verdict::Denied(Some(HOSTILE.to_owned())))));
        let request = toolward_host::Request::with_value(tool, json!({ "do": HOSTILE }));
        let mut reply = host.call(request).await;
        let recorder = Recorder::new();
        recorder.progress(&Progress {
            done: 1.0,
            total: None,
            message: Some(HOSTILE.to_owned()),
        });
        // The texts of a driver, and of a server behind it.
        let mut error = CallError::new(
            ErrorCode::UPSTREAM_ERROR,
            ErrorClass::ExecutionFailed,
            HOSTILE,
        );
        error.hint = Some(HOSTILE.to_owned());
        error.cause = Some(json!({ HOSTILE: [HOSTILE, { "deep": HOSTILE }] }));
        reply.result = Err(error);
        reply.metadata.tool = HOSTILE.into();
        let info = host.tool(tool);
        let mut ended = EndedCall::now(&reply, info, &recorder);
        ended.native = native();
        ended.principal = HOSTILE;
        let records = call_records(&ended);
        let mut found = Vec::new();
        misleading(&records, "", &mut found);
        assert_eq!(found, [""; 0], "{tool}: {records:#}");
        assert!(records["tool_error"]["cause"].is_object(), "{records:#}");
    }
}

#[tokio::test]
async fn a_link_in_a_result_is_shown_safe_beside_the_data() {
    let fixture = Fixture::new();
    let host = fixture.host(None::<Says>);
    let request = toolward_host::Request::with_value("test.run", json!({ "do": "echo" }));
    let mut reply = host.call(request).await;
    let output = reply.result.as_mut().unwrap();
    output.content = vec![Block {
        content: BlockContent::ResourceLink {
            uri: HOSTILE.to_owned(),
            name: HOSTILE.to_owned(),
            title: None,
            description: None,
            mime_type: None,
            size: None,
        },
        annotations: None,
    }];
    let info = host.tool("test.run");
    let ended = EndedCall::now(&reply, info, &Recorder::new());
    let records = call_records(&ended);
    let mut found = Vec::new();
    misleading(&records["tool_result"]["resource_refs"], "", &mut found);
    assert_eq!(found, [""; 0]);
    // The data is the driver's.
    assert_eq!(records["tool_result"]["content"][0]["uri"], HOSTILE);
}

#[tokio::test]
async fn what_a_protocol_calls_a_call_is_kept_as_detail() {
    let fixture = Fixture::new();
    let host = fixture.host(None::<Says>);
    let request = toolward_host::Request::with_value("test.run", json!({ "do": "echo" }));
    let reply = host.call(request).await;
    let info = host.tool("test.run");
    let mut ended = EndedCall::now(&reply, info, &Recorder::new());
    let plain = call_records(&ended);
    assert!(plain["tool_invocation"].get("native_call_id").is_none());
    assert!(plain["tool_invocation"].get("native_refs").is_none());
    ended.native = NativeCall {
        call: Native {
            call_id: NativeId::parse("7").ok(),
            tool_call_id: NativeId::parse("call_1").ok(),
            traceparent: None,
        },
        protocol_version: Some("2025-11-25".to_owned()),
        ..NativeCall::default()
    };
    let records = call_records(&ended);
    let invocation = &records["tool_invocation"];
    assert_eq!(invocation["native_call_id"], "7");
    let refs = json!({ "protocol_version": "2025-11-25", "tool_call_id": "call_1" });
    assert_eq!(invocation["native_refs"], refs);
    crate::objects::are_valid(&crate::objects::objects(&records));
}
