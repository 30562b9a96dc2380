//! `provenance.dsse.json`: the sources and the compiler of a bundle. It is an in-toto Statement v1
//! with an SLSA v1 predicate; its subject is the manifest. Its content is a claim of the publisher;
//! only its signature and its subject are checked.

use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::digest::{Digest, hex};
use crate::envelope::Object;
use crate::error::{ErrorKind, Refusal};
use crate::manifest;
use crate::text::{quoted, visible};

/// The document's name in a bundle.
pub use crate::manifest::PROVENANCE_FILE as FILE;
/// The payload type under which a statement is signed.
pub const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";
/// The statement's type.
pub const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";
/// The predicate's type.
pub const PREDICATE_TYPE: &str = "https://slsa.dev/provenance/v1";
/// The build type of components that `toolward build` made.
pub const BUILD_TYPE: &str = "urn:toolward:build:component:v1";
const BUILDER: &str = "urn:toolward:builder:local:v1";

/// A named set of files that something was built from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceSet {
    /// The name, for instance the driver's folder.
    pub name: String,
    /// The digest of the files, see [`source_digest`].
    pub digest: Digest,
}

/// A publisher's claim of how a bundle was built. All text in it is the publisher's: sanitise it
/// before it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provenance {
    /// The kind of build. If it is not [`BUILD_TYPE`], the other fields are empty.
    pub build_type: String,
    /// The sources.
    pub sources: Vec<SourceSet>,
    /// The compilers, as they name themselves: `rustc 1.95.0 (…)`. Several are separated by `, `.
    pub compiler: String,
    /// The compilation target: `wasm32-wasip2`.
    pub target: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Statement {
    #[serde(rename = "_type")]
    kind: String,
    subject: Vec<Object<Descriptor>>,
    predicate_type: String,
    predicate: Object<Predicate>,
}

#[derive(Deserialize)]
struct Descriptor {
    #[serde(default)]
    name: String,
    #[serde(default)]
    digest: std::collections::BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Predicate {
    build_definition: Object<BuildDefinition>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BuildDefinition {
    build_type: String,
    #[serde(default)]
    external_parameters: Value,
    #[serde(default)]
    internal_parameters: Value,
    #[serde(default)]
    resolved_dependencies: Vec<Object<Descriptor>>,
}

impl Provenance {
    /// The provenance of components that `compiler` made for `target`.
    #[must_use]
    pub fn new(sources: Vec<SourceSet>, compiler: String, target: String) -> Self {
        Self {
            build_type: BUILD_TYPE.to_owned(),
            sources,
            compiler,
            target,
        }
    }

    /// The statement about a manifest, ready to be the payload of an envelope of [`PAYLOAD_TYPE`];
    /// the same bytes each time.
    ///
    /// # Errors
    /// [`ErrorKind::ProvenanceInvalid`], should the encoder fail.
    pub fn statement(&self, manifest_bytes: &[u8]) -> Result<Vec<u8>, Refusal> {
        let sources: Vec<_> = self
            .sources
            .iter()
            .map(|set| json!({ "name": set.name, "digest": { "blake3": set.digest } }))
            .collect();
        let statement = json!({
            "_type": STATEMENT_TYPE,
            "subject": [{
                "name": manifest::FILE,
                "digest": { "sha256": sha256(manifest_bytes), "blake3": Digest::of(manifest_bytes) },
            }],
            "predicateType": PREDICATE_TYPE,
            "predicate": {
                "buildDefinition": {
                    "buildType": self.build_type,
                    "externalParameters": { "target": self.target },
                    "internalParameters": { "compiler": self.compiler },
                    "resolvedDependencies": sources,
                },
                "runDetails": { "builder": { "id": BUILDER } },
            },
        });
        serde_json::to_vec(&statement)
            .map_err(|error| Refusal::new(ErrorKind::ProvenanceInvalid).found(error.to_string()))
    }

    /// Reads a statement that must be about `manifest_bytes`. Fields that in-toto and SLSA may add
    /// are ignored.
    ///
    /// # Errors
    /// [`ErrorKind::ProvenanceInvalid`] if it is not such a statement,
    /// [`ErrorKind::ProvenanceMismatch`] if it is about something else,
    /// [`ErrorKind::DigestInvalid`] if the digest of a source is invalid.
    pub fn parse(statement: &[u8], manifest_bytes: &[u8]) -> Result<Self, Refusal> {
        let invalid = || Refusal::new(ErrorKind::ProvenanceInvalid);
        let Object(statement) = serde_json::from_slice::<Object<Statement>>(statement)
            .map_err(|error| invalid().found(visible(&error.to_string())))?;
        for (found, expected) in [
            (&statement.kind, STATEMENT_TYPE),
            (&statement.predicate_type, PREDICATE_TYPE),
        ] {
            if found != expected {
                return Err(invalid().expected(expected).found(quoted(found)));
            }
        }
        check_subject(&statement.subject, manifest_bytes)?;
        let Object(build) = statement.predicate.0.build_definition;
        if build.build_type != BUILD_TYPE {
            return Ok(Self {
                build_type: build.build_type,
                sources: Vec::new(),
                compiler: String::new(),
                target: String::new(),
            });
        }
        let text = |parameters: &Value, name: &'static str| {
            parameters
                .get(name)
                .and_then(Value::as_str)
                .map(str::to_owned)
                .ok_or_else(|| invalid().expected(format!("the parameter `{name}`")))
        };
        let sources = build
            .resolved_dependencies
            .into_iter()
            .map(|Object(set)| {
                let digest = set
                    .digest
                    .get("blake3")
                    .ok_or_else(|| invalid().expected("a blake3 digest of each set of sources"))?
                    .parse()?;
                Ok(SourceSet {
                    name: set.name,
                    digest,
                })
            })
            .collect::<Result<_, Refusal>>()?;
        Ok(Self {
            compiler: text(&build.internal_parameters, "compiler")?,
            target: text(&build.external_parameters, "target")?,
            build_type: build.build_type,
            sources,
        })
    }
}

fn check_subject(subjects: &[Object<Descriptor>], manifest_bytes: &[u8]) -> Result<(), Refusal> {
    let [Object(subject)] = subjects else {
        return Err(Refusal::new(ErrorKind::ProvenanceInvalid)
            .expected("one subject, the manifest")
            .found(subjects.len().to_string()));
    };
    let blake3 = Digest::of(manifest_bytes).to_string();
    let sha256 = sha256(manifest_bytes);
    let digests_agree = subject.digest.get("blake3") == Some(&blake3)
        && subject.digest.get("sha256") == Some(&sha256);
    if subject.name == manifest::FILE && digests_agree {
        Ok(())
    } else {
        Err(Refusal::new(ErrorKind::ProvenanceMismatch)
            .expected(format!("manifest.toml with digest {blake3}"))
            .found(format!(
                "{} with digest {}",
                quoted(&subject.name),
                subject
                    .digest
                    .get("blake3")
                    .map_or_else(|| "none".to_owned(), |text| quoted(text))
            )))
    }
}

fn sha256(bytes: &[u8]) -> String {
    hex(Sha256::digest(bytes).into())
}

/// The digest of a set of files, such as the sources of a component. It depends on names and bytes,
/// not on the order of `files`. The files are sorted by the bytes of their paths. For each, BLAKE3
/// hashes the length of the path, the length of the content (each 8 bytes, little-endian), the path
/// and the content. A path given twice counts twice.
pub fn source_digest<'a>(files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Digest {
    let mut files: Vec<_> = files.into_iter().collect();
    files.sort();
    let mut hasher = blake3::Hasher::new();
    for (path, content) in files {
        hasher.update(&(path.len() as u64).to_le_bytes());
        hasher.update(&(content.len() as u64).to_le_bytes());
        hasher.update(path.as_bytes());
        hasher.update(content);
    }
    Digest::finish(&hasher)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_bytes_count_and_order_does_not() {
        let files: [(&str, &[u8]); 2] = [("a", b"1"), ("b", b"2")];
        let base = source_digest(files);
        assert_eq!(base, source_digest([("b", b"2".as_slice()), ("a", b"1")]));
        for other in [
            vec![("a", b"1".as_slice())],
            vec![("a", b"2".as_slice()), ("b", b"1")],
            vec![("ab", b"1".as_slice()), ("", b"2")],
            vec![("a", b"".as_slice()), ("1b", b"2")],
        ] {
            assert_ne!(base, source_digest(other));
        }
    }
}
