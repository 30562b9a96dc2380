//! The text below a prompt's front matter, cut into messages.

use std::collections::BTreeSet;

use super::{Message, Part, PromptRole};
use crate::argument::Argument;
use crate::codes;
use crate::diagnostic::{Position, Report};
use crate::placeholder::{Text, placeholder};
use crate::wording::is_deceptive;

/// How many messages a prompt may give: each may carry a file.
pub(super) const MAX_MESSAGES: usize = 256;

/// The line that the body begins on.
pub(super) fn first_line(source: &str, body: &str) -> u32 {
    Position::of_offset(source, source.len() - body.len()).line
}

/// What a line is, outside of fenced code.
enum Line<'l> {
    Role(PromptRole),
    Media(&'l str),
    File(&'l str),
    Chosen(&'l str),
    /// Text, less the backslash that kept it from being one of the above.
    Text(&'l str),
}

fn line(text: &str) -> Line<'_> {
    match special(text) {
        Some(line) => line,
        None => match text.strip_prefix('\\') {
            Some(escaped) if escaped.starts_with(['#', '!', '[']) => Line::Text(escaped),
            _ => Line::Text(text),
        },
    }
}

fn special(text: &str) -> Option<Line<'_>> {
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
        return Some(if media {
            Line::Media(target)
        } else {
            Line::File(target)
        });
    }
    match placeholder(target) {
        Some((name, length)) if !media && length == target.len() => Some(Line::Chosen(name)),
        _ => None,
    }
}

/// The fence of code that a line opens, or closes if `open` is the one that is open.
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

/// The messages, one more than are allowed at most.
pub(super) fn messages(source: &str, body: &str, report: &mut Report<'_>) -> Vec<Message> {
    let mut messages = Vec::new();
    let mut role = PromptRole::User;
    let mut text = Run::default();
    let mut open: Option<&str> = None;
    let mut deceived = false;
    for (raw, number) in body.lines().zip(first_line(source, body)..) {
        deceived = deceived || deceptive(raw, number, report);
        let marks = fence(raw, open);
        let found = if open.is_some() || marks.is_some() {
            Line::Text(raw)
        } else {
            line(raw)
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
            Line::Media(path) => Part::Media {
                path: path.to_owned(),
                line: number,
            },
            Line::File(path) => Part::File {
                path: path.to_owned(),
                line: number,
            },
            Line::Chosen(argument) => Part::Chosen {
                argument: argument.to_owned(),
                line: number,
            },
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

/// Whether a line holds what makes it look otherwise than it reads.
fn deceptive(line: &str, number: u32, report: &mut Report<'_>) -> bool {
    let bad = line
        .chars()
        .zip(1..)
        .find(|&(c, _)| is_deceptive(c) && c != '\t');
    if let Some((bad, column)) = bad {
        let message = format!(
            "expected text without control or bidirectional characters, found U+{:04X}",
            u32::from(bad)
        );
        let at = Position {
            line: number,
            column,
        };
        report.add(&codes::TEXT_CONTROL_CHARACTER, at, message);
    }
    bad.is_some()
}

/// Lines of text that become one message.
#[derive(Default)]
struct Run {
    text: Text,
    /// Line feeds that are owed before the next line that isn't blank.
    owed: usize,
    begun: bool,
}

impl Run {
    fn add(&mut self, line: &str, number: u32) {
        if line.trim().is_empty() {
            self.owed += usize::from(self.begun);
            return;
        }
        if self.begun {
            self.text.extend(&"\n".repeat(self.owed + 1), number);
        }
        self.text.extend(line, number);
        self.begun = true;
        self.owed = 0;
    }

    fn finish(&mut self, role: PromptRole, messages: &mut Vec<Message>) {
        let run = std::mem::take(self);
        if run.begun {
            messages.push(Message {
                role,
                part: Part::Text(run.text),
            });
        }
    }
}

/// Whether placeholders are arguments and arguments are used.
pub(super) fn check(messages: &[Message], arguments: &[Argument], report: &mut Report<'_>) {
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
    crate::argument::check(&used, arguments, report);
}
