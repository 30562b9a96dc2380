//! The flags and questions by which an operator fills lines that a declaration alone can't fill.

use toolward_policy::{Choices, OpenChoice, SecretChoice};

use crate::approve;
use crate::prelude::*;

/// Longest list of hosts that a question shows, in characters.
const MAX_HOSTS_CHARS: usize = 400;

#[derive(Debug, Args)]
pub(super) struct ChoiceFlags {
    /// The directory that the tools get as this workspace: /notes=DIR
    ///
    /// May be given again.
    #[arg(long, value_name = "PATH=DIR")]
    workspace: Vec<String>,

    /// Where a secret comes from, and the one origin that it may be sent to
    ///
    /// NAME=env:VARIABLE@https://HOST or NAME=file:PATH@https://HOST; PUBLISHER:NAME if several
    /// publishers have a secret of the name. May be given again.
    #[arg(long, value_name = "NAME=SOURCE@ORIGIN")]
    secret: Vec<String>,

    /// A host that the service of the tools leads to
    ///
    /// SERVICE=HOST if they have several services. May be given again.
    #[arg(long, value_name = "HOST")]
    host: Vec<String>,

    /// An address or network that the tools' hosts may have, such as 10.0.0.0/8
    ///
    /// Besides the public ones. May be given again.
    #[arg(long, value_name = "ADDRESS")]
    address: Vec<String>,
}

impl ChoiceFlags {
    pub(super) fn choices(&self) -> Result<Choices> {
        let mut choices = Choices {
            addresses: self.address.clone(),
            ..Choices::default()
        };
        for text in &self.host {
            choices.add_host(text);
        }
        for text in &self.workspace {
            let (path, directory) = text
                .split_once('=')
                .ok_or_else(|| invalid("--workspace", text, "/notes=DIRECTORY"))?;
            let directory = existing(directory)?;
            choices.workspaces.insert(path.to_owned(), directory);
        }
        for text in &self.secret {
            let parts = text.split_once('=');
            let parsed = parts.and_then(|(slug, rest)| Some((slug, secret(rest)?)));
            let form = "NAME=env:VARIABLE@https://HOST";
            let (slug, choice) = parsed.ok_or_else(|| invalid("--secret", text, form))?;
            choices.add_secret(slug, choice);
        }
        if let Some((_, host)) = choices.hosts.iter().find(|(_, host)| is_example(host)) {
            return Err(invalid("--host", host, "the name of a host"));
        }
        Ok(choices)
    }
}

/// Asks for what is open. An empty answer leaves it open.
pub(super) fn ask(open: &[OpenChoice], choices: &mut Choices) -> Result {
    for one in open {
        match one {
            OpenChoice::Workspace(path) => {
                let text = format!(
                    "{} needs a directory: the tools get it with all that is in it.",
                    visible_line(path, 200)
                );
                if let Some(answer) = answer(&text, "Which directory?") {
                    choices.workspaces.insert(path.clone(), existing(&answer)?);
                }
            }
            OpenChoice::Secret {
                publisher,
                slug,
                egress,
            } => {
                let text = format!(
                    "The secret {} of {} needs a source, and the one origin that it may be sent to.{}",
                    visible_line(slug, 200),
                    visible_line(publisher, 200),
                    hosts(egress)
                );
                let form = "env:VARIABLE@https://HOST or file:PATH@https://HOST";
                if let Some(answer) = answer(&text, &format!("From where to where ({form})?")) {
                    let choice =
                        secret(&answer).ok_or_else(|| invalid("the answer", &answer, form))?;
                    let key = (Some(publisher.clone()), slug.clone());
                    choices.secrets.insert(key, choice);
                }
            }
            OpenChoice::Service { name, egress } => {
                let text = format!(
                    "The service {} needs a host.{}",
                    visible_line(name, 200),
                    hosts(egress)
                );
                if let Some(host) = answer(&text, "Which host?") {
                    if is_example(&host) {
                        return Err(invalid("the answer", &host, "the name of a host"));
                    }
                    choices.hosts.push((Some(name.clone()), host));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn answer(text: &str, question: &str) -> Option<String> {
    let answer = approve::typed(text, question).ok().flatten()?;
    let answer = answer.trim();
    (!answer.is_empty()).then(|| answer.to_owned())
}

fn hosts(egress: &std::collections::BTreeSet<String>) -> String {
    if egress.is_empty() {
        return String::new();
    }
    let hosts: Vec<&str> = egress.iter().map(String::as_str).collect();
    let hosts = visible_line(&hosts.join(", "), MAX_HOSTS_CHARS);
    format!("\nThe driver reaches {hosts}.")
}

/// Whether it is a word that a hint or a suggested line has in place of a choice.
fn is_example(text: &str) -> bool {
    matches!(
        text,
        "HOST" | "VARIABLE" | "PATH" | "TOOLWARD_CHOOSE" | "host.invalid"
    )
}

/// A secret's source and origin, its file as an absolute path.
fn secret(text: &str) -> Option<SecretChoice> {
    let mut choice = SecretChoice::parse(text)?;
    let host = choice.origin.strip_prefix("https://")?;
    if is_example(&choice.place) || is_example(host) {
        return None;
    }
    if choice.source == "file" {
        choice.place = std::path::absolute(&choice.place)
            .ok()?
            .display()
            .to_string();
    }
    Some(choice)
}

/// The absolute path of a directory that exists.
fn existing(directory: &str) -> Result<String> {
    let found = Path::new(directory).canonicalize();
    let found = found.ok().filter(|found| found.is_dir());
    let found = found.as_deref().and_then(Path::to_str).map(str::to_owned);
    found.ok_or_else(|| {
        let message = format!(
            "{}: there is no such directory",
            visible_line(directory, 400)
        );
        Failure::usage(OperatorCode::SettingInvalid, message)
            .hint("make the directory first, or name another one")
    })
}

fn invalid(what: &str, text: &str, form: &str) -> Failure {
    let message = format!("{what} {text:?}: expected {form}");
    Failure::usage(OperatorCode::SettingInvalid, message)
        .hint("`toolward policy suggest` shows what is open")
}
