//! `ledger verify`, `info`, `checkpoint`, `prune` and `erase`: an operator's commands to check and
//! maintain a ledger.

use toolward_ledger::checkpoint::{Checkpoint, Verifier};
use toolward_ledger::payload::Erase;
use toolward_ledger::record::{Invocation, Number};
use toolward_ledger::{Maintenance, Reader};
use toolward_operator::ledger::keep_word;

use super::{Found, Which, time};
use crate::approve;
use crate::prelude::*;

/// Longest file of checkpoints, in bytes. It has room for a few hundred thousand checkpoints.
const MAX_CHECKPOINTS_BYTES: usize = 64 * 1024 * 1024;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Also compare the ledger with the checkpoints in this file
    ///
    /// [default: the configured file]
    #[arg(long, value_name = "FILE")]
    checkpoints: Option<PathBuf>,

    /// The key that must have signed the checkpoints: a verifier key, as `info` shows it
    ///
    /// [default: the key in the ledger's directory]
    #[arg(long, value_parser = vkey, value_name = "VKEY")]
    key: Option<Verifier>,

    #[command(flatten)]
    which: Which,
}

pub(in crate::commands) fn vkey(text: &str) -> Result<Verifier, String> {
    Verifier::from_vkey(text.trim()).ok_or_else(|| "not a verifier key of a ledger".to_owned())
}

impl Arguments {
    pub(super) fn run(&self, context: &Context) -> Result<Exit> {
        let found = self.which.find(context)?;
        let mut reader = Reader::open(&found.directory, self.key.clone())?;
        let configured = found.settings.checkpoints.as_ref();
        let configured = configured.filter(|path| path.exists());
        let elsewhere = match self.checkpoints.as_ref().or(configured) {
            Some(path) => Elsewhere::read(path, reader.verifier())?,
            None => Elsewhere::default(),
        };
        let verified = reader.verify(&elsewhere.checkpoints)?;
        // Each finding as JSON, and as text for people.
        let findings = verified.findings.iter();
        let findings = findings.map(|finding| (json!(finding), finding.to_string()));
        let unreadable = elsewhere.unreadable.into_iter();
        let unreadable = unreadable.map(|problem| (json!({ "kind": "note" }), problem));
        let mut findings: Vec<(Value, String)> = findings.chain(unreadable).collect();
        if reader.log_unread() {
            let message = "the newest rows can't be read: its disk or directory is read-only";
            findings.push((json!({ "kind": "unread" }), message.to_owned()));
        }
        let holds = findings.is_empty();
        if context.json() {
            let findings = findings.into_iter().map(|(mut value, message)| {
                if let Some(fields) = value.as_object_mut() {
                    fields.insert("message".to_owned(), message.into());
                }
                value
            });
            context.value(&json!({
                "ok": holds, "rows": verified.rows, "signed": verified.signed,
                "pruned": verified.pruned, "payloads": verified.payloads,
                "checkpoints": elsewhere.checkpoints.len(), "key": reader.verifier().to_vkey(),
                "findings": findings.collect::<Vec<_>>(),
            }))?;
        } else {
            for (_, message) in &findings {
                context.line(format_args!("FINDING  {}", visible_line(message, 1000)))?;
            }
            let state = if holds { "holds" } else { "DOES NOT HOLD" };
            let (rows, signed, pruned) = (verified.rows, verified.signed, verified.pruned);
            let (payloads, kept) = (verified.payloads, elsewhere.checkpoints.len());
            let kept = counted(kept, "checkpoint");
            context.line(format_args!(
                "{state}: {rows} rows, {signed} signed, {pruned} pruned, {payloads} payloads; {kept} kept elsewhere"
            ))?;
            if self.key.is_none() {
                context.note("The key was taken from the ledger's directory: name the one that you noted with --key.");
            }
        }
        Ok(if holds { Exit::Fine } else { Exit::Failed })
    }
}

/// Checkpoints that were stored in a file.
#[derive(Default)]
struct Elsewhere {
    checkpoints: Vec<Checkpoint>,
    unreadable: Vec<String>,
}

impl Elsewhere {
    /// Reads a file of notes. An empty line separates each note from the next, and a note's body
    /// from its signatures.
    fn read(path: &Path, verifier: &Verifier) -> Result<Self> {
        let text = String::from_utf8(file::read(path, MAX_CHECKPOINTS_BYTES)?);
        let text = text.map_err(|error| Failure::unreadable(path, error))?;
        let mut read = Self::default();
        let mut parts = text.split("\n\n").filter(|part| !part.trim().is_empty());
        let mut number = 0_usize;
        while let Some(body) = parts.next() {
            number += 1;
            let signatures = parts.next().unwrap_or_default().trim_end_matches('\n');
            let body = body.trim_start_matches('\n');
            match verifier.open(&format!("{body}\n\n{signatures}\n")) {
                Ok(checkpoint) => read.checkpoints.push(checkpoint),
                Err(error) => {
                    let problem = format!("{}: note {number}: {error}", path.display());
                    read.unreadable.push(problem);
                }
            }
        }
        if read.checkpoints.is_empty() && read.unreadable.is_empty() {
            let message = format!("{}: no checkpoint is in this file", path.display());
            return Err(Failure::usage(OperatorCode::FileUnreadable, message)
                .hint("name a file with notes that `toolward ledger checkpoint` wrote"));
        }
        Ok(read)
    }
}

pub(super) fn info(which: &Which, context: &Context) -> Result {
    let found = which.find(context)?;
    let reader = found.reader(context)?;
    let rows = reader.size()?;
    let note = reader.newest_checkpoint()?;
    let signed = note.as_deref().map(|note| reader.verifier().open(note));
    let signed = signed.and_then(Result::ok);
    let settings = &found.settings;
    let keep = keep_word(settings.keep);
    let days = settings.payloads.age.as_secs() / (24 * 60 * 60);
    let bytes: u64 = [
        "records.sqlite",
        "records.sqlite-wal",
        "payloads.sqlite",
        "payloads.sqlite-wal",
        "index.sqlite",
    ]
    .iter()
    .filter_map(|name| Some(found.directory.join(name).metadata().ok()?.len()))
    .sum();
    let (directory, key) = (found.directory.display(), reader.verifier().to_vkey());
    let signed = signed.map(|signed| signed.size);
    let value = json!({
        "ok": true, "directory": directory.to_string(), "bytes": bytes, "rows": rows,
        "signed": signed, "checkpoint": note, "key": key,
        "recording": !settings.off, "keep": keep, "days": days,
        "checkpoints": settings.checkpoints,
    });
    let checkpoints = settings.checkpoints.as_ref();
    let checkpoints = checkpoints.map_or("in the ledger only".to_owned(), |path| {
        path.display().to_string()
    });
    let signed = signed.map_or("none".to_owned(), |size| format!("the first {size}"));
    let recording = if settings.off { "off" } else { "on" };
    let lines = format!(
        "directory    {directory}\nsize         {bytes} bytes\nrows         {rows}\nsigned       {signed}\n\
         key          {key}\nrecording    {recording}\nkeep         {keep}, {days} days\n\
         checkpoints  {checkpoints}"
    );
    context.result(&value, lines)
}

#[derive(Debug, Args)]
pub(crate) struct Prune {
    /// Delete the records and payloads of the rows before this one
    ///
    /// Only whole groups of 256 rows are deleted, and only if a checkpoint covers them.
    #[arg(long, value_name = "ROW")]
    before: u64,

    /// Delete without asking
    #[arg(long)]
    yes: bool,

    #[command(flatten)]
    which: Which,
}

#[derive(Debug, Args)]
pub(crate) struct EraseFlags {
    #[command(flatten)]
    what: What,

    /// Delete without asking
    #[arg(long)]
    yes: bool,

    #[command(flatten)]
    which: Which,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct What {
    /// Delete the payloads of this principal's calls, and the name
    #[arg(long, value_name = "NAME")]
    principal: Option<String>,

    /// Delete the payloads of this call
    #[arg(long, value_parser = invocation, value_name = "ID")]
    invocation: Option<Invocation>,

    /// Delete the payloads that were stored before this time
    ///
    /// A date, a time or an age: 2026-05-01, 2026-05-01T12:00:00Z, 12h or 7d.
    #[arg(long, value_parser = time, value_name = "TIME")]
    before: Option<Number>,
}

fn invocation(text: &str) -> Result<Invocation, String> {
    Invocation::parse(text).map_err(|_| "not the id of a call: a UUID in lower case".to_owned())
}

fn confirm(yes: bool, what: &str, context: &Context) -> Result {
    let question = format!("{what}: it can't be undone. Delete?");
    if yes || approve::agrees("", &question, context) {
        return Ok(());
    }
    let message = format!("{what}: not confirmed");
    let failure = Failure::denied(Code::DeletionUnconfirmed, message);
    Err(failure.hint("to delete without being asked: --yes"))
}

impl Found {
    fn maintenance(&self) -> Result<Maintenance> {
        let checkpoints = self.settings.checkpoints.clone();
        Ok(Maintenance::open(&self.directory, checkpoints)?)
    }
}

pub(super) fn checkpoint(which: &Which, context: &Context) -> Result {
    let note = which.find(context)?.maintenance()?.checkpoint()?;
    match context.json() {
        true => context.value(&json!({ "ok": true, "checkpoint": note })),
        false => raw(note.as_bytes()),
    }
}

impl Prune {
    pub(super) fn run(&self, context: &Context) -> Result {
        let found = self.which.find(context)?;
        let before = self.before;
        let what = format!("the records of rows before {before}, with their payloads");
        confirm(self.yes, &what, context)?;
        let to = found.maintenance()?.prune(before)?;
        let value = json!({ "ok": true, "pruned_before": to });
        let line = format!("the records of rows before {to} are deleted");
        context.result(&value, line)
    }
}

impl EraseFlags {
    pub(super) fn run(&self, context: &Context) -> Result {
        let found = self.which.find(context)?;
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
        confirm(self.yes, what, context)?;
        let payloads = found.maintenance()?.erase(&erase)?;
        let value = json!({ "ok": true, "payloads": payloads });
        context.result(&value, format_args!("{payloads} payloads are deleted"))
    }
}
