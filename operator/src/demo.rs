//! A demonstration for a user who has installed nothing yet: a publisher with a new key, two
//! bundles signed with it, and the configuration to serve them. All of it is in one directory,
//! which `remove` removes.
//!
//! The key is made in memory, signs, and is dropped. Nothing is written outside of the directory:
//! the user's own configuration, store and ledger stay unchanged.

pub(crate) mod directory;
mod thief;

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use toolward_host::{Broker, BrokerCommand};
use toolward_signing::Refusal;
use toolward_signing::archive::{self, Contents};
use toolward_signing::envelope::Envelope;
use toolward_signing::key::{PublicKey, SigningKey};
use toolward_signing::manifest::MANIFEST_TYPE;
use toolward_signing::timestamp::Timestamp;
use toolward_signing::trust::TrustStore;
use toolward_signing::verify::{self, VerifyOptions};

use crate::bundles::BundleSource;
use crate::file;
use crate::host_setup::HostSetup;
use crate::installed::StoreLocation;
use crate::network::Network;
use crate::policy_review::PolicyReview;
use crate::processes::CompileCache;
use crate::releases::{Installer, ReleasePlace};
use crate::trust::Trust;
use crate::{Environment, Operator, Result, unix_seconds};

use directory::{CACHE, DemoDirectory, STATE, STORE};

pub use directory::{PUBLISHER, remove};
pub use thief::{TheftAttempt, TheftOutcome, Thief};

/// How long the demo's bundles are valid, in seconds: seven days.
const VALID_SECONDS: i64 = 7 * 24 * 3600;

/// A demonstration that was set up.
///
/// ```no_run
/// use toolward_host::BrokerCommand;
/// use toolward_operator::demo::Demo;
/// use toolward_operator::{Environment, runtime};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let command = BrokerCommand {
///     program: std::env::current_exe()?,
///     broker: vec!["broker".into()],
///     worker: vec!["worker".into()],
/// };
/// let demo = Demo::make(&Environment::of_process(), &command)?;
/// let thief = demo.thief()?;
/// let runtime = runtime()?;
/// for attempt in &thief.attempts {
///     let outcome = runtime.block_on(thief.run(attempt))?;
///     println!("{}: {}", attempt.title, outcome.stopped_by.unwrap_or_default());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Demo {
    /// Its bundles, trust and directories.
    pub operator: Operator,
    /// Compiles its drivers.
    pub broker: Broker,
    /// The suggested policy lines that were added.
    pub policy_lines: String,
    /// When its bundles stop being valid.
    pub expires: Timestamp,
    directory: DemoDirectory,
}

impl Demo {
    /// Creates the directory, signs, trusts and installs the bundles, and grants the capabilities
    /// that they declare. `command` compiles the drivers.
    ///
    /// # Errors
    /// `demo-exists` if a demo exists already. Fails also if a file of the demo can't be written,
    /// or if a bundle can't be installed.
    pub fn make(environment: &Environment, command: &BrokerCommand) -> Result<Self> {
        let directory = DemoDirectory::make(environment)?;
        let made = Self::fill(directory, environment, command);
        made.map_err(|error| error.hint("remove what was made: toolward demo --remove"))
    }

    fn fill(
        directory: DemoDirectory,
        environment: &Environment,
        command: &BrokerCommand,
    ) -> Result<Self> {
        directory.fill()?;
        let (archives, public_key, expires) = sign(SystemTime::now())?;
        directory.configure(&public_key)?;
        let operator = operator(&directory, environment);
        let broker = operator.broker(command)?;
        broker.start()?;
        let store = operator.source.store.open(environment)?;
        let context = operator.source.trust.context(environment)?;
        let installer = Installer {
            channel: None,
            accept: None,
            allow_rollback: None,
            move_source: None,
            network: Network::default().fetcher(&operator.source.trust, environment)?,
            store,
            context,
            // A thread that compiles would prevent the process from confining itself.
            compiler: None,
            rows: None,
        };
        for (name, archive) in &archives {
            let path = directory.write_bundle(name, archive)?;
            installer.install(&ReleasePlace::parse(&path)?, None)?;
        }
        let policies = &operator.setup.policies;
        let review = PolicyReview::read(&operator.source, policies, environment)?;
        let suggestion = review.suggest(None, None)?.unwrap_or_default();
        directory.grant(&suggestion.chosen.lines)?;
        Ok(Self {
            // Read again, since the configuration has changed.
            operator: self::operator(&directory, environment),
            broker,
            policy_lines: suggestion.chosen.lines,
            expires,
            directory,
        })
    }

    /// The directory with all files of the demo.
    pub fn directory(&self) -> &Path {
        &self.directory.path
    }

    /// The flags of `toolward serve` and `toolward call` for these bundles.
    pub fn flags(&self) -> Vec<String> {
        let flags = [
            ("--config", self.directory.config_file()),
            ("--store-dir", self.directory.join(STORE)),
            ("--state-dir", self.directory.join(STATE)),
            ("--cache-dir", self.directory.join(CACHE)),
        ];
        let flags = flags.into_iter();
        flags
            .flat_map(|(flag, path)| [flag.to_owned(), path.display().to_string()])
            .collect()
    }
}

/// Uses the demo's files instead of the user's.
fn operator(directory: &DemoDirectory, environment: &Environment) -> Operator {
    Operator {
        source: BundleSource {
            trust: Trust::of_config(Some(directory.config_file())),
            store: StoreLocation(Some(directory.join(STORE))),
            ..BundleSource::default()
        },
        setup: HostSetup {
            state_dir: Some(directory.join(STATE)),
            ..HostSetup::default()
        },
        cache: CompileCache {
            directory: Some(directory.join(CACHE)),
            disabled: false,
        },
        environment: environment.clone(),
    }
}

const EMBEDDED: [(&str, &[u8]); 2] = [
    (
        "demo-tools",
        include_bytes!("../demo/demo-tools.toolbundle"),
    ),
    (
        "demo-thief",
        include_bytes!("../demo/demo-thief.toolbundle"),
    ),
];

/// The key that signed the example bundles in the repository.
const EXAMPLE_KEY: &str = include_str!("../demo/example.pub.pem");

/// The name and the archive of each bundle.
type Archives = Vec<(&'static str, Vec<u8>)>;

/// Signs the embedded bundles, valid from `now` on, with a new key. Also returns the key that
/// verifies them, as PEM, and the time until which they are valid. The private key is dropped.
fn sign(now: SystemTime) -> Result<(Archives, String, Timestamp)> {
    let seconds = unix_seconds(now);
    let created = Timestamp::from_unix(seconds)?;
    let expires = Timestamp::from_unix(seconds.saturating_add(VALID_SECONDS))?;
    let key = SigningKey::generate()?;
    let archives = EMBEDDED.iter().map(|(name, bytes)| {
        let archive = sign_one(bytes, &key, created, expires)?;
        Ok((*name, archive))
    });
    let archives = archives.collect::<Result<_, Refusal>>()?;
    Ok((archives, key.public().to_pem()?, expires))
}

fn sign_one(
    archive: &[u8],
    key: &SigningKey,
    created: Timestamp,
    expires: Timestamp,
) -> Result<Vec<u8>, Refusal> {
    let trust = TrustStore::for_key(PublicKey::from_pem(EXAMPLE_KEY)?);
    let bundle = verify::archive_bytes(archive, &trust, &VerifyOptions::default())?;
    let mut manifest = bundle.manifest.clone();
    PUBLISHER.clone_into(&mut manifest.publisher);
    manifest.created = created;
    manifest.expires = Some(expires);
    // The provenance statement in the repository is about the repository's manifest.
    manifest.provenance = false;
    let manifest = manifest.to_bytes()?;
    let mut envelope = Envelope::new(MANIFEST_TYPE, manifest.clone());
    envelope.sign(key);
    let files = bundle.files.iter();
    archive::to_bytes(&Contents {
        envelope: &envelope.to_bytes()?,
        manifest: &manifest,
        provenance: None,
        files: files
            .map(|(path, bytes)| (path.clone(), &**bytes))
            .collect(),
    })
}

/// The largest configuration file of an MCP client that is searched, in bytes.
const MAX_CLIENT_FILE_BYTES: usize = 8 << 20;

/// Returns the MCP clients' files that name the demo's directory: they still have an entry for the
/// demo. Files that are missing, too large or unreadable are left out.
pub fn mentioning<'f>(
    directory: &Path,
    files: impl IntoIterator<Item = &'f PathBuf>,
) -> Vec<&'f PathBuf> {
    let directory = directory.display().to_string();
    let names = |path: &&PathBuf| {
        let bytes = file::read(path, MAX_CLIENT_FILE_BYTES).unwrap_or_default();
        String::from_utf8_lossy(&bytes).contains(&directory)
    };
    files.into_iter().filter(names).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use toolward_signing::ErrorKind;

    use super::*;

    #[test]
    fn each_verifies_by_the_new_key_alone_and_for_seven_days() {
        let now = SystemTime::now();
        let (archives, public_key, _) = sign(now).unwrap();
        let key = PublicKey::from_pem(&public_key).unwrap();
        let trust = TrustStore::for_key(key);
        let at = |after: Duration| VerifyOptions {
            now: Some(now + after),
            ..VerifyOptions::default()
        };
        let day = Duration::from_secs(24 * 3600);
        for (name, archive) in &archives {
            let verify = |after| verify::archive_bytes(archive, &trust, &at(after));
            let bundle = verify(6 * day).unwrap();
            assert_eq!(bundle.manifest.publisher, PUBLISHER, "{name}");
            let late = verify(8 * day).unwrap_err();
            assert_eq!(late.kind(), ErrorKind::Expired, "{name}");
        }
        let (archives, other_key, _) = sign(now).unwrap();
        assert_ne!(other_key, public_key);
        for (name, archive) in &archives {
            assert!(
                verify::archive_bytes(archive, &trust, &at(Duration::ZERO)).is_err(),
                "{name}"
            );
        }
    }
}
