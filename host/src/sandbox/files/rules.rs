//! What the grants of one workspace state about a path, and which files never change.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

use toolward_contract::capability::PathPattern;

use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::errors::Fail;
use super::path::VirtualPath;

/// What a guest may do with a path. Each includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Access {
    /// Nothing: for the guest it does not exist.
    None,
    /// Walk through it, if it is a directory, and list what can be reached so.
    Pass,
    /// Read it.
    Read,
    /// Change it, too.
    Write,
}

/// The patterns of one workspace that are granted.
#[derive(Debug, Default)]
pub(super) struct Rules(Vec<Rule>);

#[derive(Debug)]
struct Rule {
    pattern: PathPattern,
    write: bool,
}

impl Rules {
    pub(super) fn add(&mut self, pattern: PathPattern, write: bool) {
        self.0.push(Rule { pattern, write });
    }

    /// The most that any pattern gives.
    pub(super) fn access(&self, path: &VirtualPath) -> Access {
        let each = self.0.iter().map(|rule| {
            let matches = rule.pattern.matches(path.as_str());
            match (matches, rule.write) {
                (true, true) => Access::Write,
                (true, false) => Access::Read,
                (false, _) if rule.pattern.leads_through(path.as_str()) => Access::Pass,
                (false, _) => Access::None,
            }
        });
        each.max().unwrap_or(Access::None)
    }

    /// Whether everything at and below the path may be changed: moving a directory also
    /// moves entries that the guest can't see.
    pub(super) fn writes_below(&self, path: &VirtualPath) -> bool {
        self.0
            .iter()
            .any(|rule| rule.write && rule.pattern.matches_below(path.as_str()))
    }

    /// Whether anything at or below the path may be changed.
    pub(super) fn writes_somewhere(&self, path: &VirtualPath) -> bool {
        self.0.iter().any(|rule| {
            rule.write
                && (rule.pattern.matches(path.as_str())
                    || rule.pattern.leads_through(path.as_str()))
        })
    }
}

/// Refuses to change a file with another name: a hard link that was planted in
/// a workspace would be a way out of it. Guests make none.
pub(super) fn not_linked(metadata: &Metadata) -> Result<(), Fail> {
    if metadata.nlink() > 1 {
        return Err(Fail::Refused(ErrorCode::NotPermitted));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(patterns: &[(&str, bool)]) -> Rules {
        let mut rules = Rules::default();
        for (pattern, write) in patterns {
            rules.add(PathPattern::parse(pattern).expect("a pattern"), *write);
        }
        rules
    }

    fn access(rules: &Rules, path: &str) -> Access {
        rules.access(&VirtualPath::of_grant(path))
    }

    #[test]
    fn a_tree_is_everything_below_and_the_way_to_it() {
        let rules = rules(&[("/w/a", false)]);
        for (path, expected) in [
            ("/w/a", Access::Read),
            ("/w/a/b/c", Access::Read),
            ("/w", Access::Pass),
            ("/", Access::Pass),
            ("/w/ab", Access::None),
            ("/w/b", Access::None),
        ] {
            assert_eq!(access(&rules, path), expected, "{path}");
        }
    }

    #[test]
    fn a_pattern_is_what_it_matches_and_nothing_below() {
        let rules = rules(&[("/w/*/in-*.csv", true)]);
        for (path, expected) in [
            ("/w/x/in-1.csv", Access::Write),
            ("/w/x/in-1.csv/y", Access::None),
            ("/w/x/out.csv", Access::None),
            ("/w/x", Access::Pass),
            ("/w/x/y", Access::None),
            ("/w", Access::Pass),
            ("/x", Access::None),
        ] {
            assert_eq!(access(&rules, path), expected, "{path}");
        }
    }

    #[test]
    fn the_grant_that_gives_most_decides() {
        let rules = rules(&[("/w", false), ("/w/out", true), ("/w/*.log", true)]);
        assert_eq!(access(&rules, "/w/a.txt"), Access::Read);
        assert_eq!(access(&rules, "/w/a.log"), Access::Write);
        assert_eq!(access(&rules, "/w/out/a.txt"), Access::Write);
        assert!(rules.writes_below(&VirtualPath::of_grant("/w/out/d")));
        assert!(!rules.writes_below(&VirtualPath::of_grant("/w/d.log")));
        assert!(rules.writes_somewhere(&VirtualPath::of_grant("/w")));
        assert!(!rules.writes_somewhere(&VirtualPath::of_grant("/w/in")));
    }

    #[test]
    fn no_grant_gives_nothing() {
        assert_eq!(access(&Rules::default(), "/"), Access::None);
    }
}
