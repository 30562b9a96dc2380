//! `doctor --language`: which tools exist, which are missing, and which are fetched. A script stands in for
//! npm, so that no registry is asked.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::Value;

use super::toolchain::directory;
use crate::support::{Left, Machine, Session};

const OTHERS: &str = "js python go c";

/// Each language's entry in a report.
fn languages(report: &Value) -> Vec<(&str, bool)> {
    let entry = |one: &'_ Value| one["ok"].as_bool().unwrap();
    let all = report["languages"].as_array().unwrap().iter();
    all.map(|one| (one["language"].as_str().unwrap(), entry(one)))
        .collect()
}

fn program(file: &Path, script: &str) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, script).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
}

const MAKE_QUICKJS: &str =
    "#!/bin/sh\nexec /bin/mkdir -p node_modules/componentize-qjs node_modules/esbuild\n";

/// An npm that makes the packages of QuickJS, and a Node.js that is there.
fn fake_npm(bin: &Path) {
    program(&bin.join("npm"), MAKE_QUICKJS);
    program(&bin.join("node"), "#!/bin/sh\n");
}

/// What is left of an installation of JavaScript, answered with these keys. A yes that
/// was typed before the question answers nothing.
fn installed(machine: &Machine, keys: &str) -> Left {
    let command = machine
        .toolward("doctor --language ts --install --toolchain own")
        .env("PATH", machine.home().join("bin"));
    let mut session = Session::start(command.into_command(), 120, "y\r");
    session.sees("Fetch these? [y/N]");
    session.types(keys);
    session.leaves()
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
        // Node.js is missing, too, and is not fetched.
        let installable = !rust && one["language"] != "js";
        assert_eq!(one["installable"], installable, "{one}");
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
fn nothing_is_fetched_without_a_typed_yes() {
    let machine = Machine::new();
    fake_npm(&machine.home().join("bin"));
    machine
        .toolward("doctor --language js --install --toolchain own")
        .env("PATH", machine.home().join("bin"))
        .stdin("y\n")
        .ends(4)
        .says("toolchain-unconfirmed");
    let left = installed(&machine, "n\r");
    assert_eq!(left.code, Some(4), "{left:?}");
    for says in [
        "error[toolchain-unconfirmed]",
        "nothing was installed: you answered no",
    ] {
        assert!(left.screen.contains(says), "{left:?}");
    }
    assert!(!left.screen.contains("hint: "), "{left:?}");
    machine
        .toolward("doctor --language js --install --yes")
        .ends(2);
    assert!(!machine.path("own").exists());
}

#[test]
fn a_typed_yes_installs_what_is_missing_and_shows_what_it_fetches() {
    let machine = Machine::new();
    fake_npm(&machine.home().join("bin"));
    let left = installed(&machine, "y\r");
    assert_eq!(left.code, Some(0), "{left:?}");
    assert!(left.screen.contains("componentize-qjs 0.4.5"), "{left:?}");
    assert!(left.stdout.contains("ok       js"), "{left:?}");
    assert!(machine.path("own/js/node_modules/esbuild").is_dir());
    assert!(machine.path("own/js/package-lock.json").is_file());
    // There is nothing left to ask about.
    machine
        .toolward("doctor --language js --install --toolchain own")
        .env("PATH", machine.home().join("bin"))
        .ends(0);
}

#[test]
fn no_npm_of_the_checkout_is_started() {
    let machine = Machine::new();
    fake_npm(&machine.home().join("bin"));
    fake_npm(&machine.path("bin"));
    fs::remove_file(machine.home().join("bin/npm")).unwrap();
    let path = [machine.path("bin"), machine.home().join("bin")];
    let command = machine
        .toolward("doctor --language js --install --toolchain own")
        .env("PATH", std::env::join_paths(path).unwrap());
    let mut session = Session::start(command.into_command(), 120, "");
    session.sees("Fetch these? [y/N]");
    session.types("y\r");
    let left = session.leaves();
    assert_eq!(left.code, Some(1), "{left:?}");
    assert!(
        left.screen.contains("error[build-tool-missing]"),
        "{left:?}"
    );
    assert!(!machine.path("own/js").exists());
}

#[test]
fn no_node_or_python_module_of_the_checkout_is_started_by_npm_and_pip() {
    let machine = Machine::new();
    let bin = machine.home().join("bin");
    // As npm is one: a script that `env` finds the interpreter of.
    program(&bin.join("npm"), "#!/usr/bin/env node\n");
    program(&bin.join("node"), MAKE_QUICKJS);
    let python = r#"#!/bin/sh
echo "$1 $2 $3 path=$PYTHONPATH options=$NODE_OPTIONS" >>"$HOME/said"
if [ "$3" = venv ]; then
  /bin/mkdir -p "$4/bin"; /bin/cp "$0" "$4/bin/python"; /bin/cp "$0" "$4/bin/pip"
else
  /bin/cp "$0" "${0%/*}/go"
fi
"#;
    program(&bin.join("python3"), python);
    let theirs = machine.path("bin");
    let ran = "#!/bin/sh\n: >\"$HOME/ran\"\n";
    program(&theirs.join("node"), ran);
    program(&theirs.join("python3"), ran);
    let path = std::env::join_paths([theirs, bin]).unwrap();
    let command = machine
        .toolward("doctor --language js go --install --toolchain own")
        .env("PATH", path)
        .env("PYTHONPATH", machine.work())
        .env("NODE_OPTIONS", "--require ./theirs.js");
    let mut session = Session::start(command.into_command(), 120, "");
    session.sees("Fetch these? [y/N]");
    session.types("y\r");
    let left = session.leaves();
    assert_eq!(left.code, Some(0), "{left:?}");
    assert!(machine.path("own/js/node_modules/esbuild").is_dir());
    assert!(!machine.home().join("ran").exists());
    let said = fs::read_to_string(machine.home().join("said")).unwrap();
    let lines = "-I -m venv path= options=\n-I -m pip path= options=\n";
    assert_eq!(said, lines);
}

#[test]
fn what_npm_printed_is_told_where_it_fails_with_quiet_and_json_too() {
    let machine = Machine::new();
    let bin = machine.home().join("bin");
    program(&bin.join("node"), "#!/bin/sh\n");
    program(
        &bin.join("npm"),
        "#!/bin/sh\necho 'npm error E404' >&2; exit 1\n",
    );
    let fails = |flag: &str| {
        let command = machine
            .toolward(&format!(
                "doctor --language js --install --toolchain own {flag}"
            ))
            .env("PATH", &bin);
        let mut session = Session::start(command.into_command(), 120, "");
        session.sees("Fetch these? [y/N]");
        session.types("y\r");
        let left = session.leaves();
        assert_eq!(left.code, Some(1), "{left:?}");
        left
    };
    let quiet = fails("-q").screen;
    assert_eq!(quiet.matches("npm error E404").count(), 1, "{quiet}");
    assert!(quiet.contains("error[toolchain-install-failed]"), "{quiet}");
    let json: Value = serde_json::from_str(&fails("--json").stdout).unwrap();
    let log = &json["error"]["log"];
    assert_eq!(log[0], "npm error E404", "{json}");
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
