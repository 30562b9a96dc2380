//! `new --format runloop`: a tools.json of version 1. Its entries come from flags, or from the person at the terminal.

use clap::Args;
use serde_json::json;
use toolward_author::scaffold::{self, Attachment, RunloopOptions};

use super::Arguments;
use crate::codes::Code;
use crate::environment::{Environment, has_terminal};
use crate::failure::{Failure, Kind, Result};
use crate::output::Output;

/// How many entries are asked for.
const MAX_ENTRIES: usize = 100;

/// The one entry that flags describe.
#[derive(Debug, Args)]
pub(super) struct Entry {
    /// With --format runloop: the URL of the tool, https; ${NAME} in path and query is an input
    #[arg(long, value_name = "URL")]
    url: Option<String>,

    /// With --url: the method [default: GET]
    #[arg(long, value_name = "METHOD", requires = "url")]
    method: Option<String>,

    /// With --url: what the tool does
    #[arg(long, value_name = "TEXT", requires = "url")]
    description: Option<String>,

    /// With --url: the secret that goes into `Authorization: Bearer`
    #[arg(long, value_name = "SLUG", requires = "url")]
    secret: Option<String>,
}

impl Entry {
    /// That nobody gives an entry to a bundle of another format.
    pub(super) fn unused(&self) -> Result {
        match &self.url {
            None => Ok(()),
            Some(_) => Err(Failure::usage(
                Code::EntryMissing,
                "`--url` describes an entry of tools.json, and this bundle gets none".to_owned(),
            )
            .hint("add `--format runloop`")),
        }
    }

    /// The attachment that the flags describe.
    fn given(&self, id: &str) -> Option<Attachment> {
        let url = self.url.clone()?;
        let description = self.description.clone();
        Some(Attachment {
            id: id.to_owned(),
            description: description.unwrap_or_else(|| default_description(id)),
            method: self.method.clone().unwrap_or_else(|| "GET".to_owned()),
            url,
            secret: self.secret.clone(),
        })
    }
}

fn default_description(id: &str) -> String {
    format!("Makes the request of {id}. Say here when to use it.")
}

pub(super) fn run(
    arguments: &Arguments,
    id: String,
    environment: &Environment,
    output: &mut Output,
) -> Result {
    let directory = &arguments.directory;
    let entries = match arguments.entry.given(&id) {
        Some(entry) => vec![entry],
        None if has_terminal() => asked(&id).map_err(|error| missing(&error.to_string()))?,
        None => return Err(missing("there is no terminal to ask on")),
    };
    let options = RunloopOptions {
        id,
        publisher: arguments.publisher.clone(),
        created: environment.created()?,
        entries,
    };
    let files = scaffold::create_runloop(directory, &options)
        .map_err(|error| Failure::of(Kind::Failed, error))?;
    let paths = files
        .iter()
        .map(|file| directory.join(file).display().to_string());
    let value = json!({ "ok": true, "directory": directory, "id": options.id, "files": files });
    output.result(&value, paths.collect::<Vec<_>>().join("\n"))?;
    let shown = crate::output::quoted(directory);
    output.note(format!(
        "\nNext:\n  toolward check {shown}\n  toolward policy suggest --dev {shown}\n  toolward pack {shown} -o {}.toolbundle --key PRIVATE.pem",
        options.id
    ));
    Ok(())
}

fn missing(why: &str) -> Failure {
    let message = format!("a tools.json needs an entry, and nobody described one: {why}");
    Failure::usage(Code::EntryMissing, message)
        .hint("give it with --url URL, and --method, --description and --secret where they matter")
}

/// Asks for entries until there are no more.
fn asked(bundle: &str) -> dialoguer::Result<Vec<Attachment>> {
    let mut entries: Vec<Attachment> = Vec::new();
    while entries.len() < MAX_ENTRIES {
        let id = match entries.is_empty() {
            true => dialoguer::Input::<String>::new()
                .with_prompt("The tool's id")
                .default(bundle.to_owned())
                .interact_text()?,
            false => dialoguer::Input::<String>::new()
                .with_prompt("The next tool's id (nothing: no more tools)")
                .allow_empty(true)
                .interact_text()?,
        };
        if id.trim().is_empty() {
            break;
        }
        let description = dialoguer::Input::<String>::new()
            .with_prompt("What does it do, and when is it used?")
            .default(default_description(&id))
            .interact_text()?;
        let method = dialoguer::Input::<String>::new()
            .with_prompt("Method")
            .default("GET".to_owned())
            .interact_text()?;
        let url = dialoguer::Input::<String>::new()
            .with_prompt("URL (https; ${NAME} is an input)")
            .interact_text()?;
        let secret = dialoguer::Input::<String>::new()
            .with_prompt("The id of a secret for `Authorization: Bearer` (nothing: none)")
            .allow_empty(true)
            .interact_text()?;
        let secret = Some(secret.trim().to_owned()).filter(|slug| !slug.is_empty());
        entries.push(Attachment {
            id: id.trim().to_owned(),
            description,
            method: method.trim().to_ascii_uppercase(),
            url: url.trim().to_owned(),
            secret,
        });
    }
    Ok(entries)
}
