//! `install`, `update`, `list`, `remove`, `search`: the bundles of this machine. Also the questions
//! about hosts that a registry names.

mod list;
mod update;

use toolward_operator::network::{AskHost, DownloadHost, Fetcher, RealmChange};
use toolward_operator::registry::UnknownHost;
use toolward_operator::releases::{Installer, ReleasePlace, SourceMove};
use toolward_signing::Refusal;
use toolward_store::{InstallOutcome, InstalledBundle};

use crate::prelude::*;
use crate::{approve, helper};

pub(crate) use list::{List, Remove, Search};
pub(crate) use update::Update;

/// What installing and updating have in common.
#[derive(Debug, Args)]
pub(crate) struct InstallFlags {
    /// The channel whose index names the current release
    ///
    /// [default: the configured channel, if there is only one]
    #[arg(long, value_name = "NAME")]
    channel: Option<String>,

    /// Accept the held release whose surface has this digest
    ///
    /// The surface is what models and policies see of a bundle. A release with another surface than
    /// the installed release is held, and the surface's digest is shown.
    #[arg(long, value_name = "DIGEST")]
    accept: Option<String>,

    /// Allow a release that is older than one installed before, for this reason
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
    pub(crate) fn run(&self, context: &Context) -> Result<Exit> {
        let place = ReleasePlace::parse(&self.source)?;
        place.check_there()?;
        let mut installer = self.common.installer(context)?;
        installer.move_source = self.move_source.then_some(&confirm_move as _);
        show(installer.install(&place, None)?, context)
    }
}

impl InstallFlags {
    /// Makes the installer. Each helper process starts when it is first needed.
    fn installer<'a>(&'a self, context: &'a Context) -> Result<Installer<'a>> {
        let accept = self.accept.as_deref().map(str::parse).transpose();
        Ok(Installer {
            channel: self.channel.as_deref(),
            context: self.trust.context(context)?,
            store: self.store.open(context)?,
            accept: accept.map_err(|refusal: Refusal| Failure::usage(refusal.kind(), &refusal))?,
            allow_rollback: self.allow_rollback.as_deref(),
            move_source: None,
            compiler: Some((self.cache).broker(&helper::compiler()?, context)?),
            rows: Some(helper::trust_rows(&self.trust, context)?),
            network: self.fetcher(context)?,
        })
    }

    fn fetcher(&self, context: &Context) -> Result<Fetcher> {
        let fetcher = self.network.clone().fetcher(&self.trust, context)?;
        let whom = TerminalHosts(context.operator.clone());
        Ok(fetcher.asking(Box::new(whom), self.store.record_folder(context)?))
    }
}

/// Shows the old and the new source of a bundle, and asks.
fn confirm_move(moved: &SourceMove) -> Result {
    let id = &moved.id;
    let text = || {
        let from = visible_line(&moved.from, 1000);
        let to = visible_line(&moved.to, 1000);
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

/// Reports what happened to a release.
fn show(outcome: InstallOutcome, context: &Context) -> Result<Exit> {
    match outcome {
        InstallOutcome::Installed { installed, .. } => print("installed", &installed, context)?,
        InstallOutcome::Unchanged(installed) => print("unchanged", &installed, context)?,
        InstallOutcome::Held {
            held, difference, ..
        } => {
            update::show_held(&held, &difference, context)?;
            return Ok(Exit::Denied);
        }
    }
    Ok(Exit::Fine)
}

fn print(state: &str, installed: &InstalledBundle, context: &Context) -> Result {
    let (id, sequence) = (&installed.id, installed.sequence);
    let version = installed.version.to_string();
    let value = json!({
        "ok": true, "state": state, "id": id, "version": version, "sequence": sequence,
    });
    let line = format!("{id} {version} (sequence {sequence}): {state}");
    context.result(&value, line)
}

/// Asks the person at the terminal about hosts that a registry names.
#[derive(Debug)]
struct TerminalHosts(toolward_operator::Environment);

impl AskHost for TerminalHosts {
    fn downloads(&self, asked: &DownloadHost) -> Result<bool> {
        if !has_terminal() {
            return Ok(false);
        }
        let (repository, host) = (&asked.repository, &asked.host);
        let text = || {
            format!(
                "The registry {} redirects downloads of {} to\n  + {}\n\n{}No credentials go there, and what comes \
                 is verified as always. A yes is kept for this repository.",
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

/// Returns a remark if the host's name is an encoding of a name in other letters.
fn encoded(host: &UnknownHost) -> &'static str {
    match host.is_encoded() {
        true => {
            "This name stands for one in other letters, which may look like a name that you know.\n\n"
        }
        false => "",
    }
}
