//! `policy suggest`: prints the fewest lines that let a bundle's tools run and its documents be
//! seen, for the operator to read and add. `policy grant`: adds such lines to the policy's file,
//! after a person has seen them and typed a yes.

use std::fmt::Write as _;

use toolward_policy::{Choices, OpenChoice, Policy, SecretChoice};

use super::{Subject, documents};
use crate::approve;
use crate::prelude::*;

/// Longest suggestion, in characters. A part of a suggestion would be useless.
const MAX_SUGGESTION_CHARS: usize = 1024 * 1024;

/// Longest list of hosts that a question shows, in characters.
const MAX_HOSTS_CHARS: usize = 400;

#[derive(Debug, Args)]
pub(crate) struct Suggest {
    /// Only for this tool
    tool: Option<String>,

    /// Only for this driver
    ///
    /// If the driver is from another publisher than a tool, the lines also let it serve the tool.
    /// Without this flag, the lines are only for drivers from each tool's own publisher.
    #[arg(long, value_name = "ID")]
    driver: Option<String>,

    #[command(flatten)]
    subject: Subject,
}

pub(crate) fn suggest(arguments: &Suggest, context: &Context) -> Result {
    let review = arguments.subject.review(context)?;
    let tool = arguments.tool.as_deref();
    let driver = arguments.driver.as_deref();
    let documents = match (tool, driver) {
        (None, None) => documents(&review),
        _ => Vec::new(),
    };
    let suggestion = review.suggest(tool, driver)?;
    if suggestion.is_none() && documents.is_empty() {
        return Err(review.missing(tool));
    }
    let suggestion = suggestion.unwrap_or_default();
    let (tools, remarks) = (suggestion.chosen.lines, suggestion.remarks);
    let narrower = suggestion.chosen.narrower;
    let documents = toolward_mcp::documents::suggest(&documents);
    let parts = [tools, documents]
        .into_iter()
        .filter(|part| !part.is_empty());
    let lines = parts.collect::<Vec<_>>().join("\n");
    let place = &review.granted.place;
    let mut text = String::new();
    for (content, publisher) in &review.bundles {
        let manifest = &content.manifest;
        let _ = writeln!(
            text,
            "# What {} {} by {} needs beyond the policy that there is.",
            visible_line(manifest.id.as_str(), 200),
            manifest.version,
            visible_line(publisher, 500)
        );
    }
    if lines.contains("# choose") {
        text.push_str(
            "# A line with `# choose` waits for your decision: until then it gives nothing.\n",
        );
    }
    for remark in &remarks {
        let _ = writeln!(text, "# {}", visible_line(remark, 1000));
    }
    if lines.is_empty() {
        text.push_str("# No line is missing.\n");
    } else {
        let lines = visible(&lines, MAX_SUGGESTION_CHARS);
        let _ = writeln!(text, "\n{}", lines.trim_end());
    }
    if let Some(narrower) = &narrower {
        // Written as a comment, since the output may be appended to a file unchanged.
        text.push_str("\n# Or only this, with the hosts and workspaces that you choose:\n");
        for line in visible(narrower, MAX_SUGGESTION_CHARS).trim_end().lines() {
            let _ = writeln!(text, "# {line}");
        }
    }
    let value = json!({ "ok": true, "file": place.display().to_string(), "lines": lines, "narrower_lines": narrower, "remarks": remarks });
    context.result(&value, text.trim_end())?;
    context.note(format!("the policy's file is {}", place.display()));
    Ok(())
}

#[derive(Debug, Args)]
pub(crate) struct GrantFlags {
    /// The tools, each an id or id@major
    #[arg(required = true)]
    tools: Vec<String>,

    /// Let the tools' calls run without asking a person
    ///
    /// Not possible for a tool of risk 3 or with approval `always`.
    #[arg(long)]
    preapprove: bool,

    /// Only for this driver
    ///
    /// If the driver is another publisher's, the lines also bind it to the tools.
    #[arg(long, value_name = "ID")]
    driver: Option<String>,

    #[command(flatten)]
    choices: ChoiceFlags,

    #[command(flatten)]
    subject: Subject,
}

pub(crate) fn grant(arguments: &GrantFlags, context: &Context) -> Result {
    let review = arguments.subject.review(context)?;
    for tool in &arguments.tools {
        let subject = &arguments.subject;
        if let Some(failure) = subject.withheld(&review, tool, context)? {
            return Err(failure);
        }
    }
    let mut choices = arguments.choices.choices()?;
    let with = |choices: &Choices| {
        let driver = arguments.driver.as_deref();
        review.grant(&arguments.tools, driver, arguments.preapprove, choices)
    };
    let mut suggestion = with(&choices)?;
    if !suggestion.chosen.open.is_empty() && has_terminal() {
        ask(&suggestion.chosen.open, &mut choices)?;
        suggestion = with(&choices)?;
    }
    let place = std::path::absolute(&review.granted.place)
        .map_err(|error| Failure::unwritable(&review.granted.place, error))?;
    for remark in &suggestion.remarks {
        context.note(format!("note: {}", visible_line(remark, 1000)));
    }
    let grant = suggestion.chosen;
    if grant.lines.is_empty() {
        let value =
            json!({ "ok": true, "state": "unchanged", "file": place.display().to_string() });
        return context.result(&value, "nothing is missing");
    }
    if !grant.open.is_empty() {
        return Err(open(&grant.open).lines_for(&place, grant.lines, grant.narrower));
    }
    let edit = TextEdit::of(&place)?;
    let after = edit.appended(&grant.lines);
    // The whole file must be valid with the new lines.
    let folder = place.parent().unwrap_or(Path::new("/"));
    Policy::from_toml_in(&after, &place.display().to_string(), folder)
        .map_err(|error| Failure::with_code(Kind::Failed, error.code(), &error).in_file(&place))?;
    let driver = arguments.driver.iter();
    let by: String = driver.map(|driver| format!(" by {driver}")).collect();
    let what = format!("granted what {}{by} declares", arguments.tools.join(", "));
    let change = LastingChange::new("policy grant", what, &place);
    let changes = LastingChanges::of(context)?;
    let made = approve::lasting_change(edit, &after, change, &changes, context);
    made.map_err(|failure| match has_terminal() {
        true => failure,
        // No person was asked, so the operator must add the lines.
        false => failure.lines_for(&place, grant.lines, grant.narrower),
    })
}

/// Returns the error for lines in which a choice is open. Such lines are not written to a file.
fn open(open: &[OpenChoice]) -> Failure {
    let hints = open.iter().map(|one| match one {
        OpenChoice::Workspace(path) => format!("--workspace {path}=DIRECTORY"),
        OpenChoice::Secret {
            publisher, slug, ..
        } => {
            format!("--secret {publisher}:{slug}=env:VARIABLE@https://HOST")
        }
        OpenChoice::Service { name, .. } => format!("--host {name}=HOST"),
        _ => "write the lines below yourself, with what `# choose` marks".to_owned(),
    });
    let hints: Vec<String> = hints.collect();
    let message = "nothing was written: these lines leave something to choose";
    let hints = visible_line(&hints.join(", "), 1000);
    Failure::denied(OperatorCode::ChoiceOpen, message).hint(format!("choose it: {hints}"))
}

/// The operator's choices for lines that a tool's declaration alone does not determine.
#[derive(Debug, Args)]
pub(crate) struct ChoiceFlags {
    /// The directory that the tools get as this workspace: /notes=DIR
    ///
    /// May be given again.
    #[arg(long, value_name = "PATH=DIR")]
    workspace: Vec<String>,

    /// Where a secret comes from, and the one origin that it may be sent to
    ///
    /// NAME=env:VARIABLE@https://HOST or NAME=file:PATH@https://HOST. Write PUBLISHER:NAME if
    /// several publishers have a secret with this name. May be given again.
    #[arg(long, value_name = "NAME=SOURCE@ORIGIN")]
    secret: Vec<String>,

    /// A host of the service that the tools use
    ///
    /// Write SERVICE=HOST if the tools use several services. May be given again.
    #[arg(long, value_name = "HOST")]
    host: Vec<String>,

    /// An address or network that the tools' hosts may have, such as 10.0.0.0/8
    ///
    /// In addition to public addresses. May be given again.
    #[arg(long, value_name = "ADDRESS")]
    address: Vec<String>,
}

impl ChoiceFlags {
    fn choices(&self) -> Result<Choices> {
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

/// Asks for the open choices. An empty answer leaves a choice open.
fn ask(open: &[OpenChoice], choices: &mut Choices) -> Result {
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

/// Whether the text is a placeholder from a hint or from a suggested line.
fn is_example(text: &str) -> bool {
    matches!(
        text,
        "HOST" | "VARIABLE" | "PATH" | "TOOLWARD_CHOOSE" | "host.invalid"
    )
}

/// Parses a secret's source and origin. The path of a file becomes absolute.
fn secret(text: &str) -> Option<SecretChoice> {
    let mut choice = SecretChoice::parse(text)?;
    let host = choice.origin.strip_prefix("https://")?;
    if is_example(&choice.place) || is_example(host) {
        return None;
    }
    if choice.source == "file" {
        let path = std::path::absolute(&choice.place).ok()?;
        choice.place = path.display().to_string();
    }
    Some(choice)
}

/// Returns the absolute path of an existing directory.
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
