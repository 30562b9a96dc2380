//! `ledger replay`: results of recorded calls.

use toolward_ledger::{DamagedRow, RecordedCall};
use toolward_operator::replay::{RecordedResult, Replay, ReplayedCall, ToolNow};

use super::{CallOrRow, Rows, Which, id, no_row, rows, shown_time};
use crate::prelude::*;

/// Longest result that is shown to people, in characters.
const MAX_SHOWN_CHARS: usize = 4000;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The id of a call, the number of one of its rows, or rows as FROM..TO
    ///
    /// FROM..TO are the calls that ended from FROM on and before TO; either may be left out.
    #[arg(value_parser = what, value_name = "ID|FROM..TO")]
    what: What,

    #[command(flatten)]
    which: Which,

    #[command(flatten)]
    store: Flagged<StoreLocation>,
}

/// Which calls.
#[derive(Debug, Clone, Copy)]
enum What {
    One(CallOrRow),
    Rows(Rows),
}

fn what(text: &str) -> Result<What, String> {
    match text.contains("..") {
        true => rows(text).map(What::Rows),
        false => id(text).map(What::One),
    }
}

impl Arguments {
    pub(super) fn run(&self, environment: &Environment, output: &mut Output) -> Result<Exit> {
        let found = self.which.find(environment)?;
        let reader = found.reader(output)?;
        let store = self.store.shown(environment, output)?;
        let replay = Replay::new(&reader, &found.settings, store.as_ref())?;
        let mut exit = Exit::Fine;
        let mut show = |found: Result<RecordedCall, DamagedRow>| {
            let call = match found {
                Ok(call) => call,
                Err(damaged) => {
                    exit = Exit::Failed;
                    return row_missing(&damaged, output);
                }
            };
            let replayed = replay.of(call)?;
            if !replayed.is_whole() {
                exit = Exit::Failed;
            }
            match output.json() {
                true => output.value(&replay.to_json(&replayed)),
                false => print(&replay, &replayed, output),
            }
        };
        // If one call is named, damage of its rows is an error.
        match self.what {
            What::Rows(Rows { from, to }) => {
                reader.calls_and_damage::<Failure>(from, to.unwrap_or(u64::MAX), show)?;
            }
            What::One(CallOrRow::Call(invocation)) => show(Ok(reader.call(invocation)?))?,
            What::One(CallOrRow::Row(seq)) => {
                let invocation = reader.row(seq)?.read()?.invocation();
                let missing = || no_row(format!("row {seq} is about no call"));
                show(Ok(reader.call(invocation.ok_or_else(missing)?)?))?;
            }
        }
        Ok(exit)
    }
}

fn row_missing(damaged: &DamagedRow, output: &mut Output) -> Result {
    let DamagedRow { seq, error } = damaged;
    let missing = json!({ "why": "changed", "message": error.to_string() });
    let value = json!({ "rows": [seq], "missing": { "row": missing } });
    output.result(&value, format_args!("{seq:>8}  row missing: {error}"))
}

fn print(replay: &Replay<'_>, replayed: &ReplayedCall, output: &mut Output) -> Result {
    let call = &replayed.call;
    let last = call.rows().last().unwrap_or_default();
    let tool = call.call.as_ref().and_then(|call| call.tool.as_ref());
    let mut head = format!(
        "{last:>8}  {}  {}",
        shown_time(call.at),
        tool.map_or("-", |tool| tool.id.as_str())
    );
    let call_id = call.invocation.to_string();
    let unsigned = (!replayed.signed).then_some("(no checkpoint covers it)");
    let more = [replayed.principal.as_deref(), Some(&call_id), unsigned];
    for more in more.into_iter().flatten() {
        head.push_str("  ");
        head.push_str(&visible_line(more, 200));
    }
    output.line(head)?;
    let mut line = |text: &str| {
        let text = visible_line(text, MAX_SHOWN_CHARS);
        output.line(format_args!("          {text}"))
    };
    match &replayed.result {
        RecordedResult::Output(value) => line(&value.to_string())?,
        RecordedResult::Error { code, detail, .. } => match detail {
            Ok(detail) => line(&format!("error {code}: {detail}"))?,
            Err(missing) => {
                line(&format!("error {code}"))?;
                line(&format!("message missing: {}", replay.explain(*missing)))?;
            }
        },
        RecordedResult::Missing(missing) => {
            line(&format!("output missing: {}", replay.explain(*missing)))?;
        }
        RecordedResult::Abandoned => line("no result: its process ended before it did")?,
        RecordedResult::Unfinished => line("no result yet")?,
    }
    match &replayed.tool {
        ToolNow::Same | ToolNow::Unnamed => Ok(()),
        ToolNow::Other(version) => line(&format!(
            "the tool is installed in another release: {version}"
        )),
        ToolNow::Missing => line("the tool is not installed"),
    }
}
