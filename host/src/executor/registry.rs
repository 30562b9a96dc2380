//! Which executor carries out which kind of driver.

use std::collections::HashMap;
use std::sync::Arc;

use toolward_contract::driver::{Driver, DriverKind};

use super::component::{ComponentExecutor, Preparer};
use super::form::FormExecutor;
use super::http::HttpExecutor;
use super::program::ProgramExecutor;
use super::replay::ReplayExecutor;
use super::{DriverSource, Executor};
use crate::elicitation::OpenForms;
use crate::exec::ExecBroker;
use crate::sandbox::turns::Turns;
use crate::tape::Tape;

/// What executors are made with.
pub(crate) struct Executors {
    pub(crate) preparer: Arc<Preparer>,
    pub(crate) turns: Arc<Turns>,
    pub(crate) forms: Arc<OpenForms>,
    /// Runs the programs that the policy names.
    pub(crate) programs: Option<ExecBroker>,
    /// What answers calls instead of drivers.
    pub(crate) tape: Option<Tape>,
    /// An application's own, by the kind of driver.
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
            DriverKind::Exec => Arc::new(ProgramExecutor::new(self.programs.clone())),
            DriverKind::Other(ref kind) => self.others.get(kind)?(&source.driver),
        })
    }
}
