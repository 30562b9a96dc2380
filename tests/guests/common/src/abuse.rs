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
pub fn print(input: &Input) -> Ending {
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
pub fn print_forever(input: &Input) -> Ending {
    let mut to = stream(&input.name);
    loop {
        let _ = to.write_all(&[b'x'; 4096]);
    }
}

pub fn log(input: &Input) -> Ending {
    for n in 0..input.n {
        let fields = json!({"n": n}).to_string();
        log::write(Level::Info, "a record", Some(&fields));
    }
    did(input, json!(input.n))
}

pub fn log_forever() -> Ending {
    loop {
        log::write(Level::Error, "again", None);
    }
}

/// One record of `n` bytes, whose fields are no JSON.
pub fn log_huge(input: &Input) -> Ending {
    log::write(Level::Warn, &"l".repeat(input.n as usize), Some("{no json"));
    did(input, json!(input.n))
}

pub fn progress(input: &Input) -> Ending {
    for n in 1..=input.n {
        report(n as f64, Some(input.n as f64));
    }
    did(input, json!(input.n))
}

/// Reports that also fall, and are no numbers.
pub fn progress_forever() -> Ending {
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
pub fn large_host_calls(input: &Input) -> Ending {
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
pub fn handles(input: &Input) -> Ending {
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
pub fn sleep(input: &Input) -> Ending {
    pause(input.n);
    did(input, json!(input.n))
}

pub fn pause(milliseconds: u64) {
    std::thread::sleep(Duration::from_millis(milliseconds));
}

/// Lets the host make `n` random bytes in one call.
pub fn random(input: &Input) -> Ending {
    let bytes = wasip2::random::random::get_random_bytes(input.n);
    did(input, json!(bytes.len()))
}
