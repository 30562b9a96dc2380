//! Checks that a release is current: by the index of its channel, and by its age.

use std::time::Duration;

use toolward_registry::{DocumentArtifact, Source};
use toolward_signing::Digest;
use toolward_signing::channel::{self, Channel, VerifiedIndex};
use toolward_signing::freshness::{self, Freshness, ReleaseSource};
use toolward_store::{Store, rollback};

use super::install::Installer;
use crate::error::{Code, Error};
use crate::network::Fetcher;
use crate::trust::TrustContext;

/// The channel and maximum age for a source. Fetched once, and checked for each bundle
/// from it.
pub(super) struct Current<'a> {
    origin: ReleaseSource,
    index: Option<VerifiedIndex>,
    max_age: Option<Duration>,
    context: &'a TrustContext,
}

impl<'a> Installer<'a> {
    /// Fetches the index of the channel for `source`: the named one, or the one that
    /// the operator set for this publisher, or, for a remote source, the only one.
    ///
    /// # Errors
    /// If no such channel is configured, several are possible, or the index is refused.
    pub(super) fn current(&self, source: &Source, publisher: &str) -> Result<Current<'a>, Error> {
        let context = self.context;
        let index = match held_to(source, publisher, self.channel, context)? {
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
        Ok(Current {
            origin,
            index,
            max_age: freshness::shorter(context.settings.max_age, own),
            context,
        })
    }
}

impl Current<'_> {
    /// The digest of the release of this bundle that the channel lists.
    pub(super) fn listed(&self, id: &str) -> Option<Digest> {
        let index = self.index.as_ref()?;
        index.get(id).map(|listed| listed.digest)
    }

    /// The rule by which a bundle counts as current.
    pub(super) fn freshness(&self) -> Freshness<'_> {
        Freshness {
            origin: self.origin,
            index: self.index.as_ref(),
            max_age: self.max_age,
            now: self.context.now,
            mode: self.context.settings.mode,
        }
    }
}

fn held_to<'a>(
    source: &Source,
    publisher: &str,
    name: Option<&str>,
    context: &'a TrustContext,
) -> Result<Option<&'a Channel>, Error> {
    let of_publisher = || {
        context
            .channels
            .get(publisher)
            .filter(|_| source.is_remote())
    };
    let name = name.or_else(|| of_publisher().map(String::as_str));
    match (name, context.settings.channels.as_slice()) {
        (Some(name), _) => channel(name, context).map(Some),
        (None, _) if !source.is_remote() => Ok(None),
        (None, []) => Ok(None),
        (None, [only]) => Ok(Some(only)),
        // Without a choice no index would be checked, and a source could serve an old
        // release.
        (None, several) => {
            let names: Vec<_> = several.iter().map(Channel::name).collect();
            let several = format!(
                "{source} may be held to any of these channels: {}",
                names.join(", ")
            );
            Err(Error::usage(Code::ChannelAmbiguous, several).hint("say which: --channel NAME"))
        }
    }
}

/// The configured channel of this name.
///
/// # Errors
///
/// `channel-unknown`.
pub fn channel<'a>(name: &str, context: &'a TrustContext) -> Result<&'a Channel, Error> {
    context.channel(name)
}

/// Fetches and verifies the index of a channel. Refuses one that is older than the last
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
) -> Result<VerifiedIndex, Error> {
    let bytes = network.document(channel.source(), DocumentArtifact::Channel)?;
    let index = channel::accept(&bytes, channel, &context.terms()).map_err(Error::refused)?;
    let name = channel.fingerprint().digest().to_string();
    let kind = rollback::VersionedDocument::Channel;
    store.see_document(kind, &name, index.version, index.digest, context.now)?;
    Ok(index)
}
