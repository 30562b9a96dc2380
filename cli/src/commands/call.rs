//! `call`: one call of one tool.

mod request;

use std::sync::Arc;

#[cfg(feature = "adapters")]
use clap::ValueEnum;
#[cfg(feature = "adapters")]
use toolward_adapters::records::{EndedCall, Recorder, amplifier_result, call_records};
use toolward_contract::capability::Class;
use toolward_contract::tool::CostClass;
#[cfg(feature = "adapters")]
use toolward_host::{CallEvent, EventFilter, Events, Heard};
use toolward_host::{
    Compiling, ErrorClass, ErrorCode, Host, Observer, Progress, Reply, Request, Resume, ToolFacts,
    WithheldReason,
};
#[cfg(feature = "adapters")]
use toolward_ledger::record::Invocation;
use toolward_operator::installed;
use toolward_operator::policy_review::InternalAddress;
use toolward_operator::recorder::StartedRecorder;
use toolward_policy::Decision;

use super::{reply, show};
use crate::approve::Terminal;
use crate::helper::{self, Programs, RecorderLog};
use crate::prelude::*;
use crate::progress::SHOW_DELAY;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The tool's id, or id@major
    tool: String,

    /// Words after the tool: the error names the flag that may have been meant.
    #[arg(hide = true)]
    stray: Vec<String>,

    /// The input: JSON, @FILE with JSON in it, or - for standard input
    #[arg(short, long, value_name = "JSON|@FILE|-")]
    input: Option<String>,

    /// Set a property of the input: KEY=VALUE, or KEY=@FILE for a file's text
    #[arg(short, long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// Context for the call, if its contract has a contextSchema: JSON or @FILE
    #[arg(long, value_name = "JSON|@FILE")]
    context: Option<String>,

    /// Also grant the tool this capability: network:HOST or workspace:/PATH=DIR
    ///
    /// For this call only. A deny of the policy takes precedence. A person is asked if the tool may
    /// change something, or if a tool or driver in any of the loaded bundles declares that it calls
    /// other tools. May be given again.
    #[arg(long, value_name = "CAPABILITY")]
    grant: Vec<String>,

    /// Lower the time limit to this many milliseconds
    #[arg(long, value_name = "MS")]
    timeout: Option<u64>,

    /// Give the call an id, as an idempotency key: a UUIDv7 of the last day
    ///
    /// A call that changes something runs only once for each id.
    #[arg(long, value_name = "UUID")]
    id: Option<String>,

    /// Let only this driver serve the call
    #[arg(long, value_name = "ID")]
    driver: Option<String>,

    /// Write the result in the form of another specification
    ///
    /// Records of Agent Tool 0.2.0, or Amplifier's ToolResult. [default: the value alone, with
    /// --json the envelope]
    #[cfg(feature = "adapters")]
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Format>,

    /// Show what the driver logged and printed, on standard error
    #[arg(short, long)]
    verbose: bool,

    #[command(flatten)]
    source: Flagged<BundleSource>,

    #[command(flatten)]
    means: Flagged<HostSetup>,

    #[command(flatten)]
    cache: Flagged<CompileCache>,

    #[command(flatten)]
    confine: ConfineFlags,
}

/// Other forms of a result.
#[cfg(feature = "adapters")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    AgentTool,
    Amplifier,
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context) -> Result<Exit> {
        if let Some(stray) = self.stray.first() {
            return Err(request::not_a_flag(&self.tool, stray));
        }
        let (source, means, trust) = (&self.source, &self.means, &self.source.trust);
        // The recorder's process starts while bundles are read.
        let log = RecorderLog {
            stderr: std::process::Stdio::null(),
            format: None,
            brief: true,
        };
        let setup = means.configured(trust, context);
        let started = helper::start_recorder(setup, context, log)?;
        let contents = source.contents(context)?;
        if let Some(failure) = source.withheld(&self.tool, &contents, context)? {
            let code = match installed::reason(&failure) {
                WithheldReason::Held => ErrorCode::HELD,
                _ => ErrorCode::WITHDRAWN,
            };
            let refused = (code, ErrorClass::PolicyBlocked);
            return Err(self.ends(&contents, started, refused, failure, context));
        }
        let mut granted = Granted::read(trust, &means.policies, context)?;
        if !self.grant.is_empty() {
            let here = std::env::current_dir();
            let here = here.map_err(|error| Failure::unreadable(".".as_ref(), error))?;
            granted.add_for_call(&self.grant, &self.tool, &contents, &here)?;
        }
        if self.lacks_input(&contents) {
            let policies = &means.policies;
            let about = show::about(&self.tool, &contents, source, policies, context)?;
            context.note(about.unwrap_or_default());
        }
        #[cfg_attr(
            not(feature = "adapters"),
            expect(unused_variables, reason = "for records")
        )]
        let (request, input) = match self.request(&contents, context) {
            Ok(request) => request,
            Err(failure) => {
                let invalid = (ErrorCode::INPUT_INVALID, ErrorClass::InvalidArguments);
                return Err(self.ends(&contents, started, invalid, failure, context));
            }
        };
        let confinement = self.confine.recorded(trust, context)?;
        let begin =
            |started: StartedRecorder| started.begin(&contents, Some(&granted), confinement);
        let recorder = started.map(begin).transpose()?;
        // Comes after the refusals above: a refused call is recorded, but creates no cache.
        let broker = self.cache.broker(&helper::compiler()?, context)?;
        broker.start()?;
        let programs = Programs::start(&granted, context)?;
        let bar = Arc::new(Bar::new(format!("calling {}", self.tool), context.tells()));
        let buckets = opens_buckets(&contents, &granted.policy);
        let builder = setup.host(contents, &granted, buckets)?;
        let terminal = Terminal::new(&bar);
        #[cfg(feature = "adapters")]
        let records = Recorder::new();
        #[cfg(feature = "adapters")]
        let terminal = records.approver(terminal);
        let builder = builder.approver(terminal);
        let builder = source.store.protect(builder, context);
        let builder = programs.attach(builder);
        let mut builder = helper::recorded(builder, recorder.as_ref(), &granted);
        if self.id.is_some() {
            builder = builder.shared_state(&setup.shared_state(None)?);
        }
        let host = self.cache.host(builder, &broker)?;
        let confinement = setup.kept(&host, &granted)?;
        (self.confine).apply(confinement, &broker, trust, context)?;
        self.warn_of_cost(&host, context);
        let request = request.answerable(Terminal::answerable());
        let request = request.observer(Arc::new(Watch {
            bar: Arc::clone(&bar),
            #[cfg(feature = "adapters")]
            recorder: records.clone(),
        }));
        let runtime = runtime()?;
        #[cfg(feature = "adapters")]
        let mut events = host.events(EventFilter::all());
        let reply = runtime.block_on(async {
            let mut call = std::pin::pin!(answered(&host, request, &bar));
            // Compiling a driver for the first time may take seconds.
            match tokio::time::timeout(SHOW_DELAY, &mut call).await {
                Ok(reply) => reply,
                Err(_) => {
                    bar.spin();
                    call.await
                }
            }
        });
        // Does not wait for a schema check that continues after the call's deadline.
        runtime.shutdown_background();
        // Dropping the bar would not clear it, since the host still shares it for its questions.
        bar.clear();
        helper::warn_if_not_kept(&broker, context);
        helper::close_recorder(recorder.as_ref(), context);
        let tool = host.tool(&self.tool);
        #[cfg(feature = "adapters")]
        if let Some(format) = self.format {
            let mut ended = EndedCall::now(&reply, tool, &records);
            ended = ended.with_events(heard(&mut events));
            if let Some(recorder) = &recorder
                && let Ok(invocation) = Invocation::parse(&reply.metadata.invocation)
                && let Some((origin, rows)) = recorder.rows_of(invocation)
            {
                ended = ended.with_rows(&origin, rows);
            }
            ended.input = input.as_ref();
            let form = match format {
                Format::AgentTool => call_records(&ended),
                Format::Amplifier => {
                    let outputs = tool.map(|tool| &tool.contract.outputs);
                    amplifier_result(&reply, outputs)
                }
            };
            return reply::formatted(&reply, &form, self.verbose, context);
        }
        show(&reply, tool, self, &granted, context)
    }

    /// Warns of an expensive call if no person is asked about it.
    fn warn_of_cost(&self, host: &Host, context: &Context) {
        let Some(tool) = host.tool(&self.tool) else {
            return;
        };
        let pinned = self.driver.as_deref();
        let mut drivers = tool.drivers.iter();
        let first = drivers.find(|one| one.is_open() && pinned.is_none_or(|pin| *pin == *one.id));
        if let Some(first) = first
            && first.cost.class == CostClass::Expensive
            && matches!(first.decision, Decision::Allow(_))
        {
            let (tool, driver) = (visible_line(&self.tool, 200), visible_line(&first.id, 200));
            let cost = &first.cost;
            context.warning(format!(
                "a call of {tool} by {driver} is expensive, as its publisher says ({cost})"
            ));
        }
    }
}

/// Shows how a call ended.
fn show(
    reply: &Reply,
    tool: Option<&ToolFacts>,
    arguments: &Arguments,
    granted: &Granted,
    context: &Context,
) -> Result<Exit> {
    reply::show(reply, arguments.verbose, context).map_err(|failure| {
        let hints = tool.iter().flat_map(|tool| internal_addresses(tool, reply));
        let failure = hints.fold(failure, |failure, one| failure.hint(one.to_string()));
        match tool.and_then(|tool| tool.lines_to_add(reply)) {
            Some(lines) => {
                let narrower = tool.and_then(|tool| tool.narrower_lines(reply));
                failure.lines_for(&granted.place, lines, narrower)
            }
            None => failure,
        }
    })
}

/// Returns the hosts that are granted to the driver but have addresses that are not granted, if a
/// network request of the driver was refused.
fn internal_addresses(tool: &ToolFacts, reply: &Reply) -> Vec<InternalAddress> {
    let mut violations = reply.metadata.violations.iter();
    let is_refused = violations.any(|one| one.kind == (&Class::Network).into());
    let own = tool.drivers.iter();
    let mut own = own.filter(|one| Some(&*one.id) == reply.metadata.driver.as_deref());
    match own.next().and_then(|driver| driver.decision.grant()) {
        Some(grant) if is_refused => InternalAddress::of(grant),
        _ => Vec::new(),
    }
}

/// Calls a tool. If there is a terminal, a person answers the questions of the tool's driver.
async fn answered(host: &Host, request: Request, bar: &Arc<Bar>) -> Reply {
    if !Terminal::answerable().form {
        return host.call(request).await;
    }
    let terminal = Terminal::new(bar);
    let mut reply = host.call(request.clone()).await;
    while let Some(asked) = reply.asked.take() {
        let answers = terminal.answers(&asked).await;
        let resume = Resume {
            asked: *asked,
            answers,
        };
        reply = host.call(request.clone().resume(resume)).await;
    }
    reply
}

/// Returns the events so far. If there were more than a reader's ring holds, the oldest are
/// missing.
#[cfg(feature = "adapters")]
fn heard(events: &mut Events) -> Vec<Arc<CallEvent>> {
    let mut heard = Vec::new();
    while let Some(next) = events.try_next() {
        if let Heard::Event(event) = next {
            heard.push(event);
        }
    }
    heard
}

/// Shows the driver's progress on the bar, and records it.
struct Watch {
    bar: Arc<Bar>,
    #[cfg(feature = "adapters")]
    recorder: Recorder,
}

impl Observer for Watch {
    fn compiling(&self, compiling: &Compiling) {
        let driver = visible_line(&compiling.driver, 100);
        let mut message = format!("compiling the driver {driver} for the first time");
        match compiling.elapsed {
            None => message.push_str(", after others"),
            Some(elapsed) => message.push_str(&format!(", {} s", elapsed.as_secs())),
        }
        if let (Some(_), Some(longest)) = (compiling.elapsed, compiling.longest) {
            message.push_str(&format!(" of at most {} s", longest.as_secs()));
        }
        self.bar.say(message);
    }

    fn progress(&self, progress: &Progress) {
        #[cfg(feature = "adapters")]
        self.recorder.progress(progress);
        let done = progress.done;
        let message = progress.message.as_deref().unwrap_or_default();
        let message = visible_line(message, 100);
        let total = progress.total.map(|total| format!(" of {total}"));
        let total = total.unwrap_or_default();
        self.bar
            .say(format!("the driver reports {done}{total} {message}"));
    }
}
