//! `toolchain`: what is there, what is missing, and what is fetched. A script stands in for
//! npm, so that no registry is asked.

use std::fs;
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

/// An npm that makes the packages of QuickJS, and a Node.js that is there.
fn fake_npm(bin: &Path) {
    fs::create_dir(bin).unwrap();
    let npm = "#!/bin/sh\nexec /bin/mkdir -p node_modules/componentize-qjs node_modules/esbuild\n";
    for (name, script) in [("npm", npm), ("node", "#!/bin/sh\n")] {
        fs::write(bin.join(name), script).unwrap();
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(bin.join(name), mode).unwrap();
    }
}

/// What is left of an installation of JavaScript, answered with these keys. A yes that
/// was typed before the question answers nothing.
fn installed(machine: &Machine, keys: &str) -> Left {
    let command = machine
        .toolward("toolchain ts --install --toolchain own")
        .env("PATH", machine.home().join("bin"));
    let mut session = Session::start(command.into_command(), 120, "y\r");
    session.sees("Fetch these? [y/N]");
    session.types(keys);
    session.leaves()
}

#[test]
fn the_tools_of_each_language_are_found_or_missing_with_what_installs_them() {
    let machine = Machine::new();
    let command = format!("toolchain {OTHERS} --json --toolchain");
    let found = machine.toolward(&command).arg(directory()).ends(0).json();
    assert_eq!(found["ok"], true, "{found}");
    let all = ["js", "python", "go", "c"];
    assert_eq!(languages(&found), all.map(|language| (language, true)));

    let nothing = machine
        .toolward(&format!("{command} nothing rust"))
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
        assert_eq!(one["installable"], !rust, "{one}");
    }
    let told = machine
        .toolward("toolchain go --toolchain nothing")
        .env("PATH", machine.path("empty"))
        .ends(1);
    assert!(told.stdout.starts_with("missing  go "), "{told}");
    assert!(told.stdout.contains("hint: install it: "), "{told}");
    assert!(!told.stdout.contains("rust"), "{told}");
    machine.toolward("toolchain cobol").ends(2);
}

#[test]
fn nothing_is_fetched_without_a_typed_yes() {
    let machine = Machine::new();
    fake_npm(&machine.home().join("bin"));
    machine
        .toolward("toolchain js --install --toolchain own")
        .env("PATH", machine.home().join("bin"))
        .stdin("y\n")
        .ends(4)
        .says("toolchain-unconfirmed");
    let left = installed(&machine, "n\r");
    assert_eq!(left.code, Some(4), "{left:?}");
    assert!(
        left.screen.contains("error[toolchain-unconfirmed]"),
        "{left:?}"
    );
    machine.toolward("toolchain js --install --yes").ends(2);
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
        .toolward("toolchain js --install --toolchain own")
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
        .toolward("toolchain js --install --toolchain own")
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
