//! The trust of one operation: publishers, settings and revocations, all as of one
//! time.

use std::collections::BTreeMap;
use std::fs::File;
use std::time::{Duration, SystemTime};

use toolward_bundle::content::{Content, ContentOrigin};
use toolward_bundle::libraries::Reading;
use toolward_bundle::text::visible_line;
use toolward_signing::Refusal;
use toolward_signing::channel::Channel;
use toolward_signing::freshness;
use toolward_signing::publisher::Terms;
use toolward_signing::revocation::Revocations;
use toolward_signing::timestamp::Timestamp;
use toolward_signing::trust::{TrustSettings, TrustStore};
use toolward_signing::verify::{self, Bundle, ProgressFn, Verified, VerifyOptions};

use super::publishers::TrustedPublishers;
use crate::error::{Code, Error, Kind, Result, content_error};

/// The trust of one operation.
#[derive(Debug)]
pub struct TrustContext {
    /// Publishers and keys.
    pub store: TrustStore,
    /// The settings of `[trust]`.
    pub settings: TrustSettings,
    /// The revocations by the operator and by publishers.
    pub revocations: Revocations,
    /// The channels that apply to releases, by publisher.
    pub channels: BTreeMap<String, String>,
    /// The time of the operation.
    pub now: SystemTime,
}

impl TrustContext {
    /// As of now.
    pub(super) fn new(
        store: TrustStore,
        settings: TrustSettings,
        revocations: Revocations,
        trusted: &TrustedPublishers,
    ) -> Self {
        Self {
            store,
            settings,
            revocations,
            channels: trusted.channels(),
            now: SystemTime::now(),
        }
    }

    /// The options for verifying a bundle.
    pub fn options<'a>(&'a self, progress: Option<&'a ProgressFn<'a>>) -> VerifyOptions<'a> {
        VerifyOptions {
            now: Some(self.now),
            mode: self.settings.mode,
            max_age: self.settings.max_age,
            require_provenance: self.settings.require_provenance,
            revocations: Some(&self.revocations),
            progress,
            ..VerifyOptions::default()
        }
    }

    /// The configured channel of this name.
    ///
    /// # Errors
    /// `channel-unknown`.
    pub fn channel(&self, name: &str) -> Result<&Channel> {
        self.settings.channel(name).ok_or_else(|| {
            Error::usage(
                Code::ChannelUnknown,
                format!("no channel {} is configured", visible_line(name, 100)),
            )
            .hint("add a `[[channel]]` to toolward.toml")
        })
    }

    /// The options for accepting a document.
    pub fn terms(&self) -> Terms<'_> {
        Terms {
            now: self.now,
            mode: self.settings.mode,
            revocations: &self.revocations,
        }
    }

    /// Reads verified bundles, in order, each with the others as its action libraries.
    pub(crate) fn read(&self, readings: Vec<Reading>) -> Vec<Result<Content>> {
        let contents = Reading::finish(readings, &self.store).into_iter();
        let contents =
            contents.map(|content| content.map_err(|error| content_error(error, Kind::Refused)));
        contents.collect()
    }

    /// Verifies a bundle again that was verified earlier.
    pub fn again(&self, bundle: &Verified<Bundle>) -> Result<Verified<Bundle>, Refusal> {
        verify::again(bundle, &self.store, &self.options(None))
    }

    /// When the first of these bundles stops verifying, if known: it or its publisher's
    /// document expires, or it exceeds the maximum age.
    pub fn ends<'c>(&self, contents: impl IntoIterator<Item = &'c Content>) -> Option<SystemTime> {
        let moments = contents.into_iter().flat_map(|content| {
            let ContentOrigin::Signed { publisher, .. } = &content.origin else {
                return [None; 3];
            };
            let mut known = self.store.publishers();
            let known = known.find(|known| known.name() == publisher);
            let manifest = &content.manifest;
            let ahead = |moment: Timestamp| self.now.checked_add(moment.ahead_of(self.now)?);
            [
                manifest.expires.and_then(ahead),
                known.and_then(|known| known.expires()).and_then(ahead),
                self.too_old(manifest.created, known.and_then(|known| known.max_age())),
            ]
        });
        moments.flatten().filter(|moment| *moment > self.now).min()
    }

    /// When a bundle made at this time exceeds the maximum age.
    fn too_old(&self, created: Timestamp, max_age: Option<Duration>) -> Option<SystemTime> {
        let created = Duration::from_secs(u64::try_from(created.unix()).ok()?);
        // Plus one second: the maximum age itself is still allowed.
        let longest = freshness::shorter(self.settings.max_age, max_age)?;
        let longest = longest.checked_add(Duration::from_secs(1))?;
        SystemTime::UNIX_EPOCH
            .checked_add(created)?
            .checked_add(longest)
    }

    /// Verifies an archive in a file.
    pub fn archive_file(&self, file: &mut File) -> Result<Verified<Bundle>, Refusal> {
        verify::archive_file(file, &self.store, &self.options(None))
    }

    /// Verifies an archive in memory.
    pub fn archive(&self, bytes: &[u8]) -> Result<Verified<Bundle>, Refusal> {
        verify::archive_bytes(bytes, &self.store, &self.options(None))
    }
}
