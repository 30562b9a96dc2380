//! The check of the record of calls.

use toolward_ledger::Reader;

use super::{Check, State};
use crate::environment::Environment;
use crate::error::Error;
use crate::trust::Trust;

/// Checks whether calls are recorded, and whether the ledger can be read. Whether it holds is for `ledger verify`.
pub fn ledger(trust: &Trust, environment: &Environment) -> Check {
    const NAME: &str = "ledger";
    let settings = match trust.ledger(environment) {
        Ok(settings) => settings,
        Err(failure) => return Check::failed(NAME, failure),
    };
    if settings.off {
        let off = "calls are not recorded: `[ledger]` says `off = true`";
        return Check::new(NAME, State::Note, off);
    }
    let directory = match settings.directory(environment) {
        Ok(directory) => directory,
        Err(failure) => return Check::failed(NAME, failure),
    };
    let shown = directory.display();
    if !directory.join("records.sqlite").exists() {
        let message = format!("calls will be recorded in {shown}");
        return Check::new(NAME, State::Ok, message);
    }
    match Reader::open(&directory, None) {
        Ok(_) => Check::new(NAME, State::Ok, format!("calls are recorded in {shown}")),
        Err(error) => Check::failed(NAME, Error::from(error)),
    }
}
