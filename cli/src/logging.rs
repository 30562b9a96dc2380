//! What libraries report while tools are served: on standard error, beside the
//! command's own words, and never on standard output.

mod json;

use std::ffi::OsString;
use std::fmt::Debug;
use std::io::{IsTerminal as _, Write};

use toolward_bundle::text::visible_line;
use toolward_host::CALL_LOG;
use tracing::field::Field;
use tracing_subscriber::Layer;
use tracing_subscriber::Registry;
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::{format, layer};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::environment::Environment;
use crate::output::Output;
use crate::stderr;

/// Longest event that is shown, in characters.
const MAX_EVENT_CHARS: usize = 4000;

/// How lines of the log are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

impl LogFormat {
    /// The flag that makes another process of this program write its lines alike.
    pub(crate) fn flag(self) -> OsString {
        match self {
            Self::Text => "--log-format=text".into(),
            Self::Json => "--log-format=json".into(),
        }
    }
}

/// Has events shown from now on: warnings and errors, but what a client can cause
/// at will; or what `TOOLWARD_LOG` says,
/// or else `RUST_LOG`. Where a format is asked for, the line of each call is shown, too.
pub(crate) fn start(environment: &Environment, format: Option<LogFormat>, output: &Output) {
    let mut shown = filter(environment, output);
    let named = environment.log.as_ref();
    if format.is_some() && !named.is_some_and(|(_, wanted)| wanted.contains(CALL_LOG)) {
        shown = shown.with_target(CALL_LOG, LevelFilter::INFO);
    }
    show(shown, format, true);
}

/// Has the recorder's events shown: warnings, errors, and each checkpoint, which whoever reads the log then has.
/// `brief`: a checkpoint's line has only the words.
pub(crate) fn start_of_recorder(format: Option<LogFormat>, brief: bool) {
    let shown = Targets::new()
        .with_default(LevelFilter::WARN)
        .with_target("toolward_ledger", LevelFilter::INFO);
    show(shown, format, brief);
}

fn show(shown: Targets, format: Option<LogFormat>, brief: bool) {
    let lines: Box<dyn Layer<Registry> + Send + Sync> = match format {
        Some(LogFormat::Json) => json::JsonLines.boxed(),
        None | Some(LogFormat::Text) => layer()
            .fmt_fields(format::debug_fn(fields_of(brief)).delimited(" "))
            .with_writer(|| Line)
            .with_ansi(false)
            .without_time()
            .boxed(),
    };
    let subscriber = tracing_subscriber::registry().with(lines.with_filter(shown));
    // Only the first subscriber of a process counts, and there is one.
    let _ = subscriber.try_init();
}

/// Writes the fields of an event in text. A checkpoint is for a journal, whole: if it is `brief`, or on a terminal, which
/// keeps nothing, its line has only the words.
fn fields_of(
    brief: bool,
) -> impl Fn(&mut format::Writer<'_>, &Field, &dyn Debug) -> std::fmt::Result + Clone {
    move |out, field, value| match field.name() {
        "message" => write!(out, "{value:?}"),
        "checkpoint" if brief || std::io::stderr().is_terminal() => Ok(()),
        name => write!(out, "{name}={value:?}"),
    }
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
