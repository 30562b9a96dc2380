//! A driver that does whatever a driver should not: the input's `do` names one
//! behaviour, the other fields measure it out. It speaks the world's own types,
//! as the SDK would not let it return broken JSON.

mod abuse;
mod answers;
mod compute;
mod memory;
mod outside;

use serde::Deserialize;
use serde_json::{Value, json};
use toolward_guest::bindings::exports::toolward::driver::handler::Guest;
use toolward_guest::bindings::toolward::driver::types::{
    Invocation, Outcome, ToolError, ToolOutput,
};

/// How every behaviour ends that ends.
type Ending = Result<Outcome, ToolError>;

#[derive(Deserialize)]
struct Input {
    #[serde(rename = "do")]
    what: String,
    /// How many times, bytes, levels, milliseconds: what `do` counts in.
    #[serde(default)]
    n: u64,
    /// A path, an address, a slug, a tool id, a code, a stream.
    #[serde(default)]
    name: String,
    /// Whatever else a behaviour takes.
    #[serde(default)]
    value: Value,
}

fn done(structured: impl Into<String>) -> Ending {
    Ok(Outcome::Done(ToolOutput {
        structured: structured.into(),
        content: Vec::new(),
    }))
}

/// Finished, with what the contract's `outputs` ask for and `value` beside it.
fn did(input: &Input, value: Value) -> Ending {
    done(json!({"did": input.what, "value": value}).to_string())
}

fn failed(code: &str, message: impl Into<String>) -> ToolError {
    ToolError {
        code: code.to_owned(),
        message: message.into(),
        retryable: false,
        retry_after_ms: None,
        cause: None,
    }
}

fn act(call: &Invocation, input: &Input) -> Ending {
    match input.what.as_str() {
        "echo" => did(input, input.value.clone()),
        "call" => did(input, answers::call(call)),
        "count" => did(input, compute::count()),
        "loop" => compute::spin(),
        "loop-host-call" => compute::spin_in_host_calls(),
        "recurse" => did(input, compute::recurse(input.n)),
        "recurse-lean" => did(input, compute::recurse_lean(input.n)),
        "recurse-in-registers" => did(input, compute::recurse_in_registers(input.n)),
        "divide-by-zero" => did(input, compute::divide(input.n)),
        "trap" => compute::trap(),
        "panic" => compute::panic(input),
        "exit" => std::process::exit(i32::try_from(input.n).unwrap_or(1)),

        "allocate" => did(input, memory::in_steps(input.n)),
        "allocate-once" => did(input, memory::at_once(input.n)),
        "allocate-forever" => memory::forever(),
        "out-of-bounds" => did(input, memory::out_of_bounds()),

        "print" => abuse::print(input),
        "print-forever" => abuse::print_forever(input),
        "log" => abuse::log(input),
        "log-forever" => abuse::log_forever(),
        "log-huge" => abuse::log_huge(input),
        "progress" => abuse::progress(input),
        "progress-forever" => abuse::progress_forever(),
        "large-host-calls" => abuse::large_host_calls(input),
        "handles" => abuse::handles(input),
        "sleep" => abuse::sleep(input),
        "random" => abuse::random(input),

        "wrong-output" => done(r#"{"did": 7}"#),
        "null-output" => done("null"),
        "invalid-json" => done(r#"{"did": "invalid-json","#),
        "not-json" => done("Segmentation fault"),
        "trailing-data" => done(r#"{"did": "trailing-data"} {}"#),
        "duplicate-keys" => done(r#"{"did": "duplicate-keys", "did": "again"}"#),
        "big-integer" => done(r#"{"did": "big-integer", "value": 9007199254740993}"#),
        "deep" => answers::deep(input.n),
        "huge-result" => answers::huge(input.n),
        "huge-content" => answers::huge_content(input),
        "many-blocks" => answers::many_blocks(input),
        "not-utf8" => answers::not_utf8(),
        "escapes" => answers::escapes(input),
        "blocks" => answers::blocks(input),
        "audience" => answers::audience(input),
        "error" => Err(answers::error(input)),
        "huge-error" => Err(failed("hostile:huge", "e".repeat(input.n as usize))),
        "flaky" => answers::flaky(call, input),
        "slow-flaky" => {
            abuse::pause(input.n);
            Err(ToolError {
                retryable: true,
                ..failed("upstream_error", "slow, then failed")
            })
        }
        "ask" => answers::ask(call, input),
        "ask-nothing" => answers::ask_nothing(),
        "ask-twice-the-same" => answers::ask_twice_the_same(),
        "ask-huge-state" => answers::ask_huge_state(input.n),

        "environment" => did(input, outside::environment()),
        "read-file" => did(input, outside::read_file(&input.name)),
        "write-file" => did(input, outside::write_file(&input.name)),
        "list-directory" => did(input, outside::list_directory(&input.name)),
        "connect" => did(input, outside::connect(&input.name)),
        "listen" => did(input, outside::listen(&input.name)),
        "send-datagram" => did(input, outside::send_datagram(&input.name)),
        "resolve" => did(input, outside::resolve(&input.name)),
        "clock" => did(input, outside::clock()),
        "secret" => did(input, outside::secret(input)),
        "tool" => did(input, outside::tool(input)),

        other => Err(failed(
            "input_invalid",
            format!("no behaviour is called {other}"),
        )),
    }
}

struct Hostile;

impl Guest for Hostile {
    fn execute(call: Invocation) -> Ending {
        // The SDK's own entry point, for its panic hook; the answer is ours.
        let mut ending = None;
        let _ = toolward_guest::run(call.clone(), |typed: toolward_guest::Call<Input>| {
            ending = Some(act(&call, &typed.input));
            Ok::<_, toolward_guest::Error>(())
        });
        ending.unwrap_or_else(|| Err(failed("input_invalid", "no `do` in the input")))
    }
}

toolward_guest::bindings::export_driver!(Hostile with_types_in toolward_guest::bindings);
