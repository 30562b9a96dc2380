//! A form on the terminal: field by field, in plain lines. Each line of the tool's words starts
//! with a bar, like the arguments of a call.

use std::fmt::Write as _;
use std::io;

use serde_json::{Map, Number, Value};
use toolward_bundle::text::{visible, visible_line};
use toolward_host::{Ask, Asked};

use super::question::ARGUMENT_PREFIX;
use crate::wrap::pieces;

const MAX_NAME_CHARS: usize = 200;
const MAX_MESSAGE_CHARS: usize = 4000;
/// How often a field is asked for at most. If none of the answers can be read, the form ends
/// without an answer.
const MAX_TRIES: usize = 3;

/// Returns the text above the form: the tool that asks, and its words behind a bar. Returns `None`
/// if the question is not a form.
pub(super) fn shown(asked: &Asked, ask: &Ask, width: usize) -> Option<String> {
    let Ask::Form { message, .. } = ask else {
        return None;
    };
    let name = |text: &str| visible_line(text, MAX_NAME_CHARS);
    let (tool, publisher) = (name(&asked.tool_id), name(&asked.publisher));
    let mut out = format!("\n{tool} by {publisher} asks you");
    if asked.driver_publisher != asked.publisher {
        let (driver, other) = (name(&asked.driver), name(&asked.driver_publisher));
        let _ = write!(
            out,
            ",\nthrough the driver {driver} by ANOTHER publisher, {other}"
        );
    }
    out.push_str(" (Ctrl-C: no answer)\n");
    out.push_str(&barred(&visible(message, MAX_MESSAGE_CHARS), width));
    Some(out)
}

fn barred(text: &str, width: usize) -> String {
    let columns = width.saturating_sub(ARGUMENT_PREFIX.len() + 1).max(1);
    let lines = text.lines().flat_map(|line| pieces(line, columns));
    lines.fold(String::new(), |mut out, line| {
        let _ = writeln!(out, "{ARGUMENT_PREFIX}{line}");
        out
    })
}

/// Asks for each field. `say` shows a text. `line` reads a line without its end, or returns `None`
/// if the person gives no answer. The result is `None` then, and after [`MAX_TRIES`] invalid
/// answers for a field.
pub(super) fn filled(
    schema: &Value,
    width: usize,
    mut say: impl FnMut(&str) -> io::Result<()>,
    mut line: impl FnMut() -> io::Result<Option<String>>,
) -> io::Result<Option<Value>> {
    let none = Map::new();
    let fields = schema["properties"].as_object().unwrap_or(&none);
    let required = schema["required"].as_array();
    let mut answer = Map::new();
    for (name, field) in fields {
        let required = required.is_some_and(|all| all.iter().any(|one| one == name));
        say(&described(name, field, required, width))?;
        for tries in 1.. {
            say("  answer: ")?;
            let Some(typed) = line()? else {
                return Ok(None);
            };
            match read(field, required, &typed) {
                Ok(Some(value)) => {
                    answer.insert(name.clone(), value);
                    break;
                }
                Ok(None) => break,
                Err(_) if tries == MAX_TRIES => return Ok(None),
                Err(expected) => say(&format!("  expected {expected}\n"))?,
            }
        }
    }
    Ok(Some(Value::Object(answer)))
}

/// Describes a field for the person: its name, description and choices behind the bar, then the
/// kind of answer.
fn described(name: &str, field: &Value, required: bool, width: usize) -> String {
    let text = |key: &str| field[key].as_str().map(|text| visible_line(text, 1000));
    let mut words = visible_line(name, MAX_NAME_CHARS);
    for more in [text("title"), text("description")].into_iter().flatten() {
        words.push_str(": ");
        words.push_str(&more);
    }
    let choices = choices(field);
    for (number, (value, title)) in choices.iter().enumerate() {
        let title = title.map(|title| format!(": {}", visible_line(title, MAX_NAME_CHARS)));
        let value = visible_line(value, MAX_NAME_CHARS);
        let title = title.unwrap_or_default();
        let _ = write!(words, "\n{}. {value}{title}", number + 1);
    }
    let kind = match (field["type"].as_str(), choices.is_empty()) {
        (Some("array"), _) => "numbers of the list, with commas between",
        (_, false) => "a number of the list",
        (Some("boolean"), _) => "y or n",
        (Some("integer"), _) => "a whole number",
        (Some("number"), _) => "a number",
        _ => "a text",
    };
    let rest = match (field.get("default"), required) {
        (Some(default), _) => {
            let default = visible_line(&default.to_string(), MAX_NAME_CHARS);
            format!("Enter alone: {default}")
        }
        (None, true) => "required".to_owned(),
        (None, false) => "Enter alone: leave it out".to_owned(),
    };
    format!("\n{}  {kind}; {rest}\n", barred(&words, width))
}

/// The values of a field that is a choice, with their titles.
fn choices(field: &Value) -> Vec<(&str, Option<&str>)> {
    let of = match field["type"].as_str() {
        Some("array") => &field["items"],
        _ => field,
    };
    let titled = of["oneOf"].as_array().or(of["anyOf"].as_array());
    if let Some(titled) = titled {
        return titled
            .iter()
            .filter_map(|one| Some((one["const"].as_str()?, one["title"].as_str())))
            .collect();
    }
    let values = of["enum"].as_array().into_iter().flatten();
    values
        .enumerate()
        .filter_map(|(at, value)| {
            let title = of["enumNames"].get(at).and_then(Value::as_str);
            Some((value.as_str()?, title))
        })
        .collect()
}

/// Returns the value of the typed text; `None` if the field is left out. The error states the kind
/// of answer that was expected.
fn read(field: &Value, required: bool, typed: &str) -> Result<Option<Value>, &'static str> {
    let choices = choices(field);
    let kind = field["type"].as_str().unwrap_or_default();
    if typed.is_empty() {
        return match (field.get("default"), required) {
            (Some(default), _) => Ok(Some(default.clone())),
            (None, false) => Ok(None),
            (None, true) => Err("an answer"),
        };
    }
    let word = typed.trim();
    let chosen = |word: &str| {
        let number: usize = word.trim().parse().ok()?;
        let (value, _) = choices.get(number.checked_sub(1)?)?;
        Some(Value::from(*value))
    };
    let value = match kind {
        "array" => {
            let all: Option<Vec<Value>> = typed.split(',').map(chosen).collect();
            Value::Array(all.ok_or("numbers of the list")?)
        }
        _ if !choices.is_empty() => chosen(word).ok_or("a number of the list")?,
        "boolean" => match word.to_ascii_lowercase().as_str() {
            "y" | "yes" => true.into(),
            "n" | "no" => false.into(),
            _ => return Err("y or n"),
        },
        "integer" => word.parse::<i64>().map_err(|_| "a whole number")?.into(),
        "number" => serde_json::from_str::<Number>(word)
            .map_err(|_| "a number")?
            .into(),
        _ => typed.into(),
    };
    Ok(Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn answers(schema: &Value, typed: &[&str]) -> (Option<Value>, String) {
        let (mut left, mut screen) = (typed.iter(), String::new());
        let say = |text: &str| {
            screen.push_str(text);
            Ok(())
        };
        let line = || Ok(left.next().map(|text| (*text).to_owned()));
        let answer = filled(schema, 60, say, line).unwrap();
        (answer, screen)
    }

    #[test]
    fn each_field_is_read_as_what_it_is() {
        let schema = json!({ "properties": {
            "a": { "type": "string" }, "b": { "type": "integer" }, "c": { "type": "boolean" },
            "d": { "type": "string", "enum": ["s", "l"] },
            "e": { "type": "array", "items": { "type": "string", "enum": ["x", "y", "z"] } },
            "f": { "type": "number", "default": 2.5 }, "g": { "type": "string" },
        }, "required": ["a"] });
        let typed = ["1", "twelve", "12", "y", "2", "1, 3", "", ""];
        let expected = json!({ "a": "1", "b": 12, "c": true, "d": "l", "e": ["x", "z"], "f": 2.5 });
        assert_eq!(answers(&schema, &typed).0, Some(expected));
    }

    #[test]
    fn no_answer_and_three_that_can_not_be_read_are_none() {
        let schema = json!({ "properties": { "a": { "type": "integer" } }, "required": ["a"] });
        assert_eq!(answers(&schema, &[]).0, None);
        assert_eq!(answers(&schema, &["", "x", "1.5", "7"]).0, None);
        assert_eq!(answers(&schema, &["", "x", "7"]).0, Some(json!({ "a": 7 })));
    }

    #[test]
    fn no_word_of_who_asks_starts_a_line() {
        let forged = "\n  answer: y\r\u{1b}[2J\u{202e}".repeat(20);
        let schema = json!({ "properties": { "a": {
            "type": "string", "title": forged, "description": forged,
            "oneOf": [{ "const": "x", "title": forged }],
        } } });
        let (_, screen) = answers(&schema, &[""]);
        for line in screen.lines().filter(|line| !line.is_empty()) {
            let ours = line.starts_with(ARGUMENT_PREFIX)
                || line.starts_with("  a number of the list; ")
                || line.starts_with("  answer: ");
            assert!(ours, "{line:?}");
        }
        assert_eq!(screen.matches("\n  answer: ").count(), 1, "{screen}");
        assert!(!screen.contains(['\u{1b}', '\u{202e}', '\r']), "{screen:?}");
    }
}
