//! Whom an operation trusts: keys that were named, a configuration that was named,
//! or the user's own.

pub mod changes;
mod context;
pub mod publishers;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::SystemTime;

use toolward_bundle::content::Content;
use toolward_bundle::text::visible_line;
use toolward_host::confine::SystemCalls;
use toolward_signing::key::PublicKey;
use toolward_signing::manifest;
use toolward_signing::revocation::Revocations;
use toolward_signing::trust::{TrustSettings, TrustStore};
use toolward_signing::verify::{self, Bundle, Verified};

use crate::config::{ConfigFile, default_config, is_missing, read_text};
use crate::environment::Environment;
use crate::error::{Error, Kind, content_error};
use crate::report::Report;

use publishers::{Publishers, Trusted};

pub use context::TrustContext;

/// What makes a directory one that an author works in.
const BUNDLE_TOML: &str = "bundle.toml";

/// Where it stands whom to trust. The configuration is read once.
#[derive(Debug, Default)]
pub struct Trust {
    keys: Vec<PathBuf>,
    config: Option<PathBuf>,
    /// The configuration, once it was read.
    file: OnceLock<Option<ConfigFile>>,
}

impl Trust {
    /// Trusts the keys in these PEM files for all ids, in place of whom the
    /// configuration trusts. Without keys: whom it trusts.
    pub fn new(keys: Vec<PathBuf>, config: Option<PathBuf>) -> Self {
        Self {
            keys,
            config,
            file: OnceLock::new(),
        }
    }

    /// Whom a configuration trusts: this file, or the user's own.
    pub fn of_config(config: Option<PathBuf>) -> Self {
        Self::new(Vec::new(), config)
    }

    /// The same, with nothing read yet.
    #[must_use]
    pub fn unread(&self) -> Self {
        Self::of_config(self.config.clone())
    }

    /// Whether the user said for this command whom to trust.
    pub fn is_named(&self) -> bool {
        !self.keys.is_empty() || self.config.is_some()
    }

    /// Whether the user said whom to trust, or has a configuration that does.
    pub fn is_given(&self, environment: &Environment) -> bool {
        let configured = default_config(environment).is_some_and(|path| {
            let known = Publishers::beside(&path).all();
            !is_missing(&path) || !known.is_ok_and(|all| all.known.is_empty())
        });
        self.is_named() || configured
    }

    /// The configuration that holds, if there is one: `--trust-key` replaces
    /// whom it trusts, not what it grants.
    pub fn file(&self, environment: &Environment) -> Result<Option<&ConfigFile>, Error> {
        if let Some(known) = self.file.get() {
            return Ok(known.as_ref());
        }
        let found = match &self.config {
            Some(path) => Some(ConfigFile::read(path)?),
            None => ConfigFile::of_user(environment)?,
        };
        Ok(self.file.get_or_init(|| found).as_ref())
    }

    /// Which system calls a confined process keeps, as the configuration says.
    pub fn system_calls(&self, environment: &Environment) -> Result<SystemCalls, Error> {
        let configured = self.file(environment)?.map(ConfigFile::system_calls);
        Ok(configured.transpose()?.unwrap_or_default())
    }

    /// The files that keys are read from: of the flags and of the configuration.
    pub fn key_files(&self, environment: &Environment) -> Result<Vec<PathBuf>, Error> {
        let configured = self.file(environment)?.map(ConfigFile::key_files);
        let named = self.keys.iter().cloned();
        Ok(named.chain(configured.into_iter().flatten()).collect())
    }

    /// The file that holds the configuration, whether or not it is there.
    fn place(&self, environment: &Environment) -> Result<PathBuf, Error> {
        match &self.config {
            Some(path) => Ok(path.clone()),
            None => default_config(environment).ok_or_else(|| nobody_trusted(environment)),
        }
    }

    /// The publishers that `toolward trust` knows.
    pub fn publishers(&self, environment: &Environment) -> Result<Publishers, Error> {
        Ok(Publishers::beside(&self.place(environment)?))
    }

    /// [`Trust::context_of`], for commands that are fine without any trusted publisher.
    pub fn context_or_empty(
        &self,
        trusted: &Trusted,
        environment: &Environment,
        report: &dyn Report,
    ) -> Result<TrustContext, Error> {
        match self.context_of(trusted, environment, report) {
            Err(failure) if failure.code == "nobody-trusted" => {
                let mut revocations = Revocations::none();
                trusted.revoke(&mut revocations);
                Ok(TrustContext {
                    store: TrustStore::empty(),
                    settings: TrustSettings::default(),
                    revocations,
                    channels: trusted.channels(),
                    now: SystemTime::now(),
                })
            }
            other => other,
        }
    }

    /// All that `toolward trust` keeps.
    pub fn trusted(&self, environment: &Environment) -> Result<Trusted, Error> {
        match self.publishers(environment) {
            Ok(publishers) => publishers.all(),
            Err(_) => Ok(Trusted::default()),
        }
    }

    /// Whom this command trusts, and what is revoked, as things stand now.
    pub fn context(
        &self,
        environment: &Environment,
        report: &dyn Report,
    ) -> Result<TrustContext, Error> {
        self.context_of(&self.trusted(environment)?, environment, report)
    }

    /// [`Trust::context`], with what was read of publishers before.
    pub fn context_of(
        &self,
        trusted: &Trusted,
        environment: &Environment,
        report: &dyn Report,
    ) -> Result<TrustContext, Error> {
        let file = self.file(environment)?;
        let settings = file.map(ConfigFile::trust_settings).transpose()?;
        let settings = settings.unwrap_or_default();
        let mut revocations = settings.denied.clone();
        trusted.revoke(&mut revocations);
        let store = if !self.keys.is_empty() {
            self.of_keys()?
        } else if file.is_none() && trusted.known.is_empty() {
            return Err(nobody_trusted(environment));
        } else {
            self.store_of(trusted, environment)?
        };
        // A key that is named by itself is its owner's still.
        for publisher in store.publishers().filter(|one| one.is_ad_hoc()) {
            for key in publisher.keys() {
                for owner in trusted.owners(&key.key_id()) {
                    revocations.share(owner, publisher.name());
                }
            }
        }
        for warning in store.warnings().into_iter().chain(settings.warnings()) {
            report.warning(&warning.to_string());
        }
        Ok(TrustContext {
            store,
            settings,
            revocations,
            channels: trusted.channels(),
            now: SystemTime::now(),
        })
    }

    /// All publishers of the configuration and of `toolward trust` together,
    /// whatever key is named.
    pub fn store_of(
        &self,
        trusted: &Trusted,
        environment: &Environment,
    ) -> Result<TrustStore, Error> {
        let mut store = match self.file(environment)? {
            Some(file) => file.trust_store()?,
            None => TrustStore::empty(),
        };
        trusted.add_to(&mut store)?;
        Ok(store)
    }

    fn of_keys(&self) -> Result<TrustStore, Error> {
        let mut store: Option<TrustStore> = None;
        for path in &self.keys {
            let pem = read_text(path)?;
            let key = PublicKey::from_pem(&pem).map_err(|refusal| bad_key(path, &refusal))?;
            match &mut store {
                None => store = Some(TrustStore::for_key(key)),
                Some(store) => store.add_key(key),
            }
        }
        Ok(store.unwrap_or_else(TrustStore::empty))
    }

    /// Opens and verifies a bundle, a directory or an archive.
    pub fn open(
        &self,
        path: &Path,
        environment: &Environment,
        report: &dyn Report,
    ) -> Result<Verified<Bundle>, Error> {
        let context = self.context(environment, report)?;
        if !path.exists() {
            return Err(Error::unreadable(
                path,
                "there is no such file or directory",
            ));
        }
        let bar = report.begin("verifying");
        let report = |progress: verify::Progress| bar.set(progress.done, progress.total);
        let options = context.options(Some(&report));
        verify::open(path, &context.store, &options).map_err(|refusal| Error::refused(&refusal))
    }

    /// Opens, verifies and reads a bundle.
    pub fn content(
        &self,
        path: &Path,
        environment: &Environment,
        report: &dyn Report,
    ) -> Result<Content, Error> {
        read(self.open(path, environment, report)?)
    }
}

/// What is in a verified bundle.
pub fn read(bundle: Verified<Bundle>) -> Result<Content, Error> {
    Content::from_verified(bundle).map_err(|error| content_error(&error, Kind::Refused))
}

/// Whether a directory is one that an author works in. A packed bundle is not,
/// whatever else lies in it: its signatures are looked at.
pub fn is_under_work(directory: &Path) -> bool {
    let packed = [manifest::ENVELOPE_FILE, manifest::FILE];
    directory.join(BUNDLE_TOML).is_file()
        && !packed
            .iter()
            .any(|name| directory.join(name).symlink_metadata().is_ok())
}

/// A directory under work, named by the user to be run without signatures.
pub fn dev_content(directory: &Path, report: &dyn Report) -> Result<Content, Error> {
    let content =
        Content::from_dev(directory).map_err(|error| content_error(&error, Kind::Failed))?;
    report.note(&format!(
        "{}: unsigned, under work; policies know it as {}",
        directory.display(),
        visible_line(&content.origin.publisher(), 500)
    ));
    Ok(content)
}

fn bad_key(path: &Path, refusal: &toolward_signing::Refusal) -> Error {
    let failure = Error::usage(refusal.code(), format!("{}: {refusal}", path.display()));
    match refusal.hint() {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

fn nobody_trusted(environment: &Environment) -> Error {
    let place = default_config(environment).map_or_else(
        || "toolward.toml in your configuration directory".to_owned(),
        |path| path.display().to_string(),
    );
    Error::usage("nobody-trusted", "it is not said whom to trust")
        .hint("give the publisher's public key: --trust-key PUBLISHER.pub.pem")
        .hint(format!("or name publishers and their keys in {place}"))
}
