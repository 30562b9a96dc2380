//! The workspaces of one grant, prepared for all its calls: finds the workspace of a virtual path,
//! and the granted access.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;

use toolward_contract::capability::PathPattern;
use toolward_policy::WorkspaceGrant;
use toolward_support::report::codes;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::Fail;
use super::path::VirtualPath;
use super::resolve_beneath::Root;
use super::workspaces::{Unusable, Workspaces};

/// The files that the guests of one pair of contract and driver can see.
#[derive(Debug, Default)]
pub struct Plan {
    /// Longest path first: for nested workspaces, the inner workspace decides about its paths, and
    /// only its own grants count there.
    mounts: Vec<Arc<Mount>>,
    pub(super) preopens: Vec<VirtualPath>,
}

/// One workspace, and its granted parts.
#[derive(Debug)]
pub(super) struct Mount {
    pub(super) path: VirtualPath,
    pub(super) root: Arc<Root>,
    pub(super) rules: Rules,
    /// The directory's path in the policy. Separate limits count for each directory.
    pub(super) directory: PathBuf,
    pub(super) max_bytes: Option<u64>,
    pub(super) max_files: Option<u64>,
}

impl Mount {
    /// Whether the guest sees only a part of the workspace.
    pub(super) fn is_partial(&self) -> bool {
        self.rules.access(&self.path) < Access::Read
    }
}

codes! {
    /// Why the workspaces of a grant can't be used. `path` is virtual.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub enum PlanError: Error {
        Unusable { path: String, directory: PathBuf, problem: Unusable } -> problem,
            ("the workspace `{path}` can't be used: {}: {problem}", directory.display());
        Ambiguous { path: String, first: PathBuf, second: PathBuf } = "workspace-ambiguous" ["4"],
            "a workspace that a tool needs is mapped to two directories",
            (
                "the workspace `{path}` stands for two directories: {} and {}",
                first.display(),
                second.display()
            )
            => "map each virtual path once";
    }
}

impl Plan {
    /// Makes the plan for the grants, from the checked workspaces.
    pub fn new(grants: &[WorkspaceGrant], workspaces: &Workspaces) -> Result<Self, PlanError> {
        let mut mounts: BTreeMap<VirtualPath, Mount> = BTreeMap::new();
        let mut preopens = Vec::new();
        for grant in grants {
            let path = VirtualPath::of_grant(&grant.root);
            let root =
                workspaces
                    .root(&grant.directory)
                    .map_err(|problem| PlanError::Unusable {
                        path: grant.root.clone(),
                        directory: grant.directory.clone(),
                        problem,
                    })?;
            let mount = mounts.entry(path.clone()).or_insert_with(|| Mount {
                path: path.clone(),
                root,
                rules: Rules::default(),
                directory: grant.directory.clone(),
                max_bytes: grant.max_bytes,
                max_files: grant.max_files,
            });
            if mount.directory != grant.directory {
                return Err(PlanError::Ambiguous {
                    path: grant.root.clone(),
                    first: mount.directory.clone(),
                    second: grant.directory.clone(),
                });
            }
            mount.rules.add(grant.path.clone(), grant.write);
            preopens.push(preopen(grant, mount));
        }
        let mut mounts: Vec<Arc<Mount>> = mounts.into_values().map(Arc::new).collect();
        mounts.sort_by_key(|mount| std::cmp::Reverse(mount.path.as_str().len()));
        preopens.sort();
        preopens.dedup();
        Ok(Self { mounts, preopens })
    }

    /// The workspace of a path, and the granted access; `None` if nothing is granted.
    pub(super) fn find(&self, path: &VirtualPath) -> Option<(&Arc<Mount>, Access)> {
        let mount = self
            .mounts
            .iter()
            .find(|mount| path.below(&mount.path).is_some())?;
        let access = mount.rules.access(path);
        (access > Access::None).then_some((mount, access))
    }

    /// Whether something at or below the path may be changed.
    pub(super) fn writes_somewhere(&self, path: &VirtualPath) -> bool {
        self.mounts
            .iter()
            .any(|mount| mount.rules.writes_somewhere(path))
    }
}

/// The preopened directory for a grant: the granted directory itself, or else the directory that
/// contains the granted files. In such a directory, the guest sees only the granted files.
fn preopen(grant: &WorkspaceGrant, mount: &Mount) -> VirtualPath {
    let named = VirtualPath::of_grant(&grant.path.directory());
    let Some(relative) = named.below(&mount.path) else {
        return mount.path.clone();
    };
    if !grant.path.is_plain() || relative.is_empty() || mount.root.probe_directory(relative).is_ok()
    {
        return named;
    }
    named.parent()
}

/// The access of a guest to a path. Each level includes the levels before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Access {
    /// None: the path does not exist for the guest.
    None,
    /// Traverse a directory, and list the entries that can be reached through it.
    Pass,
    /// Read the file or directory.
    Read,
    /// Read and change the file or directory.
    Write,
}

/// The patterns of one workspace that are granted: they determine the access to a path.
#[derive(Debug, Default)]
pub(super) struct Rules(Vec<(PathPattern, bool)>);

impl Rules {
    pub(super) fn add(&mut self, pattern: PathPattern, write: bool) {
        self.0.push((pattern, write));
    }

    /// The highest access that any pattern grants.
    pub(super) fn access(&self, path: &VirtualPath) -> Access {
        let each = self.0.iter().map(|(pattern, write)| {
            let matches = pattern.matches(path.as_str());
            match (matches, *write) {
                (true, true) => Access::Write,
                (true, false) => Access::Read,
                (false, _) if pattern.leads_through(path.as_str()) => Access::Pass,
                (false, _) => Access::None,
            }
        });
        each.max().unwrap_or(Access::None)
    }

    /// Whether everything at and below the path may be changed. This is needed to move a directory,
    /// which also moves entries that the guest can't see.
    pub(super) fn writes_below(&self, path: &VirtualPath) -> bool {
        self.0
            .iter()
            .any(|(pattern, write)| *write && pattern.matches_below(path.as_str()))
    }

    /// Whether anything at or below the path may be changed.
    pub(super) fn writes_somewhere(&self, path: &VirtualPath) -> bool {
        self.0.iter().any(|(pattern, write)| {
            *write && (pattern.matches(path.as_str()) || pattern.leads_through(path.as_str()))
        })
    }
}

/// Refuses to change a file that has several names: a hard link that was planted in a workspace
/// could lead out of the workspace. Guests can't create hard links.
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
