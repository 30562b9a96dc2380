//! Workspace scopes: virtual absolute paths, plain or with `*`. They are never paths of the host.

use std::fmt;

/// A plain path means itself and everything below it. A path with `*` means the paths that it
/// matches. If it also ends in `/**`, it means everything below these paths, too.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathPattern {
    segments: Vec<String>,
    below: bool,
}

const MAX_PATH_BYTES: usize = 1024;
const MAX_SEGMENTS: usize = 32;

impl PathPattern {
    /// Reads and normalises a path: `/a//b/` becomes `/a/b`, and `/a/**` becomes `/a`.
    ///
    /// # Errors
    /// A description of the mistake, for people: the path is not absolute, too long, or has `..`,
    /// control characters or patterns other than `*`.
    pub fn parse(text: &str) -> Result<PathPattern, String> {
        let Some(rest) = text.strip_prefix('/') else {
            return Err(format!(
                "expected a workspace path that starts with `/`, found {text:?}"
            ));
        };
        if text.len() > MAX_PATH_BYTES {
            return Err(format!(
                "expected a workspace path of at most {MAX_PATH_BYTES} bytes, found {}",
                text.len()
            ));
        }
        if let Some(bad) = text
            .chars()
            .find(|&c| c.is_control() || matches!(c, '\\' | '?' | '[' | ']' | '{' | '}'))
        {
            return Err(format!(
                "expected a workspace path with `*` as the only pattern, found {bad:?} in {text:?}"
            ));
        }
        let mut segments: Vec<String> = rest
            .split('/')
            .filter(|s| !s.is_empty() && *s != ".")
            .map(str::to_owned)
            .collect();
        if segments.iter().any(|segment| segment == "..") {
            return Err(format!(
                "expected a workspace path without `..`, found {text:?}"
            ));
        }
        if segments.len() > MAX_SEGMENTS {
            return Err(format!(
                "expected a workspace path of at most {MAX_SEGMENTS} parts, found {}",
                segments.len()
            ));
        }
        let mut below = !text.contains('*');
        while segments.last().is_some_and(|last| last == "**") {
            segments.pop();
            below = true;
        }
        if segments.iter().any(|segment| segment.contains("**")) {
            return Err(format!(
                "expected `**` only as the last part of a workspace path, found {text:?}"
            ));
        }
        Ok(PathPattern { segments, below })
    }

    /// Whether it is one directory with everything below it, without wildcards, as a preopen is.
    pub fn is_plain(&self) -> bool {
        self.below && self.segments.iter().all(|segment| !segment.contains('*'))
    }

    /// The longest leading directory without a wildcard: `/data` for `/data/*.csv`.
    pub fn directory(&self) -> String {
        let literal = self
            .segments
            .iter()
            .take_while(|segment| !segment.contains('*'))
            .count();
        let file = usize::from(!self.below);
        let count = literal.min(self.segments.len().saturating_sub(file));
        let parts = self.segments.iter().take(count);
        parts.fold(String::new(), |path, part| path + "/" + part)
            + if count == 0 { "/" } else { "" }
    }

    /// Whether an absolute, normalised path falls under it.
    pub fn matches(&self, path: &str) -> bool {
        parts(path).is_some_and(|parts| self.is_as_long(parts.len()) && self.takes_in(&parts))
    }

    /// Whether it matches an absolute, normalised path and everything below that path.
    pub fn matches_below(&self, path: &str) -> bool {
        self.below && self.matches(path)
    }

    /// Whether a match may be below an absolute, normalised path, so that a walk to the match
    /// passes through the path.
    pub fn leads_through(&self, path: &str) -> bool {
        let is_above =
            |parts: Vec<&str>| parts.len() < self.segments.len() && self.takes_in(&parts);
        parts(path).is_some_and(is_above) || self.matches_below(path)
    }

    fn is_as_long(&self, count: usize) -> bool {
        count == self.segments.len() || (self.below && count > self.segments.len())
    }

    /// Whether the parts of a path match the segments, up to the end of the shorter of the two.
    fn takes_in(&self, parts: &[&str]) -> bool {
        let mut pairs = self.segments.iter().zip(parts);
        pairs.all(|(own, part)| !part.contains('*') && takes_in(own, part))
    }

    /// Whether everything that falls under `other` falls under it.
    pub fn covers(&self, other: &PathPattern) -> bool {
        (self.below || !other.below)
            && self.is_as_long(other.segments.len())
            && self
                .segments
                .iter()
                .zip(&other.segments)
                .all(|(own, part)| takes_in(own, part))
    }

    /// Whether some path may match both. In doubt, the result is true, since this is for denies.
    pub(super) fn overlaps(&self, other: &PathPattern) -> bool {
        let (own, others) = (self.segments.len(), other.segments.len());
        let lengths = self.is_as_long(others) || other.is_as_long(own);
        let mut pairs = self.segments.iter().zip(&other.segments);
        lengths && pairs.all(|(a, b)| meet(a, b))
    }

    /// A pattern that both cover. If no single pattern describes the common part, the result is
    /// smaller than that part, or `None`.
    pub(super) fn intersect(&self, other: &PathPattern) -> Option<PathPattern> {
        let (long, short) = match self.segments.len() >= other.segments.len() {
            true => (self, other),
            false => (other, self),
        };
        if long.segments.len() > short.segments.len() && !short.below {
            return None;
        }
        let mut segments = Vec::with_capacity(long.segments.len());
        for (index, part) in long.segments.iter().enumerate() {
            match short.segments.get(index) {
                Some(own) if takes_in(part, own) => segments.push(own.clone()),
                Some(own) if !takes_in(own, part) => return None,
                _ => segments.push(part.clone()),
            }
        }
        let below = long.below && (short.below || short.segments.len() < long.segments.len());
        // A literal path without everything below it has no pattern, so the result is `None`.
        let spelled = below || segments.iter().any(|segment| segment.contains('*'));
        spelled.then_some(PathPattern { segments, below })
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for segment in &self.segments {
            write!(f, "/{segment}")?;
        }
        let wildcard = self.segments.iter().any(|segment| segment.contains('*'));
        match (self.segments.is_empty(), self.below, wildcard) {
            (true, ..) => f.write_str("/"),
            (false, true, true) => f.write_str("/**"),
            _ => Ok(()),
        }
    }
}

/// The parts of an absolute, normalised path; `None` for another path.
fn parts(path: &str) -> Option<Vec<&str>> {
    let parts = path
        .strip_prefix('/')?
        .split('/')
        .filter(|part| !part.is_empty());
    let parts: Vec<&str> = parts.collect();
    let is_name = |part: &&str| !matches!(*part, "." | "..");
    parts.iter().all(is_name).then_some(parts)
}

/// Whether `outer` matches every text that `inner` matches. A `*` of `inner` counts as a letter
/// that only a `*` of `outer` matches.
fn takes_in(outer: &str, inner: &str) -> bool {
    let (outer, inner): (Vec<char>, Vec<char>) = (outer.chars().collect(), inner.chars().collect());
    let (mut o, mut i) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while let Some(&letter) = inner.get(i) {
        match outer.get(o) {
            Some('*') => {
                retry = Some((o, i));
                o += 1;
            }
            Some(&own) if own == letter => {
                o += 1;
                i += 1;
            }
            _ => match retry {
                Some((star, from)) => {
                    retry = Some((star, from + 1));
                    o = star + 1;
                    i = from + 1;
                }
                None => return false,
            },
        }
    }
    outer.iter().skip(o).all(|&c| c == '*')
}

/// Whether some name matches both patterns, in which `*` means any letters.
fn meet(a: &str, b: &str) -> bool {
    if !a.contains('*') && !b.contains('*') {
        return a == b;
    }
    let b: Vec<char> = b.chars().collect();
    // `reached[j]`: whether some text matches the part of `a` so far and the first `j` letters of
    // `b`.
    let mut reached = vec![true];
    for letter in &b {
        let before = reached.last() == Some(&true);
        reached.push(before && *letter == '*');
    }
    for own in a.chars() {
        let mut next: Vec<bool> = Vec::with_capacity(reached.len());
        next.push(own == '*' && reached.first() == Some(&true));
        for (&[corner, above], letter) in reached.array_windows().zip(&b) {
            let left = next.last() == Some(&true);
            // A star matches nothing, or one more letter.
            next.push(if own == '*' || *letter == '*' {
                above || left
            } else {
                own == *letter && corner
            });
        }
        reached = next;
    }
    reached.last() == Some(&true)
}
