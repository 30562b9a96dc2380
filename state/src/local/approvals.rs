//! Questions, approvals and denials in the memory of this process; denials also in a file.

mod backoff;
mod denials;
mod remembered;

use std::collections::HashMap;
use std::future::ready;
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime};

use tokio::sync::watch;
use toolward_support::helper::lock;

pub(super) use backoff::DenialBackoff;
pub use denials::{Denials, DenialsError};
pub(super) use remembered::RememberedApprovals;

use super::Local;
use crate::BoxFuture;
use crate::approvals::{
    ApprovalKey, Approvals, MAX_QUESTIONS, MAX_QUESTIONS_PER_TOOL, Opening, PersonsAnswer,
    QuestionId, QuestionWatch, RememberedApproval,
};
use crate::error::StateError;

impl Approvals for Local {
    fn open(
        &self,
        question: QuestionId,
        also: ApprovalKey,
        until: Instant,
        _deadline: Instant,
    ) -> BoxFuture<'_, Result<Opening, StateError>> {
        let (principal, now) = (&question.principal, Instant::now());
        let opened = self.pending.open(&question, now, until);
        // The backoff is checked after opening, since a denial from now on withdraws the question.
        let pauses = [&question.tool, &also];
        let pauses = pauses.map(|tool| self.backoff.remaining(principal, tool, now));
        let opened = match pauses.into_iter().flatten().max() {
            Some(pause) => {
                if matches!(opened, Opening::Open(_)) {
                    self.pending.close(principal, question.number);
                }
                Opening::Paused(pause)
            }
            None => opened,
        };
        Box::pin(ready(Ok(opened)))
    }

    fn answer(
        &self,
        question: QuestionId,
        answer: PersonsAnswer,
        _deadline: Instant,
    ) -> BoxFuture<'static, Result<bool, StateError>> {
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
        Box::pin(ready(Ok(was_open)))
    }

    fn remember(
        &self,
        principal: Arc<str>,
        tool: ApprovalKey,
        _deadline: Instant,
    ) -> BoxFuture<'_, Result<Option<SystemTime>, StateError>> {
        Box::pin(ready(Ok(self.remembered.add(&principal, tool))))
    }

    fn remembered<'a>(
        &'a self,
        principal: &'a str,
        tool: ApprovalKey,
        _deadline: Instant,
    ) -> BoxFuture<'a, Result<Option<RememberedApproval>, StateError>> {
        Box::pin(ready(Ok(self.remembered.find(principal, &tool))))
    }
}

/// The most open questions for all principals.
const MAX_TOTAL: usize = 1024;

/// Approval questions by principal that wait for a person's answer. Their number is limited for
/// each tool, for each principal and in total, and a denial cancels the other questions about the
/// tool. So an agent can't wear a person down with many questions. Callers pass the current time.
#[derive(Default)]
pub(super) struct PendingApprovals(Mutex<HashMap<Arc<str>, Vec<Question>>>);

struct Question {
    number: u64,
    tool: ApprovalKey,
    /// The time from which an answer is too late.
    until: Instant,
    ended: watch::Sender<bool>,
}

impl PendingApprovals {
    /// Opens a question, which times out at `until`.
    fn open(&self, question: &QuestionId, now: Instant, until: Instant) -> Opening {
        let mut questions = lock(&self.0);
        let waits = |ends: &mut dyn Iterator<Item = &Question>| {
            let first = ends.map(|question| question.until).min();
            first.unwrap_or(until).saturating_duration_since(now)
        };
        if let Some(own) = questions.get_mut(&question.principal) {
            own.retain(|question| question.until > now);
            if let Some(known) = own.iter().find(|known| known.number == question.number) {
                return Opening::Open(QuestionWatch::of(&known.ended));
            }
            let same = |known: &&Question| known.tool == question.tool;
            if own.iter().filter(same).count() >= MAX_QUESTIONS_PER_TOOL {
                return Opening::FullForTool(waits(&mut own.iter().filter(same)));
            }
            if own.len() >= MAX_QUESTIONS {
                return Opening::Full(waits(&mut own.iter()));
            }
        }
        let count =
            |questions: &HashMap<_, Vec<_>>| questions.values().map(Vec::len).sum::<usize>();
        if count(&questions) >= MAX_TOTAL {
            questions.retain(|_, own| {
                own.retain(|question| question.until > now);
                !own.is_empty()
            });
            if count(&questions) >= MAX_TOTAL {
                return Opening::Full(waits(&mut questions.values().flatten()));
            }
        }
        let (ended, watch) = QuestionWatch::new();
        let own = questions.entry(question.principal.clone());
        own.or_default().push(Question {
            number: question.number,
            tool: question.tool,
            until,
            ended,
        });
        Opening::Open(watch)
    }

    /// Closes a question that was answered or given up. Returns whether it was open.
    fn close(&self, principal: &str, number: u64) -> bool {
        let mut questions = lock(&self.0);
        let Some(own) = questions.get_mut(principal) else {
            return false;
        };
        let place = own.iter().position(|question| question.number == number);
        if let Some(place) = place {
            own.swap_remove(place);
        }
        if own.is_empty() {
            questions.remove(principal);
        }
        place.is_some()
    }

    /// Cancels all questions about a tool.
    fn cancel(&self, principal: &str, tool: &ApprovalKey) {
        let mut questions = lock(&self.0);
        if let Some(own) = questions.get_mut(principal) {
            for question in own.extract_if(.., |question| question.tool == *tool) {
                question.ended.send_replace(true);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use super::*;

    const TOOL: ApprovalKey = [1; 32];
    const OTHER: ApprovalKey = [2; 32];
    const TIMEOUT: Duration = Duration::from_secs(600);

    /// Opens another question.
    fn ask(
        pending: &PendingApprovals,
        principal: &str,
        tool: ApprovalKey,
        now: Instant,
    ) -> Result<(u64, QuestionWatch), Opening> {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let question = QuestionId {
            principal: principal.into(),
            tool,
            number: LAST.fetch_add(1, Ordering::Relaxed),
        };
        match pending.open(&question, now, now + TIMEOUT) {
            Opening::Open(watch) => Ok((question.number, watch)),
            full => Err(full),
        }
    }

    #[test]
    fn about_one_tool_few_questions_are_open_and_too_old_ones_make_room() {
        let (pending, now) = (PendingApprovals::default(), Instant::now());
        let ask = |principal, tool, now| ask(&pending, principal, tool, now);
        for late in 0..MAX_QUESTIONS_PER_TOOL {
            let late = Duration::from_secs(late as u64);
            assert!(ask("alice", TOOL, now + late).is_ok());
        }
        let later = now + Duration::from_secs(10);
        let wait = Duration::from_secs(590);
        let full = ask("alice", TOOL, later).err();
        assert!(matches!(full, Some(Opening::FullForTool(left)) if left == wait));
        assert!(ask("alice", OTHER, later).is_ok());
        assert!(ask("bob", TOOL, later).is_ok());
        assert!(ask("alice", TOOL, now + TIMEOUT).is_ok());
        assert!(ask("alice", TOOL, now + TIMEOUT).is_err());
    }

    #[test]
    fn however_many_tools_it_calls_a_principal_has_so_many_questions_open() {
        let (pending, now) = (PendingApprovals::default(), Instant::now());
        let ask = |principal: &str, tool: u8, now| ask(&pending, principal, [tool; 32], now);
        let tools = 0..u8::try_from(MAX_QUESTIONS).unwrap();
        let all: Vec<_> = tools.map(|tool| ask("alice", tool, now).unwrap()).collect();
        let later = now + Duration::from_secs(10);
        let wait = Duration::from_secs(590);
        let full = ask("alice", 99, later).err();
        assert!(matches!(full, Some(Opening::Full(left)) if left == wait));
        assert!(ask("bob", 99, later).is_ok());
        // An answer frees a place, and so does expiry.
        assert!(pending.close("alice", all[7].0));
        assert!(ask("alice", 99, later).is_ok());
        assert!(ask("alice", 100, later).is_err());
        assert!(ask("alice", 100, now + TIMEOUT).is_ok());
    }

    #[test]
    fn all_principals_together_have_so_many_questions_open() {
        let (pending, now) = (PendingApprovals::default(), Instant::now());
        let ask = |principal: usize, tool: u8, now| {
            ask(&pending, &principal.to_string(), [tool; 32], now)
        };
        for number in 0..MAX_TOTAL {
            let tool = u8::try_from(number % MAX_QUESTIONS).unwrap();
            assert!(ask(number / MAX_QUESTIONS, tool, now).is_ok(), "{number}");
        }
        let full = ask(MAX_TOTAL, 0, now).err();
        assert!(matches!(full, Some(Opening::Full(left)) if left == TIMEOUT));
        assert!(
            !lock(&pending.0).contains_key("1024"),
            "nothing is kept of it"
        );
        assert!(ask(MAX_TOTAL, 0, now + TIMEOUT).is_ok());
        assert_eq!(lock(&pending.0).len(), 1);
    }

    #[test]
    fn a_question_that_is_closed_makes_room_and_a_no_ends_all_about_its_tool() {
        let (pending, now) = (PendingApprovals::default(), Instant::now());
        let ask = |tool| ask(&pending, "alice", tool, now).unwrap();
        let [first, second, third] = [(); 3].map(|()| ask(TOOL));
        let other = ask(OTHER);
        assert!(pending.close("alice", first.0));
        assert!(!pending.close("alice", first.0));
        assert!(!pending.close("bob", second.0));
        ask(TOOL);

        pending.cancel("alice", &TOOL);
        assert!(second.1.is_withdrawn() && third.1.is_withdrawn());
        assert!(!first.1.is_withdrawn() && !other.1.is_withdrawn());
        assert!(!pending.close("alice", second.0));
        assert!(pending.close("alice", other.0));
        assert!(lock(&pending.0).is_empty());
    }
}
