//! The publishers that `toolward trust` knows: a folder for each beside the
//! configuration, with the current document, what the operator grants, and what
//! the publisher revokes.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toolward_signing::id::Prefix;
use toolward_signing::key::KeyId;
use toolward_signing::publisher::{self, VerifiedPublisher};
use toolward_signing::revocation::{self, SignedList};

use crate::failure::{Exit, Failure};
use crate::files;

const DOCUMENT: &str = "publisher.json";
const GRANT: &str = "grant.toml";
const REVOCATIONS: &str = "revocations.json";

/// Longest grant, in bytes.
const MAX_GRANT: usize = 64 * 1024;

/// What the operator says of a publisher.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Grant {
    /// The ids that it may publish.
    pub(crate) prefixes: Vec<String>,
    /// Where its document came from, in the operator's words.
    pub(crate) source: String,
    /// The keys that signed the list of revocations that is kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) revocation_signers: Vec<String>,
}

/// One known publisher.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) document: VerifiedPublisher,
    pub(crate) grant: Grant,
    pub(crate) revocations: Option<SignedList>,
}

impl Known {
    pub(crate) fn prefixes(&self) -> Result<Vec<Prefix>, Failure> {
        let prefixes = self.grant.prefixes.iter();
        prefixes
            .map(|prefix| {
                Prefix::parse(prefix).map_err(|refusal| Failure::usage(refusal.code(), &refusal))
            })
            .collect()
    }
}

/// The folder of all known publishers.
#[derive(Debug)]
pub(crate) struct Publishers(PathBuf);

/// What the folder is to people.
pub(crate) const WHAT: &str = "the folder of trusted publishers";

impl Publishers {
    /// Those that belong to a configuration file.
    pub(crate) fn beside(configuration: &Path) -> Self {
        let folder = configuration.parent().unwrap_or_else(|| Path::new("."));
        let folder = folder.join("trust");
        Self(std::path::absolute(&folder).unwrap_or(folder))
    }

    /// Where they are kept.
    pub(crate) fn folder(&self) -> &Path {
        &self.0
    }

    /// All known publishers, by name.
    pub(crate) fn all(&self) -> Result<Vec<Known>, Failure> {
        let entries = match std::fs::read_dir(&self.0) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(Failure::unreadable(&self.0, error)),
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|error| Failure::unreadable(&self.0, error))?;
            if let Ok(name) = entry.file_name().into_string()
                && !name.starts_with('.')
            {
                names.push(name);
            }
        }
        names.sort();
        let known = names.iter().map(|name| self.read(name));
        known.collect()
    }

    /// A publisher by name.
    pub(crate) fn get(&self, name: &str) -> Result<Option<Known>, Failure> {
        let names = self.all()?;
        Ok(names.into_iter().find(|known| known.document.name == name))
    }

    fn read(&self, name: &str) -> Result<Known, Failure> {
        let folder = self.0.join(name);
        let path = folder.join(GRANT);
        let text = files::read(&path, MAX_GRANT)?;
        let text = String::from_utf8(text).map_err(|error| Failure::unreadable(&path, error))?;
        let grant: Grant = toml::from_str(&text).map_err(|error| {
            Failure::usage("trust-invalid", format!("{}: {error}", path.display()))
                .hint("remove the publisher with `toolward trust remove`, and add it again")
        })?;
        let path = folder.join(DOCUMENT);
        let bytes = files::read(&path, toolward_signing::envelope::MAX_BYTES)?;
        let document = publisher::stored(&bytes).map_err(|refusal| at(&path, &refusal))?;
        if document.name != name {
            return Err(Failure::usage(
                "trust-invalid",
                format!("{}: the document is of {}", folder.display(), document.name),
            )
            .hint("a folder has the name of its publisher"));
        }
        let path = folder.join(REVOCATIONS);
        let revocations = if path.symlink_metadata().is_ok() {
            let bytes = files::read(&path, toolward_signing::envelope::MAX_BYTES)?;
            let signers: Result<Vec<KeyId>, _> = grant
                .revocation_signers
                .iter()
                .map(|signer| signer.parse())
                .collect();
            let signers = signers.map_err(|refusal| at(&path, &refusal))?;
            let list = revocation::stored(&bytes, signers);
            Some(list.map_err(|refusal| at(&path, &refusal))?)
        } else {
            None
        };
        Ok(Known {
            document,
            grant,
            revocations,
        })
    }

    /// Keeps a publisher. The document is written last: without it there is no
    /// publisher, and with it all that belongs to it.
    pub(crate) fn write(&self, known: &Known) -> Result<(), Failure> {
        let folder = self.0.join(&known.document.name);
        std::fs::create_dir_all(&folder).map_err(|error| Failure::unwritable(&folder, error))?;
        if let Some(list) = &known.revocations {
            files::replace(&folder.join(REVOCATIONS), &list.envelope_bytes)?;
        }
        let grant = toml::to_string(&known.grant)
            .map_err(|error| Failure::new(Exit::Failed, "unwritable-value", error))?;
        files::replace(&folder.join(GRANT), grant.as_bytes())?;
        files::replace(&folder.join(DOCUMENT), &known.document.envelope_bytes)
    }

    /// Forgets a publisher.
    pub(crate) fn remove(&self, name: &str) -> Result<(), Failure> {
        let folder = self.0.join(name);
        let gone = self
            .0
            .join(format!(".removed-{name}-{}", std::process::id()));
        // In one step, so that no half of it is read.
        std::fs::rename(&folder, &gone).map_err(|error| Failure::unwritable(&folder, error))?;
        std::fs::remove_dir_all(&gone).map_err(|error| Failure::unwritable(&gone, error))
    }
}

fn at(path: &Path, refusal: &toolward_signing::Refusal) -> Failure {
    let failure = Failure::refused(refusal);
    Failure {
        message: format!("{}: {}", path.display(), failure.message),
        ..failure
    }
}
