//! Redacts the exact bytes of secrets in everything that a call shows. This is only a last line of
//! defence, since a guest that may see a value can still encode it.

use std::sync::atomic::{AtomicU64, Ordering};

use memchr::memmem;
use serde_json::Value;

use crate::api::result::{
    BlockContent, CallError, Captured, ErrorClass, ErrorCode, LogRecord, Origin, Output,
    ResourceBody,
};
use crate::secrets::SecretValue;

/// The text that replaces a secret.
pub(crate) const REDACTED: &str = "[secret]";

/// The least length of a redacted value. Shorter values would be found everywhere.
pub(crate) const MIN_VALUE_BYTES: usize = 4;

/// The secrets that a call used.
#[derive(Default)]
pub(crate) struct Redactor {
    hidden: Vec<(String, SecretValue)>,
    /// How many texts contained a value.
    found: AtomicU64,
}

impl Redactor {
    /// A redactor for these values, each with its name, and for the values of `known`; `None` if
    /// the values add nothing to `known`.
    pub(crate) fn with<'v>(
        known: Option<&Self>,
        values: impl IntoIterator<Item = (&'v str, SecretValue)>,
    ) -> Option<Self> {
        let mut hidden = known.map(|known| known.hidden.clone()).unwrap_or_default();
        let before = hidden.len();
        for (slug, value) in values {
            let bytes = value.bytes();
            let is_known = hidden.iter().any(|(_, hidden)| hidden.bytes() == bytes);
            if !is_known && bytes.len() >= MIN_VALUE_BYTES {
                hidden.push((slug.to_owned(), value));
            }
        }
        (hidden.len() > before).then(|| Self {
            hidden,
            ..Self::default()
        })
    }

    /// In how many texts a value has been found so far.
    pub(crate) fn found(&self) -> u64 {
        self.found.load(Ordering::Relaxed)
    }

    /// The secrets with their values.
    pub(crate) fn hidden(&self) -> impl Iterator<Item = (&str, &SecretValue)> {
        let hidden = self.hidden.iter();
        hidden.map(|(slug, value)| (slug.as_str(), value))
    }

    /// The bytes without the values; `None` if they contain no value. Makes one pass per value over
    /// the original bytes, never over replacements, which may contain a value themselves.
    fn replaced(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let hidden = self.hidden.iter().map(|(_, value)| value.bytes());
        let mut searches: Vec<_> = hidden
            .map(|value| {
                let places = memmem::find_iter(bytes, value);
                let ends = move |at: usize| (at, at.saturating_add(value.len()));
                places.map(ends).peekable()
            })
            .collect();
        let mut result = Vec::new();
        let mut copied = 0;
        while let Some((start, mut end)) = searches
            .iter_mut()
            .filter_map(|one| one.peek())
            .min()
            .copied()
        {
            if result.is_empty() {
                self.found.fetch_add(1, Ordering::Relaxed);
                result.reserve(bytes.len());
            }
            // Overlapping values are replaced together.
            let overlaps = |&(at, _): &(usize, usize), end| at == start || at < end;
            while let Some((_, last)) =
                (searches.iter_mut()).find_map(|one| one.next_if(|found| overlaps(found, end)))
            {
                end = end.max(last);
            }
            result.extend_from_slice(bytes.get(copied..start).unwrap_or_default());
            result.extend_from_slice(REDACTED.as_bytes());
            copied = end;
        }
        if result.is_empty() {
            return None;
        }
        result.extend_from_slice(bytes.get(copied..).unwrap_or_default());
        Some(result)
    }

    /// The end of a text without the values. If the text was cut before these bytes, the rest of a
    /// value at the cut is removed, too.
    pub(crate) fn end_of_text(&self, mut bytes: Vec<u8>, is_cut: bool) -> Vec<u8> {
        let parts = self.hidden.iter().filter_map(|(_, value)| {
            let value = value.bytes();
            let longest = value.len().saturating_sub(1).min(bytes.len());
            (1..=longest).rev().find_map(|length| {
                let (before, part) = value.split_at_checked(value.len().saturating_sub(length))?;
                bytes.starts_with(part).then_some((length, before))
            })
        });
        let cut = parts.max_by_key(|(length, _)| *length);
        // Once the start of the value with the longest rest is put back, this value is found like
        // any other. The rests of other values are contained in its rest.
        if let Some((_, before)) = cut.filter(|_| is_cut) {
            bytes.splice(..0, before.iter().copied());
        }
        self.replaced(&bytes).unwrap_or(bytes)
    }

    /// The secret whose value is in these bytes.
    fn slug_in(&self, bytes: &[u8]) -> Option<&str> {
        let mut hidden = self.hidden();
        let found = hidden.find(|(_, value)| memmem::find(bytes, value.bytes()).is_some());
        found.map(|(slug, _)| slug)
    }

    pub(crate) fn is_in(&self, text: &str) -> bool {
        self.slug_in(text.as_bytes()).is_some()
    }

    /// The secret whose value is in this JSON text, verbatim or escaped.
    pub(crate) fn slug_in_json(&self, text: &str) -> Option<&str> {
        self.slug_in(text.as_bytes()).or_else(|| {
            let value = serde_json::from_str(text).ok()?;
            self.slug_in_value(&value)
        })
    }

    fn slug_in_value(&self, value: &Value) -> Option<&str> {
        match value {
            Value::String(text) => self.slug_in(text.as_bytes()),
            Value::Array(items) => items.iter().find_map(|item| self.slug_in_value(item)),
            Value::Object(members) => members.iter().find_map(|(name, member)| {
                self.slug_in(name.as_bytes())
                    .or_else(|| self.slug_in_value(member))
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) => None,
        }
    }

    pub(crate) fn text(&self, text: &mut String) {
        if let Some(bytes) = self.replaced(text.as_bytes()) {
            // Removing a value that is not valid UTF-8 may split a character.
            *text = String::from_utf8(bytes)
                .unwrap_or_else(|error| String::from_utf8_lossy(&error.into_bytes()).into_owned());
        }
    }

    /// Removes the start of a value at the end of a text.
    fn cut(&self, text: &mut String) {
        let begun = self.hidden.iter().filter_map(|(_, value)| {
            let value = value.bytes();
            let longest = value.len().saturating_sub(1).min(text.len());
            let begins = |length: &usize| {
                let begun = value.get(..*length);
                begun.is_some_and(|begun| text.as_bytes().ends_with(begun))
            };
            (MIN_VALUE_BYTES..=longest).rev().find(begins)
        });
        if let Some(longest) = begun.max() {
            let mut bytes = std::mem::take(text).into_bytes();
            bytes.truncate(bytes.len().saturating_sub(longest));
            bytes.extend_from_slice(REDACTED.as_bytes());
            *text = String::from_utf8_lossy(&bytes).into_owned();
            self.found.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn bytes(&self, bytes: &mut Vec<u8>) {
        if let Some(replaced) = self.replaced(bytes) {
            *bytes = replaced;
        }
    }

    /// Removes a number that contains a value.
    fn number(&self, number: &mut Option<u64>) {
        let taken = number.take_if(|number| self.is_in(&number.to_string()));
        self.found
            .fetch_add(u64::from(taken.is_some()), Ordering::Relaxed);
    }

    pub(crate) fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(members) => {
                let named = members.keys().filter(|name| self.is_in(name));
                let named: Vec<String> = named.cloned().collect();
                for name in named {
                    if let Some(member) = members.remove(&name) {
                        let mut redacted = name;
                        self.text(&mut redacted);
                        members.insert(redacted, member);
                    }
                }
                members.values_mut().for_each(|member| self.value(member));
            }
            // A number can't hold the replacement text.
            Value::Number(number) if self.is_in(&number.to_string()) => {
                self.found.fetch_add(1, Ordering::Relaxed);
                *value = Value::String(REDACTED.to_owned());
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
                    size,
                } => {
                    self.text(uri);
                    self.text(name);
                    for text in [title, description, mime_type].into_iter().flatten() {
                        self.text(text);
                    }
                    self.number(size);
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
        if error.origin == Origin::Driver {
            // A driver chooses the code and the retry-after, too.
            if self.is_in(error.code.as_str()) {
                error.code = ErrorCode::UPSTREAM_ERROR;
                error.class = ErrorClass::ExecutionFailed;
            }
            error
                .retry_after
                .take_if(|after| self.is_in(&after.as_millis().to_string()));
        }
    }

    pub(crate) fn record(&self, record: &mut LogRecord) {
        self.text(&mut record.message);
        self.value(&mut record.fields);
    }

    /// Redacts the captured output of a guest. A stream may have been cut at its limit, within a
    /// value.
    pub(crate) fn captured(&self, captured: &mut Captured) {
        for stream in [&mut captured.stdout, &mut captured.stderr] {
            self.text(stream);
            self.cut(stream);
        }
        for record in &mut captured.logs {
            self.record(record);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use serde_json::json;

    use super::*;

    fn value(text: &str) -> SecretValue {
        SecretValue::new(text.as_bytes().to_vec())
    }

    fn redactor(values: &[&str]) -> Redactor {
        let values = values.iter().map(|text| ("slug", value(text)));
        Redactor::with(None, values).expect("something to look for")
    }

    #[track_caller]
    fn becomes(values: &[&str], text: &str, expected: &str) {
        let redactor = redactor(values);
        let mut bytes = text.as_bytes().to_vec();
        redactor.bytes(&mut bytes);
        assert_eq!(String::from_utf8_lossy(&bytes), expected);
        let mut text = text.to_owned();
        redactor.text(&mut text);
        assert_eq!(text, expected);
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
    fn nothing_is_looked_for_that_is_too_short_or_known() {
        assert!(Redactor::with(None, [("a", value("abc"))]).is_none());
        let known = redactor(&["hunter22"]);
        assert!(Redactor::with(Some(&known), [("b", value("hunter22"))]).is_none());
    }

    #[test]
    fn a_secret_that_is_in_what_stands_for_secrets_is_replaced_once() {
        becomes(&["secret"], "a secret b", "a [secret] b");
        becomes(
            &["[secret]", "secret"],
            "[secret] secret",
            "[secret] [secret]",
        );
        becomes(&["ecre", "hunter22"], "hunter22", "[secret]");
    }

    #[test]
    fn of_secrets_that_overlap_no_part_is_left() {
        becomes(&["abcd", "abcdefgh"], "x abcdefgh y", "x [secret] y");
        becomes(
            &["abcdef", "defghi", "hijkl"],
            "xabcdefghijkly",
            "x[secret]y",
        );
        becomes(&["abcd", "efgh"], "abcdefgh", "[secret][secret]");
    }

    #[test]
    fn of_a_text_whose_beginning_was_cut_off_no_part_of_a_secret_is_left() {
        let values = ["hunter22", "22 horses", "aaaa"];
        let redactor = redactor(&values);
        for value in values {
            for cut in 1..value.len() {
                let end = format!("{} and then {value}.", value.split_at(cut).1);
                let shown = redactor.end_of_text(end.into_bytes(), true);
                assert_eq!(
                    String::from_utf8(shown).unwrap(),
                    "[secret] and then [secret].",
                    "{value} without {cut}"
                );
            }
        }
        // The rest of one value overlaps with another value.
        let shown = redactor.end_of_text(b"ter22 horses".to_vec(), true);
        assert_eq!(shown, b"[secret]");
        let whole = b"nothing of it".to_vec();
        assert_eq!(redactor.end_of_text(whole.clone(), true), whole);
        // The value starts at the cut.
        let whole = b"22 of hunter22".to_vec();
        assert_eq!(redactor.end_of_text(whole, false), b"22 of [secret]");
    }

    #[test]
    fn of_a_stream_that_was_cut_within_a_secret_no_part_is_left() {
        let redactor = redactor(&["hunter22", "ünter22"]);
        for cut in MIN_VALUE_BYTES.."hunter22".len() {
            let (begun, _) = "hunter22".split_at(cut);
            let mut captured = Captured {
                stdout: format!("hunter22 and {begun}"),
                stderr: "nothing of hunt".to_owned() + "er",
                ..Captured::default()
            };
            redactor.captured(&mut captured);
            assert_eq!(captured.stdout, "[secret] and [secret]");
            assert_eq!(captured.stderr, "nothing of [secret]");
        }
        let mut captured = Captured {
            stdout: "whole hun".to_owned(),
            stderr: "hunter and hounds".to_owned(),
            ..Captured::default()
        };
        redactor.captured(&mut captured);
        assert_eq!(captured.stdout, "whole hun");
        assert_eq!(captured.stderr, "hunter and hounds");
    }

    #[test]
    fn many_occurrences_of_many_secrets_take_no_long_time() {
        let long = "a".repeat(64 << 10);
        let redactor = redactor(&["aaaa", "aaaaa", "aaab", &long, &format!("{long}b")]);
        let started = Instant::now();
        let mut bytes = vec![b'a'; 4 << 20];
        redactor.bytes(&mut bytes);
        assert!(!bytes.contains(&b'a'));
        // This takes milliseconds, more in an unoptimised build, but not minutes.
        assert!(started.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn a_number_that_shows_a_secret_is_none_any_more() {
        let redactor = redactor(&["31415926"]);
        let mut value = json!({"a": 31_415_926, "b": [231_415_926_u64, 2.5], "c": -31_415_926});
        redactor.value(&mut value);
        assert_eq!(
            value,
            json!({"a": "[secret]", "b": ["[secret]", 2.5], "c": "[secret]"})
        );
    }

    #[test]
    fn a_code_that_a_driver_made_of_a_secret_is_another_and_the_hosts_stay() {
        let redactor = redactor(&["hunter22", "31415926", "timeout"]);
        let own = ErrorCode::from_driver("x:hunter22").expect("a code that drivers may use");
        let mut error = CallError::new(own, ErrorClass::ExecutionFailed, "");
        error.origin = Origin::Driver;
        error.retry_after = Some(Duration::from_millis(31_415_926));
        redactor.error(&mut error);
        assert_eq!(error.code, ErrorCode::UPSTREAM_ERROR);
        assert_eq!(error.retry_after, None);

        let mut error = CallError::of(ErrorCode::TIMEOUT, "");
        redactor.error(&mut error);
        assert_eq!(error.code, ErrorCode::TIMEOUT);
    }

    #[test]
    fn a_secret_is_found_in_json_behind_escapes_too() {
        let redactor = redactor(&["hunter22"]);
        for text in [
            r#"{"a": "x hunter22"}"#,
            r#"{"a": ["hunter\u00322"]}"#,
            r#"{"hunter\u00322": 1}"#,
            "hunter22, and no JSON",
        ] {
            assert_eq!(redactor.slug_in_json(text), Some("slug"), "{text}");
        }
        assert_eq!(redactor.slug_in_json(r#"{"a": "hunter 22"}"#), None);
    }
}
