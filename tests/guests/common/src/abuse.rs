//! Too much of what is allowed: printing, logging, progress, handles, waiting.

use std::io::Write;
use std::time::Duration;

use serde_json::json;
use toolward_guest::bindings::toolward::driver::log::{self, Level};
use toolward_guest::bindings::toolward::driver::progress;

use crate::{Ending, Input, did};

fn stream(name: &str) -> Box<dyn Write> {
    if name == "stderr" {
        Box::new(std::io::stderr())
    } else {
        Box::new(std::io::stdout())
    }
}

/// Prints `value`, or `n` bytes, to the stream `name`.
pub(crate) fn print(input: &Input) -> Ending {
    let mut to = stream(&input.name);
    let result = match input.value.as_str() {
        Some(text) => to.write_all(text.as_bytes()),
        None => {
            let line = [b'x'; 1024];
            let mut left = input.n as usize;
            let mut result = Ok(());
            while left > 0 && result.is_ok() {
                let now = left.min(line.len());
                result = to.write_all(&line[..now]);
                left -= now;
            }
            result
        }
    };
    let result = result.and_then(|()| to.flush());
    did(input, json!(result.err().map(|error| error.to_string())))
}

/// Goes on after the stream refuses more.
pub(crate) fn print_forever(input: &Input) -> Ending {
    let mut to = stream(&input.name);
    loop {
        let _ = to.write_all(&[b'x'; 4096]);
    }
}

pub(crate) fn log(input: &Input) -> Ending {
    for n in 0..input.n {
        let fields = json!({"n": n}).to_string();
        log::write(Level::Info, "a record", Some(&fields));
    }
    did(input, json!(input.n))
}

pub(crate) fn log_forever() -> Ending {
    loop {
        log::write(Level::Error, "again", None);
    }
}

/// One record of `n` bytes, whose fields are no JSON.
pub(crate) fn log_huge(input: &Input) -> Ending {
    log::write(Level::Warn, &"l".repeat(input.n as usize), Some("{no json"));
    did(input, json!(input.n))
}

pub(crate) fn progress(input: &Input) -> Ending {
    for n in 1..=input.n {
        report(n as f64, Some(input.n as f64));
    }
    did(input, json!(input.n))
}

/// Reports that also fall, and are no numbers.
pub(crate) fn progress_forever() -> Ending {
    let mut done = 0.0;
    loop {
        report(done, Some(f64::NAN));
        done = if done > 1e6 {
            f64::NEG_INFINITY
        } else {
            done + 1.0
        };
    }
}

fn report(done: f64, total: Option<f64>) {
    progress::report(&progress::Update {
        done,
        total,
        message: Some("working".to_owned()),
    });
}

/// Hands the host `n` bytes, again and again: little work for the guest, much
/// for the host.
pub(crate) fn large_host_calls(input: &Input) -> Ending {
    let update = progress::Update {
        done: 0.0,
        total: None,
        message: Some("m".repeat(input.n as usize)),
    };
    loop {
        progress::report(&update);
    }
}

/// Opens `n` resources of the host and closes none.
pub(crate) fn handles(input: &Input) -> Ending {
    let mut kept = Vec::new();
    for _ in 0..input.n {
        kept.push(wasip2::clocks::monotonic_clock::subscribe_duration(
            u64::MAX / 2,
        ));
    }
    let count = kept.len();
    std::mem::forget(kept);
    did(input, json!(count))
}

/// Waits in the host, where no fuel is spent.
pub(crate) fn sleep(input: &Input) -> Ending {
    pause(input.n);
    did(input, json!(input.n))
}

pub(crate) fn pause(milliseconds: u64) {
    std::thread::sleep(Duration::from_millis(milliseconds));
}

/// Lets the host make `n` random bytes in one call.
pub(crate) fn random(input: &Input) -> Ending {
    let bytes = wasip2::random::random::get_random_bytes(input.n);
    did(input, json!(bytes.len()))
}

/// A log record whose message is `name` and whose fields are `value`.
pub(crate) fn log_text(input: &Input) -> Ending {
    let fields = (!input.value.is_null()).then(|| input.value.to_string());
    log::write(Level::Info, &input.name, fields.as_deref());
    did(input, json!(true))
}

/// A report whose message is `name`.
pub(crate) fn progress_text(input: &Input) -> Ending {
    progress::report(&progress::Update {
        done: 1.0,
        total: None,
        message: Some(input.name.clone()),
    });
    did(input, json!(true))
}

/// Waits for what never comes.
pub(crate) fn block_forever() -> Ending {
    loop {
        wasip2::clocks::monotonic_clock::subscribe_duration(u64::MAX / 2).block();
    }
}

/// Hands the import `name` a string of `n` bytes, and tells what came back.
pub(crate) fn large_import(input: &Input) -> Ending {
    let text = "m".repeat(input.n as usize);
    did(input, give(&input.name, &text))
}

/// The same with a string of `n` bytes that the guest has never allocated: it
/// starts near the end of its memory and reaches beyond, or claims 4 GiB.
pub(crate) fn forged_import(input: &Input) -> Ending {
    let start = std::hint::black_box(0xfff0_usize) as *const u8;
    let length = (input.n as usize).min(isize::MAX as usize);
    // SAFETY: none. Only the host ever reads it, and has to refuse.
    let text = unsafe { std::str::from_utf8_unchecked(std::slice::from_raw_parts(start, length)) };
    did(input, give(&input.name, text))
}

fn give(import: &str, text: &str) -> serde_json::Value {
    use toolward_guest::bindings::toolward::driver::{secrets, tools};

    match import {
        "log" => log::write(Level::Info, text, None),
        "log-fields" => log::write(Level::Info, "fields", Some(text)),
        "progress" => progress::report(&progress::Update {
            done: 1.0,
            total: None,
            message: Some(text.to_owned()),
        }),
        "placeholder" => {
            let result = secrets::placeholder(text);
            return json!(result.err().map(crate::secrets::code));
        }
        "reveal" => {
            let result = secrets::reveal(text);
            return json!(result.err().map(crate::secrets::code));
        }
        "store-slug" => {
            let result = secrets::store(text, b"x");
            return json!(result.err().map(crate::secrets::code));
        }
        "store" => {
            let result = secrets::store("large", text.as_bytes());
            return json!(result.err().map(crate::secrets::code));
        }
        "tool" | "tool-input" => {
            let (tool, value) = if import == "tool" {
                (text, "{}")
            } else {
                ("hostile.run", text)
            };
            let result = tools::call(&tools::Request {
                tool: tool.to_owned(),
                input: value.to_owned(),
                timeout_ms: None,
            });
            return json!(result.err().map(|error| error.code));
        }
        "path" => {
            let result = std::fs::read(text);
            return json!(result.err().map(|error| format!("{:?}", error.kind())));
        }
        _ => return json!("no such import"),
    }
    json!(null)
}
