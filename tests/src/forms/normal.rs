//! Placeholders for values that depend on the run, the machine or the release.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::support::machine::toolward;
use crate::support::varying::{self, Kind};

/// Fields whose numbers are measured, come from a clock, or depend on how the guests were compiled.
const MEASURED: [&str; 13] = [
    "at",
    "bytes",
    "duration_ms",
    "duration_us",
    "fuel",
    "memory",
    "milliseconds",
    "peak_memory",
    "since",
    "size",
    "until",
    "us",
    "used",
];

fn is_digest(value: &Value) -> bool {
    let text = value.as_str().unwrap_or_default();
    varying::values(text) == [(0, Kind::Digest, text)]
}

/// The placeholders of one file. Equal values have equal placeholders.
#[derive(Default)]
pub(super) struct Placeholders {
    numbers: BTreeMap<Kind, BTreeMap<String, usize>>,
}

impl Placeholders {
    pub(super) fn value(&mut self, value: Value) -> Value {
        match value {
            Value::String(text) => self.text(&text).into(),
            // Digests differ in each run and are sorted, so their order differs as well.
            Value::Array(all) if all.len() > 1 && all.iter().all(is_digest) => {
                all.iter().map(|_| Value::from("<digest>")).collect()
            }
            Value::Array(all) => all.into_iter().map(|one| self.value(one)).collect(),
            Value::Object(members) => Value::Object(self.members(members)),
            other => other,
        }
    }

    fn members(&mut self, members: Map<String, Value>) -> Map<String, Value> {
        let of_toolward = members.get("name") == Some(&"toolward".into());
        let own = |(key, value): (String, Value)| match (key.as_str(), value) {
            (measured, Value::Number(_)) if MEASURED.contains(&measured) => {
                (key, "<number>".into())
            }
            ("build", Value::String(_)) => (key, "<version>".into()),
            ("version", _) if of_toolward => (key, "<version>".into()),
            (_, value) => (self.text(&key), self.value(value)),
        };
        members.into_iter().map(own).collect()
    }

    fn text(&mut self, text: &str) -> String {
        let mut text = text
            .replace(toolward().to_str().unwrap(), "<toolward>")
            .replace(std::env::consts::ARCH, "<processor>");
        for before in ["toolward ", "toolward/"] {
            let version = format!("{before}{}", env!("CARGO_PKG_VERSION"));
            text = text.replace(&version, &format!("{before}<version>"));
        }
        let mut replaced = String::new();
        let mut end = 0;
        for (at, kind, value) in varying::values(&text) {
            replaced.push_str(text.get(end..at).unwrap());
            replaced.push_str(&self.placeholder(kind, value));
            end = at + value.len();
        }
        replaced + text.get(end..).unwrap()
    }

    fn placeholder(&mut self, kind: Kind, value: &str) -> String {
        let name = match kind {
            Kind::Directory => "directory",
            // Two times may be equal, so all times have the same placeholder.
            Kind::Time => return "<time>".to_owned(),
            Kind::Port => "address",
            Kind::Id => "id",
            Kind::Digest => "digest",
            Kind::Base64 => "base64",
        };
        let known = self.numbers.entry(kind).or_default();
        let next = known.len() + 1;
        let number = known.entry(value.replace(' ', "")).or_insert(next);
        format!("<{name} {number}>")
    }
}
