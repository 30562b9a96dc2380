//! Checks of the store, and whether each installed bundle would be loaded now.

use super::{Check, State};
use crate::environment::Environment;
use crate::error::Error;
use crate::installed::{self, StoreLocation, next_step};
use crate::report::Report;
use crate::trust::Trust;

const CHECK_NAME: &str = "installed";

/// One check of the store, and one for each bundle that is not loaded.
pub fn installed(
    store: &StoreLocation,
    trust: &Trust,
    environment: &Environment,
    report: &dyn Report,
) -> Vec<Check> {
    let store = match store.existing(environment) {
        Ok(Some(store)) => store,
        Ok(None) => return vec![Check::new(CHECK_NAME, State::Ok, "nothing is installed")],
        Err(failure) => return vec![broken(failure)],
    };
    let examined = match installed::examined(&store, trust, environment, report) {
        Ok(examined) => examined,
        Err(failure) => return vec![broken(failure)],
    };
    let sound = examined.iter().filter(|one| one.content().is_some());
    let sound = sound.count();
    let message = format!("{sound} of {} installed bundles verify", examined.len());
    let mut checks = vec![Check::new(CHECK_NAME, State::Ok, message)];
    for one in &examined {
        let Some(failure) = one.refusal() else {
            continue;
        };
        let id = &one.installed.id;
        let message = format!("{id} is not loaded: {} ({})", failure.message, failure.code);
        checks.push(Check::new(CHECK_NAME, State::Warning, message).hint(next_step(id)));
    }
    checks
}

fn broken(failure: Error) -> Check {
    let message = format!("{} ({})", failure.message, failure.code);
    let hint = failure.hints.into_iter().next();
    Check::new(CHECK_NAME, State::Error, message).maybe_hint(hint)
}
