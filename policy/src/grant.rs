//! The grant: all that the sandbox of one (contract, driver) gets. Made by
//! [`crate::decide`] only; empty means nothing.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use toolward_contract::capability::{Class, HostPattern, PathPattern};

use crate::error::{self, PolicyError};
use crate::exec::{ExecRule, WorkspaceAccess};
use crate::fields::word;
use crate::host_terms::HostTerms;

/// All that a sandbox gets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grant {
    pub(crate) network: Vec<HostGrant>,
    pub(crate) workspaces: Vec<WorkspaceGrant>,
    pub(crate) buckets: Vec<BucketGrant>,
    pub(crate) secrets: Vec<SecretGrant>,
    /// Scopes of the classes that give no more than their scopes.
    pub(crate) scopes: BTreeMap<Class, Vec<String>>,
    pub(crate) on_violation: OnViolation,
    pub(crate) program: Option<Arc<ExecRule>>,
}

impl Grant {
    /// What it gives: the capability, in words for people, and whether it may be changed.
    pub fn parts(&self) -> Vec<(String, String, bool)> {
        let mut parts = Vec::new();
        let mut add = |class: &Class, scope: &dyn Display, words: &dyn Display, writes: bool| {
            parts.push((format!("{class}:{scope}"), words.to_string(), writes));
        };
        for one in &self.network {
            add(&Class::Network, &one.host, one, one.unsafe_methods);
        }
        for one in &self.workspaces {
            add(&Class::Workspace, &one.path, one, one.write);
        }
        for one in &self.buckets {
            add(&Class::Database, &one.name, one, one.write);
        }
        for one in &self.secrets {
            add(&Class::Secret, &one.slug, one, one.store);
        }
        for (class, scopes) in &self.scopes {
            for scope in scopes {
                let (words, writes) = class.gives(scope);
                add(class, scope, &words, writes);
            }
        }
        parts
    }

    /// Hosts that outgoing HTTP may reach.
    pub fn network(&self) -> &[HostGrant] {
        &self.network
    }

    /// Directories, or parts of them, that are opened.
    pub fn workspaces(&self) -> &[WorkspaceGrant] {
        &self.workspaces
    }

    /// Key-value buckets.
    pub fn buckets(&self) -> &[BucketGrant] {
        &self.buckets
    }

    /// Secrets.
    pub fn secrets(&self) -> &[SecretGrant] {
        &self.secrets
    }

    /// Ids of the tools that may be called.
    pub fn tools(&self) -> &[String] {
        self.scopes(&Class::Tool)
    }

    /// The scopes of a class that gives no more than its scopes.
    pub fn scopes(&self, class: &Class) -> &[String] {
        self.scopes.get(class).map_or(&[], Vec::as_slice)
    }

    /// Whether it gives this scope of such a class.
    pub fn has(&self, class: &Class, scope: &str) -> bool {
        self.scopes(class).iter().any(|known| known == scope)
    }

    /// The secrets without whose values a driver can't work: it sends or reads them, and does not store them
    /// itself.
    pub fn needed_secrets(&self) -> impl Iterator<Item = &SecretGrant> {
        let secrets = self.secrets.iter();
        secrets.filter(|one| (one.binding.is_some() || one.reveal) && !one.store)
    }

    /// The program that runs outside the sandbox, with all that it gets. A grant with one gives
    /// the host itself neither hosts nor directories.
    pub fn program(&self) -> Option<&Arc<ExecRule>> {
        self.program.as_ref()
    }

    /// What happens at the first attempt to go beyond this grant.
    pub fn on_violation(&self) -> OnViolation {
        self.on_violation
    }
}

/// One host pattern that outgoing HTTP may reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostGrant {
    /// The host, as granted; no port means 443, and 80 if `terms` have `plain_http`.
    pub host: HostPattern,
    /// Whether methods other than GET, HEAD and OPTIONS pass.
    pub unsafe_methods: bool,
    /// On which terms.
    pub terms: HostTerms,
}

/// A workspace path and the host directory behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceGrant {
    /// The virtual paths that are granted.
    pub path: PathPattern,
    /// The virtual path that policy mapped: `path` lies at or below it.
    pub root: String,
    /// The host directory that `root` stands for. Absolute.
    pub directory: PathBuf,
    /// Whether it may be changed.
    pub write: bool,
    /// Bytes that one call may add; `None`: the host's limit.
    pub max_bytes: Option<u64>,
    /// Files and directories that one call may create; `None`: the host's
    /// limit.
    pub max_files: Option<u64>,
}

/// A key-value bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketGrant {
    /// The bucket's name, as the guest opens it; `*`: every name that no
    /// other bucket of the grant has.
    pub name: String,
    /// The publisher whose bucket it is: the contract's own, or the publisher that
    /// shares it.
    pub owner: String,
    /// Whether it may be changed.
    pub write: bool,
}

/// A secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretGrant {
    /// Its name.
    pub slug: String,
    /// The publisher in whose space it lies.
    pub publisher: String,
    /// Where its placeholder is replaced; `None`: nowhere, it may only be
    /// stored or revealed.
    pub binding: Option<Arc<SecretBinding>>,
    /// Whether the guest may read the value itself.
    pub reveal: bool,
    /// Whether the guest may store a new value.
    pub store: bool,
}

/// The one place where a secret goes out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretBinding {
    /// The host, lower case, without port; reached by https only.
    pub host: String,
    /// The port; 443 where policy names none.
    pub port: u16,
    /// The position in the request.
    pub position: SecretPosition,
    /// The methods, upper case. Never empty.
    pub methods: Vec<String>,
    /// What the path starts with: `/` for all paths. Whole segments.
    pub path_prefix: String,
}

/// Where in a request a secret goes out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum SecretPosition {
    /// In this header, lower case.
    Header(String),
    /// As the whole value of this parameter of the query.
    Query(String),
}

/// What happens when a driver tries what it was not granted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnViolation {
    /// The attempt fails inside the guest, and is recorded.
    #[default]
    Record,
    /// It also ends the call.
    End,
}

impl OnViolation {
    pub(crate) fn parse(text: &str) -> Result<Self, PolicyError> {
        word(&error::WRONG_VALUE, "`on_violation` to be record or end")(text)
    }
}

impl fmt::Display for HostGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let methods = match self.unsafe_methods {
            true => "all methods",
            false => "GET, HEAD and OPTIONS",
        };
        write!(f, "{methods} to {} {}", self.host, self.terms)
    }
}

impl fmt::Display for WorkspaceGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = WorkspaceAccess::of(self.write).as_str();
        let directory = self.directory.display();
        write!(f, "{} {how}, {} being {directory}", self.path, self.root)?;
        if let Some(bytes) = self.max_bytes {
            write!(f, ", at most {bytes} bytes more")?;
        }
        if let Some(files) = self.max_files {
            write!(f, ", at most {files} files more")?;
        }
        Ok(())
    }
}

impl fmt::Display for BucketGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = WorkspaceAccess::of(self.write).as_str();
        write!(f, "bucket {} of {}, {how}", self.name, self.owner)
    }
}

impl fmt::Display for SecretGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "secret {} of {}", self.slug, self.publisher)?;
        if let Some(binding) = &self.binding {
            match &binding.position {
                SecretPosition::Header(name) => write!(f, ", in `{name}`")?,
                SecretPosition::Query(name) => write!(f, ", as the parameter `{name}`")?,
            }
            write!(
                f,
                " of {} to https://{}:{}{}",
                binding.methods.join(", "),
                binding.host,
                binding.port,
                binding.path_prefix
            )?;
        }
        if self.reveal {
            f.write_str(", revealed to the guest")?;
        }
        if self.store {
            f.write_str(", and storing it")?;
        }
        Ok(())
    }
}
