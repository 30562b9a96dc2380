//! Asks the person at the terminal whether a call may run, and the questions of its
//! driver. Where there is no
//! terminal, nobody is asked, and no flag stands for an answer: an agent could give
//! it. An operator's standing yes is `preapproved` in the policy.

mod form;
mod keys;
mod question;

use std::future::Future;
use std::io::Write as _;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use toolward_host::{Answer, Answerable, ApprovalRequest, Approver, Ask, Asked, Verdict};

use crate::environment::has_terminal;
use crate::progress::Bar;
use keys::Keys;

/// How long a person has to fill in a form.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(600);

/// The terminal of the command: asked on standard error, answered on standard
/// input. Standard output is the result's.
pub(crate) struct Terminal {
    bar: Arc<Bar>,
    /// One question at a time.
    turn: tokio::sync::Mutex<()>,
}

impl Terminal {
    /// A terminal that `bar` shares.
    pub(crate) fn new(bar: &Arc<Bar>) -> Self {
        Self {
            bar: Arc::clone(bar),
            turn: tokio::sync::Mutex::default(),
        }
    }

    /// The questions that are answered here: forms, where there is a terminal.
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

    /// A terminal that can't be read, or that nobody answers at, gives no answer.
    async fn fill_in(&self, asked: &Asked, ask: &Ask) -> Option<Answer> {
        let _turn = self.turn.lock().await;
        let _hold = self.bar.hold();
        let Ask::Form { schema, .. } = ask else {
            return None;
        };
        let keys = Keys::take().ok()?;
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
        // Given back when the call ends while the question is still open.
        let keys = Keys::take()?;
        let width = keys::width();
        write(&question::shown(request, width))?;
        request.mark_asked();
        // What was typed before the question was shown does not answer it.
        keys.forget()?;
        let reading = tokio::task::spawn_blocking(keys::answer);
        let answer = reading.await.map_err(std::io::Error::other)??;
        Ok(answer)
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
                // A terminal that can't be read is as good as none.
                Err(_) => Verdict::Unavailable,
            }
        })
    }
}

/// Shows a text and a question, and waits for the answer. What was typed before is dropped.
pub(crate) fn confirmed(text: &str, question: &str) -> std::io::Result<bool> {
    let keys = Keys::take()?;
    write(&format!("{text}\n\n{question} [y/N] "))?;
    keys.forget()?;
    keys::answer()
}

/// Shows a text and a question, and waits for a line. What was typed before is dropped. `None`: the person gives none.
pub(crate) fn typed(text: &str, question: &str) -> std::io::Result<Option<String>> {
    let keys = Keys::take()?;
    write(&format!("{text}\n\n{question} "))?;
    keys.forget()?;
    keys::line()
}

fn write(text: &str) -> std::io::Result<()> {
    let mut error = std::io::stderr().lock();
    error.write_all(text.as_bytes())?;
    error.flush()
}
