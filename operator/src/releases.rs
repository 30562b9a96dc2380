//! Finds the release of a bundle to install: its source, whether it is current, and the newest
//! release in a repository. Also compiles its drivers. A channel is a signed index of current
//! releases. Tags are only hints: of the verified releases of a bundle and its publisher, the
//! release that the channel lists is used, otherwise the release with the highest sequence.

mod install;

use std::collections::BTreeMap;
use std::ops::Deref;
use std::time::Duration;

use toolward_bundle::content::Content;
use toolward_bundle::text::{list, visible_line};
use toolward_host::{Ahead, CompileCost, CompileError};
use toolward_registry::{
    DocumentArtifact, Reference, Source, TagPattern, TaggedRelease, UnknownHost,
};
use toolward_signing::channel::{self, Channel, VerifiedIndex};
use toolward_signing::freshness::{self, Freshness, ReleaseSource};
use toolward_signing::verify::{self, Bundle, Verified};
use toolward_signing::{Digest, ErrorKind, Refusal};
use toolward_store::{InstalledBundle, Store, rollback};

use crate::network::{self, Fetcher, check_there, recorded};
use crate::trust::TrustContext;
use crate::{Code, Error, Kind, Report, Result, joined, runtime};

pub use install::{ConfirmMove, Installer, SourceMove};

/// The source of a release.
#[derive(Debug, Clone)]
pub struct ReleasePlace {
    /// The source to fetch from.
    pub source: Source,
    /// The source to record for updates.
    pub recorded: String,
}

impl ReleasePlace {
    /// Parses a source from the command line.
    ///
    /// # Errors
    /// If it is not a path, an `https` address or `oci://…`.
    pub fn parse(text: &str) -> Result<Self> {
        let source = Source::parse(text)?;
        let recorded = recorded(&source, text)?;
        Ok(Self { source, recorded })
    }

    /// Checks that the file or directory exists, if the source is one.
    ///
    /// # Errors
    /// `file-unreadable`, with an explanation of how sources are written.
    pub fn check_there(&self) -> Result<()> {
        match &self.source {
            Source::Path(path) => check_there(path),
            _ => Ok(()),
        }
    }
}

/// The channel's index and the maximum age for a source. They are read once, and each bundle from
/// the source is checked against them.
struct CurrentReleases<'a> {
    origin: ReleaseSource,
    index: Option<VerifiedIndex>,
    max_age: Option<Duration>,
    context: &'a TrustContext,
}

impl Installer<'_> {
    /// Fetches the index of the channel for `source`, if one applies: the named channel; otherwise,
    /// for a remote source, the channel that the operator set for this publisher, or the only
    /// channel.
    ///
    /// # Errors
    /// If no such channel is configured, several are possible, or the index is refused.
    fn current(&self, source: &Source, publisher: &str) -> Result<CurrentReleases<'_>> {
        let context = &self.context;
        let index = match channel_for(source, publisher, self.channel, context)? {
            Some(channel) => Some(fetch_index(channel, &self.network, &self.store, context)?),
            None => None,
        };
        for warning in index.iter().flat_map(|index| &index.warnings) {
            self.report().warning(warning);
        }
        let origin = match source.is_remote() {
            true => ReleaseSource::Remote,
            false => ReleaseSource::Local,
        };
        let publisher = context.store.publisher(publisher);
        let own = publisher.and_then(|publisher| publisher.max_age);
        Ok(CurrentReleases {
            origin,
            index,
            max_age: freshness::shorter(context.settings.max_age, own),
            context,
        })
    }

    /// Compiles the drivers of an installed release into the broker's cache, so that the first call
    /// does not wait for it. A failure is reported as a warning, and again by the call that needs
    /// the driver. The release stays installed.
    fn compile_ahead(&self, bundle: Verified<Bundle>) {
        // Without a cache the compiled drivers would be lost.
        let caching = self
            .compiler
            .as_ref()
            .filter(|broker| broker.directory().is_some());
        let Some(broker) = caching else { return };
        let Ok(content) = Content::from_verified(bundle) else {
            return;
        };
        let components = content.drivers.iter().filter_map(|entry| {
            let component = entry.component.as_ref()?;
            Some((component.digest, (entry.driver.id.as_str(), component)))
        });
        let components: BTreeMap<_, _> = components.collect();
        if let Err(error) = broker.start() {
            self.report().warning(&error.to_string());
            return;
        }
        let mut left = BUNDLE_BUDGET;
        let components = components.values();
        let components =
            components.filter_map(|(id, component)| Some((*id, component.read().ok()?)));
        let compile = |wasm: &[u8]| broker.compile_within(wasm, &mut left);
        compile_each(components, compile, self.report());
    }

    /// If a bundle was installed by a version's tag, finds the release to install: the release that
    /// the channel lists, otherwise the newest. Pins it by digest, so that the fetched release is
    /// the verified one. If it was not, returns the place unchanged.
    ///
    /// # Errors
    /// `release-missing` if no release is found; otherwise if the repository can't be read.
    fn newest(&self, installed: &InstalledBundle, place: ReleasePlace) -> Result<ReleasePlace> {
        let Some((repository, pattern)) = repository(&place.source) else {
            return Ok(place);
        };
        let current = self.current(&place.source, &installed.publisher)?;
        let listed = current.listed(&installed.id);
        let context = &self.context;
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
            Ok((!early).then_some((manifest.sequence, announced.manifest_digest)))
        };
        let look = || {
            self.network.with_client(&place.source, |client| {
                let what = format!("looking for releases of {}", installed.id);
                let _progress = self.report().begin(&what);
                Ok(runtime()?.block_on(client.releases(repository, &pattern, verify))?)
            })
        };
        let mut releases = look()?;
        // If a tag's envelope is at a host that is not allowed, only that tag fails, and a person
        // is asked about the host. If the person does not allow it, the best of the other releases
        // is used.
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
            self.report().warning(&format!(
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
        warn_of_passed_over(passed_over, repository, self.report());
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

impl CurrentReleases<'_> {
    /// The digest of the release of this bundle that the channel lists.
    fn listed(&self, id: &str) -> Option<Digest> {
        let index = self.index.as_ref()?;
        index.get(id).map(|listed| listed.digest)
    }

    /// The rule by which a bundle counts as current.
    fn freshness(&self) -> Freshness<'_> {
        Freshness {
            origin: self.origin,
            index: self.index.as_ref(),
            max_age: self.max_age,
            now: self.context.now,
            mode: self.context.settings.mode,
        }
    }
}

/// Returns the channel that must list the releases of a source.
fn channel_for<'a>(
    source: &Source,
    publisher: &str,
    name: Option<&str>,
    context: &'a TrustContext,
) -> Result<Option<&'a Channel>> {
    let of_publisher = context
        .channels
        .get(publisher)
        .filter(|_| source.is_remote());
    let name = name.or(of_publisher.map(String::as_str));
    match (name, context.settings.channels.as_slice()) {
        (Some(name), _) => context.channel(name).map(Some),
        (None, []) => Ok(None),
        (None, _) if !source.is_remote() => Ok(None),
        (None, [only]) => Ok(Some(only)),
        // Without a choice no index would be checked, and a source could serve an old release.
        (None, several) => {
            let names = joined(several.iter().map(|channel| &*channel.name), ", ");
            let several = format!("{source} may be held to any of these channels: {names}");
            Err(Error::usage(Code::ChannelAmbiguous, several).hint("say which: --channel NAME"))
        }
    }
}

/// Fetches and verifies the index of a channel. Refuses an index that is older than the last one
/// that was seen.
///
/// # Errors
/// If it can't be fetched or is refused.
///
/// Blocks, see [`crate::network`].
pub fn fetch_index(
    channel: &Channel,
    network: &Fetcher,
    store: &Store,
    context: &TrustContext,
) -> Result<VerifiedIndex> {
    let bytes = network.document(&channel.source, DocumentArtifact::Channel)?;
    let index = channel::accept(&bytes, channel, &context.terms())?;
    let name = channel.fingerprint().digest().to_string();
    let kind = rollback::VersionedDocument::Channel;
    store.see_document(kind, &name, index.version, index.digest, context.now)?;
    Ok(index)
}

/// The limit on compiling the drivers of one bundle. A bundle of many drivers must not keep its
/// operator waiting or fill the cache.
const BUNDLE_BUDGET: CompileCost = CompileCost {
    processor: Duration::from_secs(300),
    artifact_bytes: 512 << 20,
};

fn compile_each<'a>(
    components: impl Iterator<Item = (&'a str, impl Deref<Target = [u8]>)>,
    mut compile: impl FnMut(&[u8]) -> Result<Ahead, CompileError>,
    report: &dyn Report,
) {
    let mut later = Vec::new();
    for (id, wasm) in components {
        let _progress = report.begin(&format!("compiling {id}"));
        match compile(&wasm) {
            Ok(Ahead::Compiled) => {}
            Ok(Ahead::OverBudget) => later.push(id),
            Err(error) => report.warning(&format!("{id}: {error}")),
        }
    }
    if !later.is_empty() {
        let drivers = list(&later);
        report.note(&format!(
            "to be compiled at their first call, since a bundle may not cost more: {drivers}"
        ));
    }
}

/// How many skipped tags a warning names.
const MAX_NAMED: usize = 5;

/// The sequence and the digest of a verified release.
type VerifiedRelease = (u64, Digest);

/// Returns the repository and the form of its tags, if the source is a version's tag. Other sources
/// need no search: a digest names a single release, and publishers themselves move other tags to
/// newer releases.
fn repository(source: &Source) -> Option<(&Reference, TagPattern)> {
    match source {
        Source::Registry(reference) if reference.digest().is_none() => {
            Some((reference, TagPattern::of(reference.tag()?)?))
        }
        _ => None,
    }
}

/// Returns the release to use: the listed one, otherwise the one with the highest sequence.
fn best(found: &[TaggedRelease<Option<VerifiedRelease>>], listed: Option<Digest>) -> Option<usize> {
    let candidates = || {
        let numbered = found.iter().enumerate();
        numbered.filter_map(|(at, one)| Some((at, one.accepted.as_ref().ok()?.as_ref()?)))
    };
    let mut all = candidates();
    let is_listed = all.find(|(_, (_, digest))| Some(*digest) == listed);
    let newest = || candidates().max_by_key(|(at, (number, _))| (number, std::cmp::Reverse(*at)));
    is_listed.or_else(newest).map(|(at, _)| at)
}

fn unknown_host<T>(release: &TaggedRelease<T>) -> Option<&UnknownHost> {
    UnknownHost::behind(release.accepted.as_ref().err()?)
}

/// Warns about tags of higher versions without a usable release.
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

/// Returns the error if no release is usable: the problem of the highest refused version, if any
/// was refused.
fn nothing<T>(
    installed: &InstalledBundle,
    repository: &Reference,
    found: Vec<TaggedRelease<T>>,
) -> Error {
    let mut refused = found.into_iter().filter_map(|one| one.accepted.err());
    if let Some(failure) = refused.next() {
        return failure.into();
    }
    let (id, repository) = (&installed.id, repository.without_version());
    let message = format!("no tag of {repository} leads to a release of {id}");
    Error::failed(Code::ReleaseMissing, message)
        .hint("find out where the bundle is published now, and install it from there")
}

#[cfg(test)]
mod tests;
