//! Trusted publishers: from keys or a configuration that flags name, or from the user's
//! configuration.

pub(crate) mod bare_key_rules;
pub mod bare_keys;
pub mod changes;
mod context;
pub mod publishers;
pub mod update;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::SystemTime;

use toolward_host::confine::SystemCalls;
use toolward_signing::key::PublicKey;
use toolward_signing::trust::TrustStore;

use crate::config::{ConfigFile, default_config, is_missing, read_text};
use crate::ledger::LedgerSettings;
use crate::{Code, Environment, Error, Kind, Result};

use publishers::{Publishers, TrustedPublishers};

pub(crate) use context::OpenedBundles;
pub use context::TrustContext;

/// The most names for completion in a shell. A screen can't show more.
pub(crate) const MAX_NAMES: usize = 1000;

/// The source of trust: keys, and a configuration that is read once.
///
/// ```no_run
/// use toolward_operator::installed::StoreLocation;
/// use toolward_operator::trust::Trust;
/// use toolward_operator::Environment;
///
/// # fn main() -> Result<(), toolward_operator::Error> {
/// let trust = Trust::new(vec!["acme.pub.pem".into()], None);
/// let path = "notes.toolbundle".as_ref();
/// let store = StoreLocation::default();
/// let content = trust.content(path, &store, &Environment::of_process())?;
/// assert!(content.tool("notes.append").is_some());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct Trust {
    keys: Vec<PathBuf>,
    config: Option<PathBuf>,
    /// The configuration, once it is read.
    file: OnceLock<Option<ConfigFile>>,
}

impl Trust {
    /// Trusts the keys in these PEM files for all ids, instead of the configuration's publishers.
    /// Without keys, the configuration's publishers are trusted.
    pub fn new(keys: Vec<PathBuf>, config: Option<PathBuf>) -> Self {
        Self {
            keys,
            config,
            file: OnceLock::new(),
        }
    }

    /// Trusts the publishers of this configuration, or of the user's own.
    pub fn of_config(config: Option<PathBuf>) -> Self {
        Self::new(Vec::new(), config)
    }

    /// Returns a source that reads the same configuration again. It drops the keys that flags name.
    #[must_use]
    pub fn unread(&self) -> Self {
        Self::of_config(self.config.clone())
    }

    /// Whether flags name keys or a configuration.
    pub fn is_named(&self) -> bool {
        !self.keys.is_empty() || self.config.is_some()
    }

    /// Whether flags name keys or a configuration, or the user has a configuration or trusted
    /// publishers.
    pub fn is_given(&self, environment: &Environment) -> bool {
        let configured = default_config(environment).is_some_and(|path| {
            let known = Publishers::beside(&path).all();
            !is_missing(&path) || !known.is_ok_and(|all| all.is_empty())
        });
        self.is_named() || configured
    }

    /// Returns the configuration in effect, if one exists. `--trust-key` replaces its publishers,
    /// but not its grants.
    pub fn file(&self, environment: &Environment) -> Result<Option<&ConfigFile>> {
        if let Some(known) = self.file.get() {
            return Ok(known.as_ref());
        }
        let found = match &self.config {
            Some(path) => Some(ConfigFile::read(path)?),
            None => ConfigFile::of_user(environment)?,
        };
        Ok(self.file.get_or_init(|| found).as_ref())
    }

    /// Returns the configured list of system calls for a confined process.
    pub fn system_calls(&self, environment: &Environment) -> Result<SystemCalls> {
        self.setting(environment, ConfigFile::system_calls)
    }

    /// Returns the configured names of the clients on standard input and output that may ask the
    /// person who uses them for approval.
    pub fn approving_clients(&self, environment: &Environment) -> Result<Vec<String>> {
        self.setting(environment, ConfigFile::approving_clients)
    }

    /// Returns the settings of `[ledger]`.
    pub fn ledger(&self, environment: &Environment) -> Result<LedgerSettings> {
        self.setting(environment, ConfigFile::ledger)
    }

    /// Returns the setting that `read` finds in the configuration, or the default if no
    /// configuration exists.
    pub(crate) fn setting<T: Default>(
        &self,
        environment: &Environment,
        read: impl FnOnce(&ConfigFile) -> Result<T>,
    ) -> Result<T> {
        self.file(environment)?
            .map_or_else(|| Ok(T::default()), read)
    }

    /// Returns the key files that flags and the configuration name.
    pub fn key_files(&self, environment: &Environment) -> Result<Vec<PathBuf>> {
        let configured = self.file(environment)?.map(ConfigFile::key_files);
        let named = self.keys.iter().cloned();
        Ok(named.chain(configured.into_iter().flatten()).collect())
    }

    /// Returns the path of the configuration, which may not exist.
    pub fn place(&self, environment: &Environment) -> Result<PathBuf> {
        match &self.config {
            Some(path) => Ok(path.clone()),
            None => default_config(environment).ok_or_else(|| none_trusted(environment)),
        }
    }

    /// Returns the publishers added by `toolward trust`.
    pub fn publishers(&self, environment: &Environment) -> Result<Publishers> {
        Ok(Publishers::beside(&self.place(environment)?))
    }

    /// Returns the names of these publishers for completion in a shell. Returns none if they can't
    /// be read.
    pub fn publisher_names(&self, environment: &Environment) -> BTreeSet<String> {
        let publishers = self.publishers(environment);
        let names = publishers.and_then(|publishers| publishers.names(MAX_NAMES));
        names.into_iter().flatten().collect()
    }

    /// Reads everything that `toolward trust` records.
    pub fn trusted(&self, environment: &Environment) -> Result<TrustedPublishers> {
        match self.publishers(environment) {
            Ok(publishers) => publishers.all(),
            Err(_) => Ok(TrustedPublishers::default()),
        }
    }

    /// The trusted publishers and the revocations as of now.
    ///
    /// # Errors
    /// `nobody-trusted`. Fails also if the configuration or a record can't be read.
    pub fn context(&self, environment: &Environment) -> Result<TrustContext> {
        let trusted = self.trusted(environment)?;
        if self.keys.is_empty() && self.file(environment)?.is_none() && trusted.is_empty() {
            return Err(none_trusted(environment));
        }
        self.context_of(&trusted, environment)
    }

    /// [`Trust::context`], for commands that need no trusted publisher.
    pub fn context_or_empty(&self, environment: &Environment) -> Result<TrustContext> {
        self.context_of(&self.trusted(environment)?, environment)
    }

    /// [`Trust::context_or_empty`], with publishers that were read before.
    pub(crate) fn context_of(
        &self,
        trusted: &TrustedPublishers,
        environment: &Environment,
    ) -> Result<TrustContext> {
        let settings = self.setting(environment, ConfigFile::trust_settings)?;
        let mut revocations = settings.denied.clone();
        trusted.revoke(&mut revocations);
        let store = match self.keys.as_slice() {
            [] => self.store_of(trusted, environment)?,
            keys => of_keys(keys)?,
        };
        // A key that is named without a publisher may belong to a known publisher, whose
        // revocations then apply to it.
        for publisher in store.publishers().filter(|one| one.is_ad_hoc) {
            for key in &publisher.keys {
                for owner in trusted.owners(&key.key_id()) {
                    revocations.share(owner, publisher.name());
                }
            }
        }
        for warning in store.warnings().into_iter().chain(settings.warnings()) {
            environment.report.warning(&warning.to_string());
        }
        Ok(TrustContext {
            store,
            settings,
            revocations,
            channels: trusted.channels(),
            now: SystemTime::now(),
            environment: environment.clone(),
        })
    }

    /// Returns all publishers of the configuration and of `toolward trust`, regardless of
    /// `--trust-key`.
    pub fn store_of(
        &self,
        trusted: &TrustedPublishers,
        environment: &Environment,
    ) -> Result<TrustStore> {
        let mut store = match self.file(environment)? {
            Some(file) => file.trust_store()?,
            None => TrustStore::empty(),
        };
        trusted.add_to(&mut store)?;
        Ok(store)
    }
}

fn of_keys(paths: &[PathBuf]) -> Result<TrustStore> {
    let mut store: Option<TrustStore> = None;
    for path in paths {
        let key = PublicKey::from_pem(&read_text(path)?)
            .map_err(|refusal| Error::of(Kind::Usage, refusal).in_file(path))?;
        match &mut store {
            None => store = Some(TrustStore::for_key(key)),
            Some(store) => store.add_key(key),
        }
    }
    Ok(store.unwrap_or_else(TrustStore::empty))
}

fn none_trusted(environment: &Environment) -> Error {
    let place = default_config(environment).map_or_else(
        || "toolward.toml in your configuration directory".to_owned(),
        |path| path.display().to_string(),
    );
    Error::usage(Code::NobodyTrusted, "no publisher is trusted yet")
        .hint("trust a publisher by its document: toolward trust add DOCUMENT --prefix PREFIX")
        .hint("or give its public key, for this command only: --trust-key PUBLISHER.pub.pem")
        .hint(format!("or name publishers and their keys in {place}"))
}
