//! A reply as people see it: the value on standard output, everything else on
//! standard error, other people's words labelled with their publisher.

use toolward_bundle::text::{visible, visible_line};
use toolward_host::{CallError, ErrorClass, ErrorCode, Host, Origin, Reply};
use toolward_policy::{Decision, Denial};

use super::check::counted;
use crate::failure::{Exit, Failure, Kind};
use crate::output::Output;

/// Shows a reply; with all that the driver said where `verbose`.
pub(super) fn show(reply: &Reply, verbose: bool, output: &mut Output) -> Result<Exit, Failure> {
    let exit = exit_of(reply);
    if output.json() {
        output.value(&reply.envelope())?;
        return Ok(exit);
    }
    violations(reply, output);
    foreign(reply, output);
    if verbose || reply.result.is_err() {
        captured(reply, output);
    }
    if verbose {
        let meta = &reply.metadata;
        output.note(format!(
            "{}: {} ms, {} fuel, {} bytes of memory, {} attempt(s)",
            speaker(reply),
            meta.milliseconds,
            meta.fuel,
            meta.peak_memory,
            meta.attempts
        ));
    }
    match &reply.result {
        Ok(value) => {
            output.pretty(&value.structured)?;
            if !value.content.is_empty() {
                output.note(format!(
                    "and {} content block(s); --json shows them",
                    value.content.len()
                ));
            }
            Ok(exit)
        }
        Err(error) => Err(call_failure(error, reply)),
    }
}

/// The exit code that a reply stands for.
pub(super) fn exit_of(reply: &Reply) -> Exit {
    match &reply.result {
        Ok(_) => Exit::Fine,
        Err(error) => kind_of(error).into(),
    }
}

fn kind_of(error: &CallError) -> Kind {
    if is_denial(error) {
        Kind::Denied
    } else {
        Kind::Failed
    }
}

/// The lines of a policy that would let a blocked call pass. They are shown to
/// people, and never part of the envelope: its reader may be an agent.
pub(super) fn lines_to_add(host: &Host, tool: &str, reply: &Reply) -> Option<String> {
    let error = reply.result.as_ref().err()?;
    let tool = host.tool(tool)?;
    // Before a driver was picked nothing but its context was found missing.
    let lack = tool.context.as_ref();
    if let (None, Some(lack)) = (&reply.metadata.driver, lack.filter(|_| is_denial(error))) {
        return Some(lack.lines_to_add());
    }
    let driver = reply.metadata.driver.as_ref()?;
    let blocked = tool.drivers.iter().find_map(|one| match &one.decision {
        Decision::Deny(denial) if one.id == *driver => Some(denial),
        _ => None,
    });
    blocked
        .filter(|_| is_denial(error))
        .map(Denial::lines_to_add)
}

/// Whether policy denied the call. What a driver calls itself does not count.
fn is_denial(error: &CallError) -> bool {
    error.origin == Origin::Host
        && (error.code == ErrorCode::APPROVAL_DENIED
            || error.code == ErrorCode::UNAUTHORISED
            || matches!(
                error.class,
                ErrorClass::CapabilityGap | ErrorClass::PermissionDenied
            ))
}

/// Says whose code ran, where it is another publisher's than the tool.
fn foreign(reply: &Reply, output: &Output) {
    let meta = &reply.metadata;
    if meta.attempts > 0 && meta.driver_publisher != meta.publisher {
        output.note(format!(
            "{} was carried out by {}, ANOTHER publisher",
            visible_line(&meta.tool, 200),
            speaker(reply)
        ));
    }
}

/// The driver and the publisher whose words these are, for a label.
fn speaker(reply: &Reply) -> String {
    let publisher = reply.metadata.driver_publisher.as_deref();
    let publisher = publisher.unwrap_or("unknown");
    let driver = reply.metadata.driver.as_deref().unwrap_or("driver");
    format!(
        "{} by {}",
        visible_line(driver, 100),
        visible_line(publisher, 200)
    )
}

/// What the driver tried beyond its grant.
fn violations(reply: &Reply, output: &Output) {
    const MAX_VIOLATIONS: usize = 5;
    let found = &reply.metadata.violations;
    if found.is_empty() {
        return;
    }
    let mut shown: Vec<String> = found
        .iter()
        .take(MAX_VIOLATIONS)
        .map(|violation| visible_line(&violation.to_string(), 300))
        .collect();
    if found.len() > MAX_VIOLATIONS {
        shown.push("…".to_owned());
    }
    output.warning(format!(
        "[{}] tried what it was not granted, {}: {}",
        speaker(reply),
        counted(
            usize::try_from(reply.metadata.violations_total).unwrap_or(usize::MAX),
            "time"
        ),
        shown.join(", ")
    ));
}

fn captured(reply: &Reply, output: &Output) {
    let speaker = speaker(reply);
    for record in &reply.captured.logs {
        let fields = if record.fields.is_null() {
            String::new()
        } else {
            format!(" {}", visible_line(&record.fields.to_string(), 1000))
        };
        output.note(format!(
            "[{speaker}] {:?}: {}{fields}",
            record.level,
            visible_line(&record.message, 2000)
        ));
    }
    for (name, text) in [
        ("stdout", &reply.captured.stdout),
        ("stderr", &reply.captured.stderr),
    ] {
        for line in visible(text, 64 * 1024).lines() {
            output.note(format!("[{speaker}] {name}: {line}"));
        }
    }
}

fn call_failure(error: &CallError, reply: &Reply) -> Failure {
    let message = match error.origin {
        Origin::Driver => format!("[{}] says: {}", speaker(reply), error.message),
        _ => error.message.clone(),
    };
    let mut failure = Failure::new(kind_of(error), error.code.as_str(), message);
    if let Some(hint) = &error.hint {
        failure = failure.hint(hint.as_str());
    }
    failure.cause = error
        .cause
        .as_ref()
        .filter(|cause| !cause.is_null())
        .map(ToString::to_string);
    failure
}
