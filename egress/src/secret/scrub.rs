//! Takes values out of what a server sends, whatever the chunks are: each
//! leftmost, longest occurrence becomes [`REPLACEMENT`].

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use zeroize::Zeroizing;

use super::{Secret, forms};

/// What stands in a value's place.
pub const REPLACEMENT: &[u8] = b"[secret]";

/// What to look for: the forms of secret values that a server may echo.
pub struct Patterns {
    /// Longest first.
    patterns: Vec<Zeroizing<Vec<u8>>>,
    /// Whether a pattern starts with this byte.
    starts: [bool; 256],
}

impl fmt::Debug for Patterns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Patterns")
            .field("count", &self.patterns.len())
            .finish_non_exhaustive()
    }
}

impl Patterns {
    pub(crate) fn of<'a>(secrets: impl IntoIterator<Item = &'a Secret>) -> Patterns {
        Patterns::of_values(secrets.into_iter().map(Secret::value))
    }

    /// The patterns that find these values.
    pub fn of_values<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Patterns {
        Patterns::new(values.into_iter().flat_map(forms::of).collect())
    }

    fn new(mut patterns: Vec<Zeroizing<Vec<u8>>>) -> Patterns {
        patterns.retain(|pattern| !pattern.is_empty());
        patterns.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        patterns.dedup();
        let mut starts = [false; 256];
        for pattern in &patterns {
            let first = pattern.first().copied().unwrap_or_default();
            if let Some(start) = starts.get_mut(usize::from(first)) {
                *start = true;
            }
        }
        Patterns { patterns, starts }
    }

    /// What `text` starts with; `more`: more of it may follow.
    fn at(&self, text: &[u8], more: bool) -> Found {
        for pattern in &self.patterns {
            if text.starts_with(pattern) {
                return Found::Whole(pattern.len());
            }
            if more && pattern.starts_with(text) {
                return Found::Begun;
            }
        }
        Found::Nothing
    }

    fn may_start(&self, byte: u8) -> bool {
        self.starts.get(usize::from(byte)).copied().unwrap_or(true)
    }

    /// `text` without values; `None`: there were none.
    pub(crate) fn scrub(&self, text: &[u8]) -> Option<Vec<u8>> {
        let mut out = None;
        self.scan(text, false, &mut out);
        out
    }

    /// Takes values out of a response's headers. A header that cannot be told
    /// without one is dropped.
    pub(crate) fn scrub_headers(&self, headers: &mut HeaderMap) {
        let named: Vec<HeaderName> = headers
            .keys()
            .filter(|name| self.is_in_folded(name.as_str()))
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

    /// Whether `text` holds a value, in any case of letters.
    fn is_in_folded(&self, text: &str) -> bool {
        let text = text.as_bytes();
        self.patterns.iter().any(|pattern| {
            text.windows(pattern.len())
                .any(|window| window.eq_ignore_ascii_case(pattern))
        })
    }

    /// Copies `text` to `out` from the first replacement on. Returns how much
    /// of `text` is done with: the rest may begin a value.
    fn scan(&self, text: &[u8], more: bool, out: &mut Option<Vec<u8>>) -> usize {
        let mut at = 0;
        let mut copied = 0;
        while let Some(byte) = text.get(at) {
            if !self.may_start(*byte) {
                at += 1;
                continue;
            }
            match self.at(text.get(at..).unwrap_or_default(), more) {
                Found::Nothing => at += 1,
                Found::Begun => break,
                Found::Whole(length) => {
                    let out = out.get_or_insert_with(|| Vec::with_capacity(text.len()));
                    out.extend_from_slice(text.get(copied..at).unwrap_or_default());
                    out.extend_from_slice(REPLACEMENT);
                    at += length;
                    copied = at;
                }
            }
        }
        if let Some(out) = out {
            out.extend_from_slice(text.get(copied..at).unwrap_or_default());
        }
        at
    }
}

enum Found {
    Nothing,
    /// All of the text is the beginning of a pattern.
    Begun,
    /// A pattern of this length.
    Whole(usize),
}

/// Scrubs a stream.
#[derive(Debug)]
pub struct Scrubber {
    patterns: Arc<Patterns>,
    held: Held,
}

/// The end of the last chunk, which may begin a value.
struct Held(Zeroizing<Vec<u8>>);

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl Scrubber {
    /// One that replaces what `patterns` find.
    #[must_use]
    pub fn new(patterns: Arc<Patterns>) -> Scrubber {
        let held = Held(Zeroizing::default());
        Scrubber { patterns, held }
    }

    /// Looks for `patterns` from now on: the same ones and more.
    pub(crate) fn look_for(&mut self, patterns: Arc<Patterns>) {
        self.patterns = patterns;
    }

    pub(crate) fn patterns(&self) -> &Arc<Patterns> {
        &self.patterns
    }

    /// What can be passed on; may be empty.
    pub fn push(&mut self, chunk: Bytes) -> Bytes {
        let mut chunk = chunk;
        if !self.held.0.is_empty() {
            self.held.0.extend_from_slice(&chunk);
            chunk = Bytes::from_owner(std::mem::take(&mut self.held.0));
        }
        let mut out = None;
        let done = self.patterns.scan(&chunk, true, &mut out);
        let rest = chunk.split_off(done);
        self.held.0.extend_from_slice(&rest);
        out.map_or(chunk, Bytes::from)
    }

    /// What was held, at the end of the stream.
    pub fn finish(&mut self) -> Bytes {
        let rest = Bytes::from_owner(std::mem::take(&mut self.held.0));
        self.patterns.scrub(&rest).map_or(rest, Bytes::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The obvious way, with all of the text at hand.
    fn naive(text: &[u8], patterns: &[Vec<u8>]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let found = patterns
                .iter()
                .filter(|pattern| text[at..].starts_with(pattern))
                .max_by_key(|pattern| pattern.len());
            if let Some(pattern) = found {
                out.extend_from_slice(REPLACEMENT);
                at += pattern.len();
            } else {
                out.push(text[at]);
                at += 1;
            }
        }
        out
    }

    fn chunked(patterns: &[Vec<u8>], chunks: &[Vec<u8>]) -> Vec<u8> {
        let patterns = patterns.iter().cloned().map(Zeroizing::new).collect();
        let mut scrubber = Scrubber::new(Arc::new(Patterns::new(patterns)));
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
            patterns in prop::collection::vec(prop::collection::vec(b'a'..=b'c', 1..6), 1..4),
            chunks in prop::collection::vec(prop::collection::vec(b'a'..=b'c', 0..9), 0..9),
        ) {
            let whole = chunks.concat();
            prop_assert_eq!(chunked(&patterns, &chunks), naive(&whole, &patterns));
        }
    }

    #[test]
    fn a_chunk_without_values_is_not_copied() {
        let secret = vec![Zeroizing::new(b"secret value".to_vec())];
        let mut scrubber = Scrubber::new(Arc::new(Patterns::new(secret)));
        let chunk = Bytes::from_static(b"nothing to be found here");
        let out = scrubber.push(chunk.clone());
        assert_eq!(out.as_ptr(), chunk.as_ptr());
        assert_eq!(out, chunk);
    }

    #[test]
    fn what_is_held_does_not_show() {
        let secret = vec![Zeroizing::new(b"secret value".to_vec())];
        let mut scrubber = Scrubber::new(Arc::new(Patterns::new(secret)));
        assert!(scrubber.push(Bytes::from_static(b"secret v")).is_empty());
        assert!(!format!("{scrubber:?}").contains("secret v"));
    }
}
