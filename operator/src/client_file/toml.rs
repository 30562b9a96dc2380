//! The entry in TOML: a table of its own at the end of the file, or in place of the one that stood there.

use std::ops::Range;

use serde_json::Value;

use super::Entry;

pub(super) fn parse(text: &str) -> Result<Value, String> {
    let table: toml::Table = toml::from_str(text).map_err(|error| error.message().to_owned())?;
    json(toml::Value::Table(table)).ok_or_else(|| "it has a number that is not finite".to_owned())
}

/// The text with the entry; `None` where the entry is not a table of its own.
pub(super) fn put(entry: &Entry<'_>, text: &str, there: Option<&Value>) -> Option<String> {
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let block = block(entry)?.replace('\n', newline);
    if let Some(there) = there {
        let range = place(entry, text, there)?;
        let mut after = text.to_owned();
        after.replace_range(range, block.trim_end());
        return Some(after);
    }
    let between = match text {
        "" => "",
        text if text.ends_with('\n') => newline,
        _ => return Some(format!("{text}{newline}{newline}{block}")),
    };
    Some(format!("{text}{between}{block}"))
}

fn block(entry: &Entry<'_>) -> Option<String> {
    let value = toml::Value::try_from(entry.value).ok()?;
    let servers = toml::Table::from_iter([(entry.name.to_owned(), value)]);
    let whole = toml::Table::from_iter([(entry.table.to_owned(), toml::Value::Table(servers))]);
    toml::to_string(&whole).ok()
}

/// The lines of the entry's table: its header, as it is written here, and those up to the last one with a key.
fn place(entry: &Entry<'_>, text: &str, there: &Value) -> Option<Range<usize>> {
    let header = format!("[{}.{}]", entry.table, entry.name);
    let mut place: Option<Range<usize>> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let end = at + line.len();
        let words = line.trim();
        match &mut place {
            None if words == header => place = Some(at..at + line.trim_end().len()),
            None => {}
            Some(_) if words.starts_with('[') => break,
            Some(place) if !words.is_empty() && !words.starts_with('#') => {
                place.end = at + line.trim_end().len();
            }
            Some(_) => {}
        }
        at = end;
    }
    let place = place?;
    // Lines of a longer string may look like a header: the table is only this one if it has the entry.
    let alone = parse(text.get(place.clone())?).ok()?;
    let found = alone.get(entry.table)?.get(entry.name)?;
    (found == there).then_some(place)
}

/// The same value in JSON. A date is its text: it is only compared.
fn json(value: toml::Value) -> Option<Value> {
    Some(match value {
        toml::Value::String(text) => Value::String(text),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Float(number) => Value::Number(serde_json::Number::from_f64(number)?),
        toml::Value::Boolean(yes) => Value::Bool(yes),
        toml::Value::Datetime(date) => serde_json::json!({ "date": date.to_string() }),
        toml::Value::Array(all) => Value::Array(all.into_iter().map(json).collect::<Option<_>>()?),
        toml::Value::Table(all) => {
            let all = all
                .into_iter()
                .map(|(key, value)| Some((key, json(value)?)));
            Value::Object(all.collect::<Option<_>>()?)
        }
    })
}
