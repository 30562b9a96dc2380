//! A demonstration for somebody who has installed nothing yet: a publisher with a key of its own,
//! two bundles that it signed, and everything that serves them, in one directory that is removed again.
//!
//! The key is made in memory, signs, and is dropped. Nothing is written outside of the directory: the user's own
//! configuration, store and ledger stay as they are.

mod bundles;
mod clients;
mod place;
mod thief;

use std::path::Path;
use std::time::SystemTime;

use toolward_host::{Broker, BrokerCommand};
use toolward_signing::timestamp::Timestamp;

use crate::bundles::BundleSource;
use crate::environment::Environment;
use crate::error::Error;
use crate::host_setup::HostSetup;
use crate::installed::StoreLocation;
use crate::network::Network;
use crate::operator::Operator;
use crate::policy_review::PolicyReview;
use crate::processes::CompileCache;
use crate::releases::{Installer, Place as ReleasePlace};
use crate::report::Report;
use crate::trust::Trust;

use place::Place;

pub use clients::mentioning;
pub(crate) use place::private;
pub use place::{Removed, remove};
pub use thief::{Attempt, Outcome, Thief};

/// The name of the publisher. No operator trusts one of this name by accident: the trust lies in the demo's directory.
pub const PUBLISHER: &str = "toolward-demo";

/// How long its bundles are valid, in seconds: seven days.
const VALID_SECONDS: i64 = 7 * 24 * 3600;

/// A demonstration that was set up.
///
/// ```no_run
/// use toolward_host::BrokerCommand;
/// use toolward_operator::demo::Demo;
/// use toolward_operator::{Environment, Silent, runtime};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let command = BrokerCommand {
///     program: std::env::current_exe()?,
///     broker: vec!["broker".into()],
///     worker: vec!["worker".into()],
/// };
/// let demo = Demo::make(&Environment::of_process(), &command, &Silent)?;
/// let thief = demo.thief(&Silent)?;
/// let runtime = runtime()?;
/// for attempt in thief.attempts() {
///     let outcome = runtime.block_on(thief.run(attempt))?;
///     println!("{}: {}", attempt.title, outcome.stopped_by.unwrap_or_default());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Demo {
    /// Its bundles, trust and directories.
    pub operator: Operator,
    /// Compiles its drivers.
    pub broker: Broker,
    /// The lines that the policy lacked, as suggested and added.
    pub policy_lines: String,
    /// When its bundles stop being valid.
    pub expires: Timestamp,
    place: Place,
}

impl Demo {
    /// Makes the directory, signs, trusts and installs the bundles, and grants what they declare. Drivers are compiled by
    /// this command.
    ///
    /// # Errors
    /// `demo-exists` if there is one already; if the directory can't be written.
    pub fn make(
        environment: &Environment,
        command: &BrokerCommand,
        report: &dyn Report,
    ) -> Result<Self, Error> {
        let place = Place::make(environment)?;
        let made = Self::fill(place, environment, command, report);
        made.map_err(|error| error.hint("remove what was made: toolward demo --remove"))
    }

    fn fill(
        place: Place,
        environment: &Environment,
        command: &BrokerCommand,
        report: &dyn Report,
    ) -> Result<Self, Error> {
        place.fill()?;
        let signed = bundles::sign(SystemTime::now())?;
        place.configure(&signed.public_key)?;
        let operator = operator(&place, environment);
        let broker = operator.broker(command, report)?;
        broker.start()?;
        let store = operator.source.store.open(environment)?;
        let context = operator.source.trust.context(environment, report)?;
        let installer = Installer {
            channel: None,
            accept: None,
            allow_rollback: None,
            move_source: None,
            network: &Network::default().fetcher(&operator.source.trust, environment)?,
            store: &store,
            context: &context,
            environment,
            // A thread would keep the process from confining itself.
            compiler: None,
            rows: None,
            report,
        };
        for (name, archive) in &signed.archives {
            let path = place.write_bundle(name, archive)?;
            installer.install(&ReleasePlace::parse(&path)?, None)?;
        }
        let policies = &operator.setup.policies;
        let review = PolicyReview::read(&operator.source, policies, environment, report)?;
        let suggestion = review.suggest(None, None)?.unwrap_or_default();
        place.grant(&suggestion.lines)?;
        Ok(Self {
            // The configuration has changed since it was read.
            operator: self::operator(&place, environment),
            broker,
            policy_lines: suggestion.lines,
            expires: signed.expires,
            place,
        })
    }

    /// The one directory of the demo.
    pub fn directory(&self) -> &Path {
        &self.place.directory
    }

    /// The folder that `demo.note` writes to.
    pub fn notes(&self) -> std::path::PathBuf {
        self.place.notes()
    }

    /// The flags of `toolward serve` and `toolward call` for these bundles.
    pub fn flags(&self) -> Vec<String> {
        let place = &self.place;
        let flags = [
            ("--config", place.config_file()),
            ("--store-dir", place.store()),
            ("--state-dir", place.state()),
            ("--cache-dir", place.cache()),
        ];
        let flags = flags
            .into_iter()
            .flat_map(|(flag, path)| [flag.to_owned(), path.display().to_string()]);
        flags.collect()
    }

    /// The hostile tool, ready to be run.
    ///
    /// # Errors
    /// If its host can't be built, or no port of this machine can be listened on.
    pub fn thief(&self, report: &dyn Report) -> Result<Thief, Error> {
        Thief::new(self, report)
    }
}

/// The demo's own files in place of the user's.
fn operator(place: &Place, environment: &Environment) -> Operator {
    Operator {
        source: BundleSource {
            trust: Trust::of_config(Some(place.config_file())),
            store: StoreLocation(Some(place.store())),
            ..BundleSource::default()
        },
        setup: HostSetup {
            state_dir: Some(place.state()),
            ..HostSetup::default()
        },
        cache: CompileCache {
            directory: Some(place.cache()),
            disabled: false,
        },
        environment: environment.clone(),
    }
}
