//! The surface of a bundle: exactly the parts that a model or a policy sees. A release that changes
//! it needs a new consent. This module compares two surfaces; other crates decide about the
//! consequences.
//!
//! A surface contains:
//! * the publisher;
//! * for each tool, its id with the major version, names, descriptions, schemas, declarations,
//!   approval, risk, tags, the name for MCP and everything below `metadata`;
//! * for each driver, its id with the major version and the fields of DRIVER.md that a host uses,
//!   except the component, timeouts and retries;
//! * actions, and the bytes of prompts and resources.
//!
//! Demands that a contract takes from an action of another bundle count as the contract's own. A
//! surface does not contain code, icons, examples, the prose below a document's head, or minor
//! versions.
//!
//! A surface has a [version](Version), with which its canonical bytes start. Surfaces of different
//! versions are not comparable: a stored surface of an earlier version must be made again from its
//! bundle.

mod difference;
mod read;

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolward_signing::Digest;

use crate::content::Content;

pub use difference::{SurfaceChange, SurfaceDifference};

/// The version of a surface, which determines its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// For drivers with code, the ids of the contracts that they implement, without mappings and
    /// limits.
    V1,
    /// For all drivers, the fields of DRIVER.md that a host uses, except the component, timeouts
    /// and retries.
    V2,
    /// As V2, with the major version in drivers' ids, and hosts without the default port.
    V3,
}

impl Version {
    /// The version of [`BundleSurface::of`].
    pub const CURRENT: Self = Self::V3;

    const ALL: [Self; 3] = [Self::V1, Self::V2, Self::V3];

    /// The start of the canonical bytes, which distinguishes them from any other bytes.
    pub fn header(self) -> &'static [u8] {
        match self {
            Self::V1 => b"toolward surface 1\n",
            Self::V2 => b"toolward surface 2\n",
            Self::V3 => b"toolward surface 3\n",
        }
    }

    /// The version of canonical bytes, and the bytes after its header.
    fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let mut all = Self::ALL.into_iter();
        all.find_map(|version| Some((version, bytes.strip_prefix(version.header())?)))
    }
}

/// The surface of a bundle.
#[derive(Clone, PartialEq)]
pub struct BundleSurface {
    version: Version,
    value: Value,
    bytes: Vec<u8>,
}

impl BundleSurface {
    /// The surface of a bundle's contents.
    pub fn of(content: &Content) -> Self {
        Self::of_version(content, Version::CURRENT)
    }

    /// The surface of a bundle's contents in the given version.
    pub fn of_version(content: &Content, version: Version) -> Self {
        Self::from_value(version, read::value(content, version))
    }

    /// Whether `digest` is the digest of the contents' surface, in any version.
    pub fn is_of(content: &Content, digest: &Digest) -> bool {
        let mut all = Version::ALL.into_iter().rev();
        all.any(|version| Self::of_version(content, version).digest() == *digest)
    }

    /// The empty surface, with which a first release is compared.
    pub fn empty() -> Self {
        Self::from_value(Version::CURRENT, Value::Object(serde_json::Map::new()))
    }

    /// Reads the canonical bytes of a surface with a known digest. Returns `None` if they have
    /// another digest or are not a surface.
    pub fn from_digested(bytes: Vec<u8>, digest: &Digest) -> Option<Self> {
        if Digest::of(&bytes) != *digest {
            return None;
        }
        let (version, json) = Version::split(&bytes)?;
        let value = serde_json::from_slice(json).ok()?;
        Some(Self {
            version,
            value,
            bytes,
        })
    }

    fn from_value(version: Version, value: Value) -> Self {
        let bytes = [version.header(), canonical_text(&value).as_bytes()].concat();
        Self {
            version,
            value,
            bytes,
        }
    }

    /// The version of the fields.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The canonical bytes. Equal surfaces have equal canonical bytes, regardless of the order of
    /// keys in the documents.
    pub fn to_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// BLAKE3 of the canonical bytes: the surface digest.
    pub fn digest(&self) -> Digest {
        Digest::of(&self.bytes)
    }

    /// The surface as a JSON document.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The summaries of the tools, by id.
    pub fn tools(&self) -> Vec<ToolSummary> {
        let tools = self.part("tools");
        tools
            .map(|(id, tool)| ToolSummary::read(id, tool))
            .collect()
    }

    /// Whether a contract takes its action from another bundle. The surface then includes parts of
    /// that bundle.
    pub fn takes_actions(&self) -> bool {
        let mut tools = self.part("tools");
        tools.any(|(_, tool)| tool.pointer("/implements/library").is_some())
    }

    /// The ids of the drivers, since [`Version::V3`] with the major version.
    pub fn drivers(&self) -> impl Iterator<Item = &str> {
        self.part("drivers").map(|(id, _)| id.as_str())
    }

    /// The entries of one part, by id.
    fn part(&self, name: &str) -> impl Iterator<Item = (&String, &Value)> {
        let entries = self.value.get(name).and_then(Value::as_object);
        entries.into_iter().flatten()
    }

    /// How `new` differs from this surface.
    pub fn difference(&self, new: &Self) -> SurfaceDifference {
        difference::between(&self.value, &new.value)
    }
}

impl fmt::Debug for BundleSurface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BundleSurface")
            .field("digest", &self.digest())
            .finish_non_exhaustive()
    }
}

/// The searchable facts of a tool. All of its text is untrusted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolSummary {
    /// Its id with the major version, such as `text.stats@1`.
    pub major_id: String,
    /// Its id.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// Its description.
    pub description: String,
    /// Its tags.
    pub tags: Vec<String>,
    /// Its former ids.
    pub aliases: Vec<String>,
    /// The name over MCP that it requests.
    pub mcp_name: Option<String>,
}

impl ToolSummary {
    fn read(major_id: &str, tool: &Value) -> Self {
        let id = major_id.rsplit_once('@').map_or(major_id, |(id, _)| id);
        Self {
            major_id: major_id.to_owned(),
            id: id.to_owned(),
            ..Self::deserialize(tool).unwrap_or_default()
        }
    }
}

/// The canonical form of `value`: keys sorted by their bytes, no white space. It is recursive, so it
/// is only for documents, whose parsers limit their depth.
fn canonical_text(value: &Value) -> String {
    let mut sorted = value.clone();
    sorted.sort_all_objects();
    sorted.to_string()
}
