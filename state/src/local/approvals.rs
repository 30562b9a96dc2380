//! Questions, approvals and denials in the memory of this process, and denials in a file.

mod backoff;
mod denials;
mod pending;
mod remembered;

use std::sync::Arc;
use std::time::Instant;

use backoff::DenialBackoff;
pub use denials::{Denials, DenialsError};
use pending::{PendingApprovals, QuestionsFull};
pub(super) use remembered::RememberedApprovals;

use crate::approvals::{ApprovalKey, Opening, PersonsAnswer, QuestionId};

/// The questions that are open, and the tools that were denied. Clones share them.
#[derive(Clone)]
pub(super) struct OpenQuestions {
    backoff: Arc<DenialBackoff>,
    pending: Arc<PendingApprovals>,
}

impl OpenQuestions {
    /// Denials are kept in `denials`, if given, beyond this process.
    pub(super) fn new(denials: Option<Denials>) -> Self {
        Self {
            backoff: Arc::new(DenialBackoff::new(denials)),
            pending: Arc::default(),
        }
    }

    pub(super) fn open(
        &self,
        question: &QuestionId,
        also: &ApprovalKey,
        until: Instant,
    ) -> Opening {
        let (principal, now) = (&question.principal, Instant::now());
        let opened = self.pending.open(question, now, until);
        // Checked after opening: a denial from now on withdraws the question.
        let pauses = [&question.tool, also];
        let pauses = pauses.map(|tool| self.backoff.remaining(principal, tool, now));
        if let Some(pause) = pauses.into_iter().flatten().max() {
            if opened.is_ok() {
                self.pending.close(principal, question.number);
            }
            return Opening::Paused(pause);
        }
        match opened {
            Ok(watch) => Opening::Open(watch),
            Err(QuestionsFull::Tool(wait)) => Opening::FullForTool(wait),
            Err(QuestionsFull::Person(wait)) => Opening::Full(wait),
        }
    }

    pub(super) fn answer(&self, question: &QuestionId, answer: PersonsAnswer) -> bool {
        let (principal, tool) = (&question.principal, &question.tool);
        let was_open = self.pending.close(principal, question.number);
        match answer {
            PersonsAnswer::Denied => {
                self.backoff.denied(principal, *tool, Instant::now());
                self.pending.cancel(principal, tool);
            }
            PersonsAnswer::Approved if was_open => self.backoff.approved(principal, tool),
            PersonsAnswer::Approved | PersonsAnswer::None => {}
        }
        was_open
    }
}
