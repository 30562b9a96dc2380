//! The trust of one operation: publishers, settings and revocations, all as of one time. Also opens
//! bundles with it: a single one, or several on all processors.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use toolward_bundle::component::Surface;
use toolward_bundle::content::{Content, ContentOrigin};
use toolward_bundle::libraries::Reading;
use toolward_bundle::parallel;
use toolward_bundle::text::visible_line;
use toolward_host::Broker;
use toolward_signing::Refusal;
use toolward_signing::channel::Channel;
use toolward_signing::freshness;
use toolward_signing::manifest::FileDigest;
use toolward_signing::publisher::Terms;
use toolward_signing::revocation::Revocations;
use toolward_signing::timestamp::Timestamp;
use toolward_signing::trust::{TrustSettings, TrustStore};
use toolward_signing::verify::{
    self, Bundle, ProgressFn, ReopenFn, Verified, VerifyOptions, VerifyProgress,
};

use super::Trust;
use crate::environment::JointProgress;
use crate::{Code, Environment, Error, Kind, Result, content_error};

/// The trust of one operation.
#[derive(Debug)]
pub struct TrustContext {
    /// Publishers and keys.
    pub store: TrustStore,
    /// The settings of `[trust]`.
    pub settings: TrustSettings,
    /// The revocations by the operator and by publishers.
    pub revocations: Revocations,
    /// By publisher: the channel that must list its releases.
    pub channels: BTreeMap<String, String>,
    /// The time of the operation.
    pub now: SystemTime,
    /// The operator's directories, and the receiver of warnings.
    pub environment: Environment,
}

impl TrustContext {
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
            let message = format!("no channel {} is configured", visible_line(name, 100));
            Error::usage(Code::ChannelUnknown, message).hint("add a `[[channel]]` to toolward.toml")
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

    /// Reads verified bundles, in order. Each may use actions of the others.
    pub(crate) fn read(&self, readings: Vec<Reading>) -> Vec<Result<Content>> {
        let contents = Reading::finish(readings, &self.store).into_iter();
        let contents =
            contents.map(|content| content.map_err(|error| content_error(error, Kind::Refused)));
        contents.collect()
    }

    /// Verifies again a bundle that was verified earlier.
    pub fn again(&self, bundle: &Verified<Bundle>) -> Result<Verified<Bundle>, Refusal> {
        verify::again(bundle, &self.store, &self.options(None))
    }

    /// Returns the time when the first of these bundles stops verifying, if known: when it or its
    /// publisher's document expires, or when it exceeds the maximum age.
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
                known.and_then(|known| known.expires).and_then(ahead),
                self.too_old(manifest.created, known.and_then(|known| known.max_age)),
            ]
        });
        moments.flatten().filter(|moment| *moment > self.now).min()
    }

    /// Returns the time when a bundle made at `created` exceeds the maximum age.
    fn too_old(&self, created: Timestamp, max_age: Option<Duration>) -> Option<SystemTime> {
        let created = Duration::from_secs(u64::try_from(created.unix()).ok()?);
        // One second later, since exactly the maximum age is still allowed.
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

    /// Verifies a stored archive in a file, without the components for which the broker's cache has
    /// facts, see [`stored_file`](verify::stored_file).
    pub(crate) fn stored_file(
        &self,
        file: &mut File,
        broker: &Broker,
        reopen: &Arc<ReopenFn>,
    ) -> Result<Verified<Bundle>, Refusal> {
        let known = |component: &FileDigest| {
            let facts = broker.facts(&component.blake3);
            facts.filter(|facts| Surface::is_known(facts, component.size))
        };
        verify::stored_file(file, &self.store, &self.options(None), &known, reopen)
    }

    /// Verifies an archive in memory.
    pub fn archive(&self, bytes: &[u8]) -> Result<Verified<Bundle>, Refusal> {
        verify::archive_bytes(bytes, &self.store, &self.options(None))
    }
}

/// Bundles that were opened together; their contents, each read with the actions of the others; the
/// trust with which they were verified.
pub(crate) type OpenedBundles = (Vec<Verified<Bundle>>, Vec<Content>, TrustContext);

impl Trust {
    /// Opens and verifies a bundle, which may be a directory or an archive.
    pub fn open(&self, path: &Path, environment: &Environment) -> Result<Verified<Bundle>> {
        there(path)?;
        let context = self.context_for(path, environment)?;
        let bar = environment.report.begin("verifying");
        let report = |progress: VerifyProgress| bar.set(progress.done, progress.total);
        open(path, &context, &report)
    }

    /// Opens, verifies and reads bundles, each a directory or an archive, on all processors.
    ///
    /// # Errors
    /// If a path does not exist, or no publisher is trusted. Otherwise the error of the first
    /// refused bundle, in the order of the paths.
    pub(crate) fn open_all(
        &self,
        paths: &[PathBuf],
        environment: &Environment,
    ) -> Result<OpenedBundles> {
        // A mistyped path is reported before any file is read.
        paths.iter().try_for_each(|path| there(path))?;
        let context = match paths.first() {
            Some(first) => self.context_for(first, environment)?,
            None => self.context(environment)?,
        };
        let progress = JointProgress::of(paths.len(), environment.report.begin("verifying"));
        let numbered: Vec<_> = paths.iter().enumerate().collect();
        let opened = parallel::each(&numbered, |(number, path)| {
            let report = |one: VerifyProgress| progress.set(*number, one);
            let bundle =
                open(path, &context, &report).map_err(|error| naming_bundle(error, path, paths))?;
            Ok((bundle.clone(), Reading::new(bundle)))
        });
        let opened = opened.into_iter().collect::<Result<Vec<_>>>()?;
        let (bundles, readings): (_, Vec<_>) = opened.into_iter().unzip();
        let read = context.read(readings).into_iter().zip(paths);
        let read =
            read.map(|(content, path)| content.map_err(|error| naming_bundle(error, path, paths)));
        let contents = read.collect::<Result<_, _>>()?;
        Ok((bundles, contents, context))
    }

    /// Returns [`Trust::context`] for opening this file. If no publisher is trusted and the file is
    /// not a bundle, the error states that it is not a bundle.
    fn context_for(&self, path: &Path, environment: &Environment) -> Result<TrustContext> {
        self.context(environment).map_err(|error| {
            let untrusted = error.code == Code::NobodyTrusted.code();
            match untrusted.then(|| verify::unsigned(path)) {
                Some(Err(refusal)) => Error::refused(refusal),
                _ => error,
            }
        })
    }
}

/// If several bundles were named, adds the path of the bundle to its error and to the files of the
/// error's diagnostics.
fn naming_bundle(error: Error, path: &Path, paths: &[PathBuf]) -> Error {
    if let [_] = paths {
        return error;
    }
    let mut error = error.in_file(path);
    for found in &mut error.diagnostics {
        found.file = path.join(&found.file).display().to_string();
    }
    error
}

/// Opens and verifies one bundle.
fn open(
    path: &Path,
    context: &TrustContext,
    progress: &ProgressFn<'_>,
) -> Result<Verified<Bundle>> {
    let options = context.options(Some(progress));
    Ok(verify::open(path, &context.store, &options)?)
}

fn there(path: &Path) -> Result<()> {
    let missing = "there is no such file or directory";
    match path.exists() {
        true => Ok(()),
        false => Err(Error::unreadable(path, missing)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example(path: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../examples")
            .join(path)
    }

    fn open_all(key: PathBuf, paths: &[PathBuf]) -> Result<OpenedBundles, Error> {
        let environment = Environment::default();
        Trust::new(vec![key], None).open_all(paths, &environment)
    }

    #[test]
    fn bundles_come_in_the_order_in_which_they_were_named() {
        let names = ["text-stats", "check-digits", "kv-counter", "text-digest"];
        let paths = names.map(|name| example(&format!("bundles/{name}.toolbundle")));
        let key = example("keys/example.pub.pem");
        let (bundles, contents, _) = open_all(key, &paths).unwrap();
        let ids = bundles.iter().map(|bundle| bundle.manifest.id.clone());
        let ids: Vec<_> = ids.collect();
        assert!(
            ids.iter()
                .zip(names)
                .all(|(id, name)| id.replace('.', "-").contains(name)),
            "{ids:?}"
        );
        let read = contents.iter();
        let read = read.map(|content| content.manifest.id.clone());
        assert_eq!(read.collect::<Vec<_>>(), ids);
    }

    #[test]
    fn the_first_bundle_that_is_refused_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let bad = ["first", "second"].map(|name| folder.path().join(name));
        for path in &bad {
            std::fs::write(path, "no archive").unwrap();
        }
        let [first, second] = bad;
        let good = example("bundles/text-stats.toolbundle");
        let key = example("keys/example.pub.pem");
        let error = open_all(key, &[good, first.clone(), second]).unwrap_err();
        assert!(
            error.to_string().contains(&*first.to_string_lossy()),
            "{error}"
        );
    }

    #[test]
    fn a_path_that_leads_nowhere_is_told_before_a_key_that_can_not_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing.toolbundle");
        let key = folder.path().join("missing.pem");
        let good = example("bundles/text-stats.toolbundle");
        let error = open_all(key, &[good, missing.clone()]).unwrap_err();
        assert!(
            error.to_string().contains(&*missing.to_string_lossy()),
            "{error}"
        );
    }
}
