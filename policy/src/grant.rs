//! The grant: everything that the sandbox of one contract and driver gets. Only [`crate::decide`]
//! makes grants. An empty grant gives nothing.

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

/// Everything that a sandbox gets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grant {
    pub(crate) network: Vec<HostGrant>,
    pub(crate) workspaces: Vec<WorkspaceGrant>,
    pub(crate) buckets: Vec<BucketGrant>,
    pub(crate) secrets: Vec<SecretGrant>,
    /// The granted scopes by class, for classes of which a grant is only a list of scopes.
    pub(crate) scopes: BTreeMap<Class, Vec<String>>,
    pub(crate) on_violation: OnViolation,
    pub(crate) program: Option<Arc<ExecRule>>,
}

impl Grant {
    /// The parts of the grant, without its program. Each part has the capability, a description for
    /// people, and whether it allows a change.
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

    /// The hosts that outgoing HTTP may reach.
    pub fn network(&self) -> &[HostGrant] {
        &self.network
    }

    /// The directories, or parts of them, that are opened.
    pub fn workspaces(&self) -> &[WorkspaceGrant] {
        &self.workspaces
    }

    /// The key-value buckets.
    pub fn buckets(&self) -> &[BucketGrant] {
        &self.buckets
    }

    /// The secrets.
    pub fn secrets(&self) -> &[SecretGrant] {
        &self.secrets
    }

    /// The ids of the tools that may be called.
    pub fn tools(&self) -> &[String] {
        self.scopes(&Class::Tool)
    }

    /// The granted scopes of a class, if a grant of the class is only a list of scopes.
    pub fn scopes(&self, class: &Class) -> &[String] {
        self.scopes.get(class).map_or(&[], Vec::as_slice)
    }

    /// Whether [`Grant::scopes`] of a class has this scope.
    pub fn has(&self, class: &Class, scope: &str) -> bool {
        self.scopes(class).iter().any(|known| known == scope)
    }

    /// The secrets whose values a driver needs: it sends or reads them, and does not store them
    /// itself.
    pub fn needed_secrets(&self) -> impl Iterator<Item = &SecretGrant> {
        let secrets = self.secrets.iter();
        secrets.filter(|one| (one.binding.is_some() || one.reveal) && !one.store)
    }

    /// The program that runs outside the sandbox, with everything that it gets. A grant with a
    /// program has no hosts and no directories.
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
    /// The host, as granted. Without a port, it means port 443, and also 80 if `terms` have
    /// `plain_http`.
    pub host: HostPattern,
    /// Whether methods other than GET, HEAD and OPTIONS pass.
    pub unsafe_methods: bool,
    /// The terms on which the host may be reached.
    pub terms: HostTerms,
}

/// A workspace path and the host directory behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceGrant {
    /// The virtual paths that are granted.
    pub path: PathPattern,
    /// The virtual path that the policy maps to `directory`. `path` is at or below it.
    pub root: String,
    /// The host directory behind `root`. Absolute.
    pub directory: PathBuf,
    /// Whether it may be changed.
    pub write: bool,
    /// How many bytes one call may add; `None` for the host's limit.
    pub max_bytes: Option<u64>,
    /// How many files and directories one call may create; `None` for the host's limit.
    pub max_files: Option<u64>,
}

/// A key-value bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketGrant {
    /// The bucket's name, by which the guest opens it. `*` means every name that no other bucket of
    /// the grant has.
    pub name: String,
    /// The publisher whose bucket it is: the publisher of the contract or driver that declares it,
    /// or the publisher that shares it.
    pub owner: String,
    /// Whether it may be changed.
    pub write: bool,
}

/// A secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretGrant {
    /// Its name.
    pub slug: String,
    /// The publisher whose secret it is.
    pub publisher: String,
    /// Where the secret is sent: the host replaces its placeholder there. `None` if it may only be
    /// stored or revealed.
    pub binding: Option<Arc<SecretBinding>>,
    /// Whether the guest may read the value itself.
    pub reveal: bool,
    /// Whether the guest may store a new value.
    pub store: bool,
}

/// The one place to which a secret is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretBinding {
    /// The host, lower case, without port; reached by https only.
    pub host: String,
    /// The port; 443 if the policy names none.
    pub port: u16,
    /// The position in the request.
    pub position: SecretPosition,
    /// The methods, upper case. Never empty.
    pub methods: Vec<String>,
    /// The start of the path, in whole segments; `/` for all paths.
    pub path_prefix: String,
}

/// The position of a secret in a request.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum SecretPosition {
    /// In this header, whose name is in lower case.
    Header(String),
    /// As the whole value of this query parameter.
    Query(String),
}

/// What happens when a driver tries something that it was not granted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnViolation {
    /// The attempt fails inside the guest, and is recorded.
    #[default]
    Record,
    /// The attempt is recorded, and ends the call.
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
