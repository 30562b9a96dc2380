//! `call`: one call of one tool.

mod refused;

use std::io::Read as _;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
#[cfg(feature = "adapters")]
use clap::ValueEnum;
use serde_json::{Map, Value};
#[cfg(feature = "adapters")]
use toolward_adapters::records::{EndedCall, Recorder, amplifier_result, call_records};
use toolward_bundle::arguments;
use toolward_bundle::content::Content;
use toolward_bundle::text::visible_line;
use toolward_contract::json::{self, Limits};
use toolward_contract::tool::{CONTEXT_PIN, CostClass};
#[cfg(feature = "adapters")]
use toolward_host::{CallEvent, EventFilter, Events, Heard};
use toolward_host::{
    Compiling, Host, Observer, Progress, Reply, Request, Resume, ToolFacts, ViolationKind,
};
#[cfg(feature = "adapters")]
use toolward_ledger::record::Invocation;
use toolward_operator::bundles::BundleSource;
use toolward_operator::granted::Granted;
use toolward_operator::host_setup::{HostSetup, opens_buckets};
use toolward_operator::policy_review::InternalAddress;
use toolward_operator::processes::CompileCache;
use toolward_operator::recorder::StartedRecorder;
use toolward_operator::runtime;
use toolward_policy::Decision;

use super::exec_broker::Programs;
use super::{compile_broker, recorder, reply, show};
use crate::approve::Terminal;
use crate::environment::Environment;
use crate::failure::{Exit, Failure, Kind, OperatorCode, Result};
use crate::flags::{ConfineFlags, Flagged};
use crate::output::Output;
use crate::progress::{Bar, SHOW_DELAY};
use refused::Early;

/// Longest input, in bytes: one more than the host takes, so that the host names
/// which limit it is.
const MAX_INPUT_BYTES: u64 = 64 * 1024 * 1024;

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

    /// Give the tool this, too: network:HOST or workspace:/PATH=DIR
    ///
    /// For this call only. May be given again. A deny wins, and a person is asked about what it may
    /// change.
    #[arg(long, value_name = "CAPABILITY")]
    grant: Vec<String>,

    /// Lower the time limit to this many milliseconds
    #[arg(long, value_name = "MS")]
    timeout: Option<u64>,

    /// Give the call an id, as an idempotency key: a UUIDv7 of the last day
    ///
    /// A call that changes something runs once for each id.
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

pub(crate) fn run(
    arguments: &Arguments,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit> {
    if let Some(stray) = arguments.stray.first() {
        return Err(not_a_flag(&arguments.tool, stray));
    }
    let source = &arguments.source;
    // It starts up while bundles are read.
    let started = recorder::start(
        (&arguments.means, &source.trust),
        environment,
        recorder::RecorderLog::none(),
    )?;
    let contents = source.contents(environment, output)?;
    let early = Early {
        arguments,
        contents: &contents,
        environment,
        output,
    };
    if let Some(failure) = source.withheld(&arguments.tool, &contents, environment, output)? {
        return Err(early.withheld(started, failure));
    }
    let mut granted = Granted::read(&source.trust, &arguments.means.policies, environment)?;
    if !arguments.grant.is_empty() {
        let here =
            std::env::current_dir().map_err(|error| Failure::unreadable(".".as_ref(), error))?;
        granted.add_for_call(&arguments.grant, &arguments.tool, &contents, &here)?;
    }
    if arguments.input.is_none() && arguments.set.is_empty() && lacks_input(arguments, &contents) {
        let policies = &arguments.means.policies;
        let about = show::about(&arguments.tool, &contents, source, policies, environment)?;
        output.note(about.unwrap_or_default());
    }
    #[cfg_attr(
        not(feature = "adapters"),
        expect(unused_variables, reason = "for records")
    )]
    let (request, input) = match request(arguments, &contents, output) {
        Ok(request) => request,
        Err(failure) => return Err(early.unfit(started, failure)),
    };
    let confinement = arguments.confine.recorded(&source.trust, environment)?;
    let begin = |started: StartedRecorder| started.begin(&contents, &granted, confinement);
    let call_recorder = started.map(begin).transpose()?;
    // What is refused above leaves its row behind, and no cache.
    let broker = arguments
        .cache
        .broker(&compile_broker::command()?, environment, output)?;
    broker.start()?;
    let programs = Programs::start(&granted, environment)?;
    let bar = Arc::new(Bar::new(
        format!("calling {}", arguments.tool),
        output.tells(),
    ));
    let means = &arguments.means;
    let buckets = opens_buckets(&contents, &granted.policy);
    let builder = means.host(contents, &granted, &source.trust, environment, buckets)?;
    #[cfg(feature = "adapters")]
    let records = Recorder::new();
    #[cfg(feature = "adapters")]
    let builder = builder.approver(records.approver(Terminal::new(&bar)));
    #[cfg(not(feature = "adapters"))]
    let builder = builder.approver(Terminal::new(&bar));
    let builder = source.store.protect(builder, environment);
    let builder = programs.attach(builder);
    let mut builder = recorder::given(builder, call_recorder.as_ref(), &granted);
    if arguments.id.is_some() {
        builder = builder.shared_state(&means.shared_state(environment, None));
    }
    let host = arguments.cache.host(builder, &broker)?;
    let confinement = means.kept(&host, &granted, environment)?;
    arguments.confine.apply(
        confinement,
        &broker,
        &arguments.source.trust,
        environment,
        output,
    )?;
    warn_of_cost(&host, arguments, output);
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
    // A check that runs past its deadline is not waited for.
    runtime.shutdown_background();
    // The host has it, too, for its questions.
    bar.clear();
    compile_broker::warn_if_not_kept(&broker, output);
    recorder::close(call_recorder.as_ref(), output);
    let tool = host.tool(&arguments.tool);
    #[cfg(feature = "adapters")]
    if let Some(format) = arguments.format {
        let ended = Ended {
            reply: &reply,
            input: input.as_ref(),
            recorder: &records,
            tool: tool.as_ref(),
            events: heard(&mut events),
            rows: call_recorder.as_ref().and_then(|recorder| {
                let invocation = Invocation::parse(&reply.metadata.invocation).ok()?;
                recorder.rows_of(invocation)
            }),
        };
        return ended.show(format, arguments.verbose, output);
    }
    show(&reply, tool.as_ref(), arguments, &granted, output)
}

/// Shows how a call ended.
fn show(
    reply: &Reply,
    tool: Option<&ToolFacts>,
    arguments: &Arguments,
    granted: &Granted,
    output: &mut Output,
) -> Result<Exit> {
    reply::show(reply, arguments.verbose, output).map_err(|failure| {
        let hints = tool.iter().flat_map(|tool| internal_addresses(tool, reply));
        let failure = hints.fold(failure, |failure, one| failure.hint(one.to_string()));
        match tool.and_then(|tool| tool.lines_to_add(reply)) {
            Some(lines) => {
                let narrower = tool.and_then(|tool| tool.narrower_lines(reply));
                let failure = failure.lines_for(&granted.place, lines);
                failure.or_only(narrower.unwrap_or_default())
            }
            None => failure,
        }
    })
}

/// A call that has ended, for other forms of its result.
#[cfg(feature = "adapters")]
struct Ended<'a> {
    reply: &'a Reply,
    input: Option<&'a Value>,
    recorder: &'a Recorder,
    tool: Option<&'a ToolFacts>,
    events: Vec<Arc<CallEvent>>,
    /// The origin of the ledger, and its rows about the call.
    rows: Option<(String, Vec<u64>)>,
}

#[cfg(feature = "adapters")]
impl Ended<'_> {
    fn show(self, format: Format, verbose: bool, output: &mut Output) -> Result<Exit> {
        let Self {
            reply,
            input,
            recorder,
            tool,
            events,
            rows,
        } = self;
        match format {
            Format::Amplifier => {
                let outputs = tool.map(|tool| &tool.contract.outputs);
                reply::formatted(reply, &amplifier_result(reply, outputs), verbose, output)
            }
            Format::AgentTool => {
                let ended = EndedCall::now(reply, tool, recorder);
                let ended = ended.with_events(events);
                let mut ended = match rows {
                    Some((origin, rows)) => ended.with_rows(&origin, rows),
                    None => ended,
                };
                ended.input = input;
                reply::formatted(reply, &call_records(&ended), verbose, output)
            }
        }
    }
}

/// The granted hosts whose addresses are not granted, if the driver was refused one.
fn internal_addresses(tool: &ToolFacts, reply: &Reply) -> Vec<InternalAddress> {
    let violations = &reply.metadata.violations;
    let is_refused = violations
        .iter()
        .any(|one| one.kind == ViolationKind::Network);
    let own = tool.drivers.iter();
    let mut own = own.filter(|one| Some(one.id.as_str()) == reply.metadata.driver.as_deref());
    match own.next().and_then(|driver| driver.decision.grant()) {
        Some(grant) if is_refused => InternalAddress::of(grant),
        _ => Vec::new(),
    }
}

/// Calls, and answers the questions of the driver.
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

/// What happened so far. Of more events than a reader's ring holds, the oldest are missing.
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

/// Warns of an expensive call, if no person is asked about it.
fn warn_of_cost(host: &Host, arguments: &Arguments, output: &Output) {
    let Some(tool) = host.tool(&arguments.tool) else {
        return;
    };
    let pinned = arguments.driver.as_deref();
    let mut drivers = tool.drivers.iter();
    let first = drivers.find(|one| one.is_open() && pinned.is_none_or(|pin| pin == one.id));
    if let Some(first) = first
        && first.cost.class == CostClass::Expensive
        && matches!(first.decision, Decision::Allow(_))
    {
        output.warning(format!(
            "a call of {} by {} is expensive, as its publisher says ({})",
            visible_line(&arguments.tool, 200),
            visible_line(&first.id, 200),
            first.cost
        ));
    }
}

/// Shows what the driver reports on the bar, and records it.
struct Watch {
    bar: Arc<Bar>,
    #[cfg(feature = "adapters")]
    recorder: Recorder,
}

impl Observer for Watch {
    fn compiling(&self, compiling: &Compiling) {
        let driver = visible_line(&compiling.driver, 100);
        let mut message = format!("compiling the driver {driver} for the first time");
        match (compiling.elapsed, compiling.longest) {
            (None, _) => message.push_str(", after others"),
            (Some(elapsed), Some(longest)) => message.push_str(&format!(
                ", {} s of at most {} s",
                elapsed.as_secs(),
                longest.as_secs()
            )),
            (Some(elapsed), None) => message.push_str(&format!(", {} s", elapsed.as_secs())),
        }
        self.bar.say(message);
    }

    fn progress(&self, progress: &Progress) {
        #[cfg(feature = "adapters")]
        self.recorder.progress(progress);
        let message = progress.message.as_deref().unwrap_or_default();
        let total = progress
            .total
            .map(|total| format!(" of {total}"))
            .unwrap_or_default();
        self.bar.say(format!(
            "the driver reports {}{total} {}",
            progress.done,
            visible_line(message, 100)
        ));
    }
}

/// Whether the tool needs an input.
fn lacks_input(arguments: &Arguments, contents: &[Content]) -> bool {
    let id = arguments.tool.split('@').next().unwrap_or_default();
    let mut tools = contents.iter().filter_map(|content| content.tool(id));
    let empty = Value::Object(Map::new());
    tools.any(|entry| entry.tool.inputs.validate(&empty).is_err())
}

/// The failure for a word that should have been the value of a flag.
fn not_a_flag(tool: &str, stray: &str) -> Failure {
    let hint = match stray {
        json if json.starts_with(['{', '[']) => format!("write --input '{json}'"),
        setting if setting.contains('=') => format!("write --set {setting}"),
        _ => format!("`toolward show {tool}` lists the inputs: give them with --set KEY=VALUE"),
    };
    let message = format!("expected flags after the tool's id, found {stray:?}");
    Failure::usage(OperatorCode::SettingInvalid, message).hint(hint)
}

/// The request, and its input where records are made of the call and it is JSON at all.
fn request(
    arguments: &Arguments,
    contents: &[Content],
    output: &Output,
) -> Result<(Request, Option<Value>)> {
    let id = arguments.tool.split('@').next().unwrap_or_default();
    let contract = contents
        .iter()
        .find_map(|content| content.tool(id))
        .map(|entry| &entry.tool);
    let text = match &arguments.input {
        Some(argument) => Some(document(argument)?),
        None => None,
    };
    #[cfg(feature = "adapters")]
    let recorded = arguments.format == Some(Format::AgentTool);
    #[cfg(not(feature = "adapters"))]
    let recorded = false;
    let (mut request, input) = match (text, arguments.set.is_empty()) {
        (Some(text), true) => {
            // The host reads the text itself.
            let input = recorded.then(|| parse("--input", &text).ok()).flatten();
            (Request::new(arguments.tool.as_str(), text), input)
        }
        (text, _) => {
            let base = match text {
                Some(text) => parse("--input", &text)?,
                None => Value::Object(Map::new()),
            };
            let schema = contract.map(|tool| tool.inputs.value());
            let settings = settings(&arguments.set)?;
            let input = arguments::apply(base, &settings, schema)
                .map_err(|error| Failure::of(Kind::Usage, error))?;
            let seen = recorded.then(|| input.clone());
            (Request::with_value(arguments.tool.as_str(), input), seen)
        }
    };
    if let Some(context) = &arguments.context {
        let context = parse("--context", &document(context)?)?;
        let only_pins = match context.as_object() {
            Some(members) => members.len() == 1 && members.contains_key(CONTEXT_PIN),
            None => false,
        };
        if contract.is_some_and(|tool| tool.context_schema.is_none()) && !only_pins {
            output.warning(format!("--context is not used: {id} has no contextSchema"));
        }
        request = request.context(context);
    }
    if let Some(milliseconds) = arguments.timeout {
        request = request.timeout(Duration::from_millis(milliseconds));
    }
    if let Some(id) = &arguments.id {
        request = request.named(id);
    }
    if let Some(driver) = &arguments.driver {
        request = request.pinned_driver(driver.as_str());
    }
    Ok((request, input))
}

/// The text of `JSON`, `@FILE` or `-`.
fn document(argument: &str) -> Result<String> {
    match argument.strip_prefix('@') {
        Some(path) => read_input(path.as_ref()),
        None if argument == "-" => {
            let mut text = String::new();
            std::io::stdin()
                .lock()
                .take(MAX_INPUT_BYTES)
                .read_to_string(&mut text)
                .map_err(|error| Failure::unreadable("standard input".as_ref(), error))?;
            Ok(text)
        }
        None => Ok(argument.to_owned()),
    }
}

fn read_input(path: &std::path::Path) -> Result<String> {
    let mut text = String::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(MAX_INPUT_BYTES).read_to_string(&mut text))
        .map_err(|error| Failure::unreadable(path, error))?;
    Ok(text)
}

fn parse(flag: &str, text: &str) -> Result<Value> {
    let limits = Limits {
        bytes: usize::try_from(MAX_INPUT_BYTES).unwrap_or(usize::MAX),
        ..Limits::default()
    };
    json::parse(text.as_bytes(), &limits).map_err(|error| {
        Failure::with_code(
            Kind::Usage,
            error.code(),
            format!(
                "{flag}: line {}, column {}: {}",
                error.line, error.column, error.message
            ),
        )
        .hint(format!(
            "write JSON, names and texts in double quotes: {flag} '{{\"KEY\": \"TEXT\"}}'"
        ))
    })
}

fn settings(arguments: &[String]) -> Result<Vec<arguments::Setting>> {
    arguments
        .iter()
        .map(|argument| {
            let Some((key, value)) = argument.split_once('=') else {
                return Err(Failure::usage(
                    OperatorCode::SettingInvalid,
                    format!("--set {argument:?}: there is no `=`"),
                )
                .hint("write --set KEY=VALUE, or --set KEY=@FILE for a file's text"));
            };
            Ok(match value.strip_prefix('@') {
                Some(path) => arguments::Setting::text(key, read_input(path.as_ref())?),
                None => arguments::Setting::literal(key, value),
            })
        })
        .collect()
}
