//! `new --format runloop`: makes a tools.json of version 1. Its entries come from flags or from the
//! person at the terminal.

use toolward_adapters::import::NewBundle;
use toolward_adapters::scaffold::{self, Attachment};
use toolward_author::scaffold::ScaffoldError;

use super::Arguments;
use crate::prelude::*;

/// The most entries that are asked for.
const MAX_ENTRIES: usize = 100;

/// The one entry that flags describe.
#[derive(Debug, Args)]
pub(super) struct Entry {
    /// With --format runloop: the tool's https URL; ${NAME} in its path or query is an input
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
    /// Fails if flags describe an entry. Called for a bundle of another format, which has no
    /// entries.
    pub(super) fn unused(&self) -> Result {
        match &self.url {
            None => Ok(()),
            Some(_) => {
                let message = "`--url` describes an entry of tools.json, and this bundle gets none";
                Err(Failure::usage(Code::EntryMissing, message).hint("add `--format runloop`"))
            }
        }
    }

    /// The entry that the flags describe.
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

pub(super) fn run(arguments: &Arguments, id: String, context: &Context) -> Result {
    let directory = &arguments.directory;
    let entries = match arguments.entry.given(&id) {
        Some(entry) => vec![entry],
        None if has_terminal() => {
            let tell = |problem: &ScaffoldError| {
                context.note(format!("{problem}\nDescribe it again."));
            };
            let entries = collected(|first| ask(&id, first), tell);
            entries.map_err(|error| missing(&error.to_string()))?
        }
        None => return Err(missing("there is no terminal to ask on")),
    };
    let bundle = NewBundle {
        id,
        publisher: arguments.publisher(context),
        created: context.created()?,
    };
    let files = scaffold::create(directory, &bundle, &entries).map_err(failed)?;
    arguments.report(&bundle.id, &files, context)?;
    let shown = quoted(directory);
    context.note(format!(
        "\nNext:\n  toolward check {shown}\n  toolward policy suggest --dev {shown}\n  toolward pack {shown} -o {}.toolbundle --key PRIVATE.pem",
        bundle.id
    ));
    Ok(())
}

fn missing(why: &str) -> Failure {
    let message = format!("a tools.json needs an entry, and nobody described one: {why}");
    Failure::usage(Code::EntryMissing, message)
        .hint("give it with --url URL, and --method, --description and --secret where they matter")
}

/// Asks for entries until the person gives no more. An entry that no host would run is reported and
/// left out; the other entries stay.
fn collected(
    mut ask: impl FnMut(bool) -> dialoguer::Result<Option<Attachment>>,
    tell: impl Fn(&ScaffoldError),
) -> dialoguer::Result<Vec<Attachment>> {
    let mut entries: Vec<Attachment> = Vec::new();
    while entries.len() < MAX_ENTRIES {
        let Some(entry) = ask(entries.is_empty())? else {
            break;
        };
        match scaffold::check_entry(&entry) {
            Ok(()) => entries.push(entry),
            Err(problem) => tell(&problem),
        }
    }
    Ok(entries)
}

/// Asks for one entry. The first entry has a default id and must be described. Returns `None` if
/// the person gives no more entries.
fn ask(bundle: &str, first: bool) -> dialoguer::Result<Option<Attachment>> {
    let input = |prompt: &str| dialoguer::Input::<String>::new().with_prompt(prompt);
    let id = match first {
        true => input("The tool's id").default(bundle.to_owned()),
        false => input("The next tool's id (nothing: no more tools)").allow_empty(true),
    };
    let id = id.interact_text()?;
    if id.trim().is_empty() {
        return Ok(None);
    }
    let description = input("What does it do, and when is it used?");
    let description = description
        .default(default_description(&id))
        .interact_text()?;
    let method = input("Method").default("GET".to_owned()).interact_text()?;
    let url = input("URL (https; ${NAME} is an input)").interact_text()?;
    let secret = input("The id of a secret for `Authorization: Bearer` (nothing: none)");
    let secret = secret.allow_empty(true).interact_text()?;
    let secret = Some(secret.trim().to_owned()).filter(|slug| !slug.is_empty());
    Ok(Some(Attachment {
        id: id.trim().to_owned(),
        description,
        method: method.trim().to_ascii_uppercase(),
        url: url.trim().to_owned(),
        secret,
    }))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn an_entry_that_no_host_runs_is_asked_for_again_and_the_others_are_kept() {
        let entry = |id: &str| Attachment {
            id: id.to_owned(),
            description: "Finds.".to_owned(),
            method: "GET".to_owned(),
            url: "https://api.example/find".to_owned(),
            secret: None,
        };
        let answers = [Some("a.good"), Some("No Id"), Some("a.better"), None];
        let mut answers = answers.into_iter();
        let told = RefCell::new(Vec::new());
        let entries = collected(
            |_| Ok(answers.next().flatten().map(entry)),
            |problem| told.borrow_mut().push(problem.to_string()),
        );
        let ids = entries
            .expect("no terminal is needed")
            .into_iter()
            .map(|one| one.id);
        assert_eq!(ids.collect::<Vec<_>>(), ["a.good", "a.better"]);
        assert_eq!(told.into_inner().len(), 1);
    }
}
