//! Keeps the exact bytes of secrets out of what a call shows. The last line of
//! defence: a guest that may see a value can still disguise it.

use serde_json::Value;

use crate::observer::LogRecord;
use crate::result::{BlockContent, CallError, Captured, Output, ResourceBody};
use crate::secrets::SecretValue;

/// What stands where a secret was.
const REDACTED: &str = "[secret]";

/// Values shorter than this are not looked for: they would be found everywhere.
const SHORTEST: usize = 4;

/// The secrets that a call used.
pub(crate) struct Redactor {
    values: Vec<SecretValue>,
}

impl Redactor {
    /// `None` where there is nothing to look for.
    pub(crate) fn new(values: Vec<SecretValue>) -> Option<Self> {
        let values: Vec<SecretValue> = values
            .into_iter()
            .filter(|value| value.bytes().len() >= SHORTEST)
            .collect();
        (!values.is_empty()).then_some(Self { values })
    }

    pub(crate) fn text(&self, text: &mut String) {
        for value in &self.values {
            let Ok(secret) = std::str::from_utf8(value.bytes()) else {
                continue;
            };
            if text.contains(secret) {
                *text = text.replace(secret, REDACTED);
            }
        }
    }

    fn bytes(&self, bytes: &mut Vec<u8>) {
        for value in &self.values {
            let secret = value.bytes();
            while let Some(start) = bytes
                .windows(secret.len())
                .position(|window| window == secret)
            {
                let end = start.saturating_add(secret.len());
                bytes.splice(start..end, REDACTED.bytes());
            }
        }
    }

    pub(crate) fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(members) => {
                let named: Vec<String> = members
                    .keys()
                    .filter(|name| {
                        let mut redacted = (*name).clone();
                        self.text(&mut redacted);
                        redacted != **name
                    })
                    .cloned()
                    .collect();
                for name in named {
                    if let Some(member) = members.remove(&name) {
                        let mut redacted = name;
                        self.text(&mut redacted);
                        members.insert(redacted, member);
                    }
                }
                members.values_mut().for_each(|member| self.value(member));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    pub(crate) fn output(&self, output: &mut Output) {
        self.value(&mut output.structured);
        for block in &mut output.content {
            match &mut block.content {
                BlockContent::Text { text } => self.text(text),
                BlockContent::Image { data, mime_type }
                | BlockContent::Audio { data, mime_type } => {
                    self.bytes(data);
                    self.text(mime_type);
                }
                BlockContent::ResourceLink {
                    uri,
                    name,
                    title,
                    description,
                    mime_type,
                    size: _,
                } => {
                    self.text(uri);
                    self.text(name);
                    for text in [title, description, mime_type].into_iter().flatten() {
                        self.text(text);
                    }
                }
                BlockContent::Resource {
                    uri,
                    mime_type,
                    body,
                } => {
                    self.text(uri);
                    if let Some(text) = mime_type {
                        self.text(text);
                    }
                    match body {
                        ResourceBody::Text(text) => self.text(text),
                        ResourceBody::Blob(bytes) => self.bytes(bytes),
                    }
                }
            }
        }
    }

    pub(crate) fn error(&self, error: &mut CallError) {
        self.text(&mut error.message);
        if let Some(cause) = &mut error.cause {
            self.value(cause);
        }
    }

    pub(crate) fn record(&self, record: &mut LogRecord) {
        self.text(&mut record.message);
        self.value(&mut record.fields);
    }

    pub(crate) fn captured(&self, captured: &mut Captured) {
        self.text(&mut captured.stdout);
        self.text(&mut captured.stderr);
        for record in &mut captured.logs {
            self.record(record);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn redactor(values: &[&str]) -> Redactor {
        Redactor::new(
            values
                .iter()
                .map(|value| SecretValue::new(value.as_bytes().to_vec()))
                .collect(),
        )
        .expect("something to look for")
    }

    #[test]
    fn a_secret_is_redacted_in_strings_names_and_bytes() {
        let redactor = redactor(&["hunter22", "other-secret"]);
        let mut value = json!({"a": ["x hunter22 y"], "hunter22": {"b": "other-secret"}, "n": 1});
        redactor.value(&mut value);
        assert_eq!(
            value,
            json!({"a": ["x [secret] y"], "[secret]": {"b": "[secret]"}, "n": 1})
        );
        let mut bytes = b"aahunter22bbhunter22".to_vec();
        redactor.bytes(&mut bytes);
        assert_eq!(bytes, b"aa[secret]bb[secret]");
    }

    #[test]
    fn nothing_is_looked_for_where_nothing_was_used_or_it_is_too_short() {
        assert!(Redactor::new(Vec::new()).is_none());
        assert!(Redactor::new(vec![SecretValue::new(b"abc".to_vec())]).is_none());
    }
}
