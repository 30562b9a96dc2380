//! `install`, `update`, `list`, `remove`, `search`: the bundles of this machine; and the questions about hosts that a
//! registry names.

mod list;
mod search;
mod update;

use clap::Args;
use serde_json::json;
use toolward_bundle::text::visible_line;
use toolward_host::Broker;
use toolward_operator::installed::StoreLocation;
use toolward_operator::lasting_changes::LastingChanges;
use toolward_operator::network::{AskHost, DownloadHost, Fetcher, Network, RealmChange};
use toolward_operator::processes::CompileCache;
use toolward_operator::recorder::RecorderCommand;
use toolward_operator::registry::UnknownHost;
use toolward_operator::releases::{Installer, ReleasePlace, SourceMove};
use toolward_operator::trust::changes::TrustRows;
use toolward_operator::trust::{Trust, TrustContext};
use toolward_signing::Digest;
use toolward_store::{InstallOutcome, InstalledBundle, Store};

use super::{compile_broker, recorder};
use crate::approve;
use crate::environment::{Environment, has_terminal};
use crate::failure::{Code, Exit, Failure, Kind, Result};
use crate::flags::Flagged;
use crate::output::Output;

pub(crate) use list::{List, Remove};
pub(crate) use search::Search;
pub(crate) use update::Update;

/// What installing and updating have in common.
#[derive(Debug, Args)]
pub(crate) struct CommonFlags {
    /// The channel whose index names the current release
    ///
    /// [default: the only configured one]
    #[arg(long, value_name = "NAME")]
    channel: Option<String>,

    /// Accept the surface with this digest, as it was shown when it was held
    #[arg(long, value_name = "DIGEST")]
    accept: Option<String>,

    /// Allow an older release than was installed before, and say why
    #[arg(long, value_name = "WHY")]
    allow_rollback: Option<String>,

    #[command(flatten)]
    trust: Flagged<Trust>,

    #[command(flatten)]
    store: Flagged<StoreLocation>,

    #[command(flatten)]
    cache: Flagged<CompileCache>,

    #[command(flatten)]
    network: Flagged<Network>,
}

#[derive(Debug, Args)]
pub(crate) struct Install {
    /// A bundle: a file, a directory, an https address, or oci://…
    source: String,

    /// Let an installed bundle come from this source from now on
    ///
    /// Asks on the terminal.
    #[arg(long)]
    move_source: bool,

    #[command(flatten)]
    common: CommonFlags,
}

impl Install {
    pub(crate) fn run(&self, environment: &Environment, output: &mut Output) -> Result<Exit> {
        let common = &self.common;
        let place = ReleasePlace::parse(&self.source)?;
        place.check_there()?;
        let context = common.trust.context(environment, output)?;
        let store = common.store.open(environment)?;
        let accept = common.accepted()?;
        let helpers = common.helpers(environment, output)?;
        let network = common.fetcher(environment)?;
        let shared = (&store, &context, &network);
        let confirm = |moved: &SourceMove| confirm_move(moved);
        let installer = Installer {
            move_source: self.move_source.then_some(&confirm as _),
            ..common.installer(accept, shared, environment, &helpers, output)
        };
        let outcome = installer.install(&place, None)?;
        show(outcome, output)
    }
}

impl CommonFlags {
    fn accepted(&self) -> Result<Option<Digest>> {
        let digest = self.accept.as_deref().map(str::parse).transpose();
        digest
            .map_err(|refusal: toolward_signing::Refusal| Failure::usage(refusal.kind(), &refusal))
    }

    fn installer<'a>(
        &'a self,
        accept: Option<Digest>,
        (store, context, network): (&'a Store, &'a TrustContext, &'a Fetcher),
        environment: &'a Environment,
        helpers: &'a Helpers,
        report: &'a Output,
    ) -> Installer<'a> {
        Installer {
            channel: self.channel.as_deref(),
            accept,
            allow_rollback: self.allow_rollback.as_deref(),
            move_source: None,
            network,
            store,
            context,
            environment,
            compiler: Some(&helpers.compiler),
            rows: Some(TrustRows {
                command: &helpers.recorder,
                trust: &self.trust,
                environment,
                report,
            }),
            report,
        }
    }

    fn fetcher(&self, environment: &Environment) -> Result<Fetcher> {
        let fetcher = self.network.clone().fetcher(&self.trust, environment)?;
        let whom = TerminalHosts::new(environment);
        Ok(fetcher.asking(Box::new(whom), self.store.record_folder(environment)?))
    }

    fn helpers(&self, environment: &Environment, output: &Output) -> Result<Helpers> {
        let compiler = compile_broker::command()?;
        Ok(Helpers {
            compiler: self.cache.broker(&compiler, environment, output)?,
            recorder: recorder::command()?,
        })
    }
}

/// The processes that help. Each is started where it is first needed.
struct Helpers {
    /// Compiles the drivers of an installed release.
    compiler: Broker,
    /// Records what was decided.
    recorder: RecorderCommand,
}

/// Shows from where to where a bundle's source moves, and asks.
fn confirm_move(moved: &SourceMove) -> Result {
    let unconfirmed = |message: &str| {
        let message = format!("{}: {message}", moved.id);
        Failure::new(Kind::Denied, Code::ChangeUnconfirmed, message)
            .hint("give the command on a terminal, where it shows both sources and asks")
    };
    if !has_terminal() {
        return Err(unconfirmed("nobody can be asked about its new source"));
    }
    let (from, to) = (
        visible_line(&moved.from, 1000),
        visible_line(&moved.to, 1000),
    );
    let text = format!(
        "{} comes from\n  - {from}\n  + {to}\n\nIts updates will be looked for there. Its channel and its maximum age \
         stay.",
        moved.id
    );
    match approve::confirmed(&text, "Move it?") {
        Ok(true) => Ok(()),
        _ => Err(unconfirmed("its new source was not confirmed")),
    }
}

/// Says what became of a release.
fn show(outcome: InstallOutcome, output: &mut Output) -> Result<Exit> {
    match outcome {
        InstallOutcome::Installed { installed, .. } => print("installed", &installed, output)?,
        InstallOutcome::Unchanged(installed) => print("unchanged", &installed, output)?,
        InstallOutcome::Held {
            held, difference, ..
        } => {
            update::show_held(&held, &difference, output)?;
            return Ok(Exit::Denied);
        }
        _ => {
            return Err(Failure::with_code(
                Kind::Failed,
                "store-io",
                "an unknown outcome",
            ));
        }
    }
    Ok(Exit::Fine)
}

fn print(state: &str, installed: &InstalledBundle, output: &mut Output) -> Result {
    let (id, sequence) = (&installed.id, installed.sequence);
    let version = installed.version.to_string();
    let value = json!({
        "ok": true, "state": state, "id": id, "version": version, "sequence": sequence,
    });
    output.result(
        &value,
        format_args!("{id} {version} (sequence {sequence}): {state}"),
    )
}

/// The person at the terminal.
#[derive(Debug)]
struct TerminalHosts {
    environment: Environment,
}

impl TerminalHosts {
    fn new(environment: &Environment) -> Self {
        Self {
            environment: environment.clone(),
        }
    }
}

impl AskHost for TerminalHosts {
    fn downloads(&self, asked: &DownloadHost) -> Result<bool> {
        if !has_terminal() {
            return Ok(false);
        }
        let (repository, host) = (&asked.repository, &asked.host);
        let (registry, name) = (shown(repository.registry()), repository.repository());
        let text = format!(
            "The registry {registry} redirects downloads of {} to\n  + {}\n\n{}No credentials go there, and what comes \
             is verified as ever. A yes is kept for this repository.",
            shown(name),
            shown(&host.origin),
            encoded(host)
        );
        match approve::confirmed(&text, "Download from there?") {
            Ok(true) => Ok(true),
            _ => Err(Failure::new(
                Kind::Denied,
                Code::ChangeUnconfirmed,
                format!("downloads of {repository} from {host} were not confirmed"),
            )
            .hint("ask whoever runs the registry where its downloads come from")),
        }
    }

    fn realm(&self, asked: RealmChange) -> Result<bool> {
        if !has_terminal() {
            return Ok(false);
        }
        let why = format!(
            "The registry {} wants tokens from\n  + {}\n\n{}The name and the password for this registry, if it has \
             any, are sent there.\n\n",
            shown(&asked.registry),
            shown(&asked.host.origin),
            encoded(&asked.host)
        );
        let changes = LastingChanges::of(&self.environment)?;
        approve::confirm_change(&why, asked.edit, &asked.after, asked.change, &changes)?;
        Ok(true)
    }
}

fn shown(text: impl AsRef<str>) -> String {
    visible_line(text.as_ref(), 400)
}

/// A remark about a name that people read in other letters.
fn encoded(host: &UnknownHost) -> &'static str {
    match host.is_encoded() {
        true => {
            "This name stands for one in other letters, which may look like a name that you know.\n\n"
        }
        false => "",
    }
}
