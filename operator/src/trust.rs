//! Trusted publishers: from keys or a configuration given by flags, or from the user's
//! configuration.

pub mod bare_keys;
pub mod changes;
mod context;
mod joint_progress;
mod key_place;
mod open;
pub mod publishers;
pub mod rows;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::SystemTime;

use toolward_bundle::content::Content;
use toolward_bundle::libraries::{Reading, Shelf};
use toolward_bundle::text::visible_line;
use toolward_host::confine::SystemCalls;
use toolward_signing::key::PublicKey;
use toolward_signing::manifest;
use toolward_signing::revocation::Revocations;
use toolward_signing::trust::{TrustSettings, TrustStore};

use crate::config::{ConfigFile, default_config, is_missing, read_text};
use crate::environment::Environment;
use crate::error::{Code, Error, Kind, content_error};
use crate::installed::{self, StoreLocation};
use crate::ledger::LedgerSettings;
use crate::registries::Registries;
use crate::report::Report;

use publishers::{Publishers, Trusted};

pub use context::TrustContext;
pub(crate) use open::{Opened, naming_bundle};

/// The file that marks a directory under work.
const BUNDLE_TOML: &str = "bundle.toml";

/// The source of trust: keys and a configuration, which is read once.
///
/// ```no_run
/// use toolward_operator::installed::StoreLocation;
/// use toolward_operator::trust::Trust;
/// use toolward_operator::{Environment, Silent};
///
/// # fn main() -> Result<(), toolward_operator::Error> {
/// let trust = Trust::new(vec!["acme.pub.pem".into()], None);
/// let path = "notes.toolbundle".as_ref();
/// let store = StoreLocation::default();
/// let content = trust.content(path, &store, &Environment::of_process(), &Silent)?;
/// assert!(content.tool("notes.append").is_some());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct Trust {
    keys: Vec<PathBuf>,
    config: Option<PathBuf>,
    /// The configuration, after it was read.
    file: OnceLock<Option<ConfigFile>>,
}

impl Trust {
    /// Trusts the keys in these PEM files for all ids, in place of the configuration's
    /// publishers. Without keys, those publishers are trusted.
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

    /// The same configuration, not read yet.
    #[must_use]
    pub fn unread(&self) -> Self {
        Self::of_config(self.config.clone())
    }

    /// Whether flags say whom to trust.
    pub fn is_named(&self) -> bool {
        !self.keys.is_empty() || self.config.is_some()
    }

    /// Whether flags or the user's configuration say whom to trust.
    pub fn is_given(&self, environment: &Environment) -> bool {
        let configured = default_config(environment).is_some_and(|path| {
            let known = Publishers::beside(&path).all();
            !is_missing(&path) || !known.is_ok_and(|all| all.is_empty())
        });
        self.is_named() || configured
    }

    /// The configuration in effect, if there is one. `--trust-key` replaces its
    /// publishers, not its grants.
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

    /// Which system calls a confined process may make, by configuration.
    pub fn system_calls(&self, environment: &Environment) -> Result<SystemCalls, Error> {
        let configured = self.file(environment)?.map(ConfigFile::system_calls);
        Ok(configured.transpose()?.unwrap_or_default())
    }

    /// The clients on the standard streams that may ask their person for approval, by configuration.
    pub fn approving_clients(&self, environment: &Environment) -> Result<Vec<String>, Error> {
        let configured = self.file(environment)?.map(ConfigFile::approving_clients);
        Ok(configured.transpose()?.unwrap_or_default())
    }

    /// The settings of `[ledger]`, by configuration.
    pub fn ledger(&self, environment: &Environment) -> Result<LedgerSettings, Error> {
        let configured = self.file(environment)?.map(ConfigFile::ledger);
        Ok(configured.transpose()?.unwrap_or_default())
    }

    /// The settings of `[[registry]]`, by configuration.
    pub fn registries(&self, environment: &Environment) -> Result<Registries, Error> {
        let configured = self.file(environment)?.map(ConfigFile::registries);
        Ok(configured.transpose()?.unwrap_or_default())
    }

    /// The key files that flags and the configuration name.
    pub fn key_files(&self, environment: &Environment) -> Result<Vec<PathBuf>, Error> {
        let configured = self.file(environment)?.map(ConfigFile::key_files);
        let named = self.keys.iter().cloned();
        Ok(named.chain(configured.into_iter().flatten()).collect())
    }

    /// The path of the configuration, which need not exist.
    pub fn place(&self, environment: &Environment) -> Result<PathBuf, Error> {
        match &self.config {
            Some(path) => Ok(path.clone()),
            None => default_config(environment).ok_or_else(|| nobody_trusted(environment)),
        }
    }

    /// The publishers added by `toolward trust`.
    pub fn publishers(&self, environment: &Environment) -> Result<Publishers, Error> {
        Ok(Publishers::beside(&self.place(environment)?))
    }

    /// [`Trust::context_of`], for commands that need no trusted publisher.
    pub fn context_or_empty(
        &self,
        trusted: &Trusted,
        environment: &Environment,
        report: &dyn Report,
    ) -> Result<TrustContext, Error> {
        match self.context_of(trusted, environment, report) {
            Err(failure) if failure.code == Code::NobodyTrusted.code() => {
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

    /// Reads everything that `toolward trust` records.
    pub fn trusted(&self, environment: &Environment) -> Result<Trusted, Error> {
        match self.publishers(environment) {
            Ok(publishers) => publishers.all(),
            Err(_) => Ok(Trusted::default()),
        }
    }

    /// The trusted publishers and the revocations as of now.
    pub fn context(
        &self,
        environment: &Environment,
        report: &dyn Report,
    ) -> Result<TrustContext, Error> {
        self.context_of(&self.trusted(environment)?, environment, report)
    }

    /// [`Trust::context`], with publishers that were read before.
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
        } else if file.is_none() && trusted.is_empty() {
            return Err(nobody_trusted(environment));
        } else {
            self.store_of(trusted, environment)?
        };
        // A key that is given by itself still belongs to its publisher.
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

    /// All publishers of the configuration and of `toolward trust`, regardless of
    /// `--trust-key`.
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
            let key = PublicKey::from_pem(&pem)
                .map_err(|refusal| Error::of(Kind::Usage, refusal).in_file(path))?;
            match &mut store {
                None => store = Some(TrustStore::for_key(key)),
                Some(store) => store.add_key(key),
            }
        }
        Ok(store.unwrap_or_else(TrustStore::empty))
    }

    /// Opens, verifies and reads a bundle. Its action libraries are the bundles that are installed and verify.
    pub fn content(
        &self,
        path: &Path,
        store: &StoreLocation,
        environment: &Environment,
        report: &dyn Report,
    ) -> Result<Content, Error> {
        let bundle = self.open(path, environment, report)?;
        let refused = |error| content_error(error, Kind::Refused);
        if !Reading::new(bundle.clone()).is_open() {
            return Content::from_verified(bundle).map_err(refused);
        }
        let shelf = installed_libraries(self, store, environment, report)?;
        Content::from_verified_with(bundle, &shelf).map_err(refused)
    }
}

/// The contents of bundles that were read by themselves, in their order. Each has the others as its action libraries.
pub(crate) fn finish(
    readings: Vec<Reading>,
    context: &TrustContext,
) -> Vec<Result<Content, Error>> {
    let contents = Reading::finish(readings, &context.store).into_iter();
    let read = |content: Result<_, _>| content.map_err(|error| content_error(error, Kind::Refused));
    contents.map(read).collect()
}

/// Whether a directory is under work by an author. A packed bundle is not, regardless
/// of other files in it: its signatures are checked.
pub fn is_under_work(directory: &Path) -> bool {
    let packed = [manifest::ENVELOPE_FILE, manifest::FILE];
    directory.join(BUNDLE_TOML).is_file()
        && !packed
            .iter()
            .any(|name| directory.join(name).symlink_metadata().is_ok())
}

/// Reads a directory under work, without signatures. Its action libraries are the bundles that are installed and
/// verify.
pub fn under_work(
    directory: &Path,
    trust: &Trust,
    store: &StoreLocation,
    environment: &Environment,
    report: &dyn Report,
) -> Result<Content, Error> {
    let failed = |error| content_error(error, Kind::Failed);
    match Content::from_dev(directory) {
        Err(error) if error.lacks_action() => {
            let shelf = installed_libraries(trust, store, environment, report)?;
            Content::from_dev_with(directory, &shelf).map_err(failed)
        }
        content => content.map_err(failed),
    }
}

/// [`under_work`], for a directory that the user chose to run: says that it is unsigned.
pub fn dev_content(
    directory: &Path,
    trust: &Trust,
    store: &StoreLocation,
    environment: &Environment,
    report: &dyn Report,
) -> Result<Content, Error> {
    let content = under_work(directory, trust, store, environment, report)?;
    report.note(&format!(
        "{}: unsigned, under work; policies know it as {}",
        directory.display(),
        visible_line(&content.origin.publisher(), 500)
    ));
    Ok(content)
}

/// The actions of the installed bundles that verify now. None without a store.
fn installed_libraries(
    trust: &Trust,
    store: &StoreLocation,
    environment: &Environment,
    report: &dyn Report,
) -> Result<Shelf, Error> {
    let Some(store) = store.existing(environment)? else {
        return Ok(Shelf::default());
    };
    let context = trust.context_or_empty(&trust.trusted(environment)?, environment, report)?;
    installed::libraries(&store, &context, None)
}

fn nobody_trusted(environment: &Environment) -> Error {
    let place = default_config(environment).map_or_else(
        || "toolward.toml in your configuration directory".to_owned(),
        |path| path.display().to_string(),
    );
    Error::usage(Code::NobodyTrusted, "no publisher is trusted yet")
        .hint("trust a publisher by its document: toolward trust add DOCUMENT --prefix PREFIX")
        .hint("or give its public key, for this command only: --trust-key PUBLISHER.pub.pem")
        .hint(format!("or name publishers and their keys in {place}"))
}
