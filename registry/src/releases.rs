//! The releases of a repository: which of its tags name a version, and the envelope behind each. A tag only
//! says where to look; what a release is stands in its signed manifest.

use semver::Version;
use tokio::task::JoinSet;
use toolward_signing::{ErrorKind, Refusal};

use crate::artifact::Artifact;
use crate::client::Client;
use crate::cosign::CosignedEnvelope;
use crate::digest::BlobDigest;
use crate::failure::{Cause, Failure, Reason, panicked};
use crate::reference::Reference;
use crate::retry::Deadline;

/// How many releases of a repository are looked at. Whoever may push to it decides how many tags there are,
/// and each costs a few requests.
pub const MAX_RELEASES: usize = 1_000;
/// How many of them are asked for at the same time.
const MAX_CONCURRENT_REQUESTS: usize = 8;

/// How the tags of releases look: the same text, then a version.
///
/// ```
/// use toolward_registry::TagPattern;
/// let pattern = TagPattern::of("v1.0.0").unwrap();
/// assert!(pattern.version("v1.2.0").is_some());
/// assert!(pattern.version("1.2.0").is_none());
/// assert!(TagPattern::of("stable").is_none());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagPattern {
    prefix: String,
}

impl TagPattern {
    /// The pattern that a tag follows, if it ends with a whole version such as `1.0.0` or `v2.1.0-rc.1`. Other
    /// tags, such as `stable` or `1.0`, are moved from release to release.
    #[must_use]
    pub fn of(tag: &str) -> Option<Self> {
        let begins = |at: usize| {
            let before = tag.get(..at)?.chars().next_back();
            let inside = before.is_some_and(|before| before.is_ascii_digit() || before == '.');
            let version = tag.get(at..)?;
            (!inside && Version::parse(version).is_ok()).then_some(at)
        };
        let at = tag.char_indices().find_map(|(at, _)| begins(at))?;
        Some(Self {
            prefix: tag.get(..at)?.to_owned(),
        })
    }

    /// The version in a tag that follows the pattern.
    #[must_use]
    pub fn version(&self, tag: &str) -> Option<Version> {
        Version::parse(tag.strip_prefix(&self.prefix)?).ok()
    }
}

/// What is behind a tag.
#[derive(Debug)]
#[non_exhaustive]
pub struct Release<T> {
    /// The tag.
    pub tag: String,
    /// The digest of the OCI manifest that it stood for.
    pub digest: Option<BlobDigest>,
    /// What the caller made of the envelope, or why there is none to take.
    pub accepted: Result<T, Failure>,
}

/// The releases of a repository.
#[derive(Debug)]
#[non_exhaustive]
pub struct Releases<T> {
    /// Those that were looked at, the highest tag first.
    pub found: Vec<Release<T>>,
    /// How many tags follow the pattern and were not looked at.
    pub left_out: usize,
}

impl Client {
    /// Looks at the releases of a repository, at most [`MAX_RELEASES`], those with the highest versions in
    /// their tags. `verify` is given the envelope of each, with its co-signatures; no content is downloaded.
    ///
    /// # Errors
    /// Those of [`Client::tags`]; the reason for which the registry can't be used now. A tag behind which there is
    /// no bundle to take, or which the registry refuses to serve, fails by itself.
    pub async fn releases<T>(
        &self,
        repository: &Reference,
        pattern: &TagPattern,
        verify: impl Fn(&[u8]) -> Result<T, Refusal>,
    ) -> Result<Releases<T>, Failure> {
        let deadline = self.transport.deadline();
        let tags = self.tags(repository).await?.into_iter();
        let mut tags: Vec<(Version, String)> = tags
            .filter_map(|tag| Some((pattern.version(&tag)?, tag)))
            .collect();
        tags.sort_by(|one, other| other.cmp(one));
        let left_out = tags.len().saturating_sub(MAX_RELEASES);
        tags.truncate(MAX_RELEASES);
        let mut waiting = tags.into_iter().map(|(_, tag)| tag).enumerate();
        let mut running = JoinSet::new();
        let mut found = Vec::new();
        loop {
            while running.len() < MAX_CONCURRENT_REQUESTS
                && let Some((number, tag)) = waiting.next()
            {
                let (client, reference) = (self.clone(), repository.with_tag(&tag)?);
                running.spawn(async move {
                    let envelope = client.envelope(&reference, deadline).await;
                    (number, tag, envelope)
                });
            }
            let Some(done) = running.join_next().await else {
                break;
            };
            let (number, tag, envelope) = done.map_err(panicked)?;
            let release = match envelope {
                Ok((artifact, envelope)) => {
                    let accepted = verify(&envelope.bytes);
                    let lacks_signatures = accepted
                        .as_ref()
                        .is_err_and(|refusal| refusal.kind() == ErrorKind::ThresholdNotMet);
                    let accepted = accepted.map_err(|refusal| envelope.refused(refusal));
                    if lacks_signatures && let Some(missing) = envelope.missing.filter(may_pass) {
                        return Err(missing);
                    }
                    Release {
                        tag,
                        digest: Some(artifact.digest),
                        accepted,
                    }
                }
                Err(failure) if may_pass(&failure) => return Err(failure),
                Err(failure) => Release {
                    tag,
                    digest: None,
                    accepted: Err(failure),
                },
            };
            found.push((number, release));
        }
        found.sort_by_key(|(number, _)| *number);
        Ok(Releases {
            found: found.into_iter().map(|(_, release)| release).collect(),
            left_out,
        })
    }

    /// The envelope of a bundle with its co-signatures, as [`Client::pull`] shows it.
    async fn envelope(
        &self,
        reference: &Reference,
        deadline: Deadline,
    ) -> Result<(Artifact, CosignedEnvelope), Failure> {
        let artifact = self.artifact(reference, deadline).await?;
        let envelope = self
            .small(reference, &artifact.envelope, None, deadline)
            .await?;
        let envelope = self
            .with_signatures(reference, &artifact, envelope, deadline)
            .await?;
        Ok((artifact, envelope))
    }
}

/// Whether the same request may succeed later: an outage must not make an older release the newest. Any other answer
/// is final for its tag, and would keep every other release from being found for as long as the tag exists.
fn may_pass(failure: &Failure) -> bool {
    matches!(
        failure.kind(),
        Cause::Registry(Reason::Unreachable | Reason::Timeout | Reason::Busy)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_that_ends_with_a_whole_version_gives_a_pattern() {
        for (tag, next) in [
            ("1.0.0", "1.1.0"),
            ("v1.0.0", "v10.0.0"),
            ("text-greet-1.0.0", "text-greet-1.1.0-rc.1"),
            ("x86.v1.0.0-rc.1", "x86.v1.0.0"),
        ] {
            let pattern = TagPattern::of(tag).unwrap();
            assert!(pattern.version(tag).is_some(), "{tag}");
            assert!(pattern.version(next).is_some(), "{tag} {next}");
        }
        for tag in [
            "stable", "1.0", "1", "v1", "1.0.0.0", "01.0.0", "1.0.0_1", "",
        ] {
            assert_eq!(TagPattern::of(tag), None, "{tag}");
        }
    }

    #[test]
    fn a_tag_of_another_pattern_is_no_version() {
        let pattern = TagPattern::of("v1.0.0").unwrap();
        for tag in [
            "1.1.0",
            "other-v1.1.0",
            "v1.1",
            "vv1.1.0",
            "v1.1.0.toolbundle",
            "v99999999999999999999.0.0",
            "latest",
        ] {
            assert_eq!(pattern.version(tag), None, "{tag}");
        }
    }
}
