//! `ledger checkpoint`, `prune` and `erase`: what an operator does to a ledger.

use toolward_ledger::Maintenance;
use toolward_ledger::payload::Erase;
use toolward_ledger::record::{Invocation, Number};

use super::{Found, Which, time};
use crate::approve;
use crate::output::raw;
use crate::prelude::*;

#[derive(Debug, Args)]
pub(crate) struct CheckpointFlags {
    #[command(flatten)]
    which: Which,
}

#[derive(Debug, Args)]
pub(crate) struct Prune {
    /// Delete the records of the rows before this one
    ///
    /// Whole groups of 256 rows that a checkpoint covers.
    #[arg(long, value_name = "ROW")]
    before: u64,

    #[command(flatten)]
    consent: Consent,

    #[command(flatten)]
    which: Which,
}

#[derive(Debug, Args)]
pub(crate) struct EraseFlags {
    #[command(flatten)]
    what: What,

    #[command(flatten)]
    consent: Consent,

    #[command(flatten)]
    which: Which,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct What {
    /// What was kept of this principal's calls, and the name
    #[arg(long, value_name = "NAME")]
    principal: Option<String>,

    /// What was kept of this call
    #[arg(long, value_parser = invocation, value_name = "ID")]
    invocation: Option<Invocation>,

    /// What was kept before this time, or so long ago
    ///
    /// 2026-05-01, 2026-05-01T12:00:00Z, 12h or 7d.
    #[arg(long, value_parser = time, value_name = "TIME")]
    before: Option<Number>,
}

#[derive(Debug, Args)]
struct Consent {
    /// Don't ask
    #[arg(long)]
    yes: bool,
}

fn invocation(text: &str) -> Result<Invocation, String> {
    Invocation::parse(text).map_err(|_| "not the id of a call: a UUID in lower case".to_owned())
}

impl Consent {
    fn obtain(&self, what: &str, output: &Output) -> Result {
        let question = format!("{what}: it can't be undone. Delete?");
        if self.yes || approve::agrees("", &question, output) {
            return Ok(());
        }
        let message = format!("{what}: not confirmed");
        let failure = Failure::denied(Code::DeletionUnconfirmed, message);
        Err(failure.hint("to delete without being asked: --yes"))
    }
}

impl Found {
    fn maintenance(&self) -> Result<Maintenance> {
        let checkpoints = self.settings.checkpoints.clone();
        Ok(Maintenance::open(&self.directory, checkpoints)?)
    }
}

impl CheckpointFlags {
    pub(super) fn run(&self, environment: &Environment, output: &mut Output) -> Result {
        let note = self.which.find(environment)?.maintenance()?.checkpoint()?;
        match output.json() {
            true => output.value(&json!({ "ok": true, "checkpoint": note })),
            false => raw(note.as_bytes()),
        }
    }
}

impl Prune {
    pub(super) fn run(&self, environment: &Environment, output: &mut Output) -> Result {
        let found = self.which.find(environment)?;
        let before = self.before;
        let what = format!("the records of rows before {before}, with their payloads");
        self.consent.obtain(&what, output)?;
        let to = found.maintenance()?.prune(before)?;
        let value = json!({ "ok": true, "pruned_before": to });
        output.result(
            &value,
            format_args!("the records of rows before {to} are deleted"),
        )
    }
}

impl EraseFlags {
    pub(super) fn run(&self, environment: &Environment, output: &mut Output) -> Result {
        let found = self.which.find(environment)?;
        let What {
            principal,
            invocation,
            before,
        } = &self.what;
        let (erase, what) = match (principal, invocation) {
            (Some(name), _) => (
                Erase::Principal(name.clone()),
                "all that is kept of this principal's calls, and the name",
            ),
            (None, Some(id)) => (Erase::Invocation(*id), "all that is kept of this call"),
            (None, None) => {
                let before = before.unwrap_or_default();
                (Erase::Before(before), "all that was kept before this time")
            }
        };
        self.consent.obtain(what, output)?;
        let payloads = found.maintenance()?.erase(&erase)?;
        let value = json!({ "ok": true, "payloads": payloads });
        output.result(&value, format_args!("{payloads} payloads are deleted"))
    }
}
