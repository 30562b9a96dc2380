//! Calls to other tools: once, often, and through themselves.

use serde::Deserialize;
use serde_json::{Value, json};
use toolward_guest::bindings::toolward::driver::tools;

use crate::script::Tally;

#[derive(Deserialize)]
pub(crate) struct CallTool {
    tool: String,
    #[serde(default)]
    input: Value,
    /// Sent as it is in place of `input`, JSON or not.
    raw: Option<String>,
    timeout_ms: Option<u64>,
    #[serde(default = "once")]
    times: u64,
}

fn once() -> u64 {
    1
}

/// One result; with `times`, a count of the different ones.
pub(crate) fn call(call: &CallTool) -> Value {
    let request = tools::Request {
        tool: call.tool.clone(),
        input: call.raw.clone().unwrap_or_else(|| call.input.to_string()),
        timeout_ms: call.timeout_ms,
    };
    if call.times == 1 {
        return one(&request);
    }
    let mut tally = Tally::default();
    for _ in 0..call.times {
        tally.add(one(&request));
    }
    tally.value()
}

fn one(request: &tools::Request) -> Value {
    match tools::call(request) {
        Ok(output) => {
            let structured = serde_json::from_str(&output.structured)
                .unwrap_or(Value::String(output.structured));
            json!({"ok": structured, "blocks": output.content.len()})
        }
        Err(error) => json!({
            "err": error.code,
            "message": error.message,
            "retryable": error.retryable,
        }),
    }
}

#[derive(Deserialize)]
pub(crate) struct Nest {
    /// The tools to call, each through the next; the last one does `last`.
    chain: Vec<String>,
    #[serde(default)]
    last: Value,
}

/// Calls the first tool of the chain and leaves the rest of the chain to it. The
/// tools have to be hostile ones. With `"last": null` the chain starts anew.
pub(crate) fn nest(nest: &Nest) -> Value {
    let mut chain = nest.chain.clone();
    if chain.is_empty() {
        return json!({"err": "empty-chain"});
    }
    let tool = chain.remove(0);
    let input = if nest.last.is_null() {
        chain.push(tool.clone());
        json!({"do": "nest", "chain": chain})
    } else if chain.is_empty() {
        nest.last.clone()
    } else {
        json!({"do": "nest", "chain": chain, "last": nest.last})
    };
    one(&tools::Request {
        tool,
        input: input.to_string(),
        timeout_ms: None,
    })
}
