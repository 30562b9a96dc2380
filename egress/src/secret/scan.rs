//! Searches for patterns in a text that can be read in several ways, independent of chunk
//! boundaries.
//!
//! Each position has the automaton states to which some reading of the preceding bytes leads. Most
//! positions have no states, so whole words are skipped there.

use std::collections::VecDeque;
use std::ops::Range;

use super::automaton::{Automaton, ROOT};
use super::readings::{EscapeReading, Positions};

/// The most states of one place. Only a text from a party that knows the value leads to more; then
/// the states that have matched most are kept.
const MAX_STATES: usize = 8;

/// The number of remembered escapes beyond which unneeded escapes are dropped.
const MAX_TRAILS: usize = 1 << 12;

/// No escape.
const NONE: u32 = u32::MAX;

/// Whether upper and lower case are distinguished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Case {
    Exact,
    Ignored,
}

/// The search in one text. Offsets count from the text's start.
#[derive(Debug, Default)]
pub(crate) struct PatternScan {
    /// The position up to which the text has been read.
    cursor: usize,
    /// The states at the cursor and after it: few, in no order.
    ahead: Vec<State>,
    trails: Trails,
}

#[derive(Debug, Clone, Copy)]
struct State {
    /// The offset that the state belongs to.
    at: usize,
    node: u32,
    /// The last escape that was read before this place.
    trail: u32,
}

impl State {
    /// The state in which no pattern has started.
    fn fresh(at: usize) -> State {
        State {
            at,
            node: ROOT,
            trail: NONE,
        }
    }
}

impl PatternScan {
    /// Creates a search that starts at `start`.
    pub(crate) fn from(start: usize) -> PatternScan {
        PatternScan {
            cursor: start,
            ..PatternScan::default()
        }
    }

    /// Continues the search in `text`, which starts at the offset `base`. `more` states whether
    /// more text may follow. Reports matches in the order of their ends; they may overlap.
    pub(crate) fn run(
        &mut self,
        automaton: &Automaton,
        (text, base): (&[u8], usize),
        more: bool,
        case: Case,
        mut found: impl FnMut(Range<usize>),
    ) {
        let mut at = self.cursor.saturating_sub(base);
        let mut positions = Positions::of(text, more);
        loop {
            if self.ahead.is_empty() {
                self.trails.clear();
                if case == Case::Exact {
                    at = positions.next_start(automaton, at);
                }
            }
            let here = base + at;
            let Some(readings) = positions.at(at) else {
                break;
            };
            let fresh = !self.ahead.iter().any(|state| state.at == here);
            let mut readings = *readings;
            if fresh && case == Case::Exact {
                readings.retain(|reading| positions.begins(automaton, at, reading));
            }
            at += 1;
            if fresh {
                let root = [State::fresh(here)];
                self.follow(automaton, &root, readings.as_slice(), here, case);
            } else {
                self.step(automaton, readings.as_slice(), here, case);
            }
            for state in self.ahead.iter().filter(|state| state.at == here + 1) {
                let longest = automaton.longest(state.node);
                if longest > 0 {
                    found(self.trails.start(*state, longest as usize)..state.at);
                }
            }
            if self.trails.escapes.len() > self.trails.limit {
                self.trails.trim(automaton, &self.ahead);
                self.trails.limit = MAX_TRAILS.max(2 * self.trails.escapes.len());
            }
        }
        self.cursor = base + at;
        self.trails.trim(automaton, &self.ahead);
    }

    /// Continues from the states at `here`. This includes matches that start here.
    fn step(&mut self, automaton: &Automaton, readings: &[EscapeReading], here: usize, case: Case) {
        if let [only] = self.ahead.as_slice() {
            let only = [*only];
            self.ahead.clear();
            self.follow(automaton, &only, readings, here, case);
        } else {
            let here_now = self.ahead.iter().filter(|state| state.at == here);
            let states: Vec<State> = here_now.copied().collect();
            self.ahead.retain(|state| state.at != here);
            self.follow(automaton, &states, readings, here, case);
        }
    }

    /// Advances each of `states` by each of the readings.
    fn follow(
        &mut self,
        automaton: &Automaton,
        states: &[State],
        readings: &[EscapeReading],
        here: usize,
        case: Case,
    ) {
        for reading in readings {
            let length = usize::from(reading.next);
            let other = reading.byte ^ 0x20;
            let both = case == Case::Ignored && other.is_ascii_alphabetic();
            for byte in [Some(reading.byte), both.then_some(other)]
                .into_iter()
                .flatten()
            {
                for state in states {
                    let node = automaton.step(state.node, byte);
                    if node != ROOT {
                        let trail = if length == 1 {
                            state.trail
                        } else {
                            self.trails.add(here..here + length, state.trail)
                        };
                        let at = here + length;
                        self.add(automaton, State { at, node, trail });
                    }
                }
            }
        }
    }

    /// Adds a state. Of two ways to the same state, the first is kept, since it started earlier.
    fn add(&mut self, automaton: &Automaton, state: State) {
        let depth = |state: &State| automaton.depth(state.node);
        let mut there = 0;
        let mut least: Option<&mut State> = None;
        for known in self.ahead.iter_mut().filter(|known| known.at == state.at) {
            if known.node == state.node {
                return;
            }
            there += 1;
            if least
                .as_deref()
                .is_none_or(|least| depth(known) < depth(least))
            {
                least = Some(known);
            }
        }
        if there < MAX_STATES {
            self.ahead.push(state);
        } else if let Some(least) = least.filter(|least| depth(least) < depth(&state)) {
            *least = state;
        }
    }

    /// The earliest possible start of a match that was not reported yet; at most the cursor.
    pub(crate) fn settled(&self, automaton: &Automaton) -> usize {
        let starts = self.ahead.iter().map(|state| {
            // Matches at the cursor have been reported, later matches have not.
            let depth = if state.at == self.cursor {
                automaton.pending(state.node)
            } else {
                automaton.depth(state.node)
            };
            self.trails.start(*state, depth)
        });
        starts.min().unwrap_or(self.cursor).min(self.cursor)
    }
}

/// The escapes that were read on the way to the states. Each state refers to its last escape, and
/// each escape to its predecessor.
#[derive(Debug)]
struct Trails {
    escapes: VecDeque<Escape>,
    /// The number of the first remembered escape.
    first: u32,
    /// The number of escapes beyond which some are dropped.
    limit: usize,
}

#[derive(Debug, Clone)]
struct Escape {
    place: Range<usize>,
    before: u32,
}

impl Default for Trails {
    fn default() -> Trails {
        Trails {
            escapes: VecDeque::new(),
            first: 0,
            limit: MAX_TRAILS,
        }
    }
}

impl Trails {
    fn add(&mut self, place: Range<usize>, before: u32) -> u32 {
        let number = self.end();
        self.escapes.push_back(Escape { place, before });
        number
    }

    /// The number of the next escape. It overflows only after gigabytes of text in which every
    /// position may be inside a value.
    fn end(&self) -> u32 {
        let count = u32::try_from(self.escapes.len()).unwrap_or(NONE);
        self.first.saturating_add(count)
    }

    fn get(&self, trail: u32) -> Option<&Escape> {
        self.escapes.get(trail.checked_sub(self.first)? as usize)
    }

    /// Where the last `depth` characters before `state` start, on the way to it.
    fn start(&self, state: State, depth: usize) -> usize {
        self.walk(state, depth).0
    }

    /// Like [`Self::start`]; also returns the first escape that is needed to compute the place.
    fn walk(&self, state: State, depth: usize) -> (usize, u32) {
        let (mut at, mut depth, mut trail) = (state.at, depth, state.trail);
        let mut needed = NONE;
        while depth > 0 {
            // No further escape precedes, so each of the remaining characters is one byte.
            let Some(escape) = self.get(trail) else {
                break;
            };
            let literal = at.saturating_sub(escape.place.end);
            if depth <= literal {
                break;
            }
            depth = depth.saturating_sub(literal + 1);
            needed = trail;
            at = escape.place.start;
            trail = escape.before;
        }
        (at.saturating_sub(depth), needed)
    }

    fn clear(&mut self) {
        if !self.escapes.is_empty() {
            self.escapes.clear();
            self.first = 0;
            self.limit = MAX_TRAILS;
        }
    }

    /// Drops escapes that no state needs.
    fn trim(&mut self, automaton: &Automaton, ahead: &[State]) {
        if self.escapes.is_empty() {
            return;
        }
        let mut needed = NONE;
        for state in ahead {
            let depth = automaton.depth(state.node);
            needed = needed.min(self.walk(*state, depth).1);
        }
        let unneeded = needed.min(self.end()).saturating_sub(self.first);
        self.escapes.drain(..unneeded as usize);
        self.first = self.first.saturating_add(unneeded);
    }
}
