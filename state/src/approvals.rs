//! What people are asked and what they decided, so that an agent can't wear them down: questions that wait for an
//! answer, approvals that are remembered, and the backoff after denials.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::watch;

use crate::BoxFuture;
use crate::error::StateError;

/// Questions about one tool for one principal that are open at the same time.
pub const MAX_QUESTIONS_PER_TOOL: usize = 3;

/// Questions for one principal about all tools: more than a person answers in the time that they are open.
pub const MAX_QUESTIONS: usize = 32;

/// Identifies a tool, or an approved call of it: a digest of what a person was shown.
pub type ApprovalKey = [u8; 32];

/// The decisions of people about calls. Whoever asks them shares it: a terminal, a server's clients, an application.
pub trait Approvals: Send + Sync {
    /// Opens a question that times out at `until`, unless the tool is backed off, or too many questions are open. A
    /// denial of `also` counts, too.
    ///
    /// Repeating it opens the question once.
    ///
    /// # Errors
    ///
    /// [`StateError`].
    fn open(
        &self,
        question: QuestionId,
        also: ApprovalKey,
        until: Instant,
        deadline: Instant,
    ) -> BoxFuture<'_, Result<Opening, StateError>>;

    /// Closes a question. A denial backs the tool off and withdraws the other open questions about it; an approval ends
    /// the backoff. Returns whether the question was open: an approval of one that was not does not count.
    ///
    /// Repeating it is safe: a denial counts once, and an approval may be reported as too late.
    ///
    /// # Errors
    ///
    /// [`StateError`].
    fn answer(
        &self,
        question: QuestionId,
        answer: PersonsAnswer,
        deadline: Instant,
    ) -> BoxFuture<'static, Result<bool, StateError>>;

    /// Remembers the approval of a tool for the session. Returns when it ends; `None` if it is not remembered.
    ///
    /// # Errors
    ///
    /// [`StateError`].
    fn remember(
        &self,
        principal: Arc<str>,
        tool: ApprovalKey,
        deadline: Instant,
    ) -> BoxFuture<'_, Result<Option<SystemTime>, StateError>>;

    /// Looks up a remembered approval. One that has expired is returned once.
    ///
    /// # Errors
    ///
    /// [`StateError`].
    fn remembered<'a>(
        &'a self,
        principal: &'a str,
        tool: ApprovalKey,
        deadline: Instant,
    ) -> BoxFuture<'a, Result<Option<RememberedApproval>, StateError>>;
}

/// One question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuestionId {
    /// The principal.
    pub principal: Arc<str>,
    /// What is asked about: a denial is one of all of it.
    pub tool: ApprovalKey,
    /// Chosen at random by whoever asks.
    pub number: u64,
}

/// What becomes of a question that is to be opened.
#[derive(Debug)]
pub enum Opening {
    /// It is open.
    Open(QuestionWatch),
    /// A person denied the tool; the backoff lasts this long.
    Paused(Duration),
    /// [`MAX_QUESTIONS_PER_TOOL`] is reached; the longest time until a question is allowed again.
    FullForTool(Duration),
    /// [`MAX_QUESTIONS`], or a limit on the questions of all principals, is reached.
    Full(Duration),
}

/// What a person decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PersonsAnswer {
    /// They approved.
    Approved,
    /// They denied. A question that was withdrawn from them unanswered counts as denied.
    Denied,
    /// Nothing. The question is closed.
    None,
}

/// An approval that was remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RememberedApproval {
    /// It is valid until then.
    Valid(SystemTime),
    /// It ended then.
    Expired(SystemTime),
}

/// Tells whoever asks that the question was withdrawn.
#[derive(Debug, Clone)]
pub struct QuestionWatch(watch::Receiver<bool>);

impl QuestionWatch {
    /// A watch, and what withdraws its question by sending true.
    pub fn new() -> (watch::Sender<bool>, Self) {
        let (sender, receiver) = watch::channel(false);
        (sender, Self(receiver))
    }

    /// Another watch of a question.
    pub fn of(sender: &watch::Sender<bool>) -> Self {
        Self(sender.subscribe())
    }

    /// Waits until another question about the tool was denied.
    pub async fn withdrawn(&mut self) {
        if self.0.wait_for(|withdrawn| *withdrawn).await.is_err() {
            // It was closed.
            std::future::pending().await
        }
    }

    /// Whether another question about the tool was denied.
    pub fn is_withdrawn(&self) -> bool {
        *self.0.borrow()
    }
}
