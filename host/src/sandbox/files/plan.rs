//! The workspaces of one grant, prepared for all its calls: which directory a virtual
//! path is in, and what is granted there.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use toolward_policy::WorkspaceGrant;
use toolward_support::report::codes;

use super::path::VirtualPath;
use super::resolve_beneath::Root;
use super::rules::{Access, Rules};
use crate::workspace::{Unusable, Workspaces};

/// What the guests of one (contract, driver) see of files.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// Longest path first: for nested workspaces, the inner one decides about its
    /// paths, and only its own grants count there.
    mounts: Vec<Arc<Mount>>,
    preopens: Vec<VirtualPath>,
}

/// One workspace, and what is granted of it.
#[derive(Debug)]
pub(super) struct Mount {
    pub(super) path: VirtualPath,
    pub(super) root: Arc<Root>,
    pub(super) rules: Rules,
    /// What policy calls the directory: one budget for each.
    pub(super) directory: PathBuf,
    pub(super) max_bytes: Option<u64>,
    pub(super) max_files: Option<u64>,
}

impl Mount {
    /// Whether the guest sees a part of the workspace only.
    pub(super) fn is_partial(&self) -> bool {
        self.rules.access(&self.path) < Access::Read
    }
}

codes! {
    /// Why the workspaces of a grant can't be used. `path` is virtual.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub(crate) enum PlanError: Error {
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
    /// The plan for what is granted, out of the workspaces that were checked.
    pub(crate) fn new(
        grants: &[WorkspaceGrant],
        workspaces: &Workspaces,
    ) -> Result<Self, PlanError> {
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

    pub(super) fn preopens(&self) -> &[VirtualPath] {
        &self.preopens
    }

    /// The workspace of a path, and what is granted there; `None`: nothing.
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

/// The preopened directory for a grant: the granted directory itself, else the one that
/// contains the granted files, of which the guest sees nothing else.
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
