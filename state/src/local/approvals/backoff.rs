//! Backoff after denials: after a person denied a tool, they are not asked about it again for some
//! time, so that an agent can't wear them down by insisting.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use toolward_support::helper::lock;

use super::denials::{self, DenialRow, Denials, MAX_ROWS};
use crate::approvals::ApprovalKey;

/// The pause after a first denial. Each further denial doubles it, up to [`MAX_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_secs(60);
const MAX_PAUSE: Duration = Duration::from_secs(15 * 60);
/// How long after a pause another denial still counts as a repeated denial.
const MEMORY_AFTER_PAUSE: Duration = Duration::from_secs(15 * 60);
/// The most denied tools of one principal. The tool that was denied least recently is forgotten
/// first.
const MAX_TOOLS: usize = 256;

/// A tool that was denied.
struct Denial {
    tool: ApprovalKey,
    /// How many times it was denied in a row.
    number: u32,
    /// When the pause ends.
    over: Instant,
}

/// Denials by principal. Callers pass the current time.
pub(crate) struct DenialBackoff {
    by_principal: Mutex<HashMap<Arc<str>, VecDeque<Denial>>>,
    /// The file that other processes share, if configured.
    kept: Option<Denials>,
}

impl DenialBackoff {
    pub(crate) fn new(kept: Option<Denials>) -> Self {
        Self {
            by_principal: Mutex::default(),
            kept,
        }
    }

    /// Records that a person denied a tool.
    pub(super) fn denied(&self, principal: &Arc<str>, tool: ApprovalKey, now: Instant) {
        let mut denied = lock(&self.by_principal);
        let own = denied.entry(principal.clone()).or_default();
        own.retain(|denial| !denial.is_forgotten(now));
        let before = own.iter().position(|denial| denial.tool == tool);
        let before = before.and_then(|place| own.remove(place));
        // In memory or in the file, whichever lasts longer.
        let kept = self.kept(principal, &tool, now).into_iter();
        let denial = match kept.chain(before).max_by_key(|denial| denial.over) {
            // The person was asked before the pause started. Concurrent calls do not count as
            // insisting, so the pause stays the same.
            Some(before) if now < before.over => before,
            before => {
                let number = before.map_or(0, |before| before.number).saturating_add(1);
                let Some(over) = now.checked_add(Self::pause_of(number)) else {
                    return;
                };
                if let Some(kept) = &self.kept {
                    let row = DenialRow {
                        hash: kept.hash(principal, &tool),
                        since: denials::now(),
                        number,
                    };
                    kept.change(|rows| Self::put(rows, row));
                }
                Denial { tool, number, over }
            }
        };
        if own.len() >= MAX_TOOLS {
            own.pop_front();
        }
        own.push_back(denial);
    }

    /// Records that a person approved a tool, which ends the backoff.
    pub(super) fn approved(&self, principal: &str, tool: &ApprovalKey) {
        let mut denied = lock(&self.by_principal);
        if let Some(own) = denied.get_mut(principal) {
            own.retain(|denial| denial.tool != *tool);
            if own.is_empty() {
                denied.remove(principal);
            }
        }
        if let Some(kept) = &self.kept {
            let hash = kept.hash(principal, tool);
            kept.change(|rows| rows.retain(|row| row.hash != hash));
        }
    }

    /// How much of a tool's pause is left.
    pub(super) fn remaining(
        &self,
        principal: &str,
        tool: &ApprovalKey,
        now: Instant,
    ) -> Option<Duration> {
        let denied = lock(&self.by_principal);
        let known = denied.get(principal).and_then(|own| {
            let denial = own.iter().find(|denial| denial.tool == *tool)?;
            Some(denial.over)
        });
        let kept = self.kept(principal, tool, now).map(|denial| denial.over);
        let left = known.max(kept)?.checked_duration_since(now)?;
        (!left.is_zero()).then_some(left)
    }

    fn pause_of(number: u32) -> Duration {
        let doubled = 2_u32.saturating_pow(number.saturating_sub(1));
        FIRST_PAUSE.saturating_mul(doubled).min(MAX_PAUSE)
    }

    /// The denial of a tool in the file.
    fn kept(&self, principal: &str, tool: &ApprovalKey, now: Instant) -> Option<Denial> {
        let kept = self.kept.as_ref()?;
        let hash = kept.hash(principal, tool);
        let row = kept.rows().into_iter().find(|row| row.hash == hash)?;
        let pause = Self::pause_of(row.number);
        // If the clock was set back, the pause must not become longer than a whole pause.
        let gone = Duration::from_secs(denials::now().saturating_sub(row.since));
        let over = match pause.checked_sub(gone) {
            Some(left) => now.checked_add(left)?,
            None => now.checked_sub(gone.saturating_sub(pause))?,
        };
        let denial = Denial {
            tool: *tool,
            number: row.number,
            over,
        };
        (!denial.is_forgotten(now)).then_some(denial)
    }

    /// Adds a row, and removes rows that no longer count.
    fn put(rows: &mut Vec<DenialRow>, new: DenialRow) {
        let now = denials::now();
        let over = |row: &DenialRow| {
            row.since
                .saturating_add(Self::pause_of(row.number).as_secs())
        };
        rows.retain(|row| {
            row.hash != new.hash && now < over(row).saturating_add(MEMORY_AFTER_PAUSE.as_secs())
        });
        while rows.len() >= MAX_ROWS {
            let first = rows.iter().enumerate().min_by_key(|(_, row)| over(row));
            let Some((place, _)) = first else { break };
            rows.remove(place);
        }
        rows.push(new);
    }
}

impl Denial {
    fn is_forgotten(&self, now: Instant) -> bool {
        let since = now.saturating_duration_since(self.over);
        since >= MEMORY_AFTER_PAUSE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALICE: &str = "alice";
    const TOOL: ApprovalKey = [1; 32];

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_no_holds_for_its_principal_and_tool_for_a_minute() {
        let (denied, now) = (DenialBackoff::new(None), Instant::now());
        denied.denied(&ALICE.into(), TOOL, now);
        assert_eq!(denied.remaining(ALICE, &TOOL, now), Some(seconds(60)));
        let last = now + seconds(59);
        assert_eq!(denied.remaining(ALICE, &TOOL, last), Some(seconds(1)));
        assert_eq!(denied.remaining(ALICE, &TOOL, now + seconds(60)), None);
        assert_eq!(denied.remaining(ALICE, &[2; 32], now), None);
        assert_eq!(denied.remaining("bob", &TOOL, now), None);
    }

    #[test]
    fn each_further_no_doubles_the_pause_up_to_a_quarter_of_an_hour() {
        let (denied, mut now) = (DenialBackoff::new(None), Instant::now());
        for expected in [60, 120, 240, 480, 900, 900] {
            denied.denied(&ALICE.into(), TOOL, now);
            let pause = denied.remaining(ALICE, &TOOL, now);
            assert_eq!(pause, Some(seconds(expected)));
            now += seconds(expected);
        }
        // After enough time without denials, the backoff starts again from the beginning.
        now += MEMORY_AFTER_PAUSE;
        denied.denied(&ALICE.into(), TOOL, now);
        assert_eq!(denied.remaining(ALICE, &TOOL, now), Some(seconds(60)));
    }

    #[test]
    fn several_nos_at_once_count_as_one() {
        let (denied, now) = (DenialBackoff::new(None), Instant::now());
        for late in 0..5 {
            denied.denied(&ALICE.into(), TOOL, now + seconds(late));
        }
        assert_eq!(denied.remaining(ALICE, &TOOL, now), Some(seconds(60)));
    }

    #[test]
    fn a_yes_ends_the_pause_and_its_history() {
        let (denied, now) = (DenialBackoff::new(None), Instant::now());
        denied.denied(&ALICE.into(), TOOL, now);
        denied.approved(ALICE, &TOOL);
        assert_eq!(denied.remaining(ALICE, &TOOL, now), None);
        denied.denied(&ALICE.into(), TOOL, now + seconds(61));
        let pause = denied.remaining(ALICE, &TOOL, now + seconds(61));
        assert_eq!(pause, Some(seconds(60)));
        denied.approved(ALICE, &TOOL);
        assert!(denied.by_principal.lock().unwrap().is_empty());
    }

    #[test]
    fn the_first_of_too_many_is_forgotten() {
        let (denied, now) = (DenialBackoff::new(None), Instant::now());
        let key = |number: usize| {
            let mut key = [0; 32];
            key[..8].copy_from_slice(&number.to_le_bytes());
            key
        };
        for number in 0..=MAX_TOOLS {
            denied.denied(&ALICE.into(), key(number), now);
        }
        assert_eq!(denied.remaining(ALICE, &key(0), now), None);
        assert!(denied.remaining(ALICE, &key(1), now).is_some());
        assert_eq!(denied.by_principal.lock().unwrap()[ALICE].len(), MAX_TOOLS);
    }
}
