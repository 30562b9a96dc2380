//! Mistakes that people make in their first hour. Each is judged by its code, its exit code, the
//! position that is named, and whether the printed next step helps the person.

mod call;
mod install;
mod nothing;
mod over_mcp;
mod policy;
mod serve;
mod shown;

pub(crate) use policy::granting;

use crate::support::{Ended, Machine};

/// A machine with the archive of `text.stats` and the key of its signature.
fn machine() -> Machine {
    Machine::with_example("text-stats")
}

/// The flags that name that archive.
const BUNDLE: &str = "--bundle text-stats.toolbundle --trust-key example.pub.pem";

/// Returns the printed next steps.
fn hints(ended: &Ended) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for line in ended.stderr.lines() {
        if let Some(hint) = line.strip_prefix("  hint: ") {
            found.push(hint.to_owned());
        }
    }
    found
}

/// Asserts that standard output is empty, that standard error has an error with this code and a
/// line with this position, and that a next step has these words. No text may refer the reader to
/// the book.
#[track_caller]
fn told(ended: &Ended, code: &str, place: &str, next: &str) {
    ended.says(code);
    let named = ended.stderr.lines().any(|line| line.contains(place));
    assert!(named, "no {place:?} in {ended}");
    let hints = hints(ended);
    let helps = hints.iter().any(|hint| hint.contains(next));
    assert!(helps, "no next step with {next:?} in {ended}");
    assert!(!ended.stderr.contains("of the book"), "{ended}");
    assert!(!ended.stderr.contains("panicked"), "{ended}");
}
