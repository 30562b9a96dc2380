//! A place where examples run without the operator's grants: a directory for
//! each declared workspace, gone afterwards, key-value buckets in memory, and
//! nothing else.

use std::collections::BTreeSet;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;

use toolward_bundle::content::Content;
use toolward_contract::capability::{Capability, CapabilitySet, Class, PathPattern};
use toolward_contract::tool::Tool;
use toolward_host::confine::Confinement;
use toolward_host::{ApprovalRequest, Approver, Host, HostBuilder, Verdict};
use toolward_keyvalue::Store;
use toolward_policy::{Policy, Publisher, Rule, ToolPattern, Workspace};

use crate::failure::{Failure, Kind};

/// The directories behind a bundle's workspaces.
pub(crate) struct TestSandbox {
    /// Removed when the value is dropped.
    folder: tempfile::TempDir,
    directories: Vec<PathBuf>,
    policy: Policy,
}

impl TestSandbox {
    pub(crate) fn new(content: &Content) -> Result<Self, Failure> {
        let folder = tempfile::Builder::new()
            .prefix("toolward-")
            .tempdir()
            .map_err(|error| Failure::unwritable(&std::env::temp_dir(), error))?;
        let mut directories = Vec::new();
        let mut builder = Policy::builder().source("scratch");
        for (number, path) in roots(content).into_iter().enumerate() {
            let directory = folder.path().join(number.to_string());
            std::fs::create_dir(&directory)
                .map_err(|error| Failure::unwritable(&directory, error))?;
            builder = builder.workspace(Workspace::new(path, &directory));
            directories.push(directory);
        }
        // Who can't be named in a policy is granted nothing.
        if let Ok(publisher) = Publisher::parse(&content.origin.publisher()) {
            for entry in &content.tools {
                builder = builder.grant(rule(&entry.tool, publisher.clone())?);
            }
        }
        Ok(Self {
            policy: builder.build().map_err(unusable)?,
            folder,
            directories,
        })
    }

    /// A host that grants what lies here, to the bundle that it was made for.
    pub(crate) fn host(&self, content: Content) -> Result<HostBuilder, Failure> {
        let buckets =
            Store::in_memory().map_err(|error| Failure::new(Kind::Failed, error.code(), &error))?;
        Ok(Host::builder()
            .bundle(content)
            .policy(self.policy.clone())
            .approver(ApproveAll)
            .buckets(buckets))
    }

    /// What a process keeps that runs examples here, and removes this at its
    /// end.
    pub(crate) fn kept(&self, host: &Host) -> Confinement {
        let folder = self.folder.path();
        let confinement = host.requirements().confinement().read_write(folder);
        match folder.parent() {
            Some(parent) => confinement.remove_directories(parent),
            None => confinement,
        }
    }

    /// Empties the directories, for the next example.
    pub(crate) fn clear(&self) -> Result<(), Failure> {
        for directory in &self.directories {
            empty(directory).map_err(|error| Failure::unwritable(directory, error))?;
        }
        Ok(())
    }
}

/// Approves every call: its files and buckets are temporary.
struct ApproveAll;

impl Approver for ApproveAll {
    fn ask<'a>(
        &'a self,
        _request: &'a ApprovalRequest,
    ) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>> {
        Box::pin(async { Verdict::Approved })
    }
}

/// The directories that a bundle's workspace paths lie in; none lies in another.
fn roots(content: &Content) -> Vec<PathPattern> {
    let declared = content.tools.iter().map(|entry| entry.tool.declaration());
    let directories: BTreeSet<String> = declared
        .flat_map(|set| {
            let paths = set.of_class(&Class::Workspace).filter_map(Capability::path);
            paths.map(PathPattern::directory).collect::<Vec<_>>()
        })
        .collect();
    let patterns = directories
        .iter()
        .filter_map(|path| Capability::of(Class::Workspace, path).ok());
    let all: Vec<Capability> = patterns.collect();
    let outermost = all.iter().filter(|one| {
        let above = |other: &&Capability| other != one && other.covers(one);
        !all.iter().any(|other| above(&other))
    });
    outermost.filter_map(|one| one.path().cloned()).collect()
}

/// Workspaces and buckets as the contract declares them.
fn rule(tool: &Tool, publisher: Publisher) -> Result<Rule, Failure> {
    let kept = |one: &&Capability| match one.class() {
        Class::Workspace | Class::Database => true,
        Class::Network
        | Class::Secret
        | Class::External
        | Class::Tool
        | Class::User
        | Class::Other(_) => false,
    };
    let kept =
        |set: &CapabilitySet| -> CapabilitySet { set.iter().filter(kept).cloned().collect() };
    let mut rule = Rule::new(publisher);
    rule.tool = ToolPattern::parse(&tool.major_id()).map_err(unusable)?;
    rule.requires = kept(&tool.requires.capabilities);
    rule.mutates = kept(&tool.mutates);
    Ok(rule)
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn unusable(error: toolward_policy::PolicyError) -> Failure {
    Failure::new(Kind::Failed, error.code(), &error)
}

fn empty(directory: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            std::fs::remove_dir_all(entry.path())?;
        } else {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}
