//! Adds the entry of a server to an MCP client's configuration. A change that would alter anything
//! else in the file is refused. The module is not specific to a client: the caller names the file,
//! the table and the entry.

mod json;

use std::ops::Range;

use serde_json::{Value, json};
use toolward_signing::Digest;

use crate::lasting_changes::{appended, newline, replaced};
use crate::{Code, Error, Result};

/// The form of a client's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientFileForm {
    /// JSON.
    Json,
    /// JSON with comments.
    JsonWithComments,
    /// JSON with comments, in which the last member may have a comma after it.
    Jsonc,
    /// TOML.
    Toml,
}

/// An entry and its place in a file.
#[derive(Debug, Clone)]
pub struct ServerEntry<'a> {
    /// The form of the file.
    pub form: ClientFileForm,
    /// The table of servers at the top of the file, such as `mcpServers`.
    pub table: &'a str,
    /// The client's name for the server: letters, digits, `-` and `_`.
    pub name: &'a str,
    /// The entry.
    pub value: &'a Value,
}

impl ServerEntry<'_> {
    /// Returns the text of the file with the entry; `None` if it has the entry already. `before` is
    /// the current text, empty if the file does not exist. An entry of that name is replaced if
    /// `own` accepts its digest.
    ///
    /// # Errors
    /// `entry-foreign` for an entry that may not be replaced; `client-file-invalid` for a text that
    /// is not valid in the form, or to which the entry can't be added without another change.
    pub fn put(&self, before: &str, own: impl Fn(&Digest) -> bool) -> Result<Option<String>> {
        let parsed = self.parsed(before)?;
        let there = self.found(&parsed)?;
        if there == Some(self.value) {
            return Ok(None);
        }
        if let Some(there) = there
            && !own(&digest(there))
        {
            let name = self.name;
            let message =
                format!("there is an entry `{name}` that `mcp config --write` did not write");
            return Err(Error::failed(Code::EntryForeign, message).hint(
                "take that entry out of the file yourself, or choose another name with --name",
            ));
        }
        let after = match self.form {
            ClientFileForm::Toml => put_toml(self, before, there),
            _ => json::put(self, before),
        };
        let after = after.ok_or_else(unusual)?;
        // Parses the new text: only this entry may differ from the current text.
        let mut wanted = parsed.clone();
        let root = wanted.as_object_mut();
        let servers = root.map(|root| root.entry(self.table).or_insert_with(|| json!({})));
        let servers = servers.and_then(Value::as_object_mut).ok_or_else(unusual)?;
        servers.insert(self.name.to_owned(), self.value.clone());
        match self.parsed(&after) {
            Ok(read) if read == wanted => Ok(Some(after)),
            _ => Err(unusual()),
        }
    }

    fn parsed(&self, text: &str) -> Result<Value> {
        if text.trim_ascii().is_empty() {
            return Ok(json!({}));
        }
        let parsed = match self.form {
            ClientFileForm::Toml => parse_toml(text),
            form => json::parse(form, text),
        };
        parsed.map_err(|problem| {
            let form = self.form.name();
            let message = format!("the client's file is not valid {form}: {problem}");
            Error::failed(Code::ClientFileInvalid, message)
                .hint("correct the file, or add the entry yourself")
        })
    }

    /// Returns the entry of this name in the parsed file.
    fn found<'v>(&self, parsed: &'v Value) -> Result<Option<&'v Value>> {
        let root = parsed.as_object().ok_or_else(unusual)?;
        let Some(servers) = root.get(self.table) else {
            return Ok(None);
        };
        let servers = servers.as_object().ok_or_else(unusual)?;
        Ok(servers.get(self.name))
    }
}

impl ClientFileForm {
    fn name(self) -> &'static str {
        match self {
            Self::Json => "JSON",
            Self::JsonWithComments | Self::Jsonc => "JSON with comments",
            Self::Toml => "TOML",
        }
    }
}

/// Identifies an entry: BLAKE3 of its JSON with sorted keys. The keys are sorted since each client
/// formats its files in its own way.
pub fn digest(entry: &Value) -> Digest {
    let mut sorted = entry.clone();
    sorted.sort_all_objects();
    Digest::of(sorted.to_string().as_bytes())
}

fn unusual() -> Error {
    let message = "the entry can't be added without changing other lines of the client's file";
    Error::failed(Code::ClientFileInvalid, message).hint("add the entry yourself")
}

fn parse_toml(text: &str) -> Result<Value, String> {
    let table: toml::Table = toml::from_str(text).map_err(|error| error.message().to_owned())?;
    let table = toml::Value::Table(table);
    if !is_finite(&table) {
        return Err("it has a number that is not finite".to_owned());
    }
    serde_json::to_value(table).map_err(|error| error.to_string())
}

/// Whether every number is finite: JSON has no others.
fn is_finite(value: &toml::Value) -> bool {
    match value {
        toml::Value::Float(number) => number.is_finite(),
        toml::Value::Array(all) => all.iter().all(is_finite),
        toml::Value::Table(all) => all.values().all(is_finite),
        _ => true,
    }
}

/// Returns the text with the entry as a table at the end, or in place of the present table; `None`
/// if the present entry is not written as a separate table.
fn put_toml(entry: &ServerEntry<'_>, text: &str, there: Option<&Value>) -> Option<String> {
    let block = block(entry)?;
    let Some(there) = there else {
        return Some(appended(text, &block));
    };
    let block = block.trim_end().replace('\n', newline(text));
    replaced(text, &table_range(entry, text, there)?, &block)
}

fn block(entry: &ServerEntry<'_>) -> Option<String> {
    let value = toml::Value::try_from(entry.value).ok()?;
    let servers = toml::Table::from_iter([(entry.name.to_owned(), value)]);
    let whole = toml::Table::from_iter([(entry.table.to_owned(), toml::Value::Table(servers))]);
    toml::to_string(&whole).ok()
}

/// Returns the lines of the entry's table: from its header, which must be written as
/// `[TABLE.NAME]`, to the last line that is neither blank nor a comment.
fn table_range(entry: &ServerEntry<'_>, text: &str, there: &Value) -> Option<Range<usize>> {
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
    // A line of a multi-line string may look like the header, so the found lines must parse as
    // exactly this entry.
    let alone = parse_toml(text.get(place.clone())?).ok()?;
    let found = alone.get(entry.table)?.get(entry.name)?;
    (found == there).then_some(place)
}

#[cfg(test)]
mod tests;
