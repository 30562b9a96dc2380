//! `ledger`: shows the record of calls, proves rows of it, and deletes old parts. Times in records
//! are microseconds since 1970.

mod export;
mod list;
mod show;
pub(super) mod verify;

use std::time::{SystemTime, UNIX_EPOCH};

use toolward_ledger::record::{Invocation, Number, Record};
use toolward_ledger::{Reader, Row};
use toolward_operator::ledger::LedgerSettings;
use toolward_signing::timestamp::Timestamp;

use crate::prelude::*;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List rows, newest first
    List(list::Arguments),
    /// Show the rows about a call, or one row, with their stored payloads
    Show(show::Arguments),
    /// Show the recorded results of calls
    Replay(show::ReplayArguments),
    /// Verify every row, checkpoint and stored payload
    Verify(verify::Arguments),
    /// Write all rows as lines of JSON, or a copy for other programs
    Export(export::Arguments),
    /// Sign the ledger's current rows, and write the signed checkpoint
    Checkpoint(Which),
    /// Write a proof that a row is in the ledger (tlog-proof)
    Prove(show::Prove),
    /// Delete the records of old rows; checkpoints and proofs remain valid
    Prune(verify::Prune),
    /// Delete stored payloads, and a principal's name if a principal is given
    Erase(verify::EraseFlags),
    /// Show where the ledger is, how large it is, and what it stores
    Info(Which),
}

impl Command {
    pub(crate) fn run(&self, context: &Context) -> Result<Exit> {
        match self {
            Self::Verify(arguments) => return arguments.run(context),
            Self::Replay(arguments) => return arguments.run(context),
            Self::List(arguments) => arguments.run(context),
            Self::Show(arguments) => arguments.run(context),
            Self::Export(arguments) => arguments.run(context),
            Self::Checkpoint(which) => verify::checkpoint(which, context),
            Self::Prove(arguments) => arguments.run(context),
            Self::Prune(arguments) => arguments.run(context),
            Self::Erase(arguments) => arguments.run(context),
            Self::Info(which) => verify::info(which, context),
        }
        .map(|()| Exit::Fine)
    }
}

/// Which ledger.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// Read the ledger's settings from this file
    ///
    /// [default: toolward.toml in the user's configuration directory]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// The directory of the ledger, or of a copy of it [default: as configured]
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
}

/// An existing ledger, and its configuration.
pub(super) struct Found {
    directory: PathBuf,
    pub(super) settings: LedgerSettings,
}

impl Which {
    /// Returns the trust of the configuration that names the ledger.
    pub(super) fn trust(&self) -> Trust {
        Trust::of_config(self.config.clone())
    }

    pub(super) fn find(&self, context: &Context) -> Result<Found> {
        let mut settings = self.trust().ledger(context)?;
        if let Some(directory) = &self.directory {
            // The operator's checkpoints belong to the operator's own ledger only.
            let own = settings.directory(context).ok();
            if own.as_ref() != Some(directory) {
                settings.checkpoints = None;
            }
            settings.directory = Some(directory.clone());
        }
        let directory = settings.directory(context)?;
        if !directory.join("records.sqlite").exists() {
            let why = match settings.off {
                true => "`[ledger]` of the configuration says `off = true`",
                false => "nothing was recorded there yet",
            };
            let message = format!("there is no ledger in {}", directory.display());
            return Err(Failure::failed(Code::LedgerMissing, message)
                .hint(format!("{why}; name another ledger with --directory")));
        }
        Ok(Found {
            directory,
            settings,
        })
    }
}

impl Found {
    pub(super) fn reader(&self, context: &Context) -> Result<Reader> {
        let reader = Reader::open(&self.directory, None)?;
        if reader.log_unread() {
            context.warning(
                "the newest rows could not be read: the ledger's disk or directory is read-only",
            );
        }
        Ok(reader)
    }
}

/// A range of rows: `from` and the rows after it, up to but without `to`.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Rows {
    pub(super) from: u64,
    /// `None` means to the end.
    pub(super) to: Option<u64>,
}

pub(super) fn rows(text: &str) -> Result<Rows, String> {
    let numbers = text.split_once("..").and_then(|(from, to)| {
        let number = |text: &str| match text {
            "" => Some(None),
            _ => text.parse::<u64>().ok().map(Some),
        };
        let (from, to) = (number(from)?.unwrap_or_default(), number(to)?);
        to.is_none_or(|to| from < to).then_some(Rows { from, to })
    });
    numbers
        .ok_or_else(|| "expected rows as FROM..TO: numbers, the first below the second".to_owned())
}

/// A call or a row, as a person names it.
#[derive(Debug, Clone, Copy)]
pub(super) enum CallOrRow {
    Row(u64),
    Call(Invocation),
}

pub(super) fn id(text: &str) -> Result<CallOrRow, String> {
    if let Ok(row) = text.parse() {
        return Ok(CallOrRow::Row(row));
    }
    Invocation::parse(text).map(CallOrRow::Call).map_err(|_| {
        "expected the number of a row, or the id of a call: a UUID in lower case".to_owned()
    })
}

/// Returns the name of a record's principal, unless the name was erased.
fn principal(record: &Record, reader: &Reader) -> Result<Option<String>> {
    let person = record.event.person();
    let name = person.map(|person| reader.name(&person)).transpose()?;
    Ok(name.flatten())
}

/// The failure if the requested row does not exist. `about` names it, such as `of the call ID`.
fn no_row(about: String) -> Failure {
    toolward_ledger::Error::NoRow(about.into()).into()
}

/// Returns the record as it was written, if it has the form of a record. Text in any other form is
/// not trusted.
fn json_of(row: &Row) -> Option<Value> {
    let bytes = row.record.as_deref()?;
    Record::parse(bytes).ok()?;
    serde_json::from_slice(bytes).ok()
}

const MICROS: u64 = 1_000_000;

/// Reads a time: RFC 3339 in UTC, a date, or how long ago (`30m`, `12h`, `7d`).
fn time(text: &str) -> Result<Number, String> {
    let seconds = match ago(text) {
        Some(ago) => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            now.unwrap_or_default().as_secs().checked_sub(ago)
        }
        None => {
            let time = Timestamp::parse(text);
            let time = time.or_else(|_| Timestamp::parse(&format!("{text}T00:00:00Z")));
            time.ok().and_then(|time| u64::try_from(time.unix()).ok())
        }
    };
    let seconds = seconds
        .ok_or("expected a time as 2026-05-01T12:00:00Z, a date, or how long ago: 30m, 12h, 7d")?;
    Ok(Number::from(seconds.saturating_mul(MICROS)))
}

fn ago(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let unit = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 60 * 60,
        "d" => 24 * 60 * 60,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit)
}

/// Formats a time for people: RFC 3339 in UTC, to the second.
fn shown_time(at: Number) -> String {
    let seconds = i64::try_from(at.get() / MICROS).unwrap_or(i64::MAX);
    // The clock may have been wrong.
    Timestamp::from_unix(seconds).map_or_else(|_| "-".to_owned(), |time| time.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_dates_moments_or_how_long_ago() {
        assert_eq!(time("1970-01-02").unwrap().get(), 86_400 * MICROS);
        assert_eq!(time("1970-01-01T00:00:07Z").unwrap().get(), 7 * MICROS);
        let now = time("0s").unwrap().get();
        let hour = time("1h").unwrap().get();
        assert!((3600..3610).contains(&((now - hour) / MICROS)));
        for wrong in [
            "",
            "d",
            "yesterday",
            "-1d",
            "1w",
            "99999999999999999999d",
            "9999999999999d",
            "ü",
        ] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
        assert_eq!(
            shown_time(time("1970-01-02").unwrap()),
            "1970-01-02T00:00:00Z"
        );
        assert_eq!(shown_time(Number::from(u64::MAX)), "2255-06-05T23:47:34Z");
    }
}
