//! Finds the newest release in a repository, for a bundle that was installed by a
//! version's tag. Tags are only hints: the highest sequence among the verified releases
//! of this bundle and publisher wins.

use toolward_bundle::text::visible_line;
use toolward_registry::{Reference, Source, TagPattern, TaggedRelease, UnknownHost};
use toolward_signing::verify;
use toolward_signing::{Digest, ErrorKind, Refusal};
use toolward_store::InstalledBundle;

use super::{Installer, ReleasePlace};
use crate::error::{Code, Error, Kind, Result};
use crate::network;
use crate::report::Report;
use crate::runtime::runtime;

/// How many skipped tags a warning names.
const MAX_NAMED: usize = 5;

/// A verified release.
struct VerifiedRelease {
    sequence: u64,
    digest: Digest,
}

/// The repository and the form of its tags, if a source is a version's tag. A digest
/// names one release, and publishers move other tags.
fn repository(source: &Source) -> Option<(&Reference, TagPattern)> {
    match source {
        Source::Registry(reference) if reference.digest().is_none() => {
            Some((reference, TagPattern::of(reference.tag()?)?))
        }
        _ => None,
    }
}

impl Installer<'_> {
    /// Finds the release to install, if a bundle was installed by a version's tag: the
    /// release that the channel lists, else the newest. Pins it by digest, so that the
    /// fetched release is the verified one.
    ///
    /// # Errors
    /// `release-missing` if there is none; otherwise if the repository can't be read.
    pub(super) fn newest(
        &self,
        installed: &InstalledBundle,
        place: ReleasePlace,
    ) -> Result<ReleasePlace> {
        let Some((repository, pattern)) = repository(&place.source) else {
            return Ok(place);
        };
        let current = self.current(&place.source, &installed.publisher)?;
        let listed = current.listed(&installed.id);
        let context = self.context;
        let options = context.options(None);
        let verify = |envelope: &[u8]| {
            let announced = verify::envelope(envelope, &context.store, &options)?;
            let manifest = &announced.manifest;
            let publisher = announced.publisher.name();
            if manifest.id != installed.id || publisher != installed.publisher {
                return Err(Refusal::new(ErrorKind::WrongBundle)
                    .expected(format!("{} of {}", installed.id, installed.publisher))
                    .found(format!("{} of {publisher}", manifest.id)));
            }
            // Don't update a release to a pre-release.
            let early = !manifest.version.pre.is_empty() && installed.version.pre.is_empty();
            Ok((!early).then_some(VerifiedRelease {
                sequence: manifest.sequence,
                digest: announced.manifest_digest,
            }))
        };
        let look = || {
            self.network.with_client(&place.source, |client| {
                let what = format!("looking for releases of {}", installed.id);
                let _progress = self.report.begin(&what);
                Ok(runtime()?.block_on(client.releases(repository, &pattern, verify))?)
            })
        };
        let mut releases = look()?;
        // A tag fails alone, also if its envelope is at a host that is not allowed. A person who does not want that host
        // gets the best release without it.
        for _ in 0..network::MAX_QUESTIONS {
            let above = best(&releases.found, listed).unwrap_or(usize::MAX);
            let mut above = releases.found.iter().take(above);
            let Some(host) = above.find_map(unknown_host) else {
                break;
            };
            match self.network.ask(repository, host) {
                Ok(true) => releases = look()?,
                Ok(false) => break,
                Err(error) if error.kind == Kind::Denied => break,
                Err(error) => return Err(error),
            }
        }
        if releases.left_out > 0 {
            self.report.warning(&format!(
                "{} has {} more tags of versions than are looked at; those with the highest versions were",
                repository.without_version(),
                releases.left_out
            ));
        }
        let chosen = best(&releases.found, listed);
        let chosen = chosen.and_then(|at| Some((at, releases.found.get(at)?)));
        let Some((at, release)) = chosen else {
            let error = nothing(installed, repository, releases.found);
            return Err(match UnknownHost::behind(&error).cloned() {
                Some(host) => self.network.with_lines(error, repository, &host),
                None => error,
            });
        };
        let passed_over = releases.found.iter().take(at);
        warn_of_passed_over(passed_over, repository, self.report);
        let tagged = repository.with_tag(&release.tag)?;
        let recorded = tagged.to_string();
        let pinned = match release.digest {
            Some(digest) => tagged.with_digest(digest),
            None => tagged,
        };
        Ok(ReleasePlace {
            source: Source::Registry(pinned),
            recorded,
        })
    }
}

/// Which release to take: the listed one, else the one with the highest sequence.
fn best(found: &[TaggedRelease<Option<VerifiedRelease>>], listed: Option<Digest>) -> Option<usize> {
    let candidates = || {
        let numbered = found.iter().enumerate();
        numbered.filter_map(|(at, one)| Some((at, one.accepted.as_ref().ok()?.as_ref()?)))
    };
    let mut all = candidates();
    let is_listed = all.find(|(_, one)| Some(one.digest) == listed);
    let newest = || candidates().max_by_key(|(at, one)| (one.sequence, std::cmp::Reverse(*at)));
    is_listed.or_else(newest).map(|(at, _)| at)
}

fn unknown_host<T>(release: &TaggedRelease<T>) -> Option<&UnknownHost> {
    UnknownHost::behind(release.accepted.as_ref().err()?)
}

/// Warns about tags above the chosen one without a usable release.
fn warn_of_passed_over<'r, T: 'r>(
    above: impl Iterator<Item = &'r TaggedRelease<T>>,
    repository: &Reference,
    report: &dyn Report,
) {
    let mut refused = above.filter_map(|one| Some((one, one.accepted.as_ref().err()?)));
    for (release, failure) in refused.by_ref().take(MAX_NAMED) {
        report.warning(&format!(
            "{}:{} is passed over: {} ({})",
            repository.without_version(),
            release.tag,
            visible_line(&failure.to_string(), 400),
            failure.code()
        ));
    }
    let more = refused.count();
    if more > 0 {
        report.warning(&format!("{more} more tags are passed over"));
    }
}

/// The error if no release is usable: the problem of the highest version, if there is
/// one.
fn nothing<T>(
    installed: &InstalledBundle,
    repository: &Reference,
    found: Vec<TaggedRelease<T>>,
) -> Error {
    let mut refused = found.into_iter().filter_map(|one| one.accepted.err());
    match refused.next() {
        Some(failure) => failure.into(),
        None => Error::failed(
            Code::ReleaseMissing,
            format!(
                "no tag of {} leads to a release of {}",
                repository.without_version(),
                installed.id
            ),
        )
        .hint("find out where the bundle is published now, and install it from there"),
    }
}
