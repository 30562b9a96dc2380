//! Mistakes that people make in their first hour. Each is judged by its code, its exit code, the place that is named,
//! and whether the next step that is printed is the one that helps who made it.

mod call;
mod install;
mod nothing;
mod over_mcp;
mod policy;
mod serve;
mod shown;

pub(crate) use policy::granting;

use crate::support::{Ended, Machine};

/// A machine with the archive of `text.stats` and the key that it is signed with.
fn machine() -> Machine {
    Machine::with_example("text-stats")
}

/// How the tests name that archive.
const BUNDLE: &str = "--bundle text-stats.toolbundle --trust-key example.pub.pem";

/// The next steps that were printed.
fn hints(ended: &Ended) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for line in ended.stderr.lines() {
        if let Some(hint) = line.strip_prefix("  hint: ") {
            found.push(hint.to_owned());
        }
    }
    found
}

/// Nothing on standard output, an error with this code whose line names the place, and a next step with these words.
/// No next step is only a page's title, or to be looked up elsewhere.
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
