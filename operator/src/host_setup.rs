//! Sets up a host: the operator's grants, and the secrets, key-value buckets and network behind
//! them. The host has no approver: the caller adds one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use toolward_bundle::content::Content;
use toolward_contract::capability::{CapabilitySet, Class};
use toolward_egress::{Transport, TransportSettings};
use toolward_host::confine::Confinement;
use toolward_host::secrets::Sources;
use toolward_host::{Denials, Host, HostBuilder, SharedState};
use toolward_policy::{ContextRule, Policy, Rule, Secret, SecretSource};
use toolward_state::Store;
use toolward_support::files::{Folder, Protection};

use crate::bundles::declares;
use crate::config::read_text;
use crate::demo::directory;
use crate::file::StateFile;
use crate::granted::{Granted, PolicyFiles};
use crate::ledger::LedgerSettings;
use crate::trust::{Trust, publishers};
use crate::{Code, Environment, Error, Kind, Result};

/// The resources behind grants.
#[derive(Debug, Default, Clone)]
pub struct HostSetup {
    /// Policies in addition to the configured one.
    pub policies: PolicyFiles,
    /// The directory for stored secrets, key-value buckets and the record of calls; by default in
    /// the user's state directory.
    pub state_dir: Option<PathBuf>,
}

impl HostSetup {
    /// Returns the directory of the tools' own data, if there is one.
    pub fn state(&self, environment: &Environment) -> Option<PathBuf> {
        let named = self.state_dir.as_ref();
        named.or(environment.state_directory.as_ref()).cloned()
    }

    /// Combines the setup with the configuration.
    pub fn configured<'s>(
        &'s self,
        trust: &'s Trust,
        environment: &'s Environment,
    ) -> ConfiguredSetup<'s> {
        ConfiguredSetup {
            setup: self,
            trust,
            environment,
        }
    }
}

/// A [`HostSetup`] with the configuration. Together they determine the state behind hosts.
#[derive(Debug, Clone, Copy)]
pub struct ConfiguredSetup<'s> {
    setup: &'s HostSetup,
    trust: &'s Trust,
    environment: &'s Environment,
}

impl ConfiguredSetup<'_> {
    /// Reads the settings of `[ledger]`. If they name no directory, the ledger is with the tools'
    /// data.
    ///
    /// # Errors
    /// If the configuration is invalid.
    pub fn ledger(&self) -> Result<LedgerSettings> {
        let mut settings = self.trust.ledger(self.environment)?;
        if let (None, Some(state)) = (&settings.directory, &self.setup.state_dir) {
            settings.directory = Some(LedgerSettings::within(state));
        }
        Ok(settings)
    }

    /// Returns the state that the hosts of a process share. For calls whose ids callers give
    /// ([`Request::named`](toolward_host::Request::named)), drivers get idempotency keys that
    /// follow from the installation's secret. Without a state directory, the secret is random. If
    /// the secret can't be read, a random one is used, with a warning to `tracing`. Denials are
    /// stored in the directory `denials`, if given, and outlive this process.
    ///
    /// # Errors
    /// If `denials` can't be used.
    pub fn shared_state(&self, denials: Option<&Path>) -> Result<SharedState> {
        let denials = denials.map(Denials::open).transpose();
        let denials = denials.map_err(|error| Error::of(Kind::Failed, error))?;
        let secret = self.setup.state(self.environment).and_then(|state| {
            let unread = |error: &Error| {
                tracing::warn!(%error, "drivers get other idempotency keys after a restart");
            };
            id_secret(&state).inspect_err(unread).ok()
        });
        Ok(SharedState::local(secret, denials))
    }

    /// Returns a builder of a host with these bundles under the operator's policy, without an
    /// approver. Opens buckets only if `buckets` is set ([`opens_buckets`]).
    pub fn host(
        &self,
        contents: Vec<Content>,
        granted: &Granted,
        buckets: bool,
    ) -> Result<HostBuilder> {
        let environment = self.environment;
        let mut builder = Host::builder().policy(granted.policy.clone());
        let state = self.setup.state(environment);
        if let Some(state) = &state {
            if buckets {
                builder = builder.buckets(open_buckets(state)?);
            }
            builder = builder.protect("the state directory", state);
        }
        let sources = sources(&granted.policy, state.as_deref(), environment);
        for path in sources.files() {
            builder = builder.protect("a secret's file", path);
        }
        let contexts = granted.policy.tables().contexts.iter();
        for path in contexts.flat_map(ContextRule::files) {
            builder = builder.protect("a context's file", path);
        }
        builder = builder.secrets(sources);
        if let Some(transport) = transport(&granted.policy)? {
            builder = builder.transport(transport);
        }
        builder = protect(builder, granted, self.trust, environment)?;
        Ok(contents.into_iter().fold(builder, HostBuilder::bundle))
    }

    /// The access that this process keeps when it confines itself: the grants of the drivers of
    /// `host`, and the files behind them.
    pub fn kept(&self, host: &Host, granted: &Granted) -> Result<Confinement> {
        let needs = host.requirements();
        let mut confinement = needs.confinement();
        if !needs.ports.is_empty() {
            for path in &self.environment.certificates {
                confinement = confinement.read(path);
            }
            // A rebuilt host reads this file again.
            if let Some(file) = granted.policy.tables().ca_file.as_deref() {
                confinement = confinement.read(file);
            }
        }
        for secret in &granted.policy.tables().secrets {
            let key = (secret.publisher.as_str().to_owned(), secret.slug.clone());
            let SecretSource::File(path) = &secret.source else {
                continue;
            };
            let path = Path::new("/").join(path);
            if needs.secrets.contains(&key) && path.exists() {
                confinement = confinement.read(path);
            }
        }
        let Some(state) = self.setup.state(self.environment) else {
            return Ok(confinement);
        };
        if needs.buckets {
            confinement = confinement.read_write(folder_of_buckets(&state));
        }
        let stored = secrets(&state);
        if needs.stores_secrets {
            // The folder must be private. If it is not, this fails now rather than when a driver
            // stores a secret.
            Folder::make(&stored, Protection::Private)
                .map_err(|error| Error::unwritable(&stored, error.problem))?;
            confinement = confinement.read_write(stored);
        } else if reads_stored(&needs.secrets, &granted.policy) && stored.exists() {
            confinement = confinement.read(stored);
        }
        Ok(confinement)
    }
}

/// Keeps guests out of the directories of configuration, keys and trust, and out of the record of
/// calls. A writer in these directories could grant itself anything.
pub fn protect(
    mut builder: HostBuilder,
    granted: &Granted,
    trust: &Trust,
    environment: &Environment,
) -> Result<HostBuilder> {
    for (what, directory) in environment.protected() {
        builder = builder.protect(what, directory);
    }
    for directory in directory::private_folders(environment) {
        builder = builder.protect("the demo's directory", directory);
    }
    for path in &granted.files {
        builder = builder.protect("a policy's file", path);
    }
    for path in trust.key_files(environment)? {
        builder = builder.protect("a key's file", path);
    }
    if let Ok(publishers) = trust.publishers(environment) {
        builder = builder.protect(publishers::WHAT, publishers.folder());
    }
    Ok(trust.ledger(environment)?.protect(builder, environment))
}

/// Whether drivers read any of these secrets (publisher and slug) from the directory of stored
/// secrets. Other secrets are in a variable or a file of the operator.
fn reads_stored(needed: &BTreeSet<(String, String)>, policy: &Policy) -> bool {
    needed.iter().any(|(publisher, slug)| {
        let is_needed = |one: &&Secret| one.publisher.as_str() == publisher && one.slug == *slug;
        // A secret that the policy does not name is looked up there as well.
        let mut secrets = policy.tables().secrets.iter();
        secrets.find(is_needed).is_none_or(|secret| {
            !matches!(secret.source, SecretSource::Env(_) | SecretSource::File(_))
        })
    })
}

/// Whether a bundle declares a capability that needs buckets, and the policy grants such a
/// capability, even if to another bundle.
pub fn opens_buckets(contents: &[Content], policy: &Policy) -> bool {
    let any = |set: &CapabilitySet| set.of_class(&Class::Database).next().is_some();
    let granted = |rule: &Rule| any(&rule.requires) || any(&rule.mutates);
    policy.grants().any(granted) && contents.iter().any(|content| declares(content, any))
}

/// Opens the buckets in a state directory.
pub(crate) fn open_buckets(state: &Path) -> Result<Store> {
    Store::open(buckets(state)).map_err(|error| Error::of(Kind::Failed, error))
}

/// The file of the buckets, in a separate folder, since SQLite creates and removes files next to
/// it.
pub fn buckets(state: &Path) -> PathBuf {
    folder_of_buckets(state).join("buckets.sqlite")
}

fn folder_of_buckets(state: &Path) -> PathBuf {
    state.join("buckets")
}

/// Returns the sources of a policy's secrets. Stored secrets are in this state directory.
pub fn sources(policy: &Policy, state: Option<&Path>, environment: &Environment) -> Sources {
    let sources = Sources::new(policy, "/".as_ref(), environment.variable);
    match state {
        Some(state) => sources.stored_in(secrets(state)),
        None => sources,
    }
}

/// The directory of the secrets that tools store.
pub fn secrets(state: &Path) -> PathBuf {
    state.join("secrets")
}

/// The transport for outgoing requests, if the policy configures one.
pub fn transport(policy: &Policy) -> Result<Option<Transport>> {
    let Some(file) = policy.tables().ca_file.as_deref() else {
        return Ok(None);
    };
    let pem = read_text(file.as_ref())?;
    let settings = TransportSettings {
        ca_pem: vec![pem.into()],
        ..TransportSettings::default()
    };
    let transport = settings.build();
    // Checked here rather than at the first call.
    transport.load_roots().map_err(|error| {
        Error::usage(Code::CaFileInvalid, format!("{file}: {error}"))
            .hint("name a file of certificates in PEM as `ca_file`, or leave it out")
    })?;
    Ok(Some(transport))
}

/// Returns the secret from which drivers' idempotency keys follow if callers give the ids of calls.
/// The secret is in a separate folder of the state directory, and is made if it is missing.
fn id_secret(state: &Path) -> Result<[u8; 32]> {
    let folder = state.join("ids");
    Folder::make(&folder, Protection::Private)
        .map_err(|error| Error::unwritable(&folder, error.problem))?;
    let file = StateFile::new(folder.join("secret"), 64);
    let _locked = file.lock()?;
    if let Some(secret) = file.read()? {
        let secret = secret.try_into();
        return secret.map_err(|_| Error::unreadable(&file.path, "expected 32 bytes"));
    }
    let mut secret = [0; 32];
    getrandom::fill(&mut secret)
        .map_err(|error| Error::unwritable(&file.path, error.to_string()))?;
    file.write(&secret)?;
    Ok(secret)
}

#[cfg(test)]
mod tests {
    use toolward_policy::{PolicyParts, Publisher};

    use super::*;

    #[test]
    fn stored_secrets_are_read_only_where_a_needed_secret_is_one() {
        let secret = |slug: &str, source| {
            let mut secret = Secret::new(slug, Publisher::parse("acme").unwrap());
            secret.source = source;
            secret
        };
        let mut parts = PolicyParts::default();
        parts.tables.secrets = vec![
            secret("variable", SecretSource::Env("TOKEN".to_owned())),
            secret("file", SecretSource::File("etc/token".to_owned())),
            secret("stored", SecretSource::Store),
        ];
        let policy = parts.build().unwrap();
        let reads = |needed: &[(&str, &str)]| {
            let needed = needed.iter();
            let needed = needed.map(|(publisher, slug)| (publisher.to_string(), slug.to_string()));
            reads_stored(&needed.collect(), &policy)
        };
        assert!(!reads(&[]));
        assert!(!reads(&[("acme", "variable")]));
        assert!(!reads(&[("acme", "variable"), ("acme", "file")]));
        assert!(reads(&[("acme", "variable"), ("acme", "stored")]));
        assert!(reads(&[("acme", "unnamed")]));
        assert!(reads(&[("other", "variable")]), "another publisher's");
    }
}

#[cfg(test)]
mod id_secret_tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn it_is_made_once_for_its_user_alone() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        let secret = id_secret(&state).unwrap();
        assert_ne!(secret, [0; 32]);
        assert_eq!(id_secret(&state).unwrap(), secret);
        let path = state.join("ids/secret");
        let mode = path.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_ne!(id_secret(&folder.path().join("other")).unwrap(), secret);
    }

    #[test]
    fn one_that_is_damaged_or_open_to_others_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        id_secret(folder.path()).unwrap();
        let path = folder.path().join("ids/secret");
        for length in [0, 31, 33, 1000] {
            std::fs::write(&path, vec![7; length]).unwrap();
            assert!(id_secret(folder.path()).is_err(), "{length}");
        }
        std::fs::write(&path, [7; 32]).unwrap();
        assert_eq!(id_secret(folder.path()).unwrap(), [7; 32]);
        let open = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(&path, open).unwrap();
        assert!(id_secret(folder.path()).is_err());
    }
}
