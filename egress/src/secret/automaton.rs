//! One automaton for all patterns of a set (Aho and Corasick, 1975), and a table that skips text in
//! which no pattern starts (Wu and Manber, 1994).
//!
//! It does not use a library for two reasons. A library's tables are not wiped when they are
//! dropped, although a secret can be read from them. And a stream may be passed on up to the start
//! of a possible match, which requires the depth of a state.

use std::collections::VecDeque;

use zeroize::{DefaultIsZeroes, Zeroizing};

/// The state in which no pattern has started.
pub(crate) const ROOT: u32 = 0;

/// The bytes of memory for each byte of a pattern: its node, its suffix while the nodes are linked,
/// and the pattern itself.
pub(crate) const NODE: u64 = 32;

/// The number of pairs of bytes that the table of skips distinguishes.
const PAIR_SLOTS: usize = 1 << 12;

/// The patterns' trie, with a failure link for each node.
pub(crate) struct Automaton {
    /// The nodes in the order of the sorted patterns. A node's first child follows the node.
    nodes: Zeroizing<Vec<Node>>,
    /// The root's children.
    starts: Zeroizing<Vec<u32>>,
    /// For each pair of bytes, the least distance from the pair to the end of the first `shortest`
    /// bytes of any pattern.
    skips: Zeroizing<Vec<u8>>,
    /// The length of the shortest pattern, limited to 255, since a skip is one byte.
    shortest: usize,
    /// A bit for each pair of bytes: whether a pattern may start with it. Most bytes start one of
    /// the many forms of a value, but few pairs do.
    pairs: Zeroizing<Vec<u64>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Node {
    /// The parent's next child; 0 if none follows.
    sibling: u32,
    /// The node where the search continues if no child has the next byte.
    failure: u32,
    /// The number of bytes from the root.
    depth: u32,
    /// The length of the longest pattern that ends here; 0 if none does.
    longest: u32,
    label: u8,
    has_child: bool,
}

impl DefaultIsZeroes for Node {}

impl Automaton {
    /// Builds an automaton that finds `patterns`. Empty patterns are left out.
    pub(crate) fn new(mut patterns: Vec<Zeroizing<Vec<u8>>>) -> Automaton {
        patterns.retain(|pattern| !pattern.is_empty());
        patterns.sort_by(|a, b| a.as_slice().cmp(b.as_slice()));
        patterns.dedup();
        let mut automaton = Automaton {
            nodes: trie(&patterns),
            starts: Zeroizing::default(),
            skips: Zeroizing::default(),
            shortest: 0,
            pairs: Zeroizing::new(vec![0; (1 << 16) / 64]),
        };
        automaton.fill_pairs(&patterns);
        automaton.fill_skips(&patterns);
        automaton.fill_starts();
        automaton.link();
        automaton
    }

    fn fill_skips(&mut self, patterns: &[Zeroizing<Vec<u8>>]) {
        let shortest = patterns.iter().map(|pattern| pattern.len()).min();
        self.shortest = shortest.unwrap_or_default().min(usize::from(u8::MAX));
        let Some(farthest) = self.shortest.checked_sub(1) else {
            return;
        };
        let far = u8::try_from(farthest).unwrap_or(u8::MAX);
        self.skips = Zeroizing::new(vec![far; PAIR_SLOTS]);
        for pattern in patterns {
            let first = pattern.get(..self.shortest).unwrap_or_default();
            for (distance, pair) in first.windows(2).rev().enumerate() {
                let distance = u8::try_from(distance).unwrap_or(u8::MAX);
                if let Some(skip) = self.skips.get_mut(index(pair)) {
                    *skip = distance.min(*skip);
                }
            }
        }
    }

    fn fill_pairs(&mut self, patterns: &[Zeroizing<Vec<u8>>]) {
        for pattern in patterns {
            let Some(first) = pattern.first().copied() else {
                continue;
            };
            let seconds = match pattern.get(1).copied() {
                Some(second) => second..=second,
                None => 0..=u8::MAX,
            };
            for second in seconds {
                let (word, bit) = place(first, second);
                if let Some(word) = self.pairs.get_mut(word) {
                    *word |= bit;
                }
            }
        }
    }

    fn fill_starts(&mut self) {
        let mut starts = Zeroizing::new(vec![ROOT; 256]);
        for state in self.children(ROOT) {
            if let Some(start) = starts.get_mut(usize::from(self.node(state).label)) {
                *start = state;
            }
        }
        self.starts = starts;
    }

    /// Sets the failure links, in breadth-first order.
    fn link(&mut self) {
        let mut suffixes = Zeroizing::new(vec![ROOT; self.nodes.len()]);
        let mut open = VecDeque::from([ROOT]);
        while let Some(parent) = open.pop_front() {
            let own = suffixes.get(parent as usize).copied().unwrap_or(ROOT);
            let mut child = self.first_child(parent);
            while let Some(state) = child {
                let node = self.node(state);
                // The longest proper suffix of this node's bytes that is a node.
                let suffix = if parent == ROOT {
                    ROOT
                } else {
                    self.step(own, node.label)
                };
                if let Some(kept) = suffixes.get_mut(state as usize) {
                    *kept = suffix;
                }
                let failure = self.failure(state, suffix);
                let inherited = self.longest(suffix);
                if let Some(node) = self.nodes.get_mut(state as usize) {
                    node.failure = failure;
                    node.longest = node.longest.max(inherited);
                }
                open.push_back(state);
                child = self.sibling(state);
            }
        }
    }

    /// Returns `suffix`, or the failure link of `suffix` if `state` has a child for each byte that
    /// `suffix` has a child for. In this case, a byte that fails at `state` would also fail at
    /// `suffix`. Without this, a pattern such as `aaaaaaaa` takes a step for each of its bytes
    /// whenever the text differs from it.
    fn failure(&self, state: u32, suffix: u32) -> u32 {
        let missing = |child| self.child(state, self.node(child).label).is_none();
        if self
            .children(suffix)
            .any(|child| suffix == ROOT || missing(child))
        {
            return suffix;
        }
        self.node(suffix).failure
    }

    fn node(&self, state: u32) -> Node {
        self.nodes.get(state as usize).copied().unwrap_or_default()
    }

    fn first_child(&self, state: u32) -> Option<u32> {
        self.node(state).has_child.then_some(state.wrapping_add(1))
    }

    fn sibling(&self, state: u32) -> Option<u32> {
        Some(self.node(state).sibling).filter(|sibling| *sibling != ROOT)
    }

    #[inline]
    fn children(&self, state: u32) -> impl Iterator<Item = u32> {
        std::iter::successors(self.first_child(state), |child| self.sibling(*child))
    }

    #[inline]
    fn child(&self, state: u32, byte: u8) -> Option<u32> {
        let mut children = self.children(state);
        children.find(|child| self.node(*child).label == byte)
    }

    /// The state after one more byte.
    #[inline]
    pub(crate) fn step(&self, state: u32, byte: u8) -> u32 {
        let mut state = state;
        while state != ROOT {
            if let Some(child) = self.child(state, byte) {
                return child;
            }
            state = self.node(state).failure;
        }
        let start = self.starts.get(usize::from(byte));
        start.copied().unwrap_or(ROOT)
    }

    /// Whether a pattern starts with this byte.
    #[inline]
    pub(crate) fn begins(&self, byte: u8) -> bool {
        let start = self.starts.get(usize::from(byte));
        start.is_some_and(|start| *start != ROOT)
    }

    /// Whether a pattern may start with these bytes, or consist of the first byte only.
    #[inline]
    pub(crate) fn begins_with(&self, first: u8, second: u8) -> bool {
        let (word, bit) = place(first, second);
        self.pairs.get(word).is_some_and(|word| word & bit != 0)
    }

    /// How many of the last bytes the state represents.
    pub(crate) fn depth(&self, state: u32) -> usize {
        self.node(state).depth as usize
    }

    /// How many of the last bytes may still become part of a match.
    pub(crate) fn pending(&self, state: u32) -> usize {
        let node = self.node(state);
        if node.has_child {
            node.depth as usize
        } else {
            self.depth(node.failure)
        }
    }

    /// The length of the longest pattern that ends in this state; 0 if none does.
    pub(crate) fn longest(&self, state: u32) -> u32 {
        self.node(state).longest
    }

    /// The first place in `text`, from `at` on, where a pattern may start. The pattern may end in
    /// `text` or after it.
    #[inline]
    pub(crate) fn skip(&self, text: &[u8], at: usize) -> usize {
        let Some(last) = self.shortest.checked_sub(2) else {
            return if self.shortest == 0 { text.len() } else { at };
        };
        let mut at = at;
        while let Some([first, second]) = text.get(at + last..at + last + 2) {
            let pair = index(&[*first, *second]);
            match self.skips.get(pair).copied().unwrap_or_default() {
                0 => break,
                skip => at += usize::from(skip),
            }
        }
        at.min(text.len())
    }
}

/// The nodes of sorted patterns, which must be distinct and not empty.
fn trie(patterns: &[Zeroizing<Vec<u8>>]) -> Zeroizing<Vec<Node>> {
    let bytes: usize = patterns.iter().map(|pattern| pattern.len()).sum();
    // Allocated at once, since a vector that grows leaves copies behind.
    let mut nodes = Zeroizing::new(Vec::with_capacity(bytes.saturating_add(1)));
    nodes.push(Node::default());
    // The nodes of the last pattern, from the root on.
    let mut path = vec![ROOT];
    let mut last: &[u8] = &[];
    for pattern in patterns {
        let pairs = last.iter().zip(pattern.iter());
        let shared = pairs.take_while(|(a, b)| a == b).count();
        let mut elder = path.get(shared + 1).copied();
        path.truncate(shared + 1);
        for (depth, label) in pattern.iter().enumerate().skip(shared) {
            let own = u32::try_from(nodes.len()).unwrap_or(u32::MAX);
            let parent = path.last().copied().unwrap_or(ROOT);
            if let Some(elder) = elder.take() {
                if let Some(node) = nodes.get_mut(elder as usize) {
                    node.sibling = own;
                }
            } else if let Some(node) = nodes.get_mut(parent as usize) {
                node.has_child = true;
            }
            nodes.push(Node {
                depth: u32::try_from(depth + 1).unwrap_or(u32::MAX),
                label: *label,
                ..Node::default()
            });
            path.push(own);
        }
        if let Some(node) = path.last().and_then(|end| nodes.get_mut(*end as usize)) {
            node.longest = node.depth;
        }
        last = pattern;
    }
    nodes
}

/// The position of the bit for these bytes in the table of pairs.
#[inline]
fn place(first: u8, second: u8) -> (usize, u64) {
    let bit = (usize::from(first) << 8) | usize::from(second);
    (bit / 64, 1 << (bit % 64))
}

fn index(pair: &[u8]) -> usize {
    let byte = |at| usize::from(pair.get(at).copied().unwrap_or_default());
    ((byte(0) << 5) ^ byte(1)) % PAIR_SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn automaton(patterns: &[Vec<u8>]) -> Automaton {
        Automaton::new(patterns.iter().cloned().map(Zeroizing::new).collect())
    }

    proptest! {
        #[test]
        fn the_longest_pattern_that_ends_at_each_byte_is_known(
            patterns in prop::collection::vec(prop::collection::vec(b'a'..=b'c', 1..7), 0..7),
            text in prop::collection::vec(b'a'..=b'd', 0..60),
        ) {
            let automaton = automaton(&patterns);
            let mut state = ROOT;
            for end in 1..=text.len() {
                state = automaton.step(state, text[end - 1]);
                let ending = patterns.iter().filter(|pattern| text[..end].ends_with(pattern));
                let longest = ending.map(Vec::len).max().unwrap_or_default();
                prop_assert_eq!(automaton.longest(state) as usize, longest);
                let begun = (0..=end).rev().filter(|length| {
                    patterns.iter().any(|pattern| pattern.starts_with(&text[end - length..end]))
                });
                prop_assert_eq!(automaton.depth(state), begun.max().unwrap_or_default());
            }
        }

        #[test]
        fn nothing_that_is_skipped_begins_a_pattern(
            patterns in prop::collection::vec(prop::collection::vec(b'a'..=b'c', 1..7), 1..4),
            text in prop::collection::vec(b'a'..=b'd', 0..60),
            from in 0..60_usize,
        ) {
            let from = from.min(text.len());
            let next = automaton(&patterns).skip(&text, from);
            prop_assert!(next >= from && next <= text.len());
            for at in from..next {
                prop_assert!(!patterns.iter().any(|pattern| text[at..].starts_with(pattern)));
                prop_assert!(!patterns.iter().any(|pattern| pattern.starts_with(&text[at..])));
            }
        }
    }

    #[test]
    fn a_pattern_that_repeats_itself_is_left_in_one_step() {
        let automaton = automaton(&[vec![b'a'; 5000]]);
        let mut state = ROOT;
        for _ in 0..4999 {
            state = automaton.step(state, b'a');
        }
        assert_eq!(automaton.depth(state), 4999);
        assert_eq!(automaton.node(state).failure, ROOT);
    }
}
