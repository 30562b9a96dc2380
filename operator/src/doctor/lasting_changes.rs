//! What commands changed lastingly, for the person who did not type the yes to see it.

use super::{Check, State};
use crate::environment::Environment;
use crate::lasting_changes::LastingChanges;

/// How many are shown, the newest.
const MAX_SHOWN: usize = 10;

/// One note for each of the newest changes; none where there is no state directory.
pub fn lasting_changes(environment: &Environment) -> Vec<Check> {
    const NAME: &str = "changes";
    let Ok(changes) = LastingChanges::of(environment) else {
        return Vec::new();
    };
    match changes.all() {
        Ok(all) => {
            let newest = all.iter().skip(all.len().saturating_sub(MAX_SHOWN));
            newest
                .map(|one| Check::new(NAME, State::Note, one.to_string()))
                .collect()
        }
        Err(error) => vec![Check::failed(NAME, error)],
    }
}
