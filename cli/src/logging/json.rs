//! Events as lines of JSON: `at` (microseconds since 1970), `level`, `target`, and the event's own fields.

use std::fmt::Debug;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value};
use toolward_bundle::text::visible_json;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use super::MAX_EVENT_CHARS;
use crate::stderr;

/// Writes each event on a line of its own.
pub(super) struct JsonLines;

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

/// The fields of an event. No field replaces one that is there.
struct Fields {
    map: Map<String, Value>,
    /// How many more characters of texts are shown.
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
