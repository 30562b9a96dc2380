//! Whether two capabilities overlap. Unlike [`Capability::intersect`], which errs on
//! the small side, a deny errs on the large one.

use toolward_contract::capability::{Capability, Class, HostPattern, PathPattern};

/// Whether a deny of `denied` is about `declared`: true wherever there may be
/// something that falls under both.
pub(crate) fn overlaps(denied: &Capability, declared: &Capability) -> bool {
    if denied.class() != declared.class() {
        return false;
    }
    match (
        denied.host(),
        declared.host(),
        denied.path(),
        declared.path(),
    ) {
        (Some(a), Some(b), ..) => hosts_overlap(a, b),
        (.., Some(a), Some(b)) => paths_overlap(a, b),
        _ => denied.covers(declared) || declared.covers(denied),
    }
}

/// A denied host without a port is denied at every port; one with `:443` only there.
pub(crate) fn hosts_overlap(denied: &HostPattern, declared: &HostPattern) -> bool {
    let ports = match (denied.written_port(), declared.port()) {
        (None, _) => true,
        (Some(a), Some(b)) => a == b,
        // No port stands for the defaults of https and http.
        (Some(a), None) => matches!(a, 443 | 80),
    };
    let name = |pattern: &HostPattern| Capability::of(Class::Network, &pattern.host());
    // A pattern's own spelling is always read back; if not, the deny holds.
    let names = match (name(denied), name(declared)) {
        (Ok(a), Ok(b)) => a.intersect(&b).is_some(),
        _ => true,
    };
    ports && names
}

fn paths_overlap(a: &PathPattern, b: &PathPattern) -> bool {
    let (a, b) = (Shape::of(a), Shape::of(b));
    let lengths = match a.segments.len().cmp(&b.segments.len()) {
        std::cmp::Ordering::Less => a.below,
        std::cmp::Ordering::Equal => true,
        std::cmp::Ordering::Greater => b.below,
    };
    lengths
        && (a.segments.iter())
            .zip(&b.segments)
            .all(|(a, b)| meet(a, b))
}

struct Shape {
    segments: Vec<String>,
    below: bool,
}

impl Shape {
    fn of(pattern: &PathPattern) -> Self {
        let text = pattern.to_string();
        let (text, below) = match text.strip_suffix("/**") {
            Some(text) => (text, true),
            None => (text.as_str(), pattern.is_plain()),
        };
        let segments = text.split('/').filter(|part| !part.is_empty());
        Self {
            segments: segments.map(str::to_owned).collect(),
            below,
        }
    }
}

/// Whether some name matches both patterns, `*` standing for any letters.
fn meet(a: &str, b: &str) -> bool {
    if !a.contains('*') && !b.contains('*') {
        return a == b;
    }
    let b: Vec<char> = b.chars().collect();
    // reached[j]: what was read of `a` can meet the first j letters of `b`.
    let mut reached = vec![true];
    for letter in &b {
        let before = reached.last() == Some(&true);
        reached.push(before && *letter == '*');
    }
    for own in a.chars() {
        let mut next: Vec<bool> = Vec::with_capacity(reached.len());
        next.push(own == '*' && reached.first() == Some(&true));
        for (pair, letter) in reached.windows(2).zip(&b) {
            let (corner, above) = match pair {
                [corner, above] => (*corner, *above),
                _ => (false, false),
            };
            let left = next.last() == Some(&true);
            // A star stands for nothing, or takes in one letter more.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn overlap(a: &str, b: &str) -> bool {
        let read = |text: &str| Capability::parse(text).unwrap();
        overlaps(&read(a), &read(b))
    }

    #[test]
    fn patterns_that_some_path_matches_overlap_whichever_is_wider() {
        for (a, b) in [
            ("workspace:/a", "workspace:/a/b/c"),
            ("workspace:/a/b", "workspace:/a"),
            ("workspace:/", "workspace:/a/*.txt"),
            ("workspace:/a/*x", "workspace:/a/x*"),
            ("workspace:/a/x*", "workspace:/a/x"),
            ("workspace:/a/*.txt", "workspace:/a/x.txt"),
            ("workspace:/a/**", "workspace:/*/b"),
            ("workspace:/a/x*y*z", "workspace:/a/*yy*"),
        ] {
            assert!(overlap(a, b), "{a} {b}");
            assert!(overlap(b, a), "{b} {a}");
        }
        for (a, b) in [
            ("workspace:/a", "workspace:/b"),
            ("workspace:/a", "workspace:/ab"),
            ("workspace:/a/*.txt", "workspace:/a/x.md"),
            ("workspace:/a/*.txt", "workspace:/a/b/x.txt"),
            ("workspace:/a/x*", "workspace:/a/y*"),
        ] {
            assert!(!overlap(a, b), "{a} {b}");
            assert!(!overlap(b, a), "{b} {a}");
        }
    }

    #[test]
    fn a_denied_host_is_denied_at_every_port_and_a_denied_port_only_there() {
        assert!(overlap("network:*.internal", "network:db.internal:5432"));
        assert!(overlap("network:db.internal", "network:*:5432"));
        assert!(overlap("network:a.example:443", "network:a.example"));
        assert!(overlap("network:a.example:443", "network:a.example:443"));
        assert!(!overlap("network:a.example:443", "network:a.example:8443"));
        assert!(!overlap("network:a.example:443", "network:a.example:80"));
        assert!(overlap("network:a.example:80", "network:*"));
        assert!(!overlap("network:a.example:8443", "network:a.example"));
        assert!(!overlap("network:a.example:8443", "network:a.example:443"));
        assert!(!overlap("network:*.internal", "network:internal"));
        assert!(!overlap("network:a.example", "database:a.example"));
    }

    #[test]
    fn names_overlap_when_they_are_equal_or_one_is_a_wildcard() {
        assert!(overlap("secret:*", "secret:token"));
        assert!(overlap("tool:*", "tool:text.stats"));
        assert!(overlap("database:counters", "database:*"));
        assert!(!overlap("secret:a", "secret:b"));
    }
}
