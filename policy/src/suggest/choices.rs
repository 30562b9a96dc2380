//! What an operator chooses for lines that a declaration alone can't fill: directories, sources of secrets, hosts and
//! addresses.

use std::collections::{BTreeMap, BTreeSet};

/// The operator's choices for suggested lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choices {
    /// The directory of each workspace, by its path.
    pub workspaces: BTreeMap<String, String>,
    /// Where each secret comes from and goes, by its name.
    pub secrets: BTreeMap<String, SecretChoice>,
    /// The hosts of the services.
    pub hosts: Vec<String>,
    /// Addresses beyond the public ones that the hosts of the grants may have.
    pub addresses: Vec<String>,
}

/// Where a secret comes from, and where it goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretChoice {
    /// The key of `[[secret]]`: `env` or `file`.
    pub source: &'static str,
    /// The variable, or the path of the file.
    pub place: String,
    /// The origin that it may be sent to: `https://api.example.com`.
    pub origin: String,
}

impl SecretChoice {
    /// Reads `env:VARIABLE@https://HOST` or `file:PATH@https://HOST`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (from, origin) = text.rsplit_once("@https://")?;
        let (source, place) = from.split_once(':')?;
        let source = ["env", "file"].into_iter().find(|known| *known == source)?;
        (!place.is_empty() && !origin.is_empty()).then(|| Self {
            source,
            place: place.to_owned(),
            origin: format!("https://{origin}"),
        })
    }
}

/// A choice that no declaration makes and the operator has not made.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenChoice {
    /// The directory of the workspace with this path.
    Workspace(String),
    /// Where a secret comes from and goes.
    Secret {
        /// Its name.
        slug: String,
        /// The hosts that the driver declares.
        egress: BTreeSet<String>,
    },
    /// The hosts of a service.
    Service {
        /// Its name.
        name: String,
        /// The hosts that the driver declares.
        egress: BTreeSet<String>,
    },
    /// Whole tables, of a program or a context, that the operator writes.
    Tables,
}

/// Suggested lines, with what is still to be chosen in them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChosenLines {
    /// Tables to append.
    pub lines: String,
    /// The choices that the lines leave open: they hold a value that gives nothing there.
    pub open: Vec<OpenChoice>,
    /// Fewer lines, as an example: they give some of the hosts and workspaces only, with `partial`.
    pub narrower: Option<String>,
    /// What was chosen and is in no line.
    pub unused: Vec<String>,
}
