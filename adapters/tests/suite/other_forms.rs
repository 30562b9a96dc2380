//! The forms of other hosts: Amplifier's result, and a function for models.

use serde_json::{Value, json};
use toolward_adapters::records::{amplifier_result, amplifier_spec, function_definition};
use toolward_contract::NoScope;
use toolward_contract::schema::Schema;
use toolward_host::{Block, BlockContent, Host, Output, Reply, Request};

/// Returns a reply with this output. Only a host makes replies, so it uses the reply of a call that
/// fails at once.
async fn reply(output: Output) -> Reply {
    let host = Host::builder().build().unwrap();
    let mut reply = host.call(Request::new("a.b", "{}")).await;
    reply.result = Ok(output);
    reply
}

fn amplifier(reply: &Reply) -> Value {
    amplifier_result(reply, None)
}

fn text(text: &str) -> Block {
    Block {
        content: BlockContent::Text {
            text: text.to_owned(),
        },
        annotations: None,
    }
}

#[tokio::test]
async fn amplifier_gets_the_value_or_the_text_of_the_blocks() {
    for (structured, content, expected) in [
        (
            json!({ "words": 2 }),
            vec![text("two")],
            json!({ "words": 2 }),
        ),
        (json!(null), vec![text("a"), text("b")], json!("a\nb")),
        (json!(null), Vec::new(), json!(null)),
        (json!(false), vec![text("a")], json!(false)),
    ] {
        let reply = reply(Output {
            structured,
            content,
        })
        .await;
        assert_eq!(
            amplifier(&reply),
            json!({ "success": true, "output": expected, "error": null })
        );
    }
}

#[tokio::test]
async fn amplifier_gets_no_internal_field() {
    let outputs = json!({
        "type": "object",
        "properties": { "words": {}, "secret": { "x-internal": true } },
    });
    let outputs = Schema::compile(&outputs, &NoScope).unwrap();
    let reply = reply(Output {
        structured: json!({ "words": 2, "secret": 3 }),
        content: Vec::new(),
    })
    .await;
    let result = amplifier_result(&reply, Some(&outputs));
    assert_eq!(result["output"], json!({ "words": 2 }));
}

#[tokio::test]
async fn amplifier_gets_the_code_as_the_type_of_an_error() {
    let host = Host::builder().build().unwrap();
    let reply = host.call(Request::new("a.b", "{}")).await;
    assert_eq!(
        amplifier(&reply),
        json!({
            "success": false,
            "output": null,
            "error": {
                "message": "there is no tool `a.b`",
                "type": "not_found",
                "class": "unknown_tool",
                "retryable": false,
                "retry_after_ms": null,
                "hint": "no tools are loaded",
            },
        })
    );
}

#[test]
fn functions_have_the_name_the_text_and_the_input_of_the_listed_tool() {
    let listed = json!({
        "name": "text_stats",
        "description": "Counts.",
        "inputSchema": { "type": "object" },
        "outputSchema": { "type": "object" },
    });
    let expected = json!({
        "type": "function",
        "function": {
            "name": "text_stats",
            "description": "Counts.",
            "parameters": { "type": "object" },
            "strict": false,
        },
    });
    assert_eq!(function_definition(&listed), expected);
    let spec = json!({
        "name": "text_stats",
        "description": "Counts.",
        "parameters": { "type": "object" },
    });
    assert_eq!(amplifier_spec(&listed), spec);
}
