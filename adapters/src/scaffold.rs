//! Creates a bundle with a tools.json of version 1, the format of Runloop (another host for
//! agents). Its tools are HTTP requests, without code.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Map, Value, json};
use toolward_author::create_directory;
use toolward_author::scaffold::ScaffoldError;
use toolward_contract::NoScope;
use toolward_contract::diagnostic::Diagnostic;
use toolward_contract::index::Index;
use toolward_signing::id::Id;

use crate::import::NewBundle;
use crate::records::references::object;

/// One tool, whose calls make an HTTP request.
#[derive(Debug, Clone, Default)]
pub struct Attachment {
    /// The tool's id.
    pub id: String,
    /// What it does.
    pub description: String,
    /// The method, in capitals.
    pub method: String,
    /// The URL. `${NAME}` in its path and query is an input.
    pub url: String,
    /// The id of the secret that goes into `Authorization: Bearer`.
    pub secret: Option<String>,
}

/// Writes a new bundle with these tools, at least one, to `directory`, which must not exist.
/// Returns the names of the written files.
///
/// # Errors
///
/// If the bundle's id or publisher is invalid, its time can't be written, an entry is invalid, or
/// the directory exists or can't be written.
pub fn create(
    directory: &Path,
    bundle: &NewBundle,
    entries: &[Attachment],
) -> Result<Vec<String>, ScaffoldError> {
    for (what, name) in [("id", &bundle.id), ("publisher", &bundle.publisher)] {
        Id::parse(name).map_err(|source| ScaffoldError::Name(what, source))?;
    }
    let unwritable = ScaffoldError::Unwritable("the time");
    let toml = bundle.toml().ok_or(unwritable)?;
    for entry in entries {
        check_entry(entry)?;
    }
    let entries: Vec<Value> = entries.iter().map(written).collect();
    let document = format!("{:#}\n", json!({ "version": 1, "tools": entries }));
    read_back(&document, &bundle.id)?;
    let files = [("bundle.toml", toml), ("tools.json", document)];
    let written = files.iter().map(|(name, text)| (*name, text.as_bytes()));
    create_directory(directory, written)?;
    Ok(files.into_iter().map(|(name, _)| name.to_owned()).collect())
}

/// Checks that a host can read this one entry and accepts its transport.
///
/// # Errors
/// The problem of the entry.
pub fn check_entry(entry: &Attachment) -> Result<(), ScaffoldError> {
    let document = json!({ "version": 1, "tools": [written(entry)] });
    read_back(&document.to_string(), &entry.id)
}

/// Reads a document as a host does. A transport that a host would deny is an error here.
fn read_back(document: &str, id: &str) -> Result<(), ScaffoldError> {
    let wrong =
        |found: Diagnostic| ScaffoldError::Entry(id.chars().take(100).collect(), found.message);
    let parsed = Index::parse("tools.json", document.as_bytes(), &NoScope);
    let mut found = parsed.diagnostics.into_iter();
    let Some(index) = parsed.value else {
        let first = found.find(Diagnostic::is_error);
        return first.map_or(Ok(()), |first| Err(wrong(first)));
    };
    for (entry, contract) in index.tools.iter().zip(&index.contracts()) {
        if let Some(Err(denied)) = entry.driver(contract, "tools.json") {
            return Err(wrong(denied));
        }
    }
    Ok(())
}

fn written(entry: &Attachment) -> Value {
    let names = inputs(&entry.url);
    let properties: Map<String, Value> = names
        .iter()
        .map(|name| (name.clone(), json!({ "type": "string" })))
        .collect();
    let slug = entry.secret.as_ref();
    let bearer = |slug| json!({ "Authorization": format!("Bearer ${{secret:{slug}}}") });
    let rest = entry.url.strip_prefix("https://").unwrap_or_default();
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let reads = matches!(entry.method.as_str(), "GET" | "HEAD" | "OPTIONS");
    let transport = object! {
        kind = "http";
        method = entry.method;
        url = entry.url;
        headers ? slug.map(bearer);
    };
    object! {
        id = entry.id;
        description = entry.description;
        transport = transport;
        input_schema = json!({ "type": "object", "properties": properties, "required": names });
        result_schema = json!({});
        capabilities = [format!("net:{host}")];
        requires_confirmation = !reads;
        secrets ? slug.map(|slug| [slug]);
    }
}

/// Returns the names in `${NAME}` and `${input.NAME}`.
fn inputs(url: &str) -> BTreeSet<String> {
    let after = url.split("${").skip(1);
    let inner = after.filter_map(|text| Some(text.split_once('}')?.0));
    inner
        .map(|name| name.strip_prefix("input.").unwrap_or(name).to_owned())
        .collect()
}
