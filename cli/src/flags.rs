//! Flags that several commands share, and the library values that are made from them.

use std::ops::Deref;
use std::path::PathBuf;

use clap::{ArgMatches, Args, Command, FromArgMatches};
use toolward_host::Broker;
use toolward_host::confine::{Confinement, outlook_with};
use toolward_operator::bundles::BundleSource;
use toolward_operator::granted::PolicyFiles;
use toolward_operator::host_setup::HostSetup;
use toolward_operator::installed::StoreLocation;
use toolward_operator::network::Network;
use toolward_operator::processes::{self, CompileCache};
use toolward_operator::recorder::RecordedConfinement;
use toolward_operator::trust::Trust;

use crate::environment;
use crate::failure::Result;
use crate::output::Context;

/// A library's value that is made from flags.
pub(crate) trait FromFlags: Sized {
    type Flags: Args;

    fn from_flags(flags: Self::Flags) -> Self;
}

/// A value that was made from its flags.
#[derive(Debug)]
pub(crate) struct Flagged<T>(pub(crate) T);

impl<T> Deref for Flagged<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: FromFlags> FromArgMatches for Flagged<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        T::Flags::from_arg_matches(matches).map(|flags| Self(T::from_flags(flags)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<T: FromFlags> Args for Flagged<T> {
    fn augment_args(command: Command) -> Command {
        T::Flags::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        T::Flags::augment_args_for_update(command)
    }
}

#[derive(Debug, Args)]
pub(crate) struct TrustFlags {
    /// Trust this public key, for this command only
    ///
    /// It may sign bundles with any ids. May be given again. [env: TOOLWARD_TRUST_KEY, files
    /// separated by colons]
    #[arg(long, value_name = "PEM")]
    trust_key: Vec<PathBuf>,

    /// Read whom to trust, and what to grant, from this file
    ///
    /// [env: TOOLWARD_CONFIG] [default: toolward.toml in the user's configuration directory]
    #[arg(long, value_name = "FILE", conflicts_with = "trust_key")]
    config: Option<PathBuf>,
}

impl FromFlags for Trust {
    type Flags = TrustFlags;

    fn from_flags(flags: TrustFlags) -> Self {
        // Both `--trust-key` and `--config` replace the keys of the variable.
        let named = !flags.trust_key.is_empty() || flags.config.is_some();
        let keys = match named {
            true => flags.trust_key,
            false => environment::paths("TOOLWARD_TRUST_KEY"),
        };
        let config = flags.config;
        let config = config.or_else(|| environment::path("TOOLWARD_CONFIG"));
        Self::new(keys, config)
    }
}

#[derive(Debug, Args)]
pub(crate) struct PolicyFlags {
    /// Grant what this policy grants, on top of toolward.toml
    ///
    /// May be given again. What any of these files denies is denied.
    #[arg(long, value_name = "FILE")]
    policy_file: Vec<PathBuf>,
}

impl FromFlags for PolicyFiles {
    type Flags = PolicyFlags;

    fn from_flags(flags: PolicyFlags) -> Self {
        Self(flags.policy_file)
    }
}

#[derive(Debug, Args)]
pub(crate) struct HostFlags {
    #[command(flatten)]
    policies: Flagged<PolicyFiles>,

    /// Keep the tools' stored data and the record of calls in this directory
    ///
    /// The stored data are secrets and key-value buckets. [default: toolward in the user's state
    /// directory]
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    state_dir: Option<PathBuf>,
}

impl FromFlags for HostSetup {
    type Flags = HostFlags;

    fn from_flags(flags: HostFlags) -> Self {
        Self {
            policies: flags.policies.0,
            state_dir: flags.state_dir,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct StoreFlags {
    /// Where installed bundles and the record of trust are kept
    ///
    /// [env: TOOLWARD_STORE_DIR] [default: toolward in the user's data and state directories]
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    store_dir: Option<PathBuf>,
}

impl FromFlags for StoreLocation {
    type Flags = StoreFlags;

    fn from_flags(flags: StoreFlags) -> Self {
        let directory = flags.store_dir;
        Self(directory.or_else(|| environment::path("TOOLWARD_STORE_DIR")))
    }
}

#[derive(Debug, Args)]
pub(crate) struct SourceFlags {
    /// A signed bundle: a directory or an archive [default: what is installed]
    ///
    /// May be given again, for the tools that a tool calls.
    #[arg(long, value_name = "PATH")]
    bundle: Vec<PathBuf>,

    /// A bundle under work, unsigned: the directory with bundle.toml
    ///
    /// Only grants to dev:DIR apply to it. Its ids must not be ids of the bundles that --bundle
    /// names, or below the prefixes of their publishers.
    #[arg(long, value_name = "DIR")]
    dev: Option<PathBuf>,

    #[command(flatten)]
    trust: Flagged<Trust>,

    #[command(flatten)]
    store: Flagged<StoreLocation>,
}

impl FromFlags for BundleSource {
    type Flags = SourceFlags;

    fn from_flags(flags: SourceFlags) -> Self {
        Self {
            named: flags.bundle,
            dev: flags.dev,
            trust: flags.trust.0,
            store: flags.store.0,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct CacheFlags {
    /// Keep compiled drivers in this directory
    ///
    /// [default: toolward in the user's cache directory]
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    cache_dir: Option<PathBuf>,

    /// Keep no compiled drivers
    #[arg(long, conflicts_with = "cache_dir", hide_short_help = true)]
    no_cache: bool,
}

impl FromFlags for CompileCache {
    type Flags = CacheFlags;

    fn from_flags(flags: CacheFlags) -> Self {
        Self {
            directory: flags.cache_dir,
            disabled: flags.no_cache,
        }
    }
}

/// How the network is used.
#[derive(Debug, Args)]
pub(crate) struct NetworkFlags {
    /// Trust the certificate authorities in this file, besides the system's
    #[arg(long, hide_short_help = true, value_name = "PEM")]
    ca_file: Option<PathBuf>,

    /// Take user names and passwords from this file, in the form of Docker's config.json
    ///
    /// [default: none]
    #[arg(long, hide_short_help = true, value_name = "FILE")]
    docker_config: Option<PathBuf>,

    /// Run the credential helpers that the file of --docker-config names
    #[arg(long, hide_short_help = true, requires = "docker_config")]
    credential_helpers: bool,

    /// Also send the credentials for REGISTRY to the token server at ORIGIN
    #[arg(long, hide_short_help = true, value_name = "REGISTRY=ORIGIN")]
    allow_realm: Vec<String>,

    /// Let downloads be redirected to this origin; no credentials go there
    #[arg(long, hide_short_help = true, value_name = "ORIGIN")]
    allow_redirects_to: Vec<String>,

    /// Allow plain http to this machine itself
    #[arg(long, hide_short_help = true)]
    plain_http: bool,
}

impl FromFlags for Network {
    type Flags = NetworkFlags;

    fn from_flags(flags: NetworkFlags) -> Self {
        Self {
            ca_file: flags.ca_file,
            docker_config: flags.docker_config,
            credential_helpers: flags.credential_helpers,
            search_path: environment::search_path(),
            allow_realm: flags.allow_realm,
            allow_redirects_to: flags.allow_redirects_to,
            plain_http: flags.plain_http,
        }
    }
}

/// Whether the process confines itself.
#[derive(Debug, Args)]
pub(crate) struct ConfineFlags {
    /// Leave this process its rights while it runs drivers
    ///
    /// Code that escapes the sandbox then has all your rights.
    #[arg(long, hide_short_help = true)]
    no_confine: bool,
}

impl ConfineFlags {
    /// Returns the confinement that [`ConfineFlags::apply`] will reach, for the record.
    pub(crate) fn recorded(&self, trust: &Trust, context: &Context) -> Result<RecordedConfinement> {
        if self.no_confine {
            return Ok(RecordedConfinement::Off);
        }
        let calls = trust.system_calls(context)?;
        Ok(RecordedConfinement::Of(outlook_with(calls).state))
    }

    /// Calls [`processes::confine`], unless the flag turns it off.
    pub(crate) fn apply(
        &self,
        confinement: Confinement,
        broker: &Broker,
        trust: &Trust,
        context: &Context,
    ) -> Result {
        if self.no_confine {
            context.warning(
                "this process is not confined: whoever escapes the sandbox has all your rights",
            );
            return Ok(());
        }
        processes::confine(confinement, broker, trust, context)
    }
}
