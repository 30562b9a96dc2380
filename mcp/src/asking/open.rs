//! Questions about approvals that are before a person. About one tool there are few at
//! a time, and a no to one ends the others: nobody is worn down by a pile of them. Of
//! one principal there are not many, however many tools it calls, and so of all.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::standing::Key;

/// Questions about one tool for one principal.
pub(crate) const FEW: usize = 3;

/// Questions for one principal, about whatever tools: more than a person answers in the
/// time that they are open.
pub(crate) const OWN: usize = 32;

/// Questions for all principals.
const ALL: usize = 1024;

/// Questions that are open, by principal. All moments are the caller's "now".
#[derive(Default)]
pub(crate) struct Open {
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
    tool: Key,
    /// When nobody's answer is taken any more.
    until: Instant,
    ended: CancellationToken,
}

/// Why no other question is opened, and how long it takes at most until there is room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    /// There are [`FEW`] about this tool.
    Tool(Duration),
    /// There are [`OWN`] for this principal, or [`ALL`] for everybody.
    Person(Duration),
}

/// A question that was opened.
pub(crate) struct Opened {
    pub(crate) number: u64,
    /// Cancelled by a no to another question about the same tool.
    pub(crate) ended: CancellationToken,
}

impl Open {
    /// Opens a question about a tool, for so long at most.
    ///
    /// # Errors
    ///
    /// [`Full`].
    pub(crate) fn ask(
        &self,
        principal: &Arc<str>,
        tool: Key,
        now: Instant,
        patience: Duration,
    ) -> Result<Opened, Full> {
        let until = now.checked_add(patience).ok_or(Full::Tool(patience))?;
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
            if own.iter().filter(same).count() >= FEW {
                return Err(Full::Tool(waits(&mut own.iter().filter(same))));
            }
            if own.len() >= OWN {
                return Err(Full::Person(waits(&mut own.iter())));
            }
        }
        if questions.count() >= ALL {
            questions.open.retain(|_, own| {
                own.retain(|question| question.until > now);
                !own.is_empty()
            });
            if questions.count() >= ALL {
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

    /// A question was answered, or nobody asks any more. Says whether it was open.
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

    /// Ends all questions about a tool.
    pub(crate) fn end(&self, principal: &str, tool: &Key) {
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

    const TOOL: Key = [1; 32];
    const OTHER: Key = [2; 32];
    const PATIENCE: Duration = Duration::from_secs(600);

    #[test]
    fn about_one_tool_few_questions_are_open_and_too_old_ones_make_room() {
        let (open, alice, now) = (Open::default(), Arc::from("alice"), Instant::now());
        let ask = |tool, now| open.ask(&alice, tool, now, PATIENCE);
        for late in 0..FEW {
            let late = Duration::from_secs(late as u64);
            assert!(ask(TOOL, now + late).is_ok());
        }
        let later = now + Duration::from_secs(10);
        let wait = Duration::from_secs(590);
        assert_eq!(ask(TOOL, later).err(), Some(Full::Tool(wait)));
        assert!(ask(OTHER, later).is_ok());
        assert!(open.ask(&Arc::from("bob"), TOOL, later, PATIENCE).is_ok());
        assert!(ask(TOOL, now + PATIENCE).is_ok());
        assert!(ask(TOOL, now + PATIENCE).is_err());
    }

    #[test]
    fn however_many_tools_it_calls_a_principal_has_so_many_questions_open() {
        let (open, now) = (Open::default(), Instant::now());
        let ask = |principal: &str, tool: u8, now| {
            open.ask(&Arc::from(principal), [tool; 32], now, PATIENCE)
        };
        let tools = 0..u8::try_from(OWN).unwrap();
        let all: Vec<Opened> = tools.map(|tool| ask("alice", tool, now).unwrap()).collect();
        let later = now + Duration::from_secs(10);
        let wait = Duration::from_secs(590);
        assert_eq!(ask("alice", 99, later).err(), Some(Full::Person(wait)));
        assert!(ask("bob", 99, later).is_ok());
        // One that is answered makes room, and so does time.
        assert!(open.close("alice", all[7].number));
        assert!(ask("alice", 99, later).is_ok());
        assert!(ask("alice", 100, later).is_err());
        assert!(ask("alice", 100, now + PATIENCE).is_ok());
    }

    #[test]
    fn all_principals_together_have_so_many_questions_open() {
        let (open, now) = (Open::default(), Instant::now());
        let ask = |principal: usize, tool: u8, now| {
            let principal = Arc::from(principal.to_string());
            open.ask(&principal, [tool; 32], now, PATIENCE)
        };
        for number in 0..ALL {
            let tool = u8::try_from(number % OWN).unwrap();
            assert!(ask(number / OWN, tool, now).is_ok(), "{number}");
        }
        assert_eq!(ask(ALL, 0, now).err(), Some(Full::Person(PATIENCE)));
        assert!(
            !open.lock().open.contains_key("1024"),
            "nothing is kept of it"
        );
        assert!(ask(ALL, 0, now + PATIENCE).is_ok());
        assert_eq!(open.lock().count(), 1);
    }

    #[test]
    fn a_question_that_is_closed_makes_room_and_a_no_ends_all_about_its_tool() {
        let (open, alice, now) = (Open::default(), Arc::from("alice"), Instant::now());
        let ask = |tool| open.ask(&alice, tool, now, PATIENCE).unwrap();
        let [first, second, third] = [(); 3].map(|()| ask(TOOL));
        let other = ask(OTHER);
        assert!(open.close("alice", first.number));
        assert!(!open.close("alice", first.number));
        assert!(!open.close("bob", second.number));
        ask(TOOL);

        open.end("alice", &TOOL);
        assert!(second.ended.is_cancelled() && third.ended.is_cancelled());
        assert!(!first.ended.is_cancelled() && !other.ended.is_cancelled());
        assert!(!open.close("alice", second.number));
        assert!(open.close("alice", other.number));
        assert!(open.lock().open.is_empty());
    }
}
