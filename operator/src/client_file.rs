//! The entry of a server in an MCP client's configuration: put into the client's text so that all text around it stays
//! byte for byte, or refused. Knows no client: which file, table and entry it is says the caller.

mod json;
mod toml;

use serde_json::Value;
use toolward_signing::Digest;

use crate::error::{Code, Error};

/// The form of a client's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Form {
    /// JSON.
    Json,
    /// JSON in which comments may stand.
    JsonWithComments,
    /// JSON in which comments may stand, and a comma after the last member.
    Jsonc,
    /// TOML.
    Toml,
}

/// Where an entry stands in a file, and the entry.
#[derive(Debug, Clone)]
pub struct Entry<'a> {
    /// The form of the file.
    pub form: Form,
    /// The table of servers at the top of the file, such as `mcpServers`.
    pub table: &'a str,
    /// What the client calls the server: letters, digits, `-` and `_`.
    pub name: &'a str,
    /// The entry.
    pub value: &'a Value,
}

/// What becomes of a client's file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The file has this entry.
    Unchanged,
    /// The file with the entry.
    Changed(String),
}

impl Entry<'_> {
    /// The text of the file with the entry in it; `before` is the text that it has, empty if there is no file. An entry
    /// of that name is replaced if `own` says of its digest that it may be.
    ///
    /// # Errors
    /// `entry-foreign` for an entry that may not be replaced; `client-file-invalid` for a text that is not in the form,
    /// or in which the entry can't be put without a change of something else.
    pub fn put(&self, before: &str, own: impl Fn(&Digest) -> bool) -> Result<Outcome, Error> {
        let parsed = self.parsed(before)?;
        let there = self.found(&parsed)?;
        if there == Some(self.value) {
            return Ok(Outcome::Unchanged);
        }
        if let Some(there) = there
            && !own(&digest(there))
        {
            let message = format!(
                "there is an entry `{}` that `mcp config --write` did not write",
                self.name
            );
            return Err(Error::failed(Code::EntryForeign, message).hint(
                "take that entry out of the file yourself, or choose another name with --name",
            ));
        }
        let after = match self.form {
            Form::Toml => toml::put(self, before, there),
            _ => json::put(self, before),
        };
        let after = after.ok_or_else(unusual)?;
        // What was written is read once more: only the entry may differ.
        let mut wanted = parsed.clone();
        let servers = wanted.as_object_mut().map(|root| {
            let servers = root.entry(self.table);
            servers.or_insert_with(|| Value::Object(serde_json::Map::new()))
        });
        let servers = servers.and_then(Value::as_object_mut).ok_or_else(unusual)?;
        servers.insert(self.name.to_owned(), self.value.clone());
        match self.parsed(&after) {
            Ok(read) if read == wanted => Ok(Outcome::Changed(after)),
            _ => Err(unusual()),
        }
    }

    fn parsed(&self, text: &str) -> Result<Value, Error> {
        if text.trim_ascii().is_empty() {
            return Ok(Value::Object(serde_json::Map::new()));
        }
        let parsed = match self.form {
            Form::Toml => toml::parse(text),
            form => json::parse(form, text),
        };
        parsed.map_err(|problem| {
            let message = format!(
                "the client's file is not valid {}: {problem}",
                self.form.name()
            );
            Error::failed(Code::ClientFileInvalid, message)
                .hint("correct the file, or add the entry yourself")
        })
    }

    /// The entry of this name in the parsed file.
    fn found<'v>(&self, parsed: &'v Value) -> Result<Option<&'v Value>, Error> {
        let root = parsed.as_object().ok_or_else(unusual)?;
        let Some(servers) = root.get(self.table) else {
            return Ok(None);
        };
        let servers = servers.as_object().ok_or_else(unusual)?;
        Ok(servers.get(self.name))
    }
}

impl Form {
    fn name(self) -> &'static str {
        match self {
            Self::Json => "JSON",
            Self::JsonWithComments | Self::Jsonc => "JSON with comments",
            Self::Toml => "TOML",
        }
    }
}

/// By what an entry is known again: BLAKE3 of its JSON with sorted keys, since clients write their files in their own
/// way.
#[must_use]
pub fn digest(entry: &Value) -> Digest {
    let mut sorted = entry.clone();
    sorted.sort_all_objects();
    Digest::of(sorted.to_string().as_bytes())
}

fn unusual() -> Error {
    let message = "the entry can't be added without changing other lines of the client's file";
    Error::failed(Code::ClientFileInvalid, message).hint("add the entry yourself")
}

#[cfg(test)]
mod tests;
