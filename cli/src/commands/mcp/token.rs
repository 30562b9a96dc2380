//! `mcp token`: a token for `serve --tokens`, and its entry in the file.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use toolward_mcp::http::tokens::{self, Entry};

use crate::failure::{self, Exit, Failure};
use crate::output::Output;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Whose token it is, in up to 64 of a-z, 0-9, ., - and _: what each stores, is
    /// asked and approves is kept apart
    name: String,

    /// A tool that it may use: an id, id@major, a prefix with .*, or * for all
    /// (may be given again) [default: none]
    #[arg(long, value_name = "PATTERN")]
    tools: Vec<String>,

    /// Trust its client to ask a person before a tool does what needs approval
    #[arg(long)]
    may_approve: bool,

    /// Add the entry to this file, mode 0600 [default: the entry is printed below
    /// the token]
    #[arg(long, value_name = "FILE")]
    add: Option<PathBuf>,
}

/// The token is on standard output, once; nothing else has it.
pub(super) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let name = arguments.name.as_str();
    let (secret, hash) = tokens::generate().map_err(failure::http)?;
    let entry =
        Entry::new(name, hash, &arguments.tools, arguments.may_approve).map_err(failure::http)?;
    if let Some(path) = &arguments.add {
        tokens::add(path, &entry).map_err(failure::http)?;
    }
    if arguments.tools.is_empty() {
        output.warning(format!("`{name}` may use no tool: name some with --tools"));
    }
    if output.json() {
        output.value(&json!({
            "ok": true,
            "name": name,
            "token": secret.expose(),
            "hash": hash.to_string(),
            "entry": entry.text(),
            "file": arguments.add,
        }))?;
        return Ok(Exit::Fine);
    }
    output.line(secret.expose())?;
    match &arguments.add {
        Some(path) => output.note(format!(
            "added to {}; a server that runs reads it when it starts again",
            path.display()
        )),
        None => output.line(format!("\n{}", entry.text().trim_end()))?,
    }
    Ok(Exit::Fine)
}
