//! `install`, `update`, `list`, `remove`, `search`: the bundles of this machine; and the questions about hosts that a
//! registry names.

mod list;
mod update;

use toolward_host::Broker;
use toolward_operator::lasting_changes::LastingChanges;
use toolward_operator::network::{AskHost, DownloadHost, Fetcher, Network, RealmChange};
use toolward_operator::recorder::RecorderCommand;
use toolward_operator::registry::UnknownHost;
use toolward_operator::releases::{Installer, ReleasePlace, SourceMove};
use toolward_operator::trust::TrustContext;
use toolward_operator::trust::changes::TrustRows;
use toolward_signing::{Digest, Refusal};
use toolward_store::{InstallOutcome, InstalledBundle, Store};

use crate::prelude::*;
use crate::{approve, helper};

pub(crate) use list::{List, Remove, Search};
pub(crate) use update::Update;

/// What installing and updating have in common.
#[derive(Debug, Args)]
pub(crate) struct InstallFlags {
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
    common: InstallFlags,
}

impl Install {
    pub(crate) fn run(&self, environment: &Environment, output: &mut Output) -> Result<Exit> {
        let place = ReleasePlace::parse(&self.source)?;
        place.check_there()?;
        let session = Session::open(&self.common, environment, output)?;
        let confirm = |moved: &SourceMove| confirm_move(moved);
        let installer = Installer {
            move_source: self.move_source.then_some(&confirm as _),
            ..session.installer(environment, output)
        };
        let outcome = installer.install(&place, None)?;
        show(outcome, output)
    }
}

impl InstallFlags {
    fn fetcher(&self, environment: &Environment) -> Result<Fetcher> {
        let fetcher = self.network.clone().fetcher(&self.trust, environment)?;
        let whom = TerminalHosts(environment.clone());
        Ok(fetcher.asking(Box::new(whom), self.store.record_folder(environment)?))
    }
}

/// What installing and updating work with. Each helper process is started where it is first needed.
struct Session<'a> {
    flags: &'a InstallFlags,
    accept: Option<Digest>,
    store: Store,
    context: TrustContext,
    network: Fetcher,
    /// Compiles the drivers of an installed release.
    compiler: Broker,
    /// Records what was decided.
    recorder: RecorderCommand,
}

impl<'a> Session<'a> {
    fn open(flags: &'a InstallFlags, environment: &Environment, output: &Output) -> Result<Self> {
        let context = flags.trust.context(environment, output)?;
        let store = flags.store.open(environment)?;
        let accept = flags.accept.as_deref().map(str::parse).transpose();
        Ok(Self {
            flags,
            accept: accept.map_err(|refusal: Refusal| Failure::usage(refusal.kind(), &refusal))?,
            store,
            context,
            compiler: (flags.cache).broker(&helper::compiler()?, environment, output)?,
            recorder: helper::recorder()?,
            network: flags.fetcher(environment)?,
        })
    }

    fn installer<'b>(&'b self, environment: &'b Environment, report: &'b Output) -> Installer<'b> {
        Installer {
            channel: self.flags.channel.as_deref(),
            accept: self.accept,
            allow_rollback: self.flags.allow_rollback.as_deref(),
            move_source: None,
            network: &self.network,
            store: &self.store,
            context: &self.context,
            environment,
            compiler: Some(&self.compiler),
            rows: Some(TrustRows {
                command: &self.recorder,
                trust: &self.flags.trust,
                environment,
                report,
            }),
            report,
        }
    }
}

/// Shows from where to where a bundle's source moves, and asks.
fn confirm_move(moved: &SourceMove) -> Result {
    let id = &moved.id;
    let text = || {
        let (from, to) = (
            visible_line(&moved.from, 1000),
            visible_line(&moved.to, 1000),
        );
        format!(
            "{id} comes from\n  - {from}\n  + {to}\n\nIts updates will be looked for there. Its channel and its maximum age \
             stay."
        )
    };
    let why = (
        "nobody can be asked about its new source",
        "its new source was not confirmed",
    );
    approve::require(text, "Move it?", why, |why| {
        Failure::denied(Code::ChangeUnconfirmed, format_args!("{id}: {why}"))
            .hint("give the command on a terminal, where it shows both sources and asks")
    })
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
struct TerminalHosts(Environment);

impl AskHost for TerminalHosts {
    fn downloads(&self, asked: &DownloadHost) -> Result<bool> {
        if !has_terminal() {
            return Ok(false);
        }
        let (repository, host) = (&asked.repository, &asked.host);
        let text = || {
            format!(
                "The registry {} redirects downloads of {} to\n  + {}\n\n{}No credentials go there, and what comes \
                 is verified as ever. A yes is kept for this repository.",
                shown(repository.registry()),
                shown(repository.repository()),
                shown(&host.origin),
                encoded(host)
            )
        };
        approve::require(text, "Download from there?", ("", ""), |_| {
            let message = format!("downloads of {repository} from {host} were not confirmed");
            Failure::denied(Code::ChangeUnconfirmed, message)
                .hint("ask whoever runs the registry where its downloads come from")
        })?;
        Ok(true)
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
        let changes = LastingChanges::of(&self.0)?;
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
