//! Placeholders: texts that stand for secrets in one call. They are useless outside of the call. A
//! misplaced placeholder means a mistake or an attack.

use std::sync::Mutex;

use toolward_support::helper::lock;

/// The start of each placeholder.
pub(crate) const PREFIX: &str = "toolward-secret-";

/// The number of random bytes: 192 bits can't be guessed.
const RANDOM_BYTES: usize = 24;

/// Bytes of a placeholder.
pub(crate) const LENGTH: usize = PREFIX.len() + 2 * RANDOM_BYTES;

/// The placeholders of one call.
#[derive(Default)]
pub(crate) struct Placeholders {
    /// The placeholders, each with its secret's name.
    issued: Mutex<Vec<(String, String)>>,
}

impl Placeholders {
    /// The placeholder of a secret. The first call for a secret makes it. `None` if the system has
    /// no randomness.
    pub(crate) fn issue(&self, slug: &str) -> Option<String> {
        let mut issued = lock(&self.issued);
        if let Some(known) = issued.iter().find(|(known, _)| known == slug) {
            return Some(known.1.clone());
        }
        let mut random = [0; RANDOM_BYTES];
        getrandom::fill(&mut random).ok()?;
        let digits = random.map(|byte| format!("{byte:02x}")).concat();
        let text = format!("{PREFIX}{digits}");
        issued.push((slug.to_owned(), text.clone()));
        Some(text)
    }

    /// Whether any placeholder was issued.
    pub(crate) fn any(&self) -> bool {
        !lock(&self.issued).is_empty()
    }

    /// The first placeholder of this call in `text`: its start, and its secret.
    pub(crate) fn find(&self, text: &[u8]) -> Option<(usize, String)> {
        // Two prefixes can't overlap, so no start is skipped.
        memchr::memmem::find_iter(text, PREFIX).find_map(|start| {
            let candidate = text.get(start..start.checked_add(LENGTH)?)?;
            let issued = lock(&self.issued);
            let mut found = issued.iter();
            let (slug, _) = found.find(|(_, text)| text.as_bytes() == candidate)?;
            Some((start, slug.clone()))
        })
    }
}

/// Where a possible unfinished placeholder at the end of `text` starts; the length of `text` if
/// there is none.
pub(crate) fn unfinished(text: &[u8]) -> usize {
    let first = (text.len() + 1).saturating_sub(LENGTH);
    let begins = |start: &usize| {
        let tail = text.get(*start..).unwrap_or_default();
        let (prefix, random) = tail.split_at(tail.len().min(PREFIX.len()));
        PREFIX.as_bytes().starts_with(prefix) && random.iter().all(u8::is_ascii_hexdigit)
    };
    (first..text.len()).find(begins).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_placeholder_is_fresh_for_each_call_and_stable_within_it() {
        let (one, other) = (Placeholders::default(), Placeholders::default());
        assert!(!one.any());
        let text = one.issue("a").unwrap();
        assert_eq!(text.len(), LENGTH);
        assert!(one.any());
        assert_eq!(one.issue("a").unwrap(), text);
        assert_ne!(one.issue("b").unwrap(), text);
        assert_ne!(other.issue("a").unwrap(), text);
        assert!(other.find(text.as_bytes()).is_none());
    }

    #[test]
    fn it_is_found_after_others_like_it() {
        let calls = Placeholders::default();
        let text = calls.issue("a").unwrap();
        let stale = format!("{PREFIX}{}", "0".repeat(2 * RANDOM_BYTES));
        let body = format!("{PREFIX}{PREFIX}{stale}{text}{stale}");
        let (start, slug) = calls.find(body.as_bytes()).unwrap();
        assert_eq!((start, slug.as_str()), (body.find(&text).unwrap(), "a"));
        assert!(calls.find(stale.as_bytes()).is_none());
        assert!(calls.find(&text.as_bytes()[..LENGTH - 1]).is_none());
        assert!(calls.find(text.to_uppercase().as_bytes()).is_none());
    }

    #[test]
    fn the_end_of_a_chunk_may_begin_one() {
        let text = Placeholders::default().issue("a").unwrap();
        for length in 1..LENGTH {
            let chunk = format!("xx{}", text.split_at(length).0);
            assert_eq!(unfinished(chunk.as_bytes()), 2, "{length}");
        }
        assert_eq!(unfinished(format!("x{text}").as_bytes()), LENGTH + 1);
        assert_eq!(unfinished(b"toolward-x"), 10);
        assert_eq!(unfinished(b""), 0);
        assert_eq!(unfinished(b"toot"), 3);
    }
}
