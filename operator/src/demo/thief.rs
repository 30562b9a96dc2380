//! The attempts of the hostile tool, and the barrier that stopped each. An attempt counts as
//! stopped only if that is visible: the reply does not contain the canary (the text of a file that
//! the tool must not read), nothing arrived at the port on which this process listens, and the
//! refusal is the expected one.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener};

use serde_json::{Value, json};
use toolward_contract::capability::Class;
use toolward_host::confine::Confinement;
use toolward_host::{ErrorCode, Host, Origin, Reply, Request};

use super::Demo;
use super::directory::CANARY;
use crate::host_setup::opens_buckets;
use crate::{Code, Error, Result};

const TOOL: &str = "demo.thief";

/// A host that the tool does not declare. Names below `.example` resolve to nothing (RFC 2606).
const FOREIGN: &str = "https://collector.example/";

/// The errors that end a call that runs too long.
const TIME: &[ErrorCode] = &[ErrorCode::TIMEOUT, ErrorCode::FUEL_EXHAUSTED];
const MEMORY: &[ErrorCode] = &[ErrorCode::MEMORY_EXCEEDED];

/// The hostile tool, in a separate host.
#[derive(Debug)]
pub struct Thief {
    host: Host,
    /// The attempts, in order.
    pub attempts: Vec<TheftAttempt>,
    /// The access that this process keeps when it confines itself before [`Thief::run`].
    pub confinement: Confinement,
    /// No connection may arrive at this listener.
    listener: TcpListener,
    canary: String,
}

/// One attempt of the tool.
#[derive(Debug, Clone)]
pub struct TheftAttempt {
    /// A description of the attempt.
    pub title: String,
    input: Value,
    barrier: Barrier,
}

/// The barrier that stops an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Barrier {
    /// The guest's own library reports an error, since the sandbox does not contain the resource.
    Nothing,
    /// The host refuses an access of this class, and records the refusal.
    Violation(&'static Class),
    /// The host ends the call with one of these errors.
    Limit(&'static [ErrorCode]),
}

/// How an attempt ended.
#[derive(Debug, Clone)]
pub struct TheftOutcome {
    /// The barrier that stopped it; `None` if none did. May contain untrusted text.
    pub stopped_by: Option<String>,
    /// The reply's value or error, if nothing stopped it. Untrusted text.
    pub reply: Option<String>,
    /// How long the call took, in milliseconds.
    pub milliseconds: f64,
}

impl Demo {
    /// Returns the hostile tool, ready to run.
    ///
    /// # Errors
    /// If its host can't be built, or no port of this machine can be opened.
    pub fn thief(&self) -> Result<Thief> {
        let operator = &self.operator;
        let contents = operator.source.contents(&operator.environment)?;
        let granted = operator.granted()?;
        let buckets = opens_buckets(&contents, &granted.policy);
        let builder = operator.host_builder(contents, &granted, buckets)?;
        let host = operator.build(builder, &self.broker)?;
        let confinement = operator.configured().kept(&host, &granted)?;
        let no_port = |error| {
            let message = format!("no port of this machine can be listened on: {error}");
            Error::failed(Code::RuntimeUnavailable, message)
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(no_port)?;
        listener.set_nonblocking(true).map_err(no_port)?;
        let address = listener.local_addr().map_err(no_port)?;
        let canary_file = self.directory.join(CANARY).display().to_string();
        Ok(Thief {
            attempts: attempts(&canary_file, &format!("http://{address}/")),
            confinement: confinement.accept_on(&listener),
            host,
            listener,
            canary: self.directory.canary.clone(),
        })
    }
}

impl Thief {
    /// Calls the tool, and checks whether the attempt succeeded.
    ///
    /// # Errors
    /// If the port can't be checked.
    pub async fn run(&self, attempt: &TheftAttempt) -> Result<TheftOutcome> {
        let reply = self
            .host
            .call(Request::with_value(TOOL, attempt.input.clone()))
            .await;
        let arrived = match self.listener.accept() {
            Ok(_) => true,
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            Err(error) => {
                let message = format!("what arrived at the port can't be looked at: {error}");
                return Err(Error::failed(Code::RuntimeUnavailable, message));
            }
        };
        let shown = shown(&reply);
        let stopped_by = match arrived || shown.contains(&self.canary) {
            true => None,
            false => stopped_by(&reply, attempt.barrier),
        };
        Ok(TheftOutcome {
            reply: stopped_by.is_none().then_some(shown),
            stopped_by,
            milliseconds: reply.metadata.milliseconds,
        })
    }
}

fn attempts(canary: &str, port: &str) -> Vec<TheftAttempt> {
    let attempt = |title: &str, input: Value, barrier| TheftAttempt {
        title: title.to_owned(),
        input,
        barrier,
    };
    let read = |path: &str| json!({"attempt": "read-file", "target": path});
    let get = |url: &str| json!({"attempt": "send-request", "target": url});
    let run = |name: &str| json!({ "attempt": name });
    let path = Barrier::Violation(&Class::Workspace);
    let network = Barrier::Violation(&Class::Network);
    let (time, memory) = (Barrier::Limit(TIME), Barrier::Limit(MEMORY));
    let foreign_title = format!("send a request to {FOREIGN}");
    let port_title = format!("send a request to {port}, a port of this machine");
    vec![
        attempt(&format!("read {canary}"), read(canary), Barrier::Nothing),
        attempt(
            "read /inbox/../canary.txt, out of its folder",
            read("/inbox/../canary.txt"),
            path,
        ),
        attempt(
            "read /inbox/link.txt, a link that leads there",
            read("/inbox/link.txt"),
            path,
        ),
        attempt(&foreign_title, get(FOREIGN), network),
        attempt(&port_title, get(port), network),
        attempt("run for ever", run("run-forever"), time),
        attempt("take all memory", run("take-memory"), memory),
    ]
}

/// Returns a description of the barrier that stopped an attempt, if it was the expected one.
fn stopped_by(reply: &Reply, barrier: Barrier) -> Option<String> {
    let refused = match &reply.result {
        Ok(output) if output.structured.get("taken").is_none() => {
            output.structured.get("refused")?.as_str()
        }
        _ => None,
    };
    match barrier {
        Barrier::Nothing => refused.map(|refused| format!("not in the sandbox: {refused}")),
        Barrier::Violation(class) => {
            let mut violations = reply.metadata.violations.iter();
            let violation = violations.find(|violation| violation.kind == class.into())?;
            refused.map(|_| format!("refused and recorded: {violation}"))
        }
        Barrier::Limit(codes) => {
            let error = reply.result.as_ref().err()?;
            // A driver can return such a code as well.
            let reached = error.origin == Origin::Host && codes.contains(&error.code);
            reached.then(|| format!("{}: {}", error.code, error.message))
        }
    }
}

fn shown(reply: &Reply) -> String {
    match &reply.result {
        Ok(output) => output.structured.to_string(),
        Err(error) => format!("{}: {}", error.code, error.message),
    }
}

#[cfg(test)]
mod tests {
    use toolward_host::{CallError, CallFacts, Captured, ErrorClass, Output, Violation};

    use super::*;

    fn reply(result: Result<Value, CallError>, violations: &[&'static Class]) -> Reply {
        let violations = violations.iter().map(|class| Violation {
            kind: (*class).into(),
            subject: "it".to_owned(),
        });
        Reply {
            result: result.map(|structured| Output {
                structured,
                content: Vec::new(),
            }),
            metadata: CallFacts {
                violations: violations.collect(),
                ..CallFacts::default()
            },
            captured: Captured::default(),
            asked: None,
        }
    }

    fn error(code: ErrorCode) -> CallError {
        CallError::new(code, ErrorClass::Timeout, "ended")
    }

    #[test]
    fn what_was_taken_or_refused_by_nothing_known_counts_as_not_stopped() {
        let path = Barrier::Violation(&Class::Workspace);
        let refused = || Ok(json!({"refused": "no"}));
        let taken = || Ok(json!({"taken": "it", "refused": "no"}));
        for (result, violations, barrier) in [
            (taken(), &[][..], Barrier::Nothing),
            (taken(), &[&Class::Workspace][..], path),
            (Ok(json!({})), &[], Barrier::Nothing),
            (refused(), &[], path),
            (refused(), &[&Class::Network], path),
            (refused(), &[], Barrier::Limit(TIME)),
            (Err(error(ErrorCode::INTERNAL)), &[], Barrier::Limit(TIME)),
            (Err(error(ErrorCode::TIMEOUT)), &[], Barrier::Limit(MEMORY)),
            (Err(error(ErrorCode::TIMEOUT)), &[&Class::Workspace], path),
            (Err(error(ErrorCode::UNAUTHORISED)), &[], Barrier::Nothing),
        ] {
            let reply = reply(result, violations);
            assert_eq!(stopped_by(&reply, barrier), None, "{reply:?} {barrier:?}");
        }
        let mut of_driver = error(ErrorCode::TIMEOUT);
        of_driver.origin = Origin::Driver;
        let reply = reply(Err(of_driver), &[]);
        assert_eq!(stopped_by(&reply, Barrier::Limit(TIME)), None);
    }

    #[test]
    fn a_refusal_that_fits_counts_as_stopped_and_says_by_what() {
        let path = Barrier::Violation(&Class::Workspace);
        let refused = || Ok(json!({"refused": "no entry"}));
        for (result, violations, barrier, by) in [
            (
                refused(),
                &[][..],
                Barrier::Nothing,
                "not in the sandbox: no entry",
            ),
            (refused(), &[&Class::Workspace][..], path, "path \"it\""),
            (
                Err(error(ErrorCode::TIMEOUT)),
                &[],
                Barrier::Limit(TIME),
                "timeout: ended",
            ),
        ] {
            let stopped = stopped_by(&reply(result, violations), barrier).unwrap();
            assert!(stopped.contains(by), "{stopped}");
        }
    }
}
