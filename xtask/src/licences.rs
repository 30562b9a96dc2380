//! `licences`: checks whether every dependency may be used. It needs only the output of
//! `cargo metadata`. It does not check advisories, since their database is not in the repository,
//! and its output states that.

mod expression;

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{Outcome, process, repository};
use expression::satisfied;

/// Accepted licences, by their SPDX names. An exception counts together with its licence.
const ALLOWED: [&str; 15] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "MPL-2.0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Packages with a special licence that are accepted for their use here.
const EXCEPTIONS: [(&str, &str); 1] = [
    // The icons of the rendered book. They are not part of any program or release.
    ("font-awesome-as-a-crate", "CC-BY-4.0 AND MIT"),
];

/// Every lock file of the repository.
const WORKSPACES: [&str; 7] = [
    ".",
    "embedding",
    "examples",
    "ledger/readers",
    "tests/guests",
    "xtask/bindings",
    "xtask/book",
];

/// Checks all workspaces, and names each dependency that fails.
pub(crate) fn check() -> Outcome {
    let root = repository::root()?;
    let mut seen = BTreeSet::new();
    let mut refused = BTreeSet::new();
    for workspace in WORKSPACES {
        let metadata = process::output(
            repository::cargo()
                .args([
                    "metadata",
                    "--format-version",
                    "1",
                    "--locked",
                    "--manifest-path",
                ])
                .arg(root.join(workspace).join("Cargo.toml")),
        )?;
        let metadata: Value = serde_json::from_slice(&metadata)
            .map_err(|error| format!("cargo metadata: {error}"))?;
        let packages = metadata.get("packages").and_then(Value::as_array);
        for package in packages.into_iter().flatten() {
            let text = |key: &str| package.get(key).and_then(Value::as_str);
            // A package without a source is ours.
            if text("source").is_none() {
                continue;
            }
            let name = text("name").unwrap_or("?");
            let licence = text("license").unwrap_or("none named");
            let taken = EXCEPTIONS.contains(&(name, licence))
                || satisfied(licence, &|name| ALLOWED.contains(&name));
            let package = format!("{name} {}", text("version").unwrap_or("?"));
            if !taken {
                refused.insert(format!("{package}: {licence}"));
            }
            seen.insert(package);
        }
    }
    if !refused.is_empty() {
        let list: Vec<String> = refused.into_iter().collect();
        return Err(format!(
            "licences that are not on the list:\n  {}",
            list.join("\n  ")
        ));
    }
    println!(
        "licences: all {} dependencies have one that is on the list",
        seen.len()
    );
    println!("advisories: not checked, as their database can't be reached from here");
    Ok(())
}
