//! Prompts: `prompts/*.md`, messages that a person picks in a client and fills in. Who may see them
//! is decided elsewhere.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::argument::{self, Argument, Text, arguments, placeholder};
use crate::codes;
use crate::diagnostic::{FileReport, Parsed, Position};
use crate::front_matter::split;
use crate::id::ToolId;
use crate::shared::{self, is_deceptive, plain_name};

/// How many messages a prompt may give. Each may carry a file.
const MAX_MESSAGES: usize = 256;

/// A validated prompt.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Prompt {
    /// Identifier, within the publisher's prefixes.
    pub id: ToolId,
    /// Display name.
    pub name: String,
    /// Its description.
    pub description: String,
    /// The arguments that a caller fills in, in order.
    pub arguments: Vec<Argument>,
    /// `metadata.mcp.name`: the name that it requests instead of its id.
    pub mcp_name: Option<String>,
    /// Everything below `metadata`, as written.
    pub metadata: Map<String, Value>,
    /// The messages, in order; at least one.
    pub messages: Vec<Message>,
}

/// One message of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message {
    /// The role of the speaker.
    pub role: PromptRole,
    /// The content: text, a file or a resource.
    pub part: Part,
}

/// The role of a message's speaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromptRole {
    /// The person.
    User,
    /// The model.
    Assistant,
}

/// The content of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part {
    /// Text with placeholders for arguments.
    Text(Text),
    /// A file of the bundle, below `resources/`, as an image or a sound.
    Media {
        /// Its path in the bundle.
        path: String,
        /// The line of the document.
        line: u32,
    },
    /// A file of the bundle, below `resources/`, as an embedded resource.
    File {
        /// Its path in the bundle.
        path: String,
        /// The line of the document.
        line: u32,
    },
    /// The resource of the bundle whose URI is an argument's value.
    Chosen {
        /// The argument's name.
        argument: String,
        /// The line of the document.
        line: u32,
    },
}

impl Prompt {
    /// Reads a prompt. `file` names it in diagnostics.
    pub fn parse(file: &str, source: &str) -> Parsed<Prompt> {
        let report = FileReport::new(file);
        let prompt = split(source, &report).and_then(|parts| {
            let mut fields = parts.root(&report).fields()?;
            let id = shared::id(&mut fields);
            let name = shared::name(&mut fields);
            let description = shared::description(&mut fields);
            let arguments = fields.or_default("arguments", arguments);
            let metadata = fields.take("metadata");
            let asked = metadata.as_ref().and_then(|field| field.below("mcp.name"));
            let mcp_name = asked.and_then(|field| plain_name(&field));
            let metadata = metadata.map(|field| field.mapping()).unwrap_or_default();
            fields.unknown();
            let known = !report.has_errors();
            let messages = messages(source, parts.body, &report);
            // Skipped after an error above: an argument that was refused there would be reported
            // twice.
            if known {
                check_placeholders(&messages, &arguments, &report);
            }
            if !(1..=MAX_MESSAGES).contains(&messages.len()) {
                let message = format!(
                    "expected 1 to {MAX_MESSAGES} messages below the front matter, found {}",
                    messages.len()
                );
                let line = first_line(source, parts.body);
                let at = Position { line, column: 1 };
                report.add(&codes::PROMPT_MESSAGES, at, message);
            }
            Some(Prompt {
                id: id?,
                name: name?,
                description: description?,
                arguments,
                mcp_name,
                metadata,
                messages,
            })
        });
        report.finish(prompt)
    }
}

/// The line on which the body starts.
fn first_line(source: &str, body: &str) -> u32 {
    Position::of_offset(source, source.len() - body.len()).line
}

/// The kind of a line outside fenced code.
enum Line<'l> {
    Role(PromptRole),
    Part(Part),
    /// Text, without the backslash before a `#`, `!` or `[` at its start.
    Text(&'l str),
}

fn line(text: &str, number: u32) -> Line<'_> {
    match special(text, number) {
        Some(line) => line,
        None => match text.strip_prefix('\\') {
            Some(escaped) if escaped.starts_with(['#', '!', '[']) => Line::Text(escaped),
            _ => Line::Text(text),
        },
    }
}

fn special(text: &str, line: u32) -> Option<Line<'_>> {
    let text = text.trim_end();
    if let Some(word) = text.strip_prefix("# ") {
        return match word.trim() {
            word if word.eq_ignore_ascii_case("user") => Some(Line::Role(PromptRole::User)),
            word if word.eq_ignore_ascii_case("assistant") => {
                Some(Line::Role(PromptRole::Assistant))
            }
            _ => None,
        };
    }
    let (media, rest) = match text.strip_prefix('!') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (label, target) = rest.strip_prefix('[')?.split_once("](")?;
    let target = target.strip_suffix(')')?;
    if label.contains(']') || target.contains(['(', ')']) {
        return None;
    }
    if target.starts_with("resources/") && !target.contains(char::is_whitespace) {
        let path = target.to_owned();
        return Some(Line::Part(match media {
            true => Part::Media { path, line },
            false => Part::File { path, line },
        }));
    }
    let (name, length) = placeholder(target).filter(|_| !media)?;
    let argument = name.to_owned();
    (length == target.len()).then_some(Line::Part(Part::Chosen { argument, line }))
}

/// The code fence on a line. Without `open`, this is a fence that opens code. `open` is the fence
/// that opened the code around the line: then only a fence that closes this code is returned.
fn fence<'l>(text: &'l str, open: Option<&str>) -> Option<&'l str> {
    let trimmed = text.trim();
    let mark = trimmed.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = trimmed.chars().take_while(|c| *c == mark).count();
    let (run, rest) = trimmed.split_at_checked(length).filter(|_| length >= 3)?;
    match open {
        None => Some(run),
        Some(open) => (run.starts_with(open) && rest.is_empty()).then_some(run),
    }
}

/// Reads the messages. Stops after a file or resource beyond the allowed number of messages.
fn messages(source: &str, body: &str, report: &FileReport<'_>) -> Vec<Message> {
    let mut messages = Vec::new();
    let mut role = PromptRole::User;
    let mut text = TextRun::default();
    let mut open: Option<&str> = None;
    let mut deceived = false;
    for (raw, number) in body.lines().zip(first_line(source, body)..) {
        deceived = deceived || deceptive(raw, number, report);
        let marks = fence(raw, open);
        let found = match open.or(marks) {
            Some(_) => Line::Text(raw),
            None => line(raw, number),
        };
        match (open, marks) {
            (None, Some(run)) => open = Some(run),
            (Some(_), Some(_)) => open = None,
            _ => {}
        }
        let part = match found {
            Line::Text(kept) => {
                text.add(kept, number);
                continue;
            }
            Line::Role(next) => {
                text.finish(role, &mut messages);
                role = next;
                continue;
            }
            Line::Part(part) => part,
        };
        text.finish(role, &mut messages);
        messages.push(Message { role, part });
        if messages.len() > MAX_MESSAGES {
            return messages;
        }
    }
    text.finish(role, &mut messages);
    messages
}

/// Whether a line has a character that makes it look different from its text. Such a line is
/// reported.
fn deceptive(text: &str, line: u32, report: &FileReport<'_>) -> bool {
    let mut characters = text.chars().zip(1..);
    let bad = characters.find(|&(c, _)| is_deceptive(c) && c != '\t');
    if let Some((bad, column)) = bad {
        let message = format!(
            "expected text without control or bidirectional characters, found U+{:04X}",
            u32::from(bad)
        );
        let at = Position { line, column };
        report.add(&codes::TEXT_CONTROL_CHARACTER, at, message);
    }
    bad.is_some()
}

/// Collects lines of text that become one message.
#[derive(Default)]
struct TextRun {
    text: Text,
    /// The number of blank lines since the last line that isn't blank.
    owed: usize,
    started: bool,
}

impl TextRun {
    fn add(&mut self, line: &str, number: u32) {
        if line.trim().is_empty() {
            self.owed += usize::from(self.started);
            return;
        }
        if self.started {
            self.text.extend(&"\n".repeat(self.owed + 1), number);
        }
        self.text.extend(line, number);
        self.started = true;
        self.owed = 0;
    }

    fn finish(&mut self, role: PromptRole, messages: &mut Vec<Message>) {
        let run = std::mem::take(self);
        if run.started {
            messages.push(Message {
                role,
                part: Part::Text(run.text),
            });
        }
    }
}

/// Checks that all placeholders are arguments and that all arguments are used.
fn check_placeholders(messages: &[Message], arguments: &[Argument], report: &FileReport<'_>) {
    let mut used = BTreeSet::new();
    for message in messages {
        match &message.part {
            Part::Text(text) => used.extend(text.places()),
            Part::Chosen { argument, line } => {
                used.insert((argument.as_str(), *line));
            }
            Part::Media { .. } | Part::File { .. } => {}
        }
    }
    argument::check(&used, arguments, report);
}
