//! Fetches bundles and documents: from files, `https` and registries.
//!
//! Fetching blocks the calling thread. Inside a tokio runtime it fails with `runtime-unavailable`:
//! call it on a separate thread, see [`runtime`](crate::runtime()).

mod asking;

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use toolward_registry::{
    ClientOptions, DocumentArtifact, Helpers, ProgressFn, Proxy, RegistryClient,
    RegistryCredentials, Source, TransferProgress,
};
use toolward_signing::archive::Effort;
use toolward_signing::verify::{self, Bundle, Verified};
use toolward_signing::{ErrorKind, Refusal};
use toolward_support::helper::lock;

use crate::config::ConfigFile;
use crate::file;
use crate::registries::Registries;
use crate::trust::{Trust, TrustContext};
use crate::{Code, Environment, Error, Kind, Progress, Result, runtime};

use asking::HostQuestions;
pub(crate) use asking::MAX_QUESTIONS;
pub use asking::{AskHost, DownloadHost, RealmChange};

/// How long a credential helper may take.
const CREDENTIAL_HELPER_TIMEOUT: Duration = Duration::from_secs(30);
/// How often progress is reported.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(200);
/// Largest file of credentials or certificates, in bytes.
const MAX_FILE_BYTES: usize = 1024 * 1024;

/// How one call uses registries and `https`, by flags. [`Network::fetcher`] adds the configured
/// settings.
#[derive(Debug, Default, Clone)]
pub struct Network {
    /// A PEM file of certificate authorities, besides the system's.
    pub ca_file: Option<PathBuf>,

    /// The file of names and passwords, in the form of Docker's `config.json`.
    pub docker_config: Option<PathBuf>,

    /// Whether to run the credential helpers that `docker_config` names.
    pub credential_helpers: bool,

    /// The directories to search for these helpers.
    pub search_path: Vec<PathBuf>,

    /// `REGISTRY=ORIGIN`: the credentials for that registry may also be sent to the token server at
    /// that origin.
    pub allow_realm: Vec<String>,

    /// Origins to which downloads may be redirected. A redirected request has no credentials, and
    /// only goes to a global unicast address.
    pub allow_redirects_to: Vec<String>,

    /// Whether plain http is allowed for sources on this machine.
    pub plain_http: bool,
}

impl Network {
    /// Returns a fetcher with these settings, the settings of `[[registry]]`, and the proxy of
    /// `HTTPS_PROXY`.
    ///
    /// # Errors
    /// If the configuration can't be read or is invalid.
    pub fn fetcher(self, trust: &Trust, environment: &Environment) -> Result<Fetcher> {
        Ok(Fetcher {
            flags: self,
            registries: RwLock::new(trust.setting(environment, ConfigFile::registries)?),
            configuration: trust.place(environment).ok(),
            asking: None,
            environment: environment.clone(),
        })
    }

    /// The credentials of the file that a flag names.
    fn credentials(&self) -> Result<RegistryCredentials> {
        let Some(path) = &self.docker_config else {
            return Ok(RegistryCredentials::none());
        };
        let helpers = match self.credential_helpers {
            true => Helpers::on(self.search_path.clone(), CREDENTIAL_HELPER_TIMEOUT),
            false => Helpers::off(),
        };
        let bytes = file::read(path, MAX_FILE_BYTES)?;
        Ok(RegistryCredentials::from_docker_config(&bytes, helpers)?)
    }
}

/// Returns the proxy of `HTTPS_PROXY`, with the exceptions of `NO_PROXY`. Both names may be in
/// lower case. Programs and guests never get the proxy.
fn proxy(environment: &Environment) -> Result<Option<Proxy>> {
    let value = |name: &str| {
        let names = [name.to_owned(), name.to_lowercase()];
        let mut values = names.iter().filter_map(|name| (environment.variable)(name));
        values.find(|value| !value.is_empty())
    };
    let Some(address) = value("HTTPS_PROXY") else {
        return Ok(None);
    };
    let exceptions = value("NO_PROXY").unwrap_or_default();
    Ok(Some(Proxy::parse(&address, &exceptions)?))
}

/// Fetches from registries and `https`, and pushes to registries.
///
/// ```no_run
/// use toolward_operator::network::Network;
/// use toolward_operator::trust::Trust;
/// use toolward_operator::Environment;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (trust, environment) = (Trust::default(), Environment::of_process());
/// let context = trust.context(&environment)?;
/// let fetcher = Network::default().fetcher(&trust, &environment)?;
/// let source = toolward_registry::Source::parse("oci://registry.example/acme/notes:1.2.0")?;
/// let bundle = fetcher.bundle(&source, None, &context)?;
/// println!("{} {}", bundle.manifest.id, bundle.manifest.version);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Fetcher {
    flags: Network,
    registries: RwLock<Registries>,
    /// The path of the configuration, which may not exist.
    configuration: Option<PathBuf>,
    asking: Option<HostQuestions>,
    environment: Environment,
}

impl Fetcher {
    fn registries(&self) -> RwLockReadGuard<'_, Registries> {
        self.registries
            .read()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a client for this source only, since the settings of one registry are not used for
    /// another.
    ///
    /// # Errors
    /// If a file can't be read, or a setting is invalid; `registry-proxy-invalid`.
    pub fn client(&self, source: &Source) -> Result<RegistryClient> {
        let flags = &self.flags;
        let registries = self.registries();
        let settings = registries.of_source(source, flags.plain_http);
        let plain = flags.plain_http || settings.is_some_and(|settings| settings.plain_http);
        let mut options = ClientOptions {
            plain_http: plain,
            redirect_addresses: |address| toolward_egress::address::check(address, &[]).map(drop),
            proxy: proxy(&self.environment)?,
            credentials: flags.credentials()?,
            ..ClientOptions::default()
        };
        if let Some(path) = &flags.ca_file {
            options.authorities.push(file::read(path, MAX_FILE_BYTES)?);
        }
        if let Some(settings) = settings {
            let registry = match source {
                Source::Registry(reference) => Some(reference.registry()),
                _ => None,
            };
            settings.apply(&mut options, &self.environment, registry.as_deref())?;
        }
        for text in &flags.allow_realm {
            let (registry, origin) = text.split_once('=').ok_or_else(|| {
                Error::usage(Code::SettingInvalid, format!("--allow-realm {text:?}"))
                    .hint("write --allow-realm REGISTRY=https://HOST")
            })?;
            options
                .realms
                .push((registry.to_owned(), origin.to_owned()));
        }
        options.redirects.extend(flags.allow_redirects_to.clone());
        if let (Some(asking), Source::Registry(reference)) = (&self.asking, source) {
            options.redirects.extend(asking.hosts(reference)?);
        }
        Ok(options.build()?)
    }

    /// Fetches and verifies a bundle. If `expected` is given, the bundle must have that id, so that
    /// an update can't be a different bundle. For a remote bundle, the envelope (the signed
    /// manifest) is verified and its id compared before anything else is downloaded.
    ///
    /// # Errors
    /// If it can't be fetched or is refused; `runtime-unavailable` for a remote source inside a
    /// tokio runtime.
    pub fn bundle(
        &self,
        source: &Source,
        expected: Option<&str>,
        context: &TrustContext,
    ) -> Result<Verified<Bundle>> {
        let is_expected = |id: &str| match expected {
            Some(expected) if expected != id => Err(Refusal::new(ErrorKind::WrongBundle)
                .at(source.to_string())
                .expected(expected.to_owned())
                .found(id)),
            _ => Ok(()),
        };
        let report = &self.environment.report;
        let begin = || report.begin(&format!("fetching {source}"));
        let options = context.options(None);
        let announced = |envelope: &[u8]| {
            let announced = verify::envelope(envelope, &context.store, &options)?;
            is_expected(&announced.manifest.id)
        };
        let bundle = match source {
            Source::Path(path) => {
                check_there(path)?;
                let bar = begin();
                let report =
                    |progress: verify::VerifyProgress| bar.set(progress.done, progress.total);
                let options = context.options(Some(&report));
                verify::open(path, &context.store, &options)?
            }
            Source::Registry(reference) => {
                let downloads = downloads(&self.environment)?;
                let archive = self.with_client(source, |client| {
                    let pulled = run(&*begin(), async |track| {
                        let pulled = client.pull(reference, &downloads, Some(track), announced);
                        pulled.await
                    })??;
                    if let Some(missing) = &pulled.missing_signatures {
                        report.warning(&format!(
                            "co-signatures of {source} could not be looked up: {missing}"
                        ));
                    }
                    Ok(pulled.archive(Effort::Fast, Vec::new())?)
                })?;
                context.archive(&archive)?
            }
            Source::Web(url) => {
                let downloads = downloads(&self.environment)?;
                let client = self.client(source)?;
                let fetched = run(&*begin(), async |track| {
                    let fetched = client.fetch_bundle(url, &downloads, Some(track), announced);
                    fetched.await
                });
                let mut bytes = Vec::new();
                let read = fetched??.read_to_end(&mut bytes);
                read.map_err(|error| Error::unreadable(&downloads, error))?;
                context.archive(&bytes)?
            }
        };
        // The id is also checked here: the envelope of a local bundle was not read first, and a
        // remote source may have changed since its envelope was read.
        is_expected(&bundle.manifest.id)?;
        Ok(bundle)
    }

    /// Fetches a document without verifying it.
    ///
    /// # Errors
    /// If it can't be fetched; `runtime-unavailable` inside a tokio runtime.
    pub fn document(&self, source: &str, kind: DocumentArtifact) -> Result<Vec<u8>> {
        let source = Source::parse(source)?;
        self.with_client(&source, |client| {
            let work = client.fetch_document(&source, kind, kind.max_bytes());
            Ok(runtime()?.block_on(work)?)
        })
    }
}

/// Checks that the file or directory of a source exists.
pub(crate) fn check_there(path: &Path) -> Result<()> {
    if path.exists() {
        return Ok(());
    }
    let text = path.display().to_string();
    let missing = format!("{text}: there is no such file or directory");
    let error = Error::usage(Code::FileUnreadable, missing);
    // Other tools write a reference as `registry.example/team/tools:1.2.3`.
    let reference = format!("oci://{text}");
    let is_reference = matches!(Source::parse(&reference), Ok(Source::Registry(_)))
        && text.contains('/')
        && !text.starts_with(['/', '.', '~']);
    let meant = is_reference.then(|| format!("did you mean {reference}?"));
    Err(error.maybe_hint(meant).hint(
        "a source is a file or directory, https://HOST/FILE.toolbundle, or \
         oci://REGISTRY/REPOSITORY:TAG",
    ))
}

/// Returns the form in which a source is recorded. A path becomes absolute, so that it is valid in
/// any working directory.
///
/// # Errors
/// If the working directory is unknown.
pub fn recorded(source: &Source, text: &str) -> Result<String> {
    match source {
        Source::Path(path) => std::path::absolute(path)
            .map(|path| path.display().to_string())
            .map_err(|error| Error::unreadable(path, error)),
        _ => Ok(text.to_owned()),
    }
}

/// Runs a transfer on this thread. The latest progress is reported at intervals, even if it has not
/// changed: a progress bar appears only after a while, and needs the progress then.
///
/// # Errors
/// `runtime-unavailable` inside a tokio runtime. The transfer's own error is in the result.
pub fn run<T>(bar: &dyn Progress, transfer: impl AsyncFnOnce(&ProgressFn) -> T) -> Result<T> {
    let latest = Arc::new(Mutex::new(None));
    let recorded = latest.clone();
    let track = move |now| *lock(&recorded) = Some(now);
    runtime().map(|runtime| {
        runtime.block_on(async {
            let mut transfer = std::pin::pin!(transfer(&track));
            loop {
                if let Ok(done) = tokio::time::timeout(PROGRESS_INTERVAL, &mut transfer).await {
                    return done;
                }
                if let Some(TransferProgress { done, total, .. }) = *lock(&latest) {
                    bar.set(done, total.unwrap_or_default());
                }
            }
        })
    })
}

/// The user's directory of partial downloads, which a later run resumes.
fn downloads(environment: &Environment) -> Result<PathBuf> {
    use std::os::unix::fs::DirBuilderExt as _;
    let Some(cache) = &environment.cache_directory else {
        return Err(
            Error::usage(Code::StoreUnusable, "there is no home directory")
                .hint("set HOME, or XDG_CACHE_HOME"),
        );
    };
    let directory = cache.join("downloads");
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700);
    let made = builder.create(&directory);
    made.map_err(|error| Error::unwritable(&directory, error))?;
    Ok(directory)
}

impl From<toolward_registry::Failure> for Error {
    fn from(failure: toolward_registry::Failure) -> Self {
        let source = std::error::Error::source(&failure);
        match source.and_then(|source| source.downcast_ref::<Refusal>()) {
            Some(refusal) => Self::refused(refusal.clone()),
            None => Self::of(Kind::Failed, failure),
        }
    }
}
