//! What libraries report while tools are served: on standard error, beside the
//! command's own words, and never on standard output.

use std::io::Write;

use toolward_bundle::text::visible_line;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::layer;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::environment::Environment;
use crate::output::Output;
use crate::stderr;

/// Longest event that is shown, in characters.
const MAX_EVENT_CHARS: usize = 4000;

/// Has events shown from now on: warnings and errors, but what a client can cause
/// at will; or what `TOOLWARD_LOG` says,
/// or else `RUST_LOG`.
pub(crate) fn start(environment: &Environment, output: &Output) {
    let lines = layer().with_writer(|| Line).with_ansi(false).without_time();
    let subscriber = tracing_subscriber::registry().with(filter(environment, output));
    // Only the first subscriber of a process counts, and there is one.
    let _ = subscriber.with(lines).try_init();
}

/// Has the recorder's events shown: warnings, errors, and each checkpoint, which whoever reads the log then has.
pub(crate) fn start_of_recorder() {
    let lines = layer().with_writer(|| Line).with_ansi(false).without_time();
    let shown = Targets::new()
        .with_default(LevelFilter::WARN)
        .with_target("toolward_ledger", LevelFilter::INFO);
    let _ = tracing_subscriber::registry()
        .with(shown)
        .with(lines)
        .try_init();
}

fn filter(environment: &Environment, output: &Output) -> Targets {
    // It reports each error that a client is answered, and each client that is gone.
    let usual = Targets::new()
        .with_default(LevelFilter::WARN)
        .with_target("rmcp", LevelFilter::OFF);
    let Some((name, wanted)) = &environment.log else {
        return usual;
    };
    match wanted.parse::<Targets>() {
        // It is set for other programs, too, and what the library reports from
        // `debug` on holds arguments and results of calls.
        Ok(filter) if *name == "RUST_LOG" && !wanted.contains("rmcp") => {
            filter.with_target("rmcp", LevelFilter::OFF)
        }
        Ok(filter) => filter,
        Err(error) => {
            output.warning(format!(
                "{name} is not taken: {error}; write a level, such as `debug`, or levels of \
                 targets, such as `warn,toolward_mcp=debug`"
            ));
            usual
        }
    }
}

/// Takes one event at a time, whole. There is text of others in it: of guests, of
/// clients, of servers.
struct Line;

impl Write for Line {
    fn write(&mut self, event: &[u8]) -> std::io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        stderr::write(format!(
            "{}\n",
            visible_line(text.trim_end(), MAX_EVENT_CHARS)
        ));
        Ok(event.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
