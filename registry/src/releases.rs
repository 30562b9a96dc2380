//! The releases of a repository: the tags that contain a version, and the envelope of each. A tag
//! is only a hint; the signed manifest defines the release.

use semver::Version;
use serde::Deserialize;
use serde_json::Value;
use tokio::task::JoinSet;
use toolward_signing::{ErrorKind, Refusal};

use crate::address::shown;
use crate::client::RegistryClient;
use crate::digest::BlobDigest;
use crate::failure::{Cause, Failure, FailureReason, panicked};
use crate::reference::Reference;
use crate::response::{next_page, read};
use crate::transport::{AccessScope, RegistryRequest};

/// How many releases of a repository are read. Anyone who may push to it can add tags, and each tag
/// costs a few requests.
pub const MAX_RELEASES: usize = 1_000;
/// How many releases are requested at the same time.
const MAX_CONCURRENT_REQUESTS: usize = 8;

/// The form of the tags of releases: a fixed text, then a version.
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
    /// The pattern that a tag follows, if it ends with a whole version such as `1.0.0` or
    /// `v2.1.0-rc.1`. Other tags, such as `stable` or `1.0`, are moved from release to release.
    pub fn of(tag: &str) -> Option<Self> {
        let version_at = |at: usize| {
            let before = tag.get(..at)?.chars().next_back();
            let inside = before.is_some_and(|before| before.is_ascii_digit() || before == '.');
            let version = tag.get(at..)?;
            (!inside && Version::parse(version).is_ok()).then_some(at)
        };
        let at = tag.char_indices().find_map(|(at, _)| version_at(at))?;
        Some(Self {
            prefix: tag.get(..at)?.to_owned(),
        })
    }

    /// The version in a tag that follows the pattern.
    pub fn version(&self, tag: &str) -> Option<Version> {
        Version::parse(tag.strip_prefix(&self.prefix)?).ok()
    }
}

/// The release behind a tag.
#[derive(Debug)]
pub struct TaggedRelease<T> {
    /// The tag.
    pub tag: String,
    /// The digest of its OCI manifest.
    pub digest: Option<BlobDigest>,
    /// The result of the caller's `verify`, or the failure to get the envelope.
    pub accepted: Result<T, Failure>,
}

/// The releases of a repository.
#[derive(Debug)]
pub struct TaggedReleases<T> {
    /// The releases that were read, the highest tag first.
    pub found: Vec<TaggedRelease<T>>,
    /// How many further tags follow the pattern but were not read.
    pub left_out: usize,
}

impl RegistryClient {
    /// Reads the releases of a repository whose tags have the highest versions, at most
    /// [`MAX_RELEASES`]. `verify` gets the envelope of each, with its co-signatures. No content is
    /// downloaded.
    ///
    /// # Errors
    /// The errors of [`RegistryClient::tags`]. If the registry can't be reached, is too slow or is
    /// busy, the whole operation fails. A tag that has no acceptable bundle, or that the registry
    /// refuses to serve, gives only its release an error.
    pub async fn releases<T>(
        &self,
        repository: &Reference,
        pattern: &TagPattern,
        verify: impl Fn(&[u8]) -> Result<T, Refusal>,
    ) -> Result<TaggedReleases<T>, Failure> {
        let operation = self.operation();
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
                let (operation, reference) = (operation.clone(), repository.with_tag(&tag)?);
                running.spawn(async move {
                    let envelope = operation.envelope(&reference, None).await;
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
                    TaggedRelease {
                        tag,
                        digest: Some(artifact.digest),
                        accepted,
                    }
                }
                Err(failure) if may_pass(&failure) => return Err(failure),
                Err(failure) => TaggedRelease {
                    tag,
                    digest: None,
                    accepted: Err(failure),
                },
            };
            found.push((number, release));
        }
        found.sort_by_key(|(number, _)| *number);
        Ok(TaggedReleases {
            found: found.into_iter().map(|(_, release)| release).collect(),
            left_out,
        })
    }
}

/// Whether the same request may succeed later. Such a failure fails the whole operation: an outage
/// must not make an older release the newest. Any other failure counts only for its tag; otherwise
/// one bad tag would hide every other release.
fn may_pass(failure: &Failure) -> bool {
    matches!(
        failure.kind(),
        Cause::Registry(FailureReason::Unreachable | FailureReason::Timeout | FailureReason::Busy)
    )
}

/// How many tags one request asks for.
const PAGE_TAGS: usize = 1000;

#[derive(Deserialize)]
struct TagPage {
    // `null` in a repository whose tags were all deleted.
    tags: Option<Vec<Value>>,
}

impl RegistryClient {
    /// The tags of a repository, sorted. Entries that are not tags are omitted.
    ///
    /// # Errors
    /// [`FailureReason::NotFound`]; [`FailureReason::ResponseTooLarge`] if there are more tags than
    /// the limit; [`FailureReason::ResponseInvalid`] if the answer is not a list; the errors of the
    /// transfer.
    pub async fn tags(&self, reference: &Reference) -> Result<Vec<String>, Failure> {
        let operation = self.operation();
        let first = operation.url(reference, &format!("tags/list?n={PAGE_TAGS}"))?;
        let place = shown(&first);
        let limit = self.transport.limits.tags;
        let work = async {
            let mut tags = Vec::new();
            let mut entries = 0_usize;
            let mut next = Some(first);
            // Limits the pages, since a registry could send endless pages without tags.
            let mut pages = limit / PAGE_TAGS + 8;
            while let Some(url) = next {
                pages = pages.saturating_sub(1);
                let ask = RegistryRequest::get(url, AccessScope::pull(reference));
                let response = operation.expect_ok(&ask).await?;
                next = next_page(&ask.url, response.headers())?;
                let body = read(response, self.transport.limits.manifest).await?;
                let page: TagPage = serde_json::from_slice(&body).map_err(|_| {
                    Failure::new(FailureReason::ResponseInvalid)
                        .at(place.clone())
                        .expected("a JSON object with `tags`")
                })?;
                let page = page.tags.unwrap_or_default();
                entries = entries.saturating_add(page.len());
                tags.extend(page.into_iter().filter_map(|tag| match tag {
                    // Only a valid tag becomes part of a URL.
                    Value::String(tag) if reference.with_tag(&tag).is_ok() => Some(tag),
                    _ => None,
                }));
                if entries > limit || pages == 0 {
                    return Err(Failure::new(FailureReason::ResponseTooLarge)
                        .at(place.clone())
                        .expected(format!("at most {limit} tags")));
                }
            }
            tags.sort();
            tags.dedup();
            Ok(tags)
        };
        operation.deadline.within(&place, work).await
    }
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
