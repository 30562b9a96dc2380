//! `mcp`: prints the configuration that makes a client start or reach this server, or writes it
//! into the client's file after a person has seen the difference. Also makes tokens for
//! `serve --tokens`.

mod client;

use std::any::TypeId;

use clap::{CommandFactory as _, FromArgMatches as _};
use client::Server;
use toolward_mcp::http::tokens::{self, Entry};
use toolward_operator::{client_file, settings};

use crate::commands::Cli;
use crate::failure::http;
use crate::prelude::*;
use crate::{approve, usage};

pub(crate) use client::{McpClient, started};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Print the block that makes a client use this server, or write it into the
    /// client's file
    Config(ConfigFlags),
    /// Make a token for `serve --tokens`
    Token(TokenArguments),
}

pub(crate) fn run(command: &Command, context: &Context) -> Result {
    match command {
        Command::Config(arguments) => config(arguments, context),
        Command::Token(arguments) => token(arguments, context),
    }
}

#[derive(Debug, Args)]
pub(crate) struct TokenArguments {
    /// The name of the token's holder: up to 64 of a-z, 0-9, ., - and _
    ///
    /// Each name has separate stored data, questions and approvals.
    name: String,

    /// A tool that the holder may use: an id, id@major, a prefix with .*, or * for all
    ///
    /// May be given again. [default: none]
    #[arg(long, value_name = "PATTERN")]
    tools: Vec<String>,

    /// Trust the holder's client to ask a person before a tool does what needs approval
    #[arg(long)]
    may_approve: bool,

    /// Add the token's entry to this file, with mode 0600
    ///
    /// [default: the entry is printed below the token]
    #[arg(long, value_name = "FILE")]
    add: Option<PathBuf>,
}

/// Makes a token. The token is printed once to standard output and stored nowhere else.
fn token(arguments: &TokenArguments, context: &Context) -> Result {
    let (name, file) = (arguments.name.as_str(), &arguments.add);
    let (secret, hash) = tokens::generate().map_err(http)?;
    let entry = Entry::new(name, hash, &arguments.tools, arguments.may_approve).map_err(http)?;
    if let Some(path) = file {
        tokens::add(path, &entry).map_err(http)?;
    }
    if arguments.tools.is_empty() {
        context.warning(format!("`{name}` may use no tool: name some with --tools"));
    }
    let (token, text) = (secret.expose(), entry.text());
    let value = json!({
        "ok": true, "name": name, "token": token, "hash": hash.to_string(),
        "entry": text, "file": file.as_ref().map(|file| file.display().to_string()),
    });
    let Some(path) = file else {
        return context.result(&value, format_args!("{token}\n\n{}", text.trim_end()));
    };
    context.result(&value, token)?;
    context.note(format!(
        "added to {}; a server that runs reads it when it starts again",
        path.display()
    ));
    Ok(())
}

/// The flags that a client's file must not contain: each gives a writer of that file more rights
/// than the operator's own configuration does.
const REFUSED: [&str; 4] = ["--no-confine", "--trust-client", "--dev", "--trust-key"];

/// Longest name of a server that is written.
const MAX_NAME_CHARS: usize = 64;

#[derive(Debug, Args)]
pub(crate) struct ConfigFlags {
    /// The client that will use the server
    #[arg(value_enum)]
    client: McpClient,

    /// What the client calls the server
    #[arg(long, value_name = "NAME", default_value = "toolward")]
    name: String,

    /// Have the client connect to this address, which `serve --http` printed
    ///
    /// Without this flag, the client starts a server.
    #[arg(long, value_name = "URL", conflicts_with = "flags")]
    url: Option<String>,

    /// Write the entry into the client's file in your home directory, after a yes
    ///
    /// Shows the difference and asks on the terminal. All other text of the file stays unchanged.
    #[arg(long)]
    write: bool,

    /// Flags for `toolward serve`, such as -- --bundle PATH --trust-key PEM
    #[arg(last = true, value_name = "FLAG")]
    flags: Vec<String>,
}

fn config(arguments: &ConfigFlags, context: &Context) -> Result {
    let (server, trust) = match &arguments.url {
        Some(url) => (Server::Reached { url: url.clone() }, None),
        None => {
            let (flags, trust) = checked(&arguments.flags)?;
            (started(flags)?, Some(trust))
        }
    };
    let (place, block) = arguments.client.block(&arguments.name, &server)?;
    if !arguments.write {
        context.note(format!("# {place}"));
        return context.line(block);
    }
    arguments.refuse(&server)?;
    let written = arguments.write(&server, context);
    // If writing fails, a person can add the block by hand.
    written.inspect_err(|_| {
        if !context.json() {
            context.note(format!("# {place}"));
            let _ = context.line(block);
        }
    })?;
    match trust {
        // If the client connects with a token, the token's own `may_approve` decides.
        None => Ok(()),
        Some(trust) => arguments.let_approve(&trust, context),
    }
}

impl ConfigFlags {
    /// Refuses a name, flags or an address that may be printed but not written.
    fn refuse(&self, server: &Server) -> Result {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let length = self.name.chars().count();
        if !(1..=MAX_NAME_CHARS).contains(&length) || !self.name.chars().all(plain) {
            let message = format!("--name {:?} can't be written", self.name);
            return Err(Failure::usage(OperatorCode::SettingInvalid, message)
                .hint("use 1 to 64 of the letters A to Z and a to z, digits, - and _"));
        }
        match server {
            Server::Started { flags, .. } => {
                let name = |flag: &str| flag.split('=').next().unwrap_or_default().to_owned();
                let mut names = flags.iter().map(|flag| name(flag));
                let Some(refused) = names.find(|name| REFUSED.contains(&name.as_str())) else {
                    return Ok(());
                };
                let message = format!("{refused} is not written into a client's file");
                let hint = match refused.as_str() {
                    "--trust-client" => {
                        "leave it out: --write asks whether the client may ask for approval, and \
                         writes its name into `may_approve` of `[clients]` in toolward.toml"
                    }
                    _ => "print the block without --write, and add it yourself",
                };
                Err(Failure::usage(Code::FlagRefused, message).hint(hint))
            }
            Server::Reached { url } => self.refuse_address(url),
        }
    }

    fn refuse_address(&self, url: &str) -> Result {
        let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
        let authority = authority.split('/').next().unwrap_or_default();
        if authority.contains('@') || url.contains(['?', '#']) {
            let message = "an address with a user, a query or a fragment is not written: it may hold a secret";
            return Err(Failure::usage(Code::FlagRefused, message)
                .hint("give the address that `serve --http` printed"));
        }
        if self.client.facts().token.is_none() {
            let message = "this client's file would hold the token itself";
            return Err(Failure::usage(Code::FlagRefused, message)
                .hint("print the block without --write, or let the client start the server"));
        }
        Ok(())
    }

    fn write(&self, server: &Server, context: &Context) -> Result {
        let facts = self.client.facts();
        if let Some(variable) = self.client.moved(context.home.as_deref()) {
            let message = format!("{variable} is set: the client's file is somewhere else");
            return Err(Failure::failed(OperatorCode::FileUnfit, message)
                .hint("add the entry to that file yourself"));
        }
        let home = context.home.as_deref().ok_or_else(|| {
            Failure::failed(OperatorCode::FileUnfit, "there is no home directory")
                .hint("set HOME to an absolute path")
        })?;
        let edit = TextEdit::beneath(home, Path::new(facts.file))?;
        let changes = LastingChanges::of(context)?;
        let value = self.client.entry(server);
        let entry = facts.entry(&self.name, &value);
        let path = edit.file.path().to_owned();
        // Entries that this command wrote are recognised by name, file and digest.
        let known = changes.all()?;
        let own = |digest: &_| known.iter().any(|one| one.wrote(&path, &self.name, digest));
        let outcome = entry.put(&edit.text, own);
        let Some(after) = outcome.map_err(|failure| failure.in_file(&path))? else {
            let file = path.display().to_string();
            let value = json!({ "ok": true, "state": "unchanged", "file": file });
            return context.result(&value, format_args!("{file} has it already"));
        };
        let what = format!("wrote the entry `{}`", self.name);
        let change = LastingChange::new("mcp config --write", what, &path)
            .with_entry(&self.name, client_file::digest(&value));
        approve::lasting_change(edit, &after, change, &changes, context)?;
        context.note("the client reads it when it starts again");
        Ok(())
    }

    /// Asks whether the client that starts the server may ask its person for approval, and writes
    /// `[clients]` of the configuration. If the person declines, that is not an error: the client's
    /// file has the entry in either case.
    fn let_approve(&self, trust: &Trust, context: &Context) -> Result {
        let names = self.client.sent_names(&self.name);
        let place = trust.place(context)?.display().to_string();
        let edit = TextEdit::of(Path::new(&absolute(&place)))?;
        let path = edit.file.path().to_owned();
        let Some(after) = settings::allow_clients(&edit.text, &path, &names)? else {
            return Ok(());
        };
        let why = "A tool that needs a person's approval can be used through this client only if the client may \
             ask its person.\nAllow it only if the client shows each question and lets no model answer it. It is then \
             known by\nthe name that it sends, which any program of yours can send.\n\n";
        let what = "let a client ask for approval";
        let change = LastingChange::new("mcp config --write", what, &path);
        let changes = LastingChanges::of(context)?;
        match approve::confirm_change(why, edit, &after, change, &changes) {
            Ok(()) => context.note(format!("wrote {}", path.display())),
            Err(failure) if failure.code == Code::ChangeUnconfirmed.code() => context.note(
                "this client may not ask for approval: a tool that needs it is refused there (`[clients]` in \
                 toolward.toml)",
            ),
            Err(failure) => return Err(failure),
        }
        Ok(())
    }
}

/// Returns the flags as a client may pass them to `serve`, with absolute paths, and the trust that
/// they choose.
fn checked(flags: &[String]) -> Result<(Vec<String>, Trust)> {
    let words = ["toolward", "serve"].into_iter();
    let words = words.chain(flags.iter().map(String::as_str));
    let untaken = "`toolward serve` does not take these flags";
    let refused = |error: &clap::Error| {
        let failure = usage::failure(error);
        let message = format!("{untaken}: {}", failure.message);
        failure.saying(message)
    };
    let matches = Cli::command().try_get_matches_from(words);
    let matches = matches.map_err(|error| refused(&error))?;
    Cli::from_arg_matches(&matches).map_err(|error| refused(&error))?;
    let serve = matches.subcommand().map(|(_, serve)| serve);
    let serve = serve.ok_or_else(|| Failure::usage(Code::FlagRefused, untaken))?;
    let trust = Flagged::<Trust>::from_arg_matches(serve).map_err(|error| refused(&error))?;
    let command = Cli::command();
    let serve = command.find_subcommand("serve");
    let takes_path = |name: &str| {
        let mut all = serve.into_iter().flat_map(clap::Command::get_arguments);
        let found = all.find(|one| one.get_long() == Some(name));
        found.is_some_and(|one| one.get_value_parser().type_id() == TypeId::of::<PathBuf>())
    };
    let mut whole = Vec::with_capacity(flags.len());
    let mut path_follows = false;
    for flag in flags {
        let name = flag.strip_prefix("--").filter(|_| !path_follows);
        whole.push(match name.map(|name| (name.split_once('='), name)) {
            None if path_follows => absolute(flag),
            Some((Some((name, value)), _)) if takes_path(name) => {
                format!("--{name}={}", absolute(value))
            }
            _ => flag.clone(),
        });
        path_follows = name.is_some_and(takes_path);
    }
    Ok((whole, trust.0))
}

/// Makes a path absolute, so that it is valid wherever the client starts the server.
fn absolute(path: &str) -> String {
    let whole = std::fs::canonicalize(path).or_else(|_| std::path::absolute(path));
    whole.map_or_else(|_| path.to_owned(), |whole| whole.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn paths_become_absolute_in_each_form_and_nothing_else_does() {
        let here = std::env::current_dir().unwrap().canonicalize().unwrap();
        let here = here.display();
        // `src` is a folder here. As a value that is not a path it stays unchanged.
        for (given, expected) in [
            ("--bundle src", format!("--bundle {here}/src")),
            ("--bundle=src", format!("--bundle={here}/src")),
            (
                "--state-dir nowhere/x",
                format!("--state-dir {here}/nowhere/x"),
            ),
            (
                "--http 127.0.0.1:0 --allow-host src",
                "--http 127.0.0.1:0 --allow-host src".to_owned(),
            ),
            ("--defer-above 9 -q", "--defer-above 9 -q".to_owned()),
        ] {
            assert_eq!(
                checked(&words(given)).unwrap().0,
                words(&expected),
                "{given}"
            );
        }
    }

    #[test]
    fn flags_that_serve_does_not_have_are_refused() {
        for flags in [
            "--bundel x",
            "--defer-above many",
            "--set a=1",
            "x",
            "--help",
        ] {
            let failure = checked(&words(flags)).unwrap_err();
            assert_eq!(
                (failure.code.as_str(), failure.kind),
                ("usage-invalid", Kind::Usage),
                "{flags}"
            );
        }
    }
}
