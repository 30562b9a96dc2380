//! `ledger replay --rerun`: recorded calls made once more, and what came out differently.

use std::sync::Arc;

use clap::Args;
use serde_json::{Value, json};
use toolward_bundle::content::Content;
use toolward_bundle::text::visible_line;
use toolward_host::{Host, Reply};
use toolward_ledger::record::Invocation;
use toolward_ledger::{DamagedRow, Reader};
use toolward_operator::bundles::BundleSource;
use toolward_operator::granted::Granted;
use toolward_operator::host_setup::{HostSetup, opens_buckets};
use toolward_operator::ledger::LedgerSettings;
use toolward_operator::processes::CompileCache;
use toolward_operator::recorder::{CallRecorder, StartedRecorder};
use toolward_operator::replay::{Replay, ReplayedCall};
use toolward_operator::rerun::{Rerun, RerunDifference, Surfaces, differences, prepare};
use toolward_operator::runtime;

use super::{Arguments, What, calls, row_missing};
use crate::approve::{self, Terminal};
use crate::commands::exec_broker::Programs;
use crate::commands::{compile_broker, recorder};
use crate::environment::Environment;
use crate::failure::{Code, Exit, Failure, Kind, Result};
use crate::flags::{ConfineFlags, Flagged};
use crate::output::{Output, counted};
use crate::progress::Bar;

/// The most calls that are looked at: inputs and outputs of all of them are in memory.
const MAX_CALLS: usize = 1000;
/// More calls than this are made only after a yes.
const MAX_UNASKED: usize = 20;
/// Longest value that is shown to people, in characters.
const MAX_SHOWN_CHARS: usize = 1000;

#[derive(Debug, Args)]
pub(crate) struct RerunFlags {
    /// Make the calls once more, and show what differs
    ///
    /// They run as their principals and under today's policy. Of FROM..TO, only calls that change
    /// nothing are made.
    #[arg(long)]
    rerun: bool,

    /// Don't ask before more than 20 calls are made
    #[arg(long, requires = "rerun")]
    yes: bool,

    #[command(flatten)]
    means: Flagged<HostSetup>,

    #[command(flatten)]
    cache: Flagged<CompileCache>,

    #[command(flatten)]
    confine: ConfineFlags,
}

/// A call that is made, or the reason why it is not.
enum Planned {
    Made(Box<Rerun>),
    Left(Invocation, String),
    /// A row of which nothing is known.
    Damaged(DamagedRow),
}

/// What calls are made with.
#[derive(Clone, Copy)]
struct Calling<'a> {
    source: &'a BundleSource,
    granted: &'a Granted,
    recorder: Option<&'a CallRecorder>,
    environment: &'a Environment,
}

impl RerunFlags {
    pub(super) fn is_set(&self) -> bool {
        self.rerun
    }
}

impl Arguments {
    pub(super) fn rerun(
        &self,
        reader: Reader,
        settings: &LedgerSettings,
        environment: &Environment,
        output: &mut Output,
    ) -> Result<Exit> {
        let flags = &self.rerun;
        let source = BundleSource {
            trust: self.which.trust(),
            store: self.store.0.clone(),
            ..BundleSource::default()
        };
        let started = recorder::start(
            (&flags.means, &source.trust),
            environment,
            recorder::RecorderLog::none(),
        )?;
        let contents = source.contents(environment, output)?;
        let granted = Granted::read(&source.trust, &flags.means.policies, environment)?;
        let confinement = flags.confine.recorded(&source.trust, environment)?;
        let begin = |started: StartedRecorder| started.begin(&contents, &granted, confinement);
        let call_recorder = started.map(begin).transpose()?;
        let calling = Calling {
            source: &source,
            granted: &granted,
            recorder: call_recorder.as_ref(),
            environment,
        };
        let exit = self.make(&calling, contents, (reader, settings), output);
        recorder::close(call_recorder.as_ref(), output);
        exit
    }

    fn make(
        &self,
        calling: &Calling<'_>,
        contents: Vec<Content>,
        (reader, settings): (Reader, &LedgerSettings),
        output: &mut Output,
    ) -> Result<Exit> {
        let flags = &self.rerun;
        let Calling {
            source,
            granted,
            environment,
            ..
        } = *calling;
        let surfaces = Surfaces::of(&contents);
        let broker = (flags.cache).broker(&compile_broker::command()?, environment, output)?;
        broker.start()?;
        let programs = Programs::start(granted, environment)?;
        let bar = Arc::new(Bar::new("calling".to_owned(), output.tells()));
        let buckets = opens_buckets(&contents, &granted.policy);
        let builder = (flags.means).host(contents, granted, &source.trust, environment, buckets)?;
        let builder = builder.approver(Terminal::new(&bar));
        let builder = source.store.protect(builder, environment);
        let builder = programs.attach(builder);
        let builder = recorder::given(builder, calling.recorder, granted);
        let host = flags.cache.host(builder, &broker)?;

        let planned = self.planned(&reader, settings, &host)?;
        // The process that runs guests keeps no way to the ledger.
        drop(reader);
        self.confirm(&planned, output)?;
        let confinement = flags.means.kept(&host, granted, environment)?;
        (flags.confine).apply(confinement, &broker, &source.trust, environment, output)?;
        let runtime = runtime()?;
        let mut exit = Exit::Fine;
        for one in planned {
            let rerun = match one {
                Planned::Made(rerun) => rerun,
                Planned::Left(of, why) => {
                    exit = Exit::Failed;
                    left_out(of, &why, output)?;
                    continue;
                }
                Planned::Damaged(damaged) => {
                    exit = Exit::Failed;
                    row_missing(&damaged, output)?;
                    continue;
                }
            };
            let reply = runtime.block_on(host.call(rerun.request));
            bar.clear();
            let found = differences(&rerun.replayed, &reply, &host, &surfaces);
            if !found.is_empty() {
                exit = Exit::Failed;
            }
            show(&rerun.replayed, &reply, &found, output)?;
        }
        runtime.shutdown_background();
        Ok(exit)
    }

    fn planned(
        &self,
        reader: &Reader,
        settings: &LedgerSettings,
        host: &Host,
    ) -> Result<Vec<Planned>> {
        let replay = Replay::new(reader, settings, None)?;
        let mut planned = Vec::new();
        calls(&self.what, reader, |found| {
            if planned.len() == MAX_CALLS {
                let message = format!("there are more than {MAX_CALLS} calls in these rows");
                return Err(Failure::new(Kind::Denied, Code::RerunUnconfirmed, message)
                    .hint("name fewer rows"));
            }
            let call = match found {
                Ok(call) => call,
                Err(damaged) => {
                    planned.push(Planned::Damaged(damaged));
                    return Ok(());
                }
            };
            planned.push(match prepare(call, host, &replay)? {
                Ok(rerun) if rerun.writes && matches!(self.what, What::Rows(_)) => Planned::Left(
                    rerun.replayed.call.invocation,
                    "it may change something: name it alone to make it once more".to_owned(),
                ),
                Ok(rerun) => Planned::Made(Box::new(rerun)),
                Err((why, replayed)) => {
                    Planned::Left(replayed.call.invocation, why.message(&replay))
                }
            });
            Ok(())
        })?;
        Ok(planned)
    }

    /// Asks a person about many calls, and about a call that may change something.
    fn confirm(&self, planned: &[Planned], output: &Output) -> Result {
        let writes = planned.iter().filter_map(|one| match one {
            Planned::Made(rerun) => Some(rerun.writes),
            Planned::Left(..) | Planned::Damaged(_) => None,
        });
        let (count, writes) = (writes.clone().count(), writes.clone().any(|writes| writes));
        let what = match (writes, count > MAX_UNASKED) {
            (true, _) => "the call may change something once more".to_owned(),
            (false, true) if !self.rerun.yes => format!("{} to make", counted(count, "call")),
            _ => return Ok(()),
        };
        if approve::agrees("", &format!("{what}. Go on?"), output) {
            return Ok(());
        }
        let message = format!("{what}: not confirmed");
        let failure = Failure::new(Kind::Denied, Code::RerunUnconfirmed, message);
        Err(match writes {
            true => failure.hint("a person at a terminal has to say yes to it"),
            false => failure.hint("name fewer rows, or say --yes"),
        })
    }
}

fn left_out(of: Invocation, why: &str, output: &mut Output) -> Result {
    let value = json!({ "of": of, "made": false, "why": why });
    let why = visible_line(why, MAX_SHOWN_CHARS);
    output.result(&value, format_args!("{of}  not made: {why}"))
}

fn show(
    replayed: &ReplayedCall,
    reply: &Reply,
    differences: &[RerunDifference],
    output: &mut Output,
) -> Result {
    let of = replayed.call.invocation;
    let tool = &reply.metadata.tool;
    if output.json() {
        let differences = differences
            .iter()
            .map(|one| json!({ "what": one.what, "before": one.before, "now": one.now }));
        let differs: Vec<Value> = differences.collect();
        let value = json!({
            "of": of, "made": true, "tool": tool, "invocation": reply.metadata.invocation,
            "ok": reply.result.is_ok(), "differs": differs,
        });
        return output.value(&value);
    }
    let tool = visible_line(tool, 200);
    let verdict = match differences.is_empty() {
        true => "the same",
        false => "differs",
    };
    output.line(format_args!("{of}  {tool}  {verdict}"))?;
    for one in differences {
        for (when, value) in [("before", &one.before), ("now", &one.now)] {
            let shown = visible_line(&value.to_string(), MAX_SHOWN_CHARS);
            output.line(format_args!("          {:<8} {when:<7} {shown}", one.what))?;
        }
    }
    Ok(())
}
