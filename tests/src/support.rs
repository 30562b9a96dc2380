//! Shared helpers of the tests: a temporary machine, the command run on it, bundles to modify, and
//! independent tools to compare with.

pub(crate) mod bundle;
pub(crate) mod machine;
pub(crate) mod outside;
pub(crate) mod run;
pub(crate) mod terminal;
pub(crate) mod tree;
pub(crate) mod varying;

use std::path::{Path, PathBuf};

pub(crate) use bundle::{Draft, Signed};
pub(crate) use machine::Machine;
pub(crate) use run::{Ended, Run};
pub(crate) use terminal::{Left, Session};
pub(crate) use tree::{copy, tree};

/// The names of the example bundles.
pub(crate) const EXAMPLES: [&str; 15] = [
    "check-digits",
    "csv-sql",
    "csv-summary",
    "demo-thief",
    "demo-tools",
    "files-search",
    "html-text",
    "http-fetch",
    "json-query",
    "kv-counter",
    "markdown-html",
    "notes-append",
    "text-digest",
    "text-stats",
    "units-dates",
];

/// The examples whose contracts declare nothing.
pub(crate) const PURE: [&str; 7] = [
    "check-digits",
    "csv-summary",
    "html-text",
    "json-query",
    "markdown-html",
    "text-stats",
    "units-dates",
];

/// Whether tests run at full size, as in `cargo xtask long`.
pub(crate) fn long() -> bool {
    std::env::var_os("TOOLWARD_LONG").is_some()
}

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().unwrap().to_owned()
}

/// The signed archive of an example.
pub(crate) fn archive(example: &str) -> PathBuf {
    root().join(format!("examples/bundles/{example}.toolbundle"))
}

/// The example publisher's public key.
pub(crate) fn example_key() -> PathBuf {
    root().join("examples/keys/example.pub.pem")
}
