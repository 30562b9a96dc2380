//! Approval questions that wait for a person's answer. Their number is limited for each
//! tool, each principal and in all, and a denial cancels the other questions about the
//! tool: an agent can't wear a person down with many of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::ApprovalKey;

/// Questions about one tool for one principal.
pub(crate) const MAX_PER_TOOL: usize = 3;

/// Questions for one principal about all tools: more than a person answers in the time
/// that they are open.
pub(crate) const MAX_PER_PRINCIPAL: usize = 32;

/// Questions for all principals.
const MAX_TOTAL: usize = 1024;

/// Open questions by principal. Callers pass the current time.
#[derive(Default)]
pub(crate) struct PendingApprovals {
    questions: Mutex<Questions>,
}

#[derive(Default)]
struct Questions {
    last: u64,
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
    ended: CancellationToken,
}

/// Which limit is reached, and the longest time until a question is allowed again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    /// [`MAX_PER_TOOL`].
    Tool(Duration),
    /// [`MAX_PER_PRINCIPAL`] or [`MAX_TOTAL`].
    Person(Duration),
}

/// A question that was opened.
pub(crate) struct Opened {
    pub(crate) number: u64,
    /// Cancelled by a denial of another question about the same tool.
    pub(crate) ended: CancellationToken,
}

impl PendingApprovals {
    /// Opens a question about a tool, which times out after `timeout`.
    ///
    /// # Errors
    ///
    /// [`Full`].
    pub(crate) fn open(
        &self,
        principal: &Arc<str>,
        tool: ApprovalKey,
        now: Instant,
        timeout: Duration,
    ) -> Result<Opened, Full> {
        let until = now.checked_add(timeout).ok_or(Full::Tool(timeout))?;
        let mut questions = self.lock();
        questions.last = questions.last.wrapping_add(1);
        let number = questions.last;
        let waits = |ends: &mut dyn Iterator<Item = &Question>| {
            let first = ends.map(|question| question.until).min();
            first.unwrap_or(until).saturating_duration_since(now)
        };
        if let Some(own) = questions.open.get_mut(principal) {
            own.retain(|question| question.until > now);
            let same = |question: &&Question| question.tool == tool;
            if own.iter().filter(same).count() >= MAX_PER_TOOL {
                return Err(Full::Tool(waits(&mut own.iter().filter(same))));
            }
            if own.len() >= MAX_PER_PRINCIPAL {
                return Err(Full::Person(waits(&mut own.iter())));
            }
        }
        if questions.count() >= MAX_TOTAL {
            questions.open.retain(|_, own| {
                own.retain(|question| question.until > now);
                !own.is_empty()
            });
            if questions.count() >= MAX_TOTAL {
                return Err(Full::Person(waits(&mut questions.open.values().flatten())));
            }
        }
        let ended = CancellationToken::new();
        let own = questions.open.entry(principal.clone()).or_default();
        own.push(Question {
            number,
            tool,
            until,
            ended: ended.clone(),
        });
        Ok(Opened { number, ended })
    }

    /// Closes a question that was answered or given up. Returns whether it was open.
    pub(crate) fn close(&self, principal: &str, number: u64) -> bool {
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
    pub(crate) fn cancel(&self, principal: &str, tool: &ApprovalKey) {
        let mut questions = self.lock();
        if let Some(own) = questions.open.get_mut(principal) {
            own.retain(|question| {
                let stays = question.tool != *tool;
                if !stays {
                    question.ended.cancel();
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
    use super::*;

    const TOOL: ApprovalKey = [1; 32];
    const OTHER: ApprovalKey = [2; 32];
    const TIMEOUT: Duration = Duration::from_secs(600);

    #[test]
    fn about_one_tool_few_questions_are_open_and_too_old_ones_make_room() {
        let (pending, alice, now) = (
            PendingApprovals::default(),
            Arc::from("alice"),
            Instant::now(),
        );
        let ask = |tool, now| pending.open(&alice, tool, now, TIMEOUT);
        for late in 0..MAX_PER_TOOL {
            let late = Duration::from_secs(late as u64);
            assert!(ask(TOOL, now + late).is_ok());
        }
        let later = now + Duration::from_secs(10);
        let wait = Duration::from_secs(590);
        assert_eq!(ask(TOOL, later).err(), Some(Full::Tool(wait)));
        assert!(ask(OTHER, later).is_ok());
        assert!(
            pending
                .open(&Arc::from("bob"), TOOL, later, TIMEOUT)
                .is_ok()
        );
        assert!(ask(TOOL, now + TIMEOUT).is_ok());
        assert!(ask(TOOL, now + TIMEOUT).is_err());
    }

    #[test]
    fn however_many_tools_it_calls_a_principal_has_so_many_questions_open() {
        let (pending, now) = (PendingApprovals::default(), Instant::now());
        let ask = |principal: &str, tool: u8, now| {
            pending.open(&Arc::from(principal), [tool; 32], now, TIMEOUT)
        };
        let tools = 0..u8::try_from(MAX_PER_PRINCIPAL).unwrap();
        let all: Vec<Opened> = tools.map(|tool| ask("alice", tool, now).unwrap()).collect();
        let later = now + Duration::from_secs(10);
        let wait = Duration::from_secs(590);
        assert_eq!(ask("alice", 99, later).err(), Some(Full::Person(wait)));
        assert!(ask("bob", 99, later).is_ok());
        // An answer frees a permit, and so does time.
        assert!(pending.close("alice", all[7].number));
        assert!(ask("alice", 99, later).is_ok());
        assert!(ask("alice", 100, later).is_err());
        assert!(ask("alice", 100, now + TIMEOUT).is_ok());
    }

    #[test]
    fn all_principals_together_have_so_many_questions_open() {
        let (pending, now) = (PendingApprovals::default(), Instant::now());
        let ask = |principal: usize, tool: u8, now| {
            let principal = Arc::from(principal.to_string());
            pending.open(&principal, [tool; 32], now, TIMEOUT)
        };
        for number in 0..MAX_TOTAL {
            let tool = u8::try_from(number % MAX_PER_PRINCIPAL).unwrap();
            assert!(
                ask(number / MAX_PER_PRINCIPAL, tool, now).is_ok(),
                "{number}"
            );
        }
        assert_eq!(ask(MAX_TOTAL, 0, now).err(), Some(Full::Person(TIMEOUT)));
        assert!(
            !pending.lock().open.contains_key("1024"),
            "nothing is kept of it"
        );
        assert!(ask(MAX_TOTAL, 0, now + TIMEOUT).is_ok());
        assert_eq!(pending.lock().count(), 1);
    }

    #[test]
    fn a_question_that_is_closed_makes_room_and_a_no_ends_all_about_its_tool() {
        let (pending, alice, now) = (
            PendingApprovals::default(),
            Arc::from("alice"),
            Instant::now(),
        );
        let ask = |tool| pending.open(&alice, tool, now, TIMEOUT).unwrap();
        let [first, second, third] = [(); 3].map(|()| ask(TOOL));
        let other = ask(OTHER);
        assert!(pending.close("alice", first.number));
        assert!(!pending.close("alice", first.number));
        assert!(!pending.close("bob", second.number));
        ask(TOOL);

        pending.cancel("alice", &TOOL);
        assert!(second.ended.is_cancelled() && third.ended.is_cancelled());
        assert!(!first.ended.is_cancelled() && !other.ended.is_cancelled());
        assert!(!pending.close("alice", second.number));
        assert!(pending.close("alice", other.number));
        assert!(pending.lock().open.is_empty());
    }
}
