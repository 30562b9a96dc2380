//! Shows the reports of libraries while tools are served. They go to standard error, like the
//! command's notes, and never to standard output.

use std::ffi::OsString;
use std::fmt::Debug;
use std::io::{IsTerminal as _, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value};
use toolward_bundle::text::{visible_json, visible_line};
use toolward_host::CALL_LOG;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::{format, layer};
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer, Registry};

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
    /// The flag that makes another process of this program use the same format.
    pub(crate) fn flag(self) -> OsString {
        match self {
            Self::Text => "--log-format=text".into(),
            Self::Json => "--log-format=json".into(),
        }
    }
}

/// Shows events from now on. By default these are warnings and errors, except events that a client
/// can cause at will. `TOOLWARD_LOG`, or else `RUST_LOG`, chooses other events. If a format is
/// requested, a line for each call is also shown.
pub(crate) fn start(context: &crate::output::Context, format: Option<LogFormat>) {
    let mut shown = filter(context);
    let named = context.log.as_ref();
    if format.is_some() && !named.is_some_and(|(_, wanted)| wanted.contains(CALL_LOG)) {
        shown = shown.with_target(CALL_LOG, LevelFilter::INFO);
    }
    show(shown, format, true);
}

/// Shows the recorder's events: warnings, errors, and each checkpoint, so that a reader of the log
/// has all checkpoints. If `brief` is set, the lines leave out the checkpoints themselves.
pub(crate) fn start_of_recorder(format: Option<LogFormat>, brief: bool) {
    let shown = Targets::new()
        .with_default(LevelFilter::WARN)
        .with_target("toolward_ledger", LevelFilter::INFO);
    show(shown, format, brief);
}

fn show(shown: Targets, format: Option<LogFormat>, brief: bool) {
    let lines: Box<dyn Layer<Registry> + Send + Sync> = match format {
        Some(LogFormat::Json) => JsonLines.boxed(),
        None | Some(LogFormat::Text) => layer()
            .fmt_fields(format::debug_fn(fields_of(brief)).delimited(" "))
            .with_writer(|| Line)
            .with_ansi(false)
            .without_time()
            .boxed(),
    };
    let subscriber = tracing_subscriber::registry().with(lines.with_filter(shown));
    // Only the first subscriber of a process counts, and this is the only one.
    let _ = subscriber.try_init();
}

/// Writes the fields of an event as text. Leaves out a checkpoint if `brief` is set, or on a
/// terminal, which stores nothing.
fn fields_of(
    brief: bool,
) -> impl Fn(&mut format::Writer<'_>, &Field, &dyn Debug) -> std::fmt::Result + Clone {
    move |out, field, value| match field.name() {
        "message" => write!(out, "{value:?}"),
        "checkpoint" if brief || std::io::stderr().is_terminal() => Ok(()),
        name => write!(out, "{name}={value:?}"),
    }
}

fn filter(context: &crate::output::Context) -> Targets {
    // rmcp reports each error that it answers a client with, and each client that disconnects.
    let usual = Targets::new()
        .with_default(LevelFilter::WARN)
        .with_target("rmcp", LevelFilter::OFF);
    let Some((name, wanted)) = &context.log else {
        return usual;
    };
    match wanted.parse::<Targets>() {
        // `RUST_LOG` is set for other programs, too, and from `debug` on, rmcp reports arguments
        // and results of calls. So `RUST_LOG` shows rmcp's reports only if it names rmcp.
        Ok(filter) if *name == "RUST_LOG" && !wanted.contains("rmcp") => {
            filter.with_target("rmcp", LevelFilter::OFF)
        }
        Ok(filter) => filter,
        Err(error) => {
            context.warning(format!(
                "{name} is not taken: {error}; write a level, such as `debug`, or levels of \
                 targets, such as `warn,toolward_mcp=debug`"
            ));
            usual
        }
    }
}

/// Formats each event as one line. Text is made visible and cut, since it may come from guests,
/// clients and servers.
struct Line;

impl Write for Line {
    fn write(&mut self, event: &[u8]) -> std::io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let line = visible_line(text.trim_end(), MAX_EVENT_CHARS);
        stderr::write(format!("{line}\n"));
        Ok(event.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Writes each event on a line.
struct JsonLines;

impl<S: Subscriber> Layer<S> for JsonLines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        stderr::write(format!("{}\n", line(event)));
    }
}

fn line(event: &Event<'_>) -> String {
    let metadata = event.metadata();
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let at = u64::try_from(since.unwrap_or_default().as_micros()).unwrap_or(u64::MAX);
    let level = metadata.level().as_str().to_ascii_lowercase();
    let own: [(&str, Value); 3] = [
        ("at", at.into()),
        ("level", level.into()),
        ("target", metadata.target().into()),
    ];
    let own = own.map(|(name, value)| (name.to_owned(), value));
    let mut fields = Fields {
        map: own.into_iter().collect(),
        left: MAX_EVENT_CHARS,
    };
    event.record(&mut fields);
    visible_json(&Value::Object(fields.map).to_string())
}

/// The fields of an event. A field never replaces another one.
struct Fields {
    map: Map<String, Value>,
    /// How many more characters of text are shown.
    left: usize,
}

impl Fields {
    fn add(&mut self, field: &Field, value: impl Into<Value>) {
        let name = field.name();
        if !self.map.contains_key(name) {
            self.map.insert(name.to_owned(), value.into());
        }
    }
}

impl Visit for Fields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let shown: String = value.chars().take(self.left).collect();
        self.left = self.left.saturating_sub(shown.chars().count());
        self.add(field, shown);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use serde_json::json;
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<String>>>);

    impl<S: Subscriber> Layer<S> for Kept {
        fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
            self.0.lock().unwrap().push(line(event));
        }
    }

    #[test]
    fn text_of_others_stays_on_its_line_in_its_field_and_within_bounds() {
        let forged = "a\n{\"level\":\"info\"}\u{202e}\u{1b}[2J\"";
        let kept = Kept::default();
        let subscriber = tracing_subscriber::registry().with(kept.clone());
        tracing::subscriber::with_default(subscriber, || {
            tracing::warn!(target: "tests", at = 1, code = forged, number = 7_u64, "said");
            tracing::warn!(target: "tests", first = "x".repeat(5000), second = "y", "z");
        });
        let lines = kept.0.lock().unwrap().clone();
        let hidden = ['\n', '\u{202e}', '\u{1b}'];
        assert!(!lines[0].contains(hidden), "{lines:?}");
        let parsed: Value = serde_json::from_str(&lines[0]).unwrap();
        assert!(parsed["at"].as_u64().unwrap() > 1_000_000_000);
        let own = json!({
            "level": "warn", "target": "tests", "number": 7, "message": "said", "code": forged,
        });
        for (name, value) in own.as_object().unwrap() {
            assert_eq!(parsed[name], *value, "{name}");
        }
        assert!(lines[1].len() < 5000, "{}", lines[1].len());
    }
}
