//! A host for one command: what the operator grants, and where the things
//! behind grants are: secrets, key-value buckets, the network, a person to ask.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use toolward_bundle::content::Content;
use toolward_contract::capability::Class;
use toolward_egress::Transport;
use toolward_host::secrets::Sources;
use toolward_host::{Host, HostBuilder};
use toolward_keyvalue::Store;
use toolward_policy::Policy;

use crate::approve::Terminal;
use crate::config::{Granted, PolicyFlags, read_text};
use crate::environment::{self, Environment};
use crate::failure::{Exit, Failure};
use crate::progress::Bar;
use crate::trust::Trust;

/// What stands behind grants.
#[derive(Debug, Args)]
pub(crate) struct Means {
    #[command(flatten)]
    pub(crate) policies: PolicyFlags,

    /// Keep what tools store, secrets and key-value buckets, here [default:
    /// toolward in the user's state directory]
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
}

impl Means {
    /// Where tools' own data is kept, if anywhere.
    fn state(&self, environment: &Environment) -> Option<PathBuf> {
        let named = self.state_dir.as_ref();
        named.or(environment.state_directory.as_ref()).cloned()
    }

    /// A host with one bundle under the operator's policy. People are asked on
    /// the terminal, past `bar`.
    pub(crate) fn host(
        &self,
        content: Content,
        granted: &Granted,
        trust: &Trust,
        bar: &Arc<Bar>,
        environment: &Environment,
    ) -> Result<HostBuilder, Failure> {
        let mut builder = Host::builder()
            .policy(granted.policy.clone())
            .approver(Terminal::new(bar));
        let state = self.state(environment);
        let mut sources = Sources::new(&granted.policy, "/".as_ref(), environment::secret);
        if let Some(state) = &state {
            if uses_buckets(&content) {
                builder = builder.buckets(open(state)?);
            }
            sources = sources.stored_in(secrets(state));
            builder = builder.protect("the state directory", state);
        }
        for path in sources.files() {
            builder = builder.protect("a secret's file", path);
        }
        builder = builder.secrets(sources);
        if let Some(transport) = transport(&granted.policy)? {
            builder = builder.transport(transport);
        }
        for (what, directory) in environment.protected() {
            builder = builder.protect(what, directory);
        }
        for path in &granted.files {
            builder = builder.protect("a policy's file", path);
        }
        for path in trust.key_files(environment)? {
            builder = builder.protect("a key's file", path);
        }
        Ok(builder.bundle(content))
    }
}

fn uses_buckets(content: &Content) -> bool {
    let mut tools = content.tools.iter();
    tools.any(|entry| {
        let declared = entry.tool.declaration();
        declared.of_class(&Class::Database).next().is_some()
    })
}

/// Where buckets are kept.
pub(crate) fn buckets(state: &Path) -> PathBuf {
    state.join("buckets.sqlite")
}

/// Where tools' own secrets are kept.
pub(crate) fn secrets(state: &Path) -> PathBuf {
    state.join("secrets")
}

fn open(state: &Path) -> Result<Store, Failure> {
    Store::open(buckets(state)).map_err(|error| {
        let failure = Failure::new(Exit::Failed, error.code(), &error);
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    })
}

/// How requests leave, where the policy says something about it.
pub(crate) fn transport(policy: &Policy) -> Result<Option<Transport>, Failure> {
    let Some(file) = policy.ca_file() else {
        return Ok(None);
    };
    let pem = read_text(file.as_ref())?;
    let transport = Transport::builder().ca_pem(pem).build();
    // Before a call finds out.
    transport.load_roots().map_err(|error| {
        Failure::usage("ca-file-invalid", format!("{file}: {error}"))
            .hint("name a file of certificates in PEM as `ca_file`, or leave it out")
    })?;
    Ok(Some(transport))
}
