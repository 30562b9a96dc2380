//! Writes a value as front matter with one line for each field, so that the position of a finding
//! identifies its field.

use serde_json::Value;

/// A document, and the field on each of its lines.
pub(crate) struct Written {
    pub(crate) text: String,
    /// The fields of the lines, from line 1, as dotted paths; `[]` after a name is an item of a
    /// list.
    fields: Vec<String>,
}

impl Written {
    /// Writes JSON, which is also YAML: one value per line, between two lines of dashes.
    pub(crate) fn new(document: &Value) -> Written {
        let mut lines = vec![("---".to_owned(), String::new())];
        write(document, "", 0, String::new(), &mut lines);
        lines.push(("---".to_owned(), String::new()));
        let text = lines.iter().map(|(line, _)| format!("{line}\n")).collect();
        let fields = lines.into_iter().map(|(_, field)| field).collect();
        Written { text, fields }
    }

    /// The field of a line, from 1.
    pub(crate) fn field(&self, line: u32) -> &str {
        let index = usize::try_from(line).unwrap_or_default().saturating_sub(1);
        self.fields.get(index).map_or("", String::as_str)
    }
}

fn write(value: &Value, field: &str, depth: usize, key: String, lines: &mut Vec<(String, String)>) {
    let indent = "  ".repeat(depth);
    let mut line = |text: String| lines.push((format!("{indent}{text}"), field.to_owned()));
    match value {
        Value::Array(items) if !items.is_empty() => {
            line(format!("{key}["));
            for (index, item) in items.iter().enumerate() {
                write(item, &format!("{field}[]"), depth + 1, String::new(), lines);
                comma(index + 1 < items.len(), lines);
            }
            lines.push((format!("{indent}]"), field.to_owned()));
        }
        Value::Object(members) if !members.is_empty() => {
            line(format!("{key}{{"));
            for (index, (name, member)) in members.iter().enumerate() {
                let key = format!("{}: ", Value::from(name.as_str()));
                write(member, &member_of(field, name), depth + 1, key, lines);
                comma(index + 1 < members.len(), lines);
            }
            lines.push((format!("{indent}}}"), field.to_owned()));
        }
        other => line(format!("{key}{other}")),
    }
}

fn comma(more: bool, lines: &mut [(String, String)]) {
    if let Some((line, _)) = lines.last_mut().filter(|_| more) {
        line.push(',');
    }
}

/// The path of a member.
pub(crate) fn member_of(field: &str, name: &str) -> String {
    // A part of a path is never empty.
    let name = if name.is_empty() { "\"\"" } else { name };
    match field {
        "" => name.to_owned(),
        field => format!("{field}.{name}"),
    }
}

/// The path of a JSON pointer into `document`.
pub(crate) fn of_pointer(pointer: &str, document: &Value) -> String {
    let mut field = String::new();
    let mut at = document;
    for part in pointer.split('/').skip(1) {
        let name = part.replace("~1", "/").replace("~0", "~");
        match at {
            Value::Array(items) => {
                field.push_str("[]");
                let index = name.parse::<usize>().unwrap_or(usize::MAX);
                at = items.get(index).unwrap_or(&Value::Null);
            }
            other => {
                at = other.get(&name).unwrap_or(&Value::Null);
                field = member_of(&field, &name);
            }
        }
    }
    field
}

/// Whether a pattern covers a path: `*` means one name, `**` at the end any number of parts.
pub(crate) fn covers(pattern: &str, field: &str) -> bool {
    let (mut wanted, mut found) = (
        pattern.split('.'),
        field.split('.').filter(|part| !part.is_empty()),
    );
    loop {
        match (wanted.next().filter(|part| !part.is_empty()), found.next()) {
            (Some("**"), _) => return true,
            (None, None) => return true,
            (Some(pattern), Some(part)) => {
                let lists = part.strip_prefix(part.trim_end_matches("[]"));
                let starred = pattern
                    .strip_prefix('*')
                    .is_some_and(|wanted| Some(wanted) == lists);
                if pattern != part && !starred {
                    return false;
                }
            }
            _ => return false,
        }
    }
}
