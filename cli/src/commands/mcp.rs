//! `mcp`: the lines that make a client start or reach this server, and tokens for `serve --tokens`.

mod client;
mod config;

use toolward_mcp::http::tokens::{self, Entry};

use crate::failure::http;
use crate::prelude::*;

pub(crate) use client::McpClient;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Print the block that makes a client use this server, or write it into the
    /// client's file
    Config(config::Arguments),
    /// Make a token for `serve --tokens`
    Token(TokenArguments),
}

pub(crate) fn run(command: &Command, environment: &Environment, output: &mut Output) -> Result {
    match command {
        Command::Config(arguments) => config::run(arguments, environment, output),
        Command::Token(arguments) => token(arguments, output),
    }
}

#[derive(Debug, Args)]
pub(crate) struct TokenArguments {
    /// Whose token it is, in up to 64 of a-z, 0-9, ., - and _
    ///
    /// What each stores, is asked and approves is kept apart.
    name: String,

    /// A tool that it may use: an id, id@major, a prefix with .*, or * for all
    ///
    /// May be given again. [default: none]
    #[arg(long, value_name = "PATTERN")]
    tools: Vec<String>,

    /// Trust its client to ask a person before a tool does what needs approval
    #[arg(long)]
    may_approve: bool,

    /// Add the entry to this file, mode 0600
    ///
    /// [default: the entry is printed below the token]
    #[arg(long, value_name = "FILE")]
    add: Option<PathBuf>,
}

/// Makes a token. It is on standard output, once; nothing else has it.
fn token(arguments: &TokenArguments, output: &mut Output) -> Result {
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
