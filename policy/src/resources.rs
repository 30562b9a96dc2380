//! The tables that name what tools use: workspaces, secrets, services, shared buckets.

use std::path::PathBuf;
use std::sync::Arc;

use toolward_contract::capability::{HostPattern, PathPattern};

use crate::grant::SecretBinding;
use crate::name::Publisher;
use crate::toml_text::{PLACEHOLDER_DIRECTORY, PLACEHOLDER_HOST, PLACEHOLDER_VARIABLE};

/// `[[workspace]]`: the host directory behind a contract's path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspace {
    /// The virtual path, without wildcards.
    pub path: PathPattern,
    /// The host directory. Absolute.
    pub directory: PathBuf,
    /// Whether the directory may overlap that of another workspace, which must
    /// say so, too.
    pub shared: bool,
    /// Bytes that one call may add; `None`: the host's limit.
    pub max_bytes: Option<u64>,
    /// Files and directories that one call may create; `None`: the host's
    /// limit.
    pub max_files: Option<u64>,
}

impl Workspace {
    /// A workspace that is not shared and has the host's limits.
    #[must_use]
    pub fn new(path: PathPattern, directory: impl Into<PathBuf>) -> Self {
        Self {
            path,
            directory: directory.into(),
            shared: false,
            max_bytes: None,
            max_files: None,
        }
    }

    /// Whether [`crate::suggest`] wrote the directory for the
    /// operator to replace.
    #[must_use]
    pub fn is_placeholder(&self) -> bool {
        self.directory.starts_with(PLACEHOLDER_DIRECTORY)
    }
}

/// Where the value of a secret comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum SecretSource {
    /// An environment variable of the host.
    Env(String),
    /// A file, as written: relative to the policy's file.
    File(String),
    /// The publisher's own space, where tools with `mutates: secret:…` store it.
    #[default]
    Store,
}

/// `[[secret]]`: a secret's value, whose tools may use it, and where it goes
/// out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secret {
    /// Its name, as contracts declare it.
    pub slug: String,
    /// The publisher whose tools may use it.
    pub publisher: Publisher,
    /// Where the value comes from.
    pub source: SecretSource,
    /// Where the placeholder is replaced; `None`: nowhere, the secret can only
    /// be revealed.
    pub binding: Option<Arc<SecretBinding>>,
}

impl Secret {
    /// A secret in the publisher's own space that goes out nowhere.
    #[must_use]
    pub fn new(slug: impl Into<String>, publisher: Publisher) -> Self {
        Self {
            slug: slug.into(),
            publisher,
            source: SecretSource::Store,
            binding: None,
        }
    }

    /// Whether the operator still has to choose where its value comes from or
    /// where it goes out. Until then it is not granted.
    #[must_use]
    pub fn is_placeholder(&self) -> bool {
        let variable =
            matches!(&self.source, SecretSource::Env(name) if name == PLACEHOLDER_VARIABLE);
        let host = |binding: &Arc<SecretBinding>| binding.host == PLACEHOLDER_HOST;
        variable || self.binding.as_ref().is_some_and(host)
    }
}

/// `[[service]]`: the hosts behind `mutates: external:…`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceRule {
    /// Its name, as contracts declare it.
    pub name: String,
    /// The hosts. None: the service reaches nothing.
    pub hosts: Vec<HostPattern>,
}

impl ServiceRule {
    /// Whether the operator still has to choose its hosts. Until then it is
    /// not granted.
    #[must_use]
    pub fn is_placeholder(&self) -> bool {
        self.hosts
            .iter()
            .any(|host| host.host() == PLACEHOLDER_HOST)
    }
}

/// `[[share]]`: a bucket of one publisher that the tools of another open under
/// the same name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// The bucket's name.
    pub database: String,
    /// Whose bucket it is.
    pub from: Publisher,
    /// Whose tools may open it, as far as a grant gives them the bucket.
    pub to: Publisher,
}
