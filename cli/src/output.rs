//! Where output goes: results and diagnostics to standard output, everything else to standard
//! error. With `--json`, failures also go to standard output. Other people's text is sanitised
//! first.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::io::{ErrorKind, Write as _};
use std::ops::Deref;
#[cfg(feature = "adapters")]
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use toolward_bundle::text;
use toolward_contract::diagnostic::{Diagnostic, Severity};
use toolward_operator::{Progress, Report};

use crate::codes::Code;
use crate::environment::{Colours, Environment};
use crate::failure::{Exit, Failure, Result};
use crate::progress::Bar;
use crate::stderr;
use crate::wrap::wrapped_behind;

/// Longest untrusted message that is shown, in characters.
const MAX_MESSAGE_CHARS: usize = 4000;

/// Longest text that is meant for a file, in characters. A part of it would be useless.
const MAX_FILE_CHARS: usize = 256 * 1024;

/// The form of the output, by flags and the environment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Look {
    /// JSON instead of text for people.
    pub(crate) json: bool,
    /// No notes and no progress.
    pub(crate) quiet: bool,
    pub(crate) colours: Colours,
}

impl Look {
    fn tells(self) -> bool {
        !self.json && !self.quiet
    }
}

/// The environment of a command, and its output streams.
#[derive(Debug)]
pub(crate) struct Context {
    environment: Environment,
    look: Look,
}

impl Deref for Context {
    type Target = Environment;

    fn deref(&self) -> &Environment {
        &self.environment
    }
}

impl Context {
    pub(crate) fn new(look: Look, mut environment: Environment) -> Self {
        environment.operator.report = Arc::new(Notes::new(look));
        Self { environment, look }
    }

    /// Whether `--json` was given.
    pub(crate) fn json(&self) -> bool {
        self.look.json
    }

    /// Whether notes and progress are shown to people.
    pub(crate) fn tells(&self) -> bool {
        self.look.tells()
    }

    /// Writes a result to standard output: as JSON, or as lines for people.
    pub(crate) fn result(&self, value: &impl Serialize, lines: impl Display) -> Result {
        match self.json() {
            true => self.value(value),
            false => self.line(lines),
        }
    }

    /// Writes a line, or lines, to standard output.
    pub(crate) fn line(&self, text: impl Display) -> Result {
        raw(format!("{text}\n").as_bytes())
    }

    /// Writes a value as one line of JSON to standard output.
    pub(crate) fn value(&self, value: &impl Serialize) -> Result {
        let line = serde_json::to_string(value).map_err(unwritable)?;
        self.line(text::visible_json(&line))
    }

    /// Writes a value as indented JSON to standard output.
    pub(crate) fn pretty(&self, value: &impl Serialize) -> Result {
        let lines = serde_json::to_string_pretty(value).map_err(unwritable)?;
        self.line(text::visible_json(&lines))
    }

    /// Writes a note to standard error, for people only.
    pub(crate) fn note(&self, text: impl Display) {
        self.report.note(&text.to_string());
    }

    /// Writes to standard error what people need for the next step, even with `--quiet`: a token to
    /// connect with, or the facts of a question.
    pub(crate) fn say(&self, text: impl Display) {
        if !self.json() {
            stderr::write(format!("{text}\n"));
        }
    }

    /// Writes a warning to standard error, even if standard output is for a program. Each warning
    /// is written once.
    pub(crate) fn warning(&self, message: impl Display) {
        self.report.warning(&message.to_string());
    }

    /// Returns a word for standard output in the colour of a severity.
    pub(crate) fn label(&self, text: &str, severity: Severity) -> String {
        paint(text, severity, self.look.colours.stdout)
    }

    /// Writes a diagnostic; for people in the form that compilers use.
    pub(crate) fn diagnostic(&self, diagnostic: &Diagnostic) -> Result {
        self.result(diagnostic, shown(diagnostic, self.look.colours.stdout))
    }

    /// Reports why the command failed, and returns its exit code.
    pub(crate) fn failure(&self, failure: &Failure) -> Exit {
        if self.json() {
            let _ = self.value(&failure.to_json());
            return failure.kind.into();
        }
        for diagnostic in &failure.diagnostics {
            let shown = shown(diagnostic, self.look.colours.stderr);
            stderr::write(format!("{shown}\n"));
        }
        let code = format!("error[{}]:", failure.code);
        let label = paint(&code, Severity::Error, self.look.colours.stderr);
        let severities = failure.diagnostics.iter().map(|one| one.severity);
        let errors = severities.filter(|one| *one == Severity::Error).count();
        if errors > 0 {
            // The message, and usually the hint, repeat the first diagnostic, so they are left out.
            let above = match errors {
                1 => "error".to_owned(),
                _ => format!("{errors} errors"),
            };
            let mut message = format!("{label} stopped at the {above} above\n");
            for hint in &failure.hints {
                let said = |diagnostic: &Diagnostic| diagnostic.hint.as_ref() == Some(hint);
                if !failure.diagnostics.iter().any(said) {
                    message.push_str(&format!("  hint: {}\n", block(hint)));
                }
            }
            stderr::write(message);
            return failure.kind.into();
        }
        let behind = format!("{code} ");
        let mut message = format!("{label} {}\n", wrapped_block(&behind, &failure.message));
        if let Some(cause) = &failure.cause {
            let cause = text::visible_line(cause, MAX_MESSAGE_CHARS);
            message.push_str(&format!("  cause: {cause}\n"));
        }
        for hint in &failure.hints {
            message.push_str(&format!("  hint: {}\n", wrapped_block("  hint: ", hint)));
        }
        let narrower = "or only this, with the hosts and workspaces that you choose:\n\n";
        for (above, lines) in [
            ("", failure.lines.as_deref()),
            (narrower, failure.narrower()),
        ] {
            if let Some(lines) = lines {
                let lines = text::visible(lines, MAX_FILE_CHARS);
                message.push_str(&format!("\n{above}{}\n", lines.trim_end()));
            }
        }
        stderr::write(message);
        failure.kind.into()
    }
}

/// Writes notes to people on standard error.
#[derive(Debug)]
pub(crate) struct Notes {
    look: Look,
    /// The warnings that were written already, so that a warning is not repeated. For example, a
    /// key may be read several times.
    warned: Mutex<BTreeSet<String>>,
}

impl Notes {
    pub(crate) fn new(look: Look) -> Self {
        let warned = Mutex::default();
        Self { look, warned }
    }
}

impl Report for Notes {
    fn warning(&self, message: &str) {
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        if warned.insert(message.to_owned()) {
            let label = paint("warning:", Severity::Warning, self.look.colours.stderr);
            stderr::write(format!("{label} {}\n", block(message)));
        }
    }

    fn note(&self, message: &str) {
        if self.look.tells() {
            stderr::write(format!("{message}\n"));
        }
    }

    fn begin(&self, what: &str) -> Box<dyn Progress> {
        Box::new(Bar::new(what, self.look.tells()))
    }
}

fn shown(diagnostic: &Diagnostic, colour: bool) -> String {
    let line = |text: &str| text::visible_line(text, MAX_MESSAGE_CHARS);
    let (severity, at) = (diagnostic.severity, (diagnostic.line, diagnostic.column));
    let label = format!("{severity}[{}]", diagnostic.code);
    let label = paint(&label, severity, colour);
    let (file, message) = (line(&diagnostic.file), line(&diagnostic.message));
    let mut shown = format!("{file}:{}:{}: {label}: {message}", at.0, at.1);
    if let Some(excerpt) = text::excerpt(diagnostic) {
        shown.push_str(&format!("\n{excerpt}"));
    }
    if let Some(hint) = &diagnostic.hint {
        shown.push_str(&format!("\n  hint: {}", line(hint)));
    }
    shown
}

fn paint(label: &str, severity: Severity, colour: bool) -> String {
    if !colour {
        return label.to_owned();
    }
    let colour = match severity {
        Severity::Error => "31",
        Severity::Warning => "33",
        Severity::Note => "36",
    };
    format!("\u{1b}[1;{colour}m{label}\u{1b}[0m")
}

/// Writes bytes to standard output without sanitising them, since this command made them. If the
/// reader is gone, the work continues.
pub(crate) fn raw(bytes: &[u8]) -> Result {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(unwritable(format_args!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}

pub(crate) fn unwritable(why: impl Display) -> Failure {
    Failure::failed(Code::OutputUnwritable, why)
}

/// Formats a text of several lines. Later lines are marked, so that none can pass for a line of
/// this command.
fn block(text: &str) -> String {
    text::visible(text, MAX_MESSAGE_CHARS).replace('\n', "\n  | ")
}

/// Formats a [`block`] after this label. If standard error is a terminal, lines are broken between
/// words.
fn wrapped_block(label: &str, text: &str) -> String {
    wrapped_behind(label, &text::visible(text, MAX_MESSAGE_CHARS), "\n  | ")
}

/// Lists names on a line of at most this many characters.
pub(crate) fn listed(items: &[String], max: usize) -> String {
    match items {
        [] => "nothing".to_owned(),
        items => text::visible_line(&items.join(", "), max),
    }
}

/// Returns a tool's state for people, in capitals if the tool is blocked or refused.
pub(crate) fn state_word(state: &'static str) -> &'static str {
    match state {
        "blocked" => "BLOCKED",
        "refused" => "REFUSED",
        state => state,
    }
}

/// `1 error`, `2 errors`.
pub(crate) fn counted(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ => format!("{number} {noun}s"),
    }
}

/// Lines for people: a heading, then rows of a name and a text in two columns.
#[derive(Debug, Default)]
pub(crate) struct TextLines {
    text: String,
    /// Columns of a name.
    width: usize,
}

impl TextLines {
    pub(crate) fn new(heading: impl Display) -> Self {
        let text = heading.to_string();
        Self { text, width: 10 }
    }

    /// Leaves room for longer names.
    pub(crate) fn wide(self) -> Self {
        Self { width: 12, ..self }
    }

    pub(crate) fn add(&mut self, line: impl Display) {
        let end = if self.text.is_empty() { "" } else { "\n" };
        self.text.push_str(&format!("{end}{line}"));
    }

    pub(crate) fn row(&mut self, name: &str, text: impl Display) {
        let width = self.width;
        self.add(format_args!("  {name:<width$} {text}"));
    }
}

impl Display for TextLines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

/// Quotes a path for a shell.
#[cfg(feature = "adapters")]
pub(crate) fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._/".contains(&byte);
    match text.bytes().all(plain) && !text.starts_with('-') {
        true => text,
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}
