//! Whether a release is the current one: the index of the channel that its source
//! is held to, and its age.

use std::time::Duration;

use toolward_registry::{DocumentKind, Source};
use toolward_signing::Digest;
use toolward_signing::channel::{self, Channel, VerifiedIndex};
use toolward_signing::freshness::{self, Freshness, Origin};
use toolward_store::{Store, rollback};

use crate::failure::Failure;
use crate::output::Output;
use toolward_operator::network::Network;
use toolward_operator::trust::TrustContext;

/// What a source is held to: fetched once, asked of each bundle from there.
pub(super) struct Current<'a> {
    origin: Origin,
    index: Option<VerifiedIndex>,
    max_age: Option<Duration>,
    standing: &'a TrustContext,
}

impl<'a> Current<'a> {
    /// Fetches the index of the channel that `source` is held to: the one named,
    /// the one that the operator holds this publisher to, or the only one, for
    /// what comes from elsewhere.
    pub(super) fn of(
        source: &Source,
        publisher: &str,
        named: Option<&str>,
        network: &Network,
        store: &Store,
        standing: &'a TrustContext,
        output: &Output,
    ) -> Result<Self, Failure> {
        let index = match held_to(source, publisher, named, standing)? {
            Some(channel) => Some(fetched(channel, network, store, standing)?),
            None => None,
        };
        for warning in index.iter().flat_map(|index| &index.warnings) {
            output.warning(warning);
        }
        let origin = if source.is_remote() {
            Origin::Remote
        } else {
            Origin::Local
        };
        let publisher = standing.store.publisher(publisher);
        let own = publisher.and_then(|publisher| publisher.max_age());
        Ok(Self {
            origin,
            index,
            max_age: freshness::shorter(standing.settings.max_age, own),
            standing,
        })
    }

    /// The digest of the release of this bundle that the channel lists.
    pub(super) fn listed(&self, id: &str) -> Option<Digest> {
        let index = self.index.as_ref()?;
        index.get(id).map(|listed| listed.digest)
    }

    /// How a bundle is found to be current.
    pub(super) fn freshness(&self) -> Freshness<'_> {
        Freshness {
            origin: self.origin,
            index: self.index.as_ref(),
            max_age: self.max_age,
            now: self.standing.now,
            mode: self.standing.settings.mode,
        }
    }
}

fn held_to<'a>(
    source: &Source,
    publisher: &str,
    name: Option<&str>,
    standing: &'a TrustContext,
) -> Result<Option<&'a Channel>, Failure> {
    let of_publisher = || {
        standing
            .channels
            .get(publisher)
            .filter(|_| source.is_remote())
    };
    let name = name.or_else(|| of_publisher().map(String::as_str));
    match (name, standing.settings.channels.as_slice()) {
        (Some(name), _) => named(name, standing).map(Some),
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
            Err(Failure::usage("channel-ambiguous", several).hint("say which: --channel NAME"))
        }
    }
}

/// The channel of this name.
pub(super) fn named<'a>(name: &str, standing: &'a TrustContext) -> Result<&'a Channel, Failure> {
    standing.settings.channel(name).ok_or_else(|| {
        Failure::usage(
            "channel-unknown",
            format!("no channel {name} is configured"),
        )
        .hint("add a `[[channel]]` to toolward.toml")
    })
}

/// The current index of a channel: verified, and no older than the last seen.
pub(super) fn fetched(
    channel: &Channel,
    network: &Network,
    store: &Store,
    standing: &TrustContext,
) -> Result<VerifiedIndex, Failure> {
    let bytes = network.document(channel.source(), DocumentKind::Channel)?;
    let index = channel::accept(&bytes, channel, &standing.terms())
        .map_err(|refusal| Failure::refused(&refusal))?;
    let name = channel.fingerprint().digest().to_string();
    let kind = rollback::DocumentKind::Channel;
    store.see_document(kind, &name, index.version, index.digest, standing.now)?;
    Ok(index)
}
