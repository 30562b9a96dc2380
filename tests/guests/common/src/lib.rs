//! What all the hostile drivers can do: the input's `do` names one behaviour, the
//! other fields measure it out. They speak the world's own types, as the SDK would
//! not let them return broken JSON.

mod abuse;
mod answers;
mod compute;
mod files;
mod hoard;
mod memory;
mod nested;
mod outside;
mod script;
mod secrets;
mod standard;
mod values;

pub use hoard::Course;
pub use script::Tally;
use serde::Deserialize;
use serde_json::{Value, json};
pub use toolward_guest;
use toolward_guest::bindings::toolward::driver::types::{
    Invocation, Outcome, ToolError, ToolOutput,
};

/// How every behaviour ends that ends.
pub type Ending = Result<Outcome, ToolError>;

/// The behaviours that a driver adds to these; `None` for one it does not know.
pub type More = fn(&Invocation, &Input) -> Option<Ending>;

#[derive(Deserialize)]
pub struct Input {
    #[serde(rename = "do")]
    pub what: String,
    /// How many times, bytes, levels, milliseconds: what `do` counts in.
    #[serde(default)]
    pub n: u64,
    /// A path, an address, a slug, a tool id, a code, a stream.
    #[serde(default)]
    pub name: String,
    /// Whatever else a behaviour takes.
    #[serde(default)]
    pub value: Value,
    /// All of it, for the behaviours that have fields of their own.
    #[serde(skip)]
    pub all: Value,
}

impl Input {
    /// Reads it, with the values filled in. Those of a script's steps have to wait
    /// until it is their turn.
    fn read(mut all: Value, call: &Invocation) -> Result<Self, ToolError> {
        if !["steps", "repeat"].iter().any(|name| all["do"] == *name) {
            values::fill_in(&mut all, call);
        }
        let mut input: Input = serde_json::from_value(all.clone())
            .map_err(|error| failed("input_invalid", error.to_string()))?;
        input.all = all;
        Ok(input)
    }

    /// The input as a type of a behaviour's own.
    pub fn typed<'de, T: Deserialize<'de>>(&'de self) -> Result<T, ToolError> {
        T::deserialize(&self.all).map_err(|error| failed("input_invalid", error.to_string()))
    }
}

pub fn done(structured: impl Into<String>) -> Ending {
    Ok(Outcome::Done(ToolOutput {
        structured: structured.into(),
        content: Vec::new(),
    }))
}

/// Finished, with what the contract's `outputs` ask for and `value` beside it.
pub fn did(input: &Input, value: Value) -> Ending {
    done(json!({"did": input.what, "value": value}).to_string())
}

/// What came of something that may be refused, with the refusal's code.
pub fn told<E: std::fmt::Display>(result: Result<Value, E>) -> Value {
    match result {
        Ok(value) => json!({"ok": value}),
        Err(error) => json!({"err": error.to_string()}),
    }
}

pub fn failed(code: &str, message: impl Into<String>) -> ToolError {
    ToolError {
        code: code.to_owned(),
        message: message.into(),
        retryable: false,
        retry_after_ms: None,
        cause: None,
    }
}

fn act(call: &Invocation, input: &Input, more: More) -> Ending {
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
        "log-text" => abuse::log_text(input),
        "progress" => abuse::progress(input),
        "progress-forever" => abuse::progress_forever(),
        "progress-text" => abuse::progress_text(input),
        "large-host-calls" => abuse::large_host_calls(input),
        "large-import" => abuse::large_import(input),
        "forged-import" => abuse::forged_import(input),
        "handles" => abuse::handles(input),
        "hoard" => hoard::act(input),
        "sleep" => abuse::sleep(input),
        "block-forever" => abuse::block_forever(),
        "random" => abuse::random(input),

        "wrong-output" => done(r#"{"did": 7}"#),
        "null-output" => done("null"),
        "invalid-json" => done(r#"{"did": "invalid-json","#),
        "not-json" => done("Segmentation fault"),
        "trailing-data" => done(r#"{"did": "trailing-data"} {}"#),
        "duplicate-keys" => done(r#"{"did": "duplicate-keys", "did": "again"}"#),
        "big-integer" => done(r#"{"did": "big-integer", "value": 9007199254740993}"#),
        "raw-output" => done(input.name.clone()),
        "deep" => answers::deep(input.n),
        "huge-result" => answers::huge(input.n),
        "huge-content" => answers::huge_content(input),
        "many-blocks" => answers::many_blocks(input),
        "not-utf8" => answers::not_utf8(),
        "forged-output" => answers::forged(input),
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
        "ask-form" => answers::ask_form(call, input),
        "ask-again" => answers::ask_again(call, input),
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

        "fs" => did(input, files::act(&input.typed()?)?),
        "std-fs" => did(input, standard::act(&input.typed()?)?),
        "secrets" => did(input, secrets::act(&input.typed()?)?),
        "call-tool" => did(input, nested::call(&input.typed()?)),
        "nest" => did(input, nested::nest(&input.typed()?)),
        "steps" => did(input, script::steps(call, input, more)?),
        "repeat" => did(input, script::repeat(call, input, more)?),

        other => more(call, input).unwrap_or_else(|| {
            Err(failed(
                "input_invalid",
                format!("no behaviour is called {other}"),
            ))
        }),
    }
}

/// One call. The SDK's own entry point runs, for its panic hook; the answer is ours.
pub fn execute(call: Invocation, more: More) -> Ending {
    let mut ending = None;
    let _ = toolward_guest::run(call.clone(), |typed: toolward_guest::Call<Value>| {
        let input = Input::read(typed.input, &call);
        ending = Some(input.and_then(|input| act(&call, &input, more)));
        Ok::<_, toolward_guest::Error>(())
    });
    ending.unwrap_or_else(|| Err(failed("input_invalid", "the input is no JSON")))
}

/// Exports the component, with the behaviours of [`More`] beside the common ones.
#[macro_export]
macro_rules! driver {
    ($more:expr) => {
        const _: () = {
            use $crate::toolward_guest::bindings;

            struct Hostile;

            impl bindings::exports::toolward::driver::handler::Guest for Hostile {
                fn execute(call: bindings::toolward::driver::types::Invocation) -> $crate::Ending {
                    $crate::execute(call, $more)
                }
            }

    bindings::export_driver!(Hostile with_types_in bindings);
        };
    };
}
