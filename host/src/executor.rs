//! Executors: run the calls of a driver. Each kind of driver has one implementation of
//! [`Executor`], either in a module of this folder with a line in [`Executors`], or in an
//! application ([`HostBuilder::executor`](crate::HostBuilder::executor)). Stages, limits,
//! deadlines, retries and records are the same for all executors.

pub(crate) mod component;
mod form;
mod http;
pub(crate) mod limits;
mod replay;

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolward_bundle::component::Component;
use toolward_contract::driver::{Driver, DriverKind, Implements};
use toolward_contract::tool::Tool;
use toolward_policy::{ContextText, Grant};
use toolward_sandbox::invocation::{CallEnd, Invocation};
use toolward_sandbox::limits::CallLimits;
use toolward_sandbox::turns::Turns;
use toolward_support::report::{Code, codes};

use self::component::{ComponentExecutor, LoadedComponent, Preparer};
use self::form::FormExecutor;
use self::http::HttpExecutor;
pub(crate) use self::limits::{AttemptMemory, Clock};
pub(crate) use self::replay::RecordedInput;
use self::replay::ReplayExecutor;
use crate::api::approval::ShownRequest;
use crate::api::result::{CallError, Captured, ErrorClass, ErrorCode, Result, unauthorised};
use crate::call_context::CallContext;
use crate::call_scope::CallScope;
use crate::elicitation::OpenForms;
use crate::imports::{BoxFuture, CallerBudget};
use crate::tape::{Replayed, Tape};

/// Runs the calls of one driver.
///
/// ```
/// use toolward_host::{AttemptReport, BoxFuture, CallContext, CallEnd, DriverOutput, Executor, Job};
///
/// /// Answers each call with its input.
/// struct Echo;
///
/// impl Executor for Echo {
///     fn attempt<'a>(
///         &'a self,
///         job: &'a mut Job,
///         _call: &'a CallContext,
///     ) -> BoxFuture<'a, AttemptReport> {
///         let output = DriverOutput::new(job.invocation.input.clone());
///         Box::pin(async { AttemptReport::new(CallEnd::Done(output)) })
///     }
/// }
/// ```
pub trait Executor: Send + Sync {
    /// The properties of this executor that the stages of a call need.
    fn features(&self) -> Features {
        Features::default()
    }

    /// Checks whether a grant can be used on this host.
    ///
    /// # Errors
    /// The setup that the operator must do.
    fn check(&self, _grant: &Grant) -> Result<()> {
        Ok(())
    }

    /// Whether [`Executor::prepare`] returns at once.
    fn is_ready(&self) -> bool {
        true
    }

    /// Makes the driver ready, for a call or in advance.
    ///
    /// # Errors
    /// Why the driver can't be used, now or ever.
    fn prepare<'a>(&'a self, _call: Option<&'a CallScope>) -> BoxFuture<'a, Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Returns the request that a person sees before they approve the call; `None` if this executor
    /// shows none. [`Executor::attempt`] makes the same request, which depends only on these
    /// values.
    ///
    /// # Errors
    /// Why the values make no valid request.
    fn request(&self, _call: &RequestValues<'_>) -> Result<Option<ShownRequest>> {
        Ok(None)
    }

    /// Checks a job before its first attempt.
    ///
    /// # Errors
    /// Why no driver can run the job.
    fn begin(&self, _job: &Job, _call: &mut CallContext) -> Result<()> {
        Ok(())
    }

    /// Makes one attempt. The host drops the attempt at the [deadline](CallContext::deadline), when
    /// other calls need its memory, and when the call is cancelled.
    fn attempt<'a>(&'a self, job: &'a mut Job, call: &'a CallContext) -> Attempt<'a>;
}

/// An attempt that runs.
pub type Attempt<'a> = BoxFuture<'a, AttemptReport>;

/// The properties of an executor that the stages of a call need.
#[derive(Debug, Clone, Copy, Default)]
pub struct Features {
    /// Its attempts consume fuel.
    pub uses_fuel: bool,
    /// An attempt ends by itself at the deadline and when other calls need its memory, and reports
    /// its consumption. The host stops it only if it has not ended a second after the deadline.
    pub(crate) ends_in_time: bool,
    /// The host holds the whole bodies of its requests.
    pub holds_bodies: bool,
    /// It repeats a question if the answer does not fit.
    pub asks_again: bool,
    /// A person who approves a call is shown its request.
    pub shows_request: bool,
    /// It returns recorded results: nothing runs, no one is asked, and no other driver takes over.
    pub(crate) replays: bool,
}

/// One call of a driver, for all attempts. Plain data, so that another process could run it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Job {
    /// The values that the driver gets.
    pub invocation: Invocation,
    /// The input with the contract's field names; `null` unless an executor with
    /// [`Features::asks_again`] needs it.
    pub contract_input: Value,
    /// Units of fuel for all attempts.
    pub fuel: u64,
    /// The part of `fuel` that earlier attempts consumed.
    pub spent_fuel: u64,
}

impl Job {
    /// The budget that is left for nested calls, if the attempt itself consumes no fuel.
    pub fn left(&self, call: &CallContext) -> CallerBudget {
        CallerBudget {
            fuel: self.fuel.saturating_sub(self.spent_fuel),
            memory_bytes: call.limits.memory_bytes,
        }
    }
}

/// The result of one attempt, as plain data.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AttemptReport {
    /// How it ended.
    pub end: CallEnd,
    /// Whether only the driver's declaration makes its error retryable. The host then does not
    /// repeat a call that changes something.
    pub claimed: bool,
    /// Whether anything of the attempt may have left the host, or the driver's code ran.
    pub dispatched: bool,
    /// Whether the host itself saw the driver fail: its service could not be reached or answered
    /// with a status of 500 or above, or the driver trapped or did not end at the deadline.
    pub failing: bool,
    /// Units of fuel that the attempt consumed.
    pub fuel: u64,
    /// The peak memory of the attempt, in bytes.
    pub peak_memory: u64,
    /// The logs and the captured output of the driver.
    pub captured: Captured,
    /// Who gave the result.
    pub source: ResultSource,
}

/// Who gave the result of an attempt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ResultSource {
    /// The driver.
    #[default]
    Driver,
    /// A person, who filled in a form.
    Person,
    /// The record of an earlier call.
    Record(Box<Replayed>),
}

impl AttemptReport {
    /// An attempt without fuel, memory or logs.
    pub fn new(end: CallEnd) -> Self {
        Self {
            end,
            claimed: false,
            dispatched: true,
            failing: false,
            fuel: 0,
            peak_memory: 0,
            captured: Captured::default(),
            source: ResultSource::Driver,
        }
    }

    /// An attempt that failed.
    pub(crate) fn failed(error: CallError) -> Self {
        Self::new(CallEnd::Failed(error))
    }
}

/// The values of a call from which its request is made.
pub struct RequestValues<'a> {
    pub(crate) contract: &'a Tool,
    pub(crate) implements: &'a Implements,
    pub(crate) grant: &'a Grant,
    pub(crate) limits: &'a CallLimits,
    /// JSON texts in the form that the driver gets.
    pub(crate) input: &'a str,
    pub(crate) context: &'a str,
    /// The input with the contract's field names.
    pub(crate) contract_input: &'a Value,
    /// The confidential texts of the context.
    pub(crate) context_secrets: &'a [(String, ContextText)],
}

/// The values from which executors are made.
pub(crate) struct Executors {
    pub(crate) preparer: Arc<Preparer>,
    pub(crate) turns: Arc<Turns>,
    pub(crate) forms: Arc<OpenForms>,
    /// The tape that answers calls instead of drivers.
    pub(crate) tape: Option<Tape>,
    /// The executors of an application, by the kind of driver.
    pub(crate) others: HashMap<String, MakeExecutor>,
}

/// Makes the executor of a driver.
pub(crate) type MakeExecutor = Box<dyn Fn(&Arc<Driver>) -> Arc<dyn Executor> + Send + Sync>;

impl Executors {
    /// The executor of a driver. `None` for a kind that this host does not run: no route has such a
    /// driver.
    pub(crate) fn executor(
        &self,
        driver: &Arc<Driver>,
        publisher: &Arc<str>,
        component: Option<Component>,
    ) -> Option<Arc<dyn Executor>> {
        if let Some(tape) = &self.tape {
            return Some(Arc::new(ReplayExecutor { tape: tape.clone() }));
        }
        Some(match driver.kind {
            DriverKind::Component => Arc::new(ComponentExecutor {
                component: Arc::new(LoadedComponent::new(driver.clone(), component)),
                publisher: publisher.clone(),
                preparer: self.preparer.clone(),
                turns: self.turns.clone(),
            }),
            DriverKind::Http => Arc::new(HttpExecutor {
                driver: driver.clone(),
            }),
            DriverKind::Form => Arc::new(FormExecutor {
                driver: driver.clone(),
                forms: self.forms.clone(),
            }),
            DriverKind::Exec => match self.others.get(driver.kind.as_str()) {
                Some(make) => make(driver),
                None => Arc::new(NoPrograms),
            },
            kind @ (DriverKind::Cli | DriverKind::Mcp | DriverKind::Sdk | DriverKind::Builtin) => {
                self.others.get(kind.as_str())?(driver)
            }
        })
    }
}

codes! {
    pub(crate) const Code;

    BROKER_MISSING = "exec-broker-missing" ["4"],
        "the policy lets a program run, and this host has no broker that runs programs";
}

/// The executor of programs if the application has not given the host one: all calls fail.
struct NoPrograms;

impl NoPrograms {
    fn error() -> CallError {
        unauthorised(ErrorClass::SetupRequired, BROKER_MISSING.meaning)
            .with_cause(json!({ "rule": BROKER_MISSING.code }))
            .with_hint(ErrorCode::UNAUTHORISED.ask_the_operator("let this host run programs"))
    }
}

impl Executor for NoPrograms {
    fn check(&self, _grant: &Grant) -> Result<()> {
        Err(Self::error())
    }

    fn attempt<'a>(&'a self, _job: &'a mut Job, _call: &'a CallContext) -> Attempt<'a> {
        Box::pin(std::future::ready(AttemptReport::failed(Self::error())))
    }
}
