//! The approval questions for people and their decisions: questions that wait for an answer,
//! remembered approvals, and the backoff after denials. This keeps an agent from wearing people
//! down.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::watch;

use crate::BoxFuture;
use crate::error::StateError;

/// The most open questions about one tool for one principal.
pub const MAX_QUESTIONS_PER_TOOL: usize = 3;

/// The most open questions for one principal about all tools, more than a person can answer in
/// time.
pub const MAX_QUESTIONS: usize = 32;

/// Identifies a tool, or an approved call of it: a digest of what a person was shown.
pub type ApprovalKey = [u8; 32];

/// The decisions of people about calls. All components that ask people share this state: a
/// terminal, a server's clients, an application.
pub trait Approvals: Send + Sync {
    /// Opens a question that times out at `until`, unless its tool or the tool `also` is backed off
    /// after a denial, or too many questions are open.
    ///
    /// Repeating the operation opens the question only once.
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

    /// Closes a question. A denial backs the tool off and withdraws the other open questions about
    /// it; an approval ends the backoff. Returns whether the question was open. The approval of a
    /// closed question does not count.
    ///
    /// Repeating the operation is safe: a denial counts once, but an approval may be reported as
    /// too late.
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

    /// Remembers the approval of a tool for the session. Returns when the approval ends; `None` if
    /// it is not remembered.
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

    /// Looks up a remembered approval. An expired approval is returned once.
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
    /// The tool of the question. A denial applies to the whole tool.
    pub tool: ApprovalKey,
    /// A random number that the asking component chooses.
    pub number: u64,
}

/// The result of opening a question.
#[derive(Debug)]
pub enum Opening {
    /// The question is open.
    Open(QuestionWatch),
    /// A person denied the tool; the backoff still lasts this long.
    Paused(Duration),
    /// [`MAX_QUESTIONS_PER_TOOL`] is reached. A question is allowed again after this time at the
    /// latest.
    FullForTool(Duration),
    /// [`MAX_QUESTIONS`], or a limit on the questions of all principals, is reached. A question is
    /// allowed again after this time at the latest.
    Full(Duration),
}

/// The answer of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PersonsAnswer {
    /// The person approved.
    Approved,
    /// The person denied. The asking component also reports this if it takes back a question that
    /// the person was shown but did not answer.
    Denied,
    /// The person did not answer, and the question is closed.
    None,
}

/// A remembered approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RememberedApproval {
    /// It is valid until this time.
    Valid(SystemTime),
    /// It ended at this time.
    Expired(SystemTime),
}

/// Notifies the asking component if the question is withdrawn.
#[derive(Debug, Clone)]
pub struct QuestionWatch(watch::Receiver<bool>);

impl QuestionWatch {
    /// Creates a watch, and the sender that withdraws its question by sending true.
    pub fn new() -> (watch::Sender<bool>, Self) {
        let (sender, receiver) = watch::channel(false);
        (sender, Self(receiver))
    }

    /// Another watch of the question of `sender`.
    pub fn of(sender: &watch::Sender<bool>) -> Self {
        Self(sender.subscribe())
    }

    /// Waits until another question about the tool was denied. Waits forever if the question is
    /// closed before.
    pub async fn withdrawn(&mut self) {
        if self.0.wait_for(|withdrawn| *withdrawn).await.is_err() {
            // The question was closed.
            std::future::pending().await
        }
    }

    /// Whether another question about the tool was denied.
    pub fn is_withdrawn(&self) -> bool {
        *self.0.borrow()
    }
}
