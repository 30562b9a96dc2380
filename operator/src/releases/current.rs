//! Whether a release is current: the index of the channel that its source is held to,
//! and its age.

use std::time::Duration;

use toolward_registry::{DocumentKind, Source};
use toolward_signing::Digest;
use toolward_signing::channel::{self, Channel, VerifiedIndex};
use toolward_signing::freshness::{self, Freshness, Origin};
use toolward_store::{Store, rollback};

use crate::error::Error;
use crate::network::Network;
use crate::report::Report;
use crate::trust::TrustContext;

/// What a source is held to. Fetched once, and checked for each bundle from it.
pub struct Current<'a> {
    origin: Origin,
    index: Option<VerifiedIndex>,
    max_age: Option<Duration>,
    context: &'a TrustContext,
}

impl<'a> Current<'a> {
    /// Fetches the index of the channel that `source` is held to: the one named,
    /// the one that the operator holds this publisher to, or the only one, for
    /// what comes from elsewhere.
    ///
    /// # Errors
    ///
    /// Where no such channel is configured, several may be meant, or the index is refused.
    pub fn of(
        source: &Source,
        publisher: &str,
        named: Option<&str>,
        network: &Network,
        store: &Store,
        context: &'a TrustContext,
        report: &dyn Report,
    ) -> Result<Self, Error> {
        let index = match held_to(source, publisher, named, context)? {
            Some(channel) => Some(fetch_index(channel, network, store, context)?),
            None => None,
        };
        for warning in index.iter().flat_map(|index| &index.warnings) {
            report.warning(warning);
        }
        let origin = if source.is_remote() {
            Origin::Remote
        } else {
            Origin::Local
        };
        let publisher = context.store.publisher(publisher);
        let own = publisher.and_then(|publisher| publisher.max_age());
        Ok(Self {
            origin,
            index,
            max_age: freshness::shorter(context.settings.max_age, own),
            context,
        })
    }

    /// The digest of the release of this bundle that the channel lists.
    pub fn listed(&self, id: &str) -> Option<Digest> {
        let index = self.index.as_ref()?;
        index.get(id).map(|listed| listed.digest)
    }

    /// The rule that a bundle is current by.
    pub fn freshness(&self) -> Freshness<'_> {
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
        // None of them would be asked: a source could show what is old.
        (None, several) => {
            let names: Vec<_> = several.iter().map(Channel::name).collect();
            let several = format!(
                "{source} may be held to any of these channels: {}",
                names.join(", ")
            );
            Err(Error::usage("channel-ambiguous", several).hint("say which: --channel NAME"))
        }
    }
}

/// The configured channel of this name.
///
/// # Errors
///
/// `channel-unknown`.
pub fn channel<'a>(name: &str, context: &'a TrustContext) -> Result<&'a Channel, Error> {
    context.settings.channel(name).ok_or_else(|| {
        Error::usage(
            "channel-unknown",
            format!("no channel {name} is configured"),
        )
        .hint("add a `[[channel]]` to toolward.toml")
    })
}

/// Fetches the index of a channel: verified, and no older than the last seen.
///
/// # Errors
///
/// Where it can't be fetched or is refused.
///
/// Blocks, see [`network`](crate::network).
pub fn fetch_index(
    channel: &Channel,
    network: &Network,
    store: &Store,
    context: &TrustContext,
) -> Result<VerifiedIndex, Error> {
    let bytes = network.document(channel.source(), DocumentKind::Channel)?;
    let index = channel::accept(&bytes, channel, &context.terms())
        .map_err(|refusal| Error::refused(&refusal))?;
    let name = channel.fingerprint().digest().to_string();
    let kind = rollback::DocumentKind::Channel;
    store.see_document(kind, &name, index.version, index.digest, context.now)?;
    Ok(index)
}
