//! Approval questions that wait for a person's answer. Their number is limited for each
//! tool, each principal and in all, and a denial cancels the other questions about the
//! tool: an agent can't wear a person down with many of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::approvals::{
    ApprovalKey, MAX_QUESTIONS, MAX_QUESTIONS_PER_TOOL, QuestionId, QuestionWatch,
};

/// Questions for all principals.
const MAX_TOTAL: usize = 1024;

/// Open questions by principal. Callers pass the current time.
#[derive(Default)]
pub(super) struct PendingApprovals {
    questions: Mutex<Questions>,
}

#[derive(Default)]
struct Questions {
    open: HashMap<Arc<str>, Vec<Question>>,
}

impl Questions {
    fn count(&self) -> usize {
        self.open.values().map(Vec::len).sum()
    }
}

struct Question {
    number: u64,
    tool: ApprovalKey,
    /// From then on an answer is too late.
    until: Instant,
    ended: watch::Sender<bool>,
}

/// Which limit is reached, and the longest time until a question is allowed again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuestionsFull {
    /// [`MAX_QUESTIONS_PER_TOOL`].
    Tool(Duration),
    /// [`MAX_QUESTIONS`] or [`MAX_TOTAL`].
    Person(Duration),
}

impl PendingApprovals {
    /// Opens a question, which times out at `until`.
    ///
    /// # Errors
    ///
    /// [`QuestionsFull`].
    pub(super) fn open(
        &self,
        question: &QuestionId,
        now: Instant,
        until: Instant,
    ) -> Result<QuestionWatch, QuestionsFull> {
        let mut questions = self.lock();
        let waits = |ends: &mut dyn Iterator<Item = &Question>| {
            let first = ends.map(|question| question.until).min();
            first.unwrap_or(until).saturating_duration_since(now)
        };
        if let Some(own) = questions.open.get_mut(&question.principal) {
            own.retain(|question| question.until > now);
            if let Some(known) = own.iter().find(|known| known.number == question.number) {
                return Ok(QuestionWatch::of(&known.ended));
            }
            let same = |known: &&Question| known.tool == question.tool;
            if own.iter().filter(same).count() >= MAX_QUESTIONS_PER_TOOL {
                return Err(QuestionsFull::Tool(waits(&mut own.iter().filter(same))));
            }
            if own.len() >= MAX_QUESTIONS {
                return Err(QuestionsFull::Person(waits(&mut own.iter())));
            }
        }
        if questions.count() >= MAX_TOTAL {
            questions.open.retain(|_, own| {
                own.retain(|question| question.until > now);
                !own.is_empty()
            });
            if questions.count() >= MAX_TOTAL {
                return Err(QuestionsFull::Person(waits(
                    &mut questions.open.values().flatten(),
                )));
            }
        }
        let (ended, watch) = QuestionWatch::new();
        let own = questions.open.entry(question.principal.clone());
        own.or_default().push(Question {
            number: question.number,
            tool: question.tool,
            until,
            ended,
        });
        Ok(watch)
    }

    /// Closes a question that was answered or given up. Returns whether it was open.
    pub(super) fn close(&self, principal: &str, number: u64) -> bool {
        let mut questions = self.lock();
        let Some(own) = questions.open.get_mut(principal) else {
            return false;
        };
        let place = own.iter().position(|question| question.number == number);
        if let Some(place) = place {
            own.swap_remove(place);
        }
        if own.is_empty() {
            questions.open.remove(principal);
        }
        place.is_some()
    }

    /// Cancels all questions about a tool.
    pub(super) fn cancel(&self, principal: &str, tool: &ApprovalKey) {
        let mut questions = self.lock();
        if let Some(own) = questions.open.get_mut(principal) {
            own.retain(|question| {
                let stays = question.tool != *tool;
                if !stays {
                    question.ended.send_replace(true);
                }
                stays
            });
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Questions> {
        self.questions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

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
    ) -> Result<(u64, QuestionWatch), QuestionsFull> {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let question = QuestionId {
            principal: principal.into(),
            tool,
            number: LAST.fetch_add(1, Ordering::Relaxed),
        };
        let opened = pending.open(&question, now, now + TIMEOUT)?;
        Ok((question.number, opened))
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
        assert_eq!(
            ask("alice", TOOL, later).err(),
            Some(QuestionsFull::Tool(wait))
        );
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
        assert_eq!(
            ask("alice", 99, later).err(),
            Some(QuestionsFull::Person(wait))
        );
        assert!(ask("bob", 99, later).is_ok());
        // An answer frees a permit, and so does time.
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
        assert_eq!(
            ask(MAX_TOTAL, 0, now).err(),
            Some(QuestionsFull::Person(TIMEOUT))
        );
        assert!(
            !pending.lock().open.contains_key("1024"),
            "nothing is kept of it"
        );
        assert!(ask(MAX_TOTAL, 0, now + TIMEOUT).is_ok());
        assert_eq!(pending.lock().count(), 1);
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
        assert!(pending.lock().open.is_empty());
    }
}
