//! Asks the person at the terminal whether a call may run, asks the questions of the call's driver,
//! and asks whether a file may change. Without a terminal, nothing is asked. No flag or variable
//! can replace these answers, since an agent could set one. An operator approves calls in advance
//! with `preapproved` in the policy. Commands ask their other questions with [`agrees`] and
//! [`typed`].

mod form;
mod keys;
mod question;

use std::future::Future;
use std::io::Write as _;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use keys::TerminalKeys;
use toolward_host::{Answer, Answerable, ApprovalRequest, Approver, Ask, Asked, Verdict};

use crate::prelude::*;

/// How long a person has to fill in a form.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(600);

/// The terminal of the command. Questions are written to standard error and answered on standard
/// input. Standard output is for the result only.
pub(crate) struct Terminal {
    bar: Arc<Bar>,
    /// Lets only one question be asked at a time.
    turn: tokio::sync::Mutex<()>,
}

impl Terminal {
    /// A terminal shared with `bar`.
    pub(crate) fn new(bar: &Arc<Bar>) -> Self {
        Self {
            bar: Arc::clone(bar),
            turn: tokio::sync::Mutex::default(),
        }
    }

    /// The questions that can be answered here: forms, if there is a terminal.
    pub(crate) fn answerable() -> Answerable {
        Answerable {
            form: has_terminal(),
            ..Answerable::default()
        }
    }

    /// Asks the questions of a driver, one after the other.
    pub(crate) async fn answers(&self, asked: &Asked) -> Vec<(String, Answer)> {
        let mut answers = Vec::with_capacity(asked.questions.len());
        for question in &asked.questions {
            let answer = self.fill_in(asked, &question.ask).await;
            let answer = answer.unwrap_or(Answer::Cancelled);
            answers.push((question.key.clone(), answer));
        }
        answers
    }

    /// Shows one question and reads its answer. Returns `None` if the question is not a form, if
    /// the terminal can't be read, or if the person does not answer in time.
    async fn fill_in(&self, asked: &Asked, ask: &Ask) -> Option<Answer> {
        let _turn = self.turn.lock().await;
        let _hold = self.bar.hold();
        let Ask::Form { schema, .. } = ask else {
            return None;
        };
        let keys = TerminalKeys::take().ok()?;
        let width = keys::width();
        write(&form::shown(asked, ask, width)?).ok()?;
        keys.forget().ok()?;
        let schema = schema.clone();
        let reading =
            tokio::task::spawn_blocking(move || form::filled(&schema, width, write, keys::line));
        let answer = tokio::time::timeout(ANSWER_TIMEOUT, reading).await;
        Some(match answer.ok()?.ok()?.ok()? {
            Some(answer) => Answer::Accepted(answer),
            None => Answer::Declined,
        })
    }

    async fn put(&self, request: &ApprovalRequest) -> std::io::Result<bool> {
        let _turn = self.turn.lock().await;
        let _hold = self.bar.hold();
        // Restores the terminal even if the call ends while the question is still open.
        let keys = TerminalKeys::take()?;
        let width = keys::width();
        write(&question::shown(request, width))?;
        request.mark_asked();
        // Keys that were typed before the question was shown do not answer it.
        keys.forget()?;
        let reading = tokio::task::spawn_blocking(keys::answer);
        reading.await.map_err(std::io::Error::other)?
    }
}

impl Approver for Terminal {
    fn ask<'a>(
        &'a self,
        request: &'a ApprovalRequest,
    ) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>> {
        Box::pin(async move {
            if !has_terminal() {
                return Verdict::Unavailable;
            }
            match self.put(request).await {
                Ok(true) => Verdict::Approved,
                Ok(false) => Verdict::Denied(None),
                // A terminal that can't be read counts as no terminal.
                Err(_) => Verdict::Unavailable,
            }
        })
    }
}

/// Shows a text and a question, and waits for the answer. Keys that were typed before are dropped.
fn confirmed(text: &str, question: &str) -> std::io::Result<bool> {
    let keys = TerminalKeys::take()?;
    write(&format!("{text}\n\n{question} [y/N] "))?;
    keys.forget()?;
    keys::answer()
}

/// Shows a text and a question, and requires an explicit yes. Otherwise, returns the failure that
/// `unconfirmed` makes from a reason: `no_terminal` if there is no terminal, `no_yes` if the answer
/// is not a yes or the terminal can't be read.
pub(crate) fn require(
    text: impl FnOnce() -> String,
    question: &str,
    (no_terminal, no_yes): (&str, &str),
    unconfirmed: impl FnOnce(&str) -> Failure,
) -> Result {
    if !has_terminal() {
        return Err(unconfirmed(no_terminal));
    }
    match confirmed(&text(), question) {
        Ok(true) => Ok(()),
        _ => Err(unconfirmed(no_yes)),
    }
}

/// Shows a text, unless it is empty, and a question, and returns whether a person answers yes.
/// Without a terminal, or if the output is for a program, asks nothing and returns `false`.
pub(crate) fn agrees(text: &str, question: &str, context: &Context) -> bool {
    if !has_terminal() || context.json() {
        return false;
    }
    if !text.is_empty() {
        context.say(text);
    }
    let asked = dialoguer::Confirm::new()
        .with_prompt(question)
        .default(false)
        .interact();
    matches!(asked, Ok(true))
}

/// Shows a text and a question, and waits for a line. Keys that were typed before are dropped.
/// Returns `None` if the person gives no line.
pub(crate) fn typed(text: &str, question: &str) -> std::io::Result<Option<String>> {
    let keys = TerminalKeys::take()?;
    write(&format!("{text}\n\n{question} "))?;
    keys.forget()?;
    keys::line()
}

fn write(text: &str) -> std::io::Result<()> {
    let mut error = std::io::stderr().lock();
    error.write_all(text.as_bytes())?;
    error.flush()
}

/// Longest difference that is shown, in characters. A longer one can't be confirmed.
const MAX_DIFFERENCE_CHARS: usize = 256 * 1024;

/// Shows how the file changes to the text `after`, asks the person, and writes the file. Then
/// writes the result.
pub(crate) fn lasting_change(
    edit: TextEdit,
    after: &str,
    change: LastingChange,
    changes: &LastingChanges,
    context: &Context,
) -> Result {
    let path = edit.file.path().to_owned();
    let backup = edit.file.backup();
    confirm_change("", edit, after, change, changes)?;
    let value = json!({
        "ok": true, "state": "written", "file": path.display().to_string(),
        "backup": backup.map(|backup| backup.display().to_string()),
    });
    let shown = visible_line(&path.display().to_string(), 1000);
    context.result(&value, format_args!("wrote {shown}"))
}

/// Like [`lasting_change`], but writes no result. `why` is shown above the difference.
pub(crate) fn confirm_change(
    why: &str,
    edit: TextEdit,
    after: &str,
    change: LastingChange,
    changes: &LastingChanges,
) -> Result {
    let shown = visible_line(&edit.file.path().display().to_string(), 1000);
    let unconfirmed = |why: &str, hint: &str| {
        Failure::denied(Code::ChangeUnconfirmed, format_args!("{shown}: {why}")).hint(hint)
    };
    if !has_terminal() {
        let hint = "give the command on a terminal, where it shows the difference and asks";
        return Err(unconfirmed("no one can be asked about the change", hint));
    }
    let difference = edit.difference(after);
    if difference.chars().count() > MAX_DIFFERENCE_CHARS {
        let hint = "change the file with an editor";
        return Err(unconfirmed("the difference is too long to be shown", hint));
    }
    let what = match edit.file.has_backup() {
        true => "What it held before the first change stays in",
        false => "What it holds now is kept in",
    };
    let kept = match edit.file.backup() {
        Some(backup) => {
            let backup = visible_line(&backup.display().to_string(), 1000);
            format!("{what} {backup}")
        }
        None => "The file is new".to_owned(),
    };
    let difference = visible(&difference, MAX_DIFFERENCE_CHARS);
    let text = format!("{why}{shown}\n\n{}\n\n{kept}.", difference.trim_end());
    if !matches!(confirmed(&text, "Write this?"), Ok(true)) {
        let hint = "the file is unchanged; a `y` after the question confirms";
        return Err(unconfirmed("the change was not confirmed", hint));
    }
    edit.write(after, change, changes)
}
