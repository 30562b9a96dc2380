//! `mcp token`: a token for `serve --tokens`, and its entry in the file.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use toolward_mcp::http::tokens::{self, Entry};

use crate::failure::{Result, http};
use crate::output::Output;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
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
pub(super) fn run(arguments: &Arguments, output: &mut Output) -> Result {
    let (name, file) = (arguments.name.as_str(), &arguments.add);
    let (secret, hash) = tokens::generate().map_err(http)?;
    let entry = Entry::new(name, hash, &arguments.tools, arguments.may_approve).map_err(http)?;
    if let Some(path) = file {
        tokens::add(path, &entry).map_err(http)?;
    }
    if arguments.tools.is_empty() {
        output.warning(format!("`{name}` may use no tool: name some with --tools"));
    }
    let (token, text) = (secret.expose(), entry.text());
    let value = json!({
        "ok": true, "name": name, "token": token, "hash": hash.to_string(),
        "entry": text, "file": file.as_ref().map(|file| file.display().to_string()),
    });
    let Some(path) = file else {
        return output.result(&value, format_args!("{token}\n\n{}", text.trim_end()));
    };
    output.result(&value, token)?;
    output.note(format!(
        "added to {}; a server that runs reads it when it starts again",
        path.display()
    ));
    Ok(())
}
