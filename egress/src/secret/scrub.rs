//! Removes secret values from a server's responses, in common encodings and independent of chunk
//! boundaries: each becomes [`REPLACEMENT`], and overlapping values are replaced together.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use zeroize::Zeroizing;

use super::automaton::Automaton;
use super::encodings;
use super::scan::{Case, PatternScan};

/// The text that replaces a value.
pub const REPLACEMENT: &[u8] = b"[secret]";

/// The patterns to search for: the forms of secret values that a server may echo.
pub struct Patterns(Automaton);

impl Patterns {
    /// The patterns that find these values.
    pub fn of_values<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Patterns {
        let forms = values.into_iter().flat_map(encodings::of);
        Patterns(Automaton::new(forms.collect()))
    }

    /// `text` without values; `None` if it contains none.
    pub fn scrub(&self, text: &[u8]) -> Option<Vec<u8>> {
        let mut matches = Matches::default();
        let mut scan = PatternScan::default();
        scan.run(&self.0, (text, 0), false, Case::Exact, |place| {
            matches.add(place);
        });
        matches.pass((text, 0), text.len())
    }

    /// Removes values from a response's headers. A header whose name contains a value is dropped.
    pub(crate) fn scrub_headers(&self, headers: &mut HeaderMap) {
        let named: Vec<HeaderName> = headers
            .keys()
            .filter(|name| self.is_in_name(name))
            .cloned()
            .collect();
        for name in &named {
            headers.remove(name);
        }
        for value in headers.values_mut() {
            if let Some(clean) = self.scrub(value.as_bytes()) {
                let lost = || HeaderValue::from_static("[secret]");
                *value = HeaderValue::from_bytes(&clean).unwrap_or_else(|_| lost());
            }
        }
    }

    /// Whether a header's name, whose letters have lost their case, contains a value.
    fn is_in_name(&self, name: &HeaderName) -> bool {
        let mut found = false;
        let text = name.as_str().as_bytes();
        PatternScan::default().run(&self.0, (text, 0), false, Case::Ignored, |_| found = true);
        found
    }
}

/// The values that were found but not passed on yet, by their offsets in the stream.
#[derive(Default)]
struct Matches {
    /// The values in order, without overlaps.
    found: Vec<Range<usize>>,
    /// Offset up to which everything was passed on or replaced.
    passed: usize,
}

impl Matches {
    /// Adds a match, which does not end before the last match.
    fn add(&mut self, place: Range<usize>) {
        let mut place = place;
        while let Some(last) = self.found.pop_if(|last| last.end > place.start) {
            place.start = place.start.min(last.start);
        }
        if place.start < self.passed {
            // The replacement of an overlapping match was passed on already, and covers this match.
            self.passed = self.passed.max(place.end);
        } else {
            self.found.push(place);
        }
    }

    /// Passes on the text before `until`, with its values replaced. `None` if the text can be
    /// passed on unchanged.
    fn pass(&mut self, (text, base): (&[u8], usize), until: usize) -> Option<Vec<u8>> {
        let ready = self.found.partition_point(|place| place.start < until);
        let from = self.passed;
        let literal = |place: Range<usize>| {
            let place = place.start.saturating_sub(base)..place.end.saturating_sub(base);
            text.get(place).unwrap_or_default()
        };
        let mut out = (ready > 0 || from > until).then(Vec::new);
        for place in self.found.drain(..ready) {
            let out = out.get_or_insert_default();
            out.extend_from_slice(literal(self.passed..place.start));
            out.extend_from_slice(REPLACEMENT);
            self.passed = place.end;
        }
        if let Some(out) = &mut out {
            out.extend_from_slice(literal(self.passed..until.max(self.passed)));
        }
        self.passed = self.passed.max(until);
        out
    }
}

/// Scrubs a stream, chunk by chunk.
pub struct Scrubber {
    patterns: Arc<Patterns>,
    scan: PatternScan,
    matches: Matches,
    held: Held,
    /// The offset at which the held text starts.
    base: usize,
}

impl fmt::Debug for Scrubber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scrubber").finish_non_exhaustive()
    }
}

/// The end of the stream so far, if it may be the start of a value.
#[derive(Default)]
struct Held(Zeroizing<Vec<u8>>);

impl Held {
    /// Grows the vector explicitly, since a vector that grows by itself leaves copies behind.
    fn extend(&mut self, text: &[u8]) {
        let needed = self.0.len() + text.len();
        if needed > self.0.capacity() {
            let room = needed.max(2 * self.0.len());
            let mut grown = Zeroizing::new(Vec::with_capacity(room));
            grown.extend_from_slice(&self.0);
            self.0 = grown;
        }
        self.0.extend_from_slice(text);
    }
}

impl Scrubber {
    /// Creates a scrubber that replaces the matches of `patterns`.
    pub fn new(patterns: Arc<Patterns>) -> Scrubber {
        Scrubber {
            patterns,
            scan: PatternScan::default(),
            matches: Matches::default(),
            held: Held::default(),
            base: 0,
        }
    }

    /// Switches to `patterns`, a superset of the current patterns. The held text is searched again.
    pub(crate) fn look_for(&mut self, patterns: Arc<Patterns>) {
        self.patterns = patterns;
        self.scan = PatternScan::from(self.base);
        self.matches.found.clear();
    }

    pub(crate) fn patterns(&self) -> &Arc<Patterns> {
        &self.patterns
    }

    /// Adds a chunk. Returns the bytes that can be passed on, which may be empty.
    pub fn push(&mut self, chunk: Bytes) -> Bytes {
        if self.held.0.is_empty() {
            let until = self.scan(&chunk, true);
            let passed = self.matches.passed;
            let out = self.matches.pass((&chunk, self.base), until);
            let rest = until.saturating_sub(self.base).min(chunk.len());
            self.held.extend(chunk.get(rest..).unwrap_or_default());
            let first = passed.saturating_sub(self.base).min(rest);
            self.base = until;
            return out.map_or_else(|| chunk.slice(first..rest), Bytes::from);
        }
        let mut held = std::mem::take(&mut self.held);
        held.extend(&chunk);
        let until = self.scan(&held.0, true);
        let out = self.pass_held(&held, until);
        let rest = until.saturating_sub(self.base).min(held.0.len());
        if rest > 0 {
            self.held.extend(held.0.get(rest..).unwrap_or_default());
        } else {
            self.held = held;
        }
        self.base = until;
        out
    }

    /// Ends the stream, and returns its rest.
    pub fn finish(&mut self) -> Bytes {
        let held = std::mem::take(&mut self.held);
        let until = self.scan(&held.0, false);
        let out = self.pass_held(&held, until);
        self.base = until;
        out
    }

    /// Searches `text`. Returns the position up to which the result is settled.
    fn scan(&mut self, text: &[u8], more: bool) -> usize {
        let Patterns(automaton) = &*self.patterns;
        let matches = &mut self.matches;
        let text = (text, self.base);
        self.scan.run(automaton, text, more, Case::Exact, |place| {
            matches.add(place);
        });
        if more {
            self.scan.settled(automaton)
        } else {
            self.base + text.0.len()
        }
    }

    fn pass_held(&mut self, held: &Held, until: usize) -> Bytes {
        let text = (held.0.as_slice(), self.base);
        let from = self.matches.passed;
        if let Some(out) = self.matches.pass(text, until) {
            return Bytes::from(out);
        }
        let start = from.saturating_sub(self.base);
        let end = until.saturating_sub(self.base);
        Bytes::copy_from_slice(held.0.get(start..end).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The obvious algorithm, for a complete text without escapes.
    fn naive(text: &[u8], patterns: &[Vec<u8>]) -> Vec<u8> {
        let mut places = Vec::new();
        for start in 0..text.len() {
            let here = patterns
                .iter()
                .filter(|pattern| text[start..].starts_with(pattern));
            if let Some(longest) = here.map(Vec::len).max() {
                match places.last_mut() {
                    Some((_, end)) if *end > start => *end = start.max(*end).max(start + longest),
                    _ => places.push((start, start + longest)),
                }
            }
        }
        let mut out = Vec::new();
        let mut at = 0;
        for (start, end) in places {
            out.extend_from_slice(&text[at..start]);
            out.extend_from_slice(REPLACEMENT);
            at = end;
        }
        out.extend_from_slice(&text[at..]);
        out
    }

    fn patterns(patterns: &[Vec<u8>]) -> Arc<Patterns> {
        let forms = patterns.iter().cloned().map(Zeroizing::new).collect();
        Arc::new(Patterns(Automaton::new(forms)))
    }

    fn chunked(patterns: &Arc<Patterns>, chunks: &[Vec<u8>]) -> Vec<u8> {
        let mut scrubber = Scrubber::new(Arc::clone(patterns));
        let mut out = Vec::new();
        for chunk in chunks {
            out.extend_from_slice(&scrubber.push(Bytes::from(chunk.clone())));
        }
        out.extend_from_slice(&scrubber.finish());
        out
    }

    proptest! {
        #[test]
        fn chunks_do_not_matter(
            own in prop::collection::vec(prop::collection::vec(b'a'..=b'c', 1..6), 1..4),
            chunks in prop::collection::vec(prop::collection::vec(b'a'..=b'c', 0..9), 0..9),
        ) {
            let whole = chunks.concat();
            prop_assert_eq!(chunked(&patterns(&own), &chunks), naive(&whole, &own));
        }

        #[test]
        fn chunks_do_not_matter_to_escapes(
            own in prop::collection::vec("[ab%\\\\]{1,4}", 1..4),
            chunks in prop::collection::vec("([ab%\\\\&;#x0-9]|%61|%25|\\\\\\\\|\\\\u0062|&#98;){0,4}", 0..6),
        ) {
            let own: Vec<Vec<u8>> = own.into_iter().map(String::into_bytes).collect();
            let chunks: Vec<Vec<u8>> = chunks.into_iter().map(String::into_bytes).collect();
            let patterns = patterns(&own);
            let whole = chunks.concat();
            let expected = patterns.scrub(&whole).unwrap_or_else(|| whole.clone());
            prop_assert_eq!(chunked(&patterns, &chunks), expected.clone());
            let bytes: Vec<Vec<u8>> = whole.iter().map(|byte| vec![*byte]).collect();
            prop_assert_eq!(chunked(&patterns, &bytes), expected);
        }
    }

    #[test]
    fn a_chunk_without_values_is_not_copied() {
        let mut scrubber = Scrubber::new(patterns(&[b"secret value".to_vec()]));
        let chunk = Bytes::from_static(b"nothing to be found here");
        let out = scrubber.push(chunk.clone());
        assert_eq!(out.as_ptr(), chunk.as_ptr());
        assert_eq!(out, chunk);
    }

    #[test]
    fn what_is_held_does_not_show() {
        let mut scrubber = Scrubber::new(patterns(&[b"secret value".to_vec()]));
        assert!(scrubber.push(Bytes::from_static(b"secret v")).is_empty());
        assert!(!format!("{scrubber:?}").contains("secret v"));
    }

    #[test]
    fn of_values_that_overlap_no_part_is_left() {
        let own = patterns(&[b"abcdefgh".to_vec(), b"efghijkl".to_vec(), b"cd".to_vec()]);
        assert_eq!(own.scrub(b"xabcdefghijkly").unwrap(), b"x[secret]y");
        assert_eq!(own.scrub(b"cdcd").unwrap(), b"[secret][secret]");
    }

    #[test]
    fn a_stream_of_nothing_but_values_is_not_held() {
        let mut scrubber = Scrubber::new(patterns(&[vec![b'a'; 8]]));
        let mut out = 0;
        for _ in 0..1000 {
            out += scrubber.push(Bytes::from(vec![b'a'; 100])).len();
            assert!(scrubber.held.0.len() < 8);
        }
        out += scrubber.finish().len();
        assert_eq!(out, REPLACEMENT.len(), "one value overlaps the next");
    }

    #[test]
    fn an_escape_that_never_ends_is_not_held() {
        let mut scrubber = Scrubber::new(patterns(&[b"secret value".to_vec()]));
        for _ in 0..1000 {
            scrubber.push(Bytes::from_static(
                b"&#0000000000\\\\\\\\\\\\%25%25&amp;amp;amp;",
            ));
            assert!(scrubber.held.0.len() < 400);
        }
    }
}
