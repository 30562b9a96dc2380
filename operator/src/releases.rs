//! The release of a bundle to install: where it comes from, whether it is current, and compiling its drivers.

mod install;
mod newest;

use std::collections::BTreeMap;
use std::time::Duration;

use toolward_bundle::content::Content;
use toolward_bundle::text::list;
use toolward_host::{Ahead, Broker, CompileCost, CompileError};
use toolward_registry::{DocumentArtifact, Source};
use toolward_signing::Digest;
use toolward_signing::channel::{self, Channel, VerifiedIndex};
use toolward_signing::freshness::{self, Freshness, ReleaseSource};
use toolward_signing::verify::{Bundle, Verified};
use toolward_store::{Store, rollback};

use crate::error::{Code, Error, Result};
use crate::network::{Fetcher, check_there, recorded};
use crate::report::Report;
use crate::trust::TrustContext;

pub use install::{ConfirmMove, Installer, SourceMove};

/// Where a release comes from.
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
    /// `file-unreadable`, which explains how sources are written.
    pub fn check_there(&self) -> Result<()> {
        match &self.source {
            Source::Path(path) => check_there(path),
            _ => Ok(()),
        }
    }
}

/// The channel and maximum age for a source. Fetched once, and checked for each bundle
/// from it.
struct CurrentReleases<'a> {
    origin: ReleaseSource,
    index: Option<VerifiedIndex>,
    max_age: Option<Duration>,
    context: &'a TrustContext,
}

impl<'a> Installer<'a> {
    /// Fetches the index of the channel for `source`: the named channel, or the channel that
    /// the operator set for this publisher, or, for a remote source, the only channel.
    ///
    /// # Errors
    /// If no such channel is configured, several are possible, or the index is refused.
    fn current(&self, source: &Source, publisher: &str) -> Result<CurrentReleases<'a>> {
        let context = self.context;
        let index = match channel_for(source, publisher, self.channel, context)? {
            Some(channel) => Some(fetch_index(channel, self.network, self.store, context)?),
            None => None,
        };
        for warning in index.iter().flat_map(|index| &index.warnings) {
            self.report.warning(warning);
        }
        let origin = match source.is_remote() {
            true => ReleaseSource::Remote,
            false => ReleaseSource::Local,
        };
        let publisher = context.store.publisher(publisher);
        let own = publisher.and_then(|publisher| publisher.max_age());
        Ok(CurrentReleases {
            origin,
            index,
            max_age: freshness::shorter(context.settings.max_age, own),
            context,
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

/// The channel that must list releases of a source.
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
        // Without a choice no index would be checked, and a source could serve an old
        // release.
        (None, several) => {
            let names: Vec<_> = several.iter().map(Channel::name).collect();
            let names = names.join(", ");
            let several = format!("{source} may be held to any of these channels: {names}");
            Err(Error::usage(Code::ChannelAmbiguous, several).hint("say which: --channel NAME"))
        }
    }
}

/// Fetches and verifies the index of a channel. Refuses an index that is older than the last
/// seen.
///
/// # Errors
/// If it can't be fetched or is refused.
///
/// Blocks, see [`network`](crate::network).
pub fn fetch_index(
    channel: &Channel,
    network: &Fetcher,
    store: &Store,
    context: &TrustContext,
) -> Result<VerifiedIndex> {
    let bytes = network.document(channel.source(), DocumentArtifact::Channel)?;
    let index = channel::accept(&bytes, channel, &context.terms())?;
    let name = channel.fingerprint().digest().to_string();
    let kind = rollback::VersionedDocument::Channel;
    store.see_document(kind, &name, index.version, index.digest, context.now)?;
    Ok(index)
}

/// What the drivers of one bundle may cost together: a bundle of many drivers neither
/// keeps its operator waiting nor takes the cache from all others.
const BUNDLE_BUDGET: CompileCost = CompileCost {
    processor: Duration::from_secs(300),
    artifact_bytes: 512 << 20,
};

/// Compiles the drivers of an installed release into the broker's cache, so that the first call does not wait for it. A
/// failure is reported as a warning, and again by the call that needs the driver; the release stays installed.
fn compile_ahead(bundle: Verified<Bundle>, broker: &Broker, report: &dyn Report) {
    // Without a cache the result would be lost.
    if broker.directory().is_none() {
        return;
    }
    let Ok(content) = Content::from_verified(bundle) else {
        return;
    };
    let components = content.drivers.iter().filter_map(|entry| {
        let component = entry.component.as_ref()?;
        Some((component.digest, (entry.driver.id.as_str(), component)))
    });
    let components: BTreeMap<_, _> = components.collect();
    if let Err(error) = broker.start() {
        report.warning(&error.to_string());
        return;
    }
    let mut left = BUNDLE_BUDGET;
    let components = components.values();
    compile_each(
        components.map(|(id, component)| (*id, &*component.bytes)),
        |wasm| broker.compile_within(wasm, &mut left),
        report,
    );
}

fn compile_each<'a>(
    components: impl Iterator<Item = (&'a str, &'a [u8])>,
    mut compile: impl FnMut(&[u8]) -> Result<Ahead, CompileError>,
    report: &dyn Report,
) {
    let mut later = Vec::new();
    for (id, wasm) in components {
        let _progress = report.begin(&format!("compiling {id}"));
        match compile(wasm) {
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

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use toolward_host::CompileReason;

    use super::*;
    use crate::report::{Progress, Silent};

    #[derive(Default)]
    struct Recorded {
        notes: RefCell<Vec<String>>,
        warnings: RefCell<Vec<String>>,
    }

    impl Report for Recorded {
        fn warning(&self, message: &str) {
            self.warnings.borrow_mut().push(message.to_owned());
        }

        fn note(&self, message: &str) {
            self.notes.borrow_mut().push(message.to_owned());
        }

        fn begin(&self, _: &str) -> Box<dyn Progress + Send> {
            Box::new(Silent)
        }
    }

    #[test]
    fn what_is_over_the_budget_is_named_once_and_the_rest_is_compiled() {
        let components = [("a", "large"), ("b", "small"), ("c", "bad"), ("d", "large")];
        let components = components.map(|(id, wasm)| (id, wasm.as_bytes()));
        let (heard, mut compiled) = (Recorded::default(), Vec::new());
        let compile = |wasm: &[u8]| match wasm {
            b"large" => Ok(Ahead::OverBudget),
            b"bad" => Err(CompileError::new(CompileReason::Invalid, "not valid")),
            _ => {
                compiled.push(wasm.to_owned());
                Ok(Ahead::Compiled)
            }
        };
        compile_each(components.into_iter(), compile, &heard);
        assert_eq!(compiled, [b"small"]);
        assert_eq!(heard.warnings.take(), ["c: not valid"]);
        let notes = heard.notes.take();
        assert_eq!(notes.len(), 1);
        assert!(notes[0].ends_with(": a, d"), "{notes:?}");
    }

    #[test]
    fn a_bundle_within_its_budget_is_not_talked_about() {
        let heard = Recorded::default();
        let components = [("a", &b"small"[..])].into_iter();
        compile_each(components, |_| Ok(Ahead::Compiled), &heard);
        assert!(heard.notes.take().is_empty() && heard.warnings.take().is_empty());
    }
}
