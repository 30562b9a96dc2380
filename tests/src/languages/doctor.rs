//! `doctor --language`: which tools exist, which are missing, and what installs them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use serde_json::Value;

use super::toolchain::directory;
use crate::support::Machine;

const OTHERS: &str = "js python go c";

/// Each language's entry in a report.
fn languages(report: &Value) -> Vec<(&str, bool)> {
    let entry = |one: &'_ Value| one["ok"].as_bool().unwrap();
    let all = report["languages"].as_array().unwrap().iter();
    all.map(|one| (one["language"].as_str().unwrap(), entry(one)))
        .collect()
}

#[test]
fn the_tools_of_each_language_are_found_or_missing_with_what_installs_them() {
    let machine = Machine::new();
    let command = format!("doctor --language {OTHERS} --json --toolchain");
    let found = machine.toolward(&command).arg(directory()).ends(0).json();
    assert_eq!(found["ok"], true, "{found}");
    let all = ["js", "python", "go", "c"];
    assert_eq!(languages(&found), all.map(|language| (language, true)));

    let nothing = machine
        .toolward(&format!("{command} nothing --language rust"))
        .env("PATH", machine.path("empty"))
        .ends(1)
        .json();
    let all = ["rust", "js", "python", "go", "c"];
    assert_eq!(languages(&nothing), all.map(|language| (language, false)));
    for one in nothing["languages"].as_array().unwrap() {
        let rust = one["language"] == "rust";
        let code = if rust {
            "cargo-unusable"
        } else {
            "build-tool-missing"
        };
        assert_eq!(one["error"]["code"], code, "{one}");
        assert!(one["error"]["hint"].is_string(), "{one}");
        assert!(one.get("installable").is_none(), "{one}");
    }
    let told = machine
        .toolward("doctor --language go --toolchain nothing")
        .env("PATH", machine.path("empty"))
        .ends(1);
    assert!(told.stdout.starts_with("missing  go "), "{told}");
    assert!(told.stdout.contains("hint: install it: "), "{told}");
    assert!(!told.stdout.contains("rust"), "{told}");
    machine.toolward("doctor --language cobol").ends(2);
}

#[test]
fn a_directory_that_is_not_utf8_is_reported() {
    let machine = Machine::new();
    let found = machine
        .toolward("doctor --language go --json --toolchain")
        .arg(OsStr::from_bytes(b"\xff"))
        .env("PATH", machine.path("empty"))
        .ends(1)
        .json();
    assert!(found["directory"].is_string(), "{found}");
}
