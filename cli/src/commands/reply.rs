//! Shows a reply to people: the value on standard output, and everything else on standard error.
//! Other people's words are labelled with their publisher.

use serde::Serialize;
use toolward_host::{CallError, ErrorClass, ErrorCode, Origin, Reply};

use crate::prelude::*;

/// Shows a reply. Includes what the driver logged and printed if `verbose` is set or the call
/// failed.
pub(super) fn show(reply: &Reply, verbose: bool, context: &Context) -> Result<Exit> {
    if context.json() {
        return formatted(reply, &reply.envelope(), verbose, context);
    }
    aside(reply, verbose, context);
    match &reply.result {
        Ok(value) => {
            context.pretty(&value.structured)?;
            if let blocks @ 1.. = value.content.len() {
                context.note(format!("and {blocks} content block(s); --json shows them"));
            }
            Ok(Exit::Fine)
        }
        Err(error) => Err(call_failure(error, reply)),
    }
}

/// Writes a reply in another form. The exit code is the same.
pub(super) fn formatted(
    reply: &Reply,
    form: &impl Serialize,
    verbose: bool,
    context: &Context,
) -> Result<Exit> {
    match context.json() {
        true => context.value(form)?,
        false => {
            aside(reply, verbose, context);
            context.pretty(form)?;
        }
    }
    let kind = reply.result.as_ref().err().map(kind_of);
    Ok(kind.map_or(Exit::Fine, Exit::from))
}

/// Shows everything except the result.
fn aside(reply: &Reply, verbose: bool, context: &Context) {
    violations(reply, context);
    tried(reply, context);
    foreign(reply, context);
    if verbose || reply.result.is_err() {
        captured(reply, context);
    }
    if verbose {
        let (speaker, meta) = (speaker(reply), &reply.metadata);
        let (ms, fuel, memory) = (meta.milliseconds, meta.fuel, meta.peak_memory);
        let attempts = meta.attempts;
        context.note(format!(
            "{speaker}: {ms} ms, {fuel} fuel, {memory} bytes of memory, {attempts} attempt(s)"
        ));
    }
}

/// The failure for a tool that can't be called.
pub(super) fn refused(error: &CallError, tool: &str) -> Failure {
    let failure = Failure::with_code(kind_of(error), error.code.as_str(), &error.message);
    hinted(failure, error, tool)
}

/// Adds the next steps: the host's hint, and for the operator the command that shows more.
fn hinted(failure: Failure, error: &CallError, tool: &str) -> Failure {
    let tool = tool.split('@').next().unwrap_or_default();
    let rule = error.cause.as_ref().and_then(|cause| cause.get("rule"));
    let of_program = rule
        .and_then(Value::as_str)
        .is_some_and(|rule| rule.starts_with("exec-") && rule != "exec-broker-unavailable");
    let command = match error.class {
        _ if error.origin != Origin::Host => None,
        // The policy grants the program, so the problem is the program's file or the machine.
        _ if of_program => Some(
            "`toolward doctor` says what is wrong with the program, with the digest of its file"
                .to_owned(),
        ),
        ErrorClass::PolicyBlocked | ErrorClass::CapabilityGap | ErrorClass::SetupRequired
            if error.code == ErrorCode::UNAUTHORISED =>
        {
            Some(format!(
                "`toolward show {tool} --policy` shows what is missing; `toolward policy grant {tool}` adds the lines, after you type yes"
            ))
        }
        _ if error.code == ErrorCode::ADDRESS_NOT_GRANTED => Some(format!(
            "`toolward show {tool} --policy` prints the address, and the line for the tool's [[grant]]: `addresses = […]`"
        )),
        // Only if no person could be asked: a person who said no needs no other way.
        _ if error.code == ErrorCode::APPROVAL_DENIED && !has_terminal() => Some(format!(
            "call it on a terminal, or add `preapproved = true` to its [[grant]]: `toolward show {tool} --policy` names the line"
        )),
        ErrorClass::DependencyUnavailable => Some(format!(
            "`toolward show {tool} --drivers` shows each driver and what is in its way"
        )),
        ErrorClass::SchemaValidationFailed => Some(format!(
            "give inputs with --set KEY=VALUE, or as JSON: --input '{{\"KEY\": \"TEXT\"}}'; \
             `toolward show {tool}` says more of them"
        )),
        _ => None,
    };
    // A hint that only refers to the operator does not help the operator.
    let gap = [ErrorClass::PolicyBlocked, ErrorClass::CapabilityGap];
    let own = command.is_some()
        && (of_program || gap.contains(&error.class) || error.code == ErrorCode::APPROVAL_DENIED);
    let said = error.hint.as_deref().filter(|_| !own).map(for_operator);
    failure.maybe_hint(said).maybe_hint(command)
}

/// Changes a host's hint that refers to the operator, since the reader of this command is the
/// operator.
fn for_operator(hint: &str) -> &str {
    let own = hint.strip_prefix("ask the operator of this host to ");
    let own = own.and_then(|rest| rest.rsplit_once(" (code "));
    own.map_or(hint, |(to, _)| to)
}

fn kind_of(error: &CallError) -> Kind {
    match error.is_denial() {
        true => Kind::Denied,
        false => Kind::Failed,
    }
}

/// Reports which drivers failed before the driver of this reply.
fn tried(reply: &Reply, context: &Context) {
    let meta = &reply.metadata;
    let earlier = meta.tried.len().saturating_sub(1);
    for one in meta.tried.iter().take(earlier) {
        let code = one.error.as_ref().map_or("", |code| code.as_str());
        let (driver, code) = (visible_line(&one.driver, 100), visible_line(code, 100));
        let publisher = visible_line(&one.driver_publisher, 200);
        context.note(format!(
            "the driver {driver} by {publisher} failed ({code}), and the next one was tried"
        ));
    }
}

/// Reports whose code ran, if it is not the code of the tool's publisher.
fn foreign(reply: &Reply, context: &Context) {
    let meta = &reply.metadata;
    if meta.attempts > 0 && meta.driver_publisher != meta.publisher {
        let (tool, speaker) = (visible_line(&meta.tool, 200), speaker(reply));
        context.note(format!(
            "{tool} was carried out by {speaker}, ANOTHER publisher"
        ));
    }
}

/// Returns the reply's driver and its publisher, as a label for their words.
fn speaker(reply: &Reply) -> String {
    let publisher = reply.metadata.driver_publisher.as_deref();
    let publisher = publisher.unwrap_or("unknown");
    let driver = reply.metadata.driver.as_deref().unwrap_or("driver");
    let (driver, publisher) = (visible_line(driver, 100), visible_line(publisher, 200));
    format!("{driver} by {publisher}")
}

/// Reports what the driver tried although its grant does not allow it.
fn violations(reply: &Reply, context: &Context) {
    const MAX_VIOLATIONS: usize = 5;
    let found = &reply.metadata.violations;
    if found.is_empty() {
        return;
    }
    let shown = found.iter().take(MAX_VIOLATIONS);
    let shown = shown.map(|violation| visible_line(&violation.to_string(), 300));
    let more = (found.len() > MAX_VIOLATIONS).then(|| "…".to_owned());
    let shown = shown.chain(more).collect::<Vec<_>>().join(", ");
    let times = usize::try_from(reply.metadata.violations_total).unwrap_or(usize::MAX);
    let (speaker, times) = (speaker(reply), counted(times, "time"));
    context.warning(format!(
        "[{speaker}] tried what it was not granted, {times}: {shown}"
    ));
}

fn captured(reply: &Reply, context: &Context) {
    let speaker = speaker(reply);
    for record in &reply.captured.logs {
        let fields = match record.fields.is_null() {
            true => String::new(),
            false => format!(" {}", visible_line(&record.fields.to_string(), 1000)),
        };
        let (level, message) = (record.level, visible_line(&record.message, 2000));
        context.note(format!("[{speaker}] {level:?}: {message}{fields}"));
    }
    let captured = &reply.captured;
    for (name, text) in [("stdout", &captured.stdout), ("stderr", &captured.stderr)] {
        for line in visible(text, 64 * 1024).lines() {
            context.note(format!("[{speaker}] {name}: {line}"));
        }
    }
}

fn call_failure(error: &CallError, reply: &Reply) -> Failure {
    let message = match error.origin {
        Origin::Driver => format!("[{}] says: {}", speaker(reply), error.message),
        _ => error.message.clone(),
    };
    let failure = Failure::with_code(kind_of(error), error.code.as_str(), message);
    let mut failure = hinted(failure, error, &visible_line(&reply.metadata.tool, 200));
    let cause = error.cause.as_ref().filter(|cause| !cause.is_null());
    // The message already describes the mismatch.
    let cause = cause.filter(|_| error.class != ErrorClass::SchemaValidationFailed);
    failure.cause = cause.map(ToString::to_string);
    failure
}
