//! A host for examples, without the operator's grants: a directory for each declared
//! workspace, key-value buckets in memory, and nothing else.

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
use toolward_policy::{Policy, PolicyError, Publisher, Rule, ToolPattern, Workspace};

use crate::error::{Error, Kind};

/// The directories for a bundle's workspaces, and the policy that grants them.
#[derive(Debug)]
pub struct Sandbox {
    folder: PathBuf,
    directories: Vec<PathBuf>,
    policy: Policy,
}

impl Sandbox {
    /// Creates the directories in an empty folder, which the caller removes afterwards.
    ///
    /// # Errors
    /// `write-failed` if a directory can't be created.
    pub fn new(folder: &Path, content: &Content) -> Result<Self, Error> {
        let mut directories = Vec::new();
        let mut builder = Policy::builder().source("scratch");
        for (number, path) in roots(content).into_iter().enumerate() {
            let directory = folder.join(number.to_string());
            std::fs::create_dir(&directory)
                .map_err(|error| Error::unwritable(&directory, error))?;
            builder = builder.workspace(Workspace::new(path, &directory));
            directories.push(directory);
        }
        // A publisher that can't be named in a policy gets no grants.
        if let Ok(publisher) = Publisher::parse(&content.origin.publisher()) {
            for entry in &content.tools {
                let rule = rule(&entry.tool, publisher.clone());
                builder = builder.grant(rule.map_err(|error| unusable(&error))?);
            }
        }
        Ok(Self {
            folder: folder.to_owned(),
            directories,
            policy: builder.build().map_err(|error| unusable(&error))?,
        })
    }

    /// A host that grants the sandbox to its bundle and approves every call: files and
    /// buckets are temporary.
    ///
    /// # Errors
    /// If the buckets can't be created.
    pub fn host(&self, content: Content) -> Result<HostBuilder, Error> {
        let buckets = Store::in_memory()
            .map_err(|error| Error::with_code(Kind::Failed, error.code(), &error))?;
        Ok(Host::builder()
            .bundle(content)
            .policy(self.policy.clone())
            .approver(ApproveAll)
            .buckets(buckets))
    }

    /// The access that a process needs to run examples here and to remove the folder
    /// afterwards.
    pub fn kept(&self, host: &Host) -> Confinement {
        let confinement = host.requirements().confinement();
        let confinement = confinement.read_write(&self.folder);
        match self.folder.parent() {
            Some(parent) => confinement.remove_directories(parent),
            None => confinement,
        }
    }

    /// Empties the directories for the next example.
    ///
    /// # Errors
    /// `write-failed` if a file can't be removed.
    pub fn clear(&self) -> Result<(), Error> {
        for directory in &self.directories {
            empty(directory).map_err(|error| Error::unwritable(directory, error))?;
        }
        Ok(())
    }
}

struct ApproveAll;

impl Approver for ApproveAll {
    fn ask<'a>(
        &'a self,
        _request: &'a ApprovalRequest,
    ) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>> {
        Box::pin(async { Verdict::Approved })
    }
}

/// The directories that contain a bundle's workspace paths; none contains another.
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
fn rule(tool: &Tool, publisher: Publisher) -> Result<Rule, PolicyError> {
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
    rule.tool = ToolPattern::parse(&tool.major_id())?;
    rule.requires = kept(&tool.requires.capabilities);
    rule.mutates = kept(&tool.mutates);
    Ok(rule)
}

fn unusable(error: &PolicyError) -> Error {
    Error::with_code(Kind::Failed, error.code(), error)
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
