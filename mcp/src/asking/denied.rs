//! What people said no to. They are not asked about the same tool again at once: an
//! agent that asks until somebody is worn down gets no further than one that takes
//! a no.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::standing::Key;

/// How long nobody is asked after a first no. Each no after it doubles that.
const FIRST: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(15 * 60);
/// How long after a pause the next no counts as a further one.
const REMEMBERED: Duration = Duration::from_secs(15 * 60);
/// Tools of one principal; the one that was denied first is forgotten first.
const TOOLS: usize = 256;

/// A tool that was denied.
struct Denial {
    tool: Key,
    pause: Duration,
    /// When the pause is over.
    over: Instant,
}

/// What was denied, by principal. All moments are the caller's "now".
pub(crate) struct Denied {
    denied: Mutex<HashMap<Arc<str>, VecDeque<Denial>>>,
    first: Duration,
}

impl Denied {
    pub(crate) fn new() -> Self {
        Self {
            denied: Mutex::default(),
            first: FIRST,
        }
    }

    /// A memory whose pauses are over as soon as they begin.
    #[cfg(test)]
    pub(crate) fn forgetful() -> Self {
        Self {
            first: Duration::ZERO,
            ..Self::new()
        }
    }

    /// A person said no to a tool.
    pub(crate) fn no(&self, principal: &Arc<str>, tool: Key, now: Instant) {
        let mut denied = self.denied.lock().unwrap_or_else(PoisonError::into_inner);
        let own = denied.entry(principal.clone()).or_default();
        own.retain(|denial| !denial.is_forgotten(now));
        let before = own.iter().position(|denial| denial.tool == tool);
        let before = before.and_then(|place| own.remove(place));
        let pause = match &before {
            // Asked before the pause began: several calls at once are no insistence.
            Some(before) if now < before.over => before.pause,
            Some(before) => before.pause.saturating_mul(2).min(LONGEST),
            None => self.first,
        };
        let over = before.map(|before| before.over).filter(|over| now < *over);
        let Some(over) = over.or_else(|| now.checked_add(pause)) else {
            return;
        };
        if own.len() >= TOOLS {
            own.pop_front();
        }
        own.push_back(Denial { tool, pause, over });
    }

    /// A person said yes to a tool.
    pub(crate) fn yes(&self, principal: &str, tool: &Key) {
        let mut denied = self.denied.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = denied.get_mut(principal) {
            own.retain(|denial| denial.tool != *tool);
            if own.is_empty() {
                denied.remove(principal);
            }
        }
    }

    /// How long nobody is asked about a tool.
    pub(crate) fn pause(&self, principal: &str, tool: &Key, now: Instant) -> Option<Duration> {
        let denied = self.denied.lock().unwrap_or_else(PoisonError::into_inner);
        let mut own = denied.get(principal)?.iter();
        let denial = own.find(|denial| denial.tool == *tool)?;
        let left = denial.over.checked_duration_since(now)?;
        (!left.is_zero()).then_some(left)
    }
}

impl Denial {
    fn is_forgotten(&self, now: Instant) -> bool {
        let since = now.saturating_duration_since(self.over);
        since >= REMEMBERED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALICE: &str = "alice";
    const TOOL: Key = [1; 32];

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_no_holds_for_its_principal_and_tool_for_a_minute() {
        let (denied, now) = (Denied::new(), Instant::now());
        denied.no(&ALICE.into(), TOOL, now);
        assert_eq!(denied.pause(ALICE, &TOOL, now), Some(seconds(60)));
        let last = now + seconds(59);
        assert_eq!(denied.pause(ALICE, &TOOL, last), Some(seconds(1)));
        assert_eq!(denied.pause(ALICE, &TOOL, now + seconds(60)), None);
        assert_eq!(denied.pause(ALICE, &[2; 32], now), None);
        assert_eq!(denied.pause("bob", &TOOL, now), None);
    }

    #[test]
    fn each_further_no_doubles_the_pause_up_to_a_quarter_of_an_hour() {
        let (denied, mut now) = (Denied::new(), Instant::now());
        for expected in [60, 120, 240, 480, 900, 900] {
            denied.no(&ALICE.into(), TOOL, now);
            let pause = denied.pause(ALICE, &TOOL, now);
            assert_eq!(pause, Some(seconds(expected)));
            now += seconds(expected);
        }
        // Left alone for long enough, it starts anew.
        now += REMEMBERED;
        denied.no(&ALICE.into(), TOOL, now);
        assert_eq!(denied.pause(ALICE, &TOOL, now), Some(seconds(60)));
    }

    #[test]
    fn several_nos_at_once_count_as_one() {
        let (denied, now) = (Denied::new(), Instant::now());
        for late in 0..5 {
            denied.no(&ALICE.into(), TOOL, now + seconds(late));
        }
        assert_eq!(denied.pause(ALICE, &TOOL, now), Some(seconds(60)));
    }

    #[test]
    fn a_yes_ends_the_pause_and_its_history() {
        let (denied, now) = (Denied::new(), Instant::now());
        denied.no(&ALICE.into(), TOOL, now);
        denied.yes(ALICE, &TOOL);
        assert_eq!(denied.pause(ALICE, &TOOL, now), None);
        denied.no(&ALICE.into(), TOOL, now + seconds(61));
        let pause = denied.pause(ALICE, &TOOL, now + seconds(61));
        assert_eq!(pause, Some(seconds(60)));
        denied.yes(ALICE, &TOOL);
        assert!(denied.denied.lock().unwrap().is_empty());
    }

    #[test]
    fn the_first_of_too_many_is_forgotten() {
        let (denied, now) = (Denied::new(), Instant::now());
        let key = |number: usize| {
            let mut key = [0; 32];
            key[..8].copy_from_slice(&number.to_le_bytes());
            key
        };
        for number in 0..=TOOLS {
            denied.no(&ALICE.into(), key(number), now);
        }
        assert_eq!(denied.pause(ALICE, &key(0), now), None);
        assert!(denied.pause(ALICE, &key(1), now).is_some());
        assert_eq!(denied.denied.lock().unwrap()[ALICE].len(), TOOLS);
    }
}
