//! Which executor carries out which kind of driver.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::json;
use toolward_contract::driver::{Driver, DriverKind};
use toolward_policy::Grant;
use toolward_sandbox::invocation::CallEnd;
use toolward_sandbox::turns::Turns;
use toolward_support::report::{Code, codes};

use super::component::{ComponentExecutor, Preparer};
use super::form::FormExecutor;
use super::http::HttpExecutor;
use super::replay::ReplayExecutor;
use super::{AttemptReport, DriverSource, Executor, Job};
use crate::api::result::{CallError, ErrorClass, ErrorCode};
use crate::call_context::CallContext;
use crate::elicitation::OpenForms;
use crate::imports::BoxFuture;
use crate::tape::Tape;

/// What executors are made with.
pub(crate) struct Executors {
    pub(crate) preparer: Arc<Preparer>,
    pub(crate) turns: Arc<Turns>,
    pub(crate) forms: Arc<OpenForms>,
    /// What answers calls instead of drivers.
    pub(crate) tape: Option<Tape>,
    /// What an application brings, by the kind of driver.
    pub(crate) others: HashMap<String, MakeExecutor>,
}

/// Makes the executor of a driver.
pub(crate) type MakeExecutor = Box<dyn Fn(&Arc<Driver>) -> Arc<dyn Executor> + Send + Sync>;

impl Executors {
    /// The executor of a driver. `None` for a kind that this host does not run: no route has one.
    pub(crate) fn executor(&self, source: DriverSource) -> Option<Arc<dyn Executor>> {
        if let Some(tape) = &self.tape {
            return Some(Arc::new(ReplayExecutor::new(tape.clone())));
        }
        Some(match source.driver.kind {
            DriverKind::Component => {
                let (preparer, turns) = (self.preparer.clone(), self.turns.clone());
                Arc::new(ComponentExecutor::new(source, preparer, turns))
            }
            DriverKind::Http => Arc::new(HttpExecutor::new(source.driver)),
            DriverKind::Form => Arc::new(FormExecutor::new(source.driver, self.forms.clone())),
            DriverKind::Exec => match self.others.get(source.driver.kind.as_str()) {
                Some(make) => make(&source.driver),
                None => Arc::new(NoPrograms),
            },
            DriverKind::Other(ref kind) => self.others.get(kind)?(&source.driver),
        })
    }
}

codes! {
    pub(super) const Code;

    BROKER_MISSING = "exec-broker-missing" ["4"],
        "the policy lets a program run, and this host has no broker that runs programs";
}

/// The executor of programs on a host that got none.
struct NoPrograms;

impl NoPrograms {
    fn error() -> CallError {
        CallError::new(
            ErrorCode::UNAUTHORISED,
            ErrorClass::SetupRequired,
            BROKER_MISSING.meaning,
        )
        .with_cause(json!({ "rule": BROKER_MISSING.code }))
        .with_hint(ErrorCode::UNAUTHORISED.ask_the_operator("let this host run programs"))
    }
}

impl Executor for NoPrograms {
    fn check(&self, _grant: &Grant) -> Result<(), CallError> {
        Err(Self::error())
    }

    fn attempt<'a>(
        &'a self,
        _job: &'a mut Job,
        _call: &'a CallContext,
    ) -> BoxFuture<'a, AttemptReport> {
        let report = AttemptReport::new(CallEnd::Failed(Self::error()));
        Box::pin(std::future::ready(report))
    }
}
