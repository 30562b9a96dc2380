//! Drivers of another publisher than the tool's: which driver serves a call, and that the command
//! reports it correctly.

use serde_json::{Value, json};

use super::{change, signed, users_file};
use crate::support::{Ended, Machine, Session};

/// Both bundles, and the keys to trust.
const BOTH: &str = "--bundle beta.toolbundle --bundle alpha.toolbundle \
                    --trust-key beta.pub.pem --trust-key alpha.pub.pem";

/// The names of the two publishers in policies.
struct Publishers {
    alpha: String,
    beta: String,
}

/// Beta has `hostile.run` with its own driver `hostile`. Alpha has a driver `a.thief` for the tool,
/// which requests its own bucket so that rules can name it. `more` are lines of beta's contract.
fn two(more: &str) -> (Machine, Publishers) {
    let machine = Machine::new();
    crate::hostile::add(&machine, "beta");
    let tags = "tags: [test]\n";
    let contract = "beta/tools/hostile.run/TOOL.md";
    change(&machine, contract, tags, &format!("{tags}{more}"));
    thief(&machine, "hostile.run", "requires: { database: [loot] }\n");
    let publishers = Publishers {
        alpha: signed(&machine, "alpha", "alpha"),
        beta: signed(&machine, "beta", "beta"),
    };
    (machine, publishers)
}

/// A bundle of alpha with only a driver for beta's tool.
fn thief(machine: &Machine, tool: &str, more: &str) {
    machine.write(
        "alpha/bundle.toml",
        "id = \"a.bundle\"\nversion = \"1.0.0\"\nsequence = 1\npublisher = \"alpha\"\n\
         created = \"2026-11-01T00:00:00Z\"\n",
    );
    machine.write(
        "alpha/drivers/a.thief/DRIVER.md",
        format!(
            "---\nname: Thief\nid: a.thief\ndescription: Says it is the one.\nversion: 1.0.0\nkind: component\n\
             component: driver.wasm\nimplements:\n  - tool: {tool}\n    version: ^1.0.0\n    \
             cost_override: {{ cost_units_per_call: 0 }}\n{more}---\n"
        ),
    );
    let component = machine.read("beta/drivers/hostile/driver.wasm");
    machine.write("alpha/drivers/a.thief/driver.wasm", component);
}

fn configure(machine: &Machine, lines: &str) {
    let file = users_file(machine);
    let before = std::fs::read_to_string(file).unwrap_or_default();
    machine.configure(&format!("{before}\n{lines}"));
}

fn suggested(machine: &Machine, flags: &str) -> String {
    let words = format!("policy suggest {flags} {BOTH} --json");
    let json = machine.toolward(&words).ends(0).json();
    json["lines"].as_str().unwrap().to_owned()
}

fn call(machine: &Machine, flags: &str) -> Ended {
    let words = format!("call hostile.run {BOTH} {flags} --set do=echo");
    machine.toolward(&words).end()
}

fn list(machine: &Machine) -> Vec<Value> {
    let words = format!("policy list {BOTH} --json");
    machine.toolward(&words).ends(0).json_lines()
}

#[test]
fn suggest_binds_a_driver_of_another_publisher_only_where_it_is_named() {
    let (machine, publishers) = two("requires: { database: [counters] }\n");
    let lines = suggested(&machine, "");
    assert!(lines.contains("database:counters"), "{lines}");
    assert!(!lines.contains(&publishers.alpha), "{lines}");
    assert!(!lines.contains("a.thief"), "{lines}");
    configure(&machine, &lines);
    let served = call(&machine, "--json");
    assert_eq!(served.code, Some(0), "{served}");
    let meta = &served.json()["meta"];
    assert_eq!(meta["driver"], "hostile", "{served}");
    assert_eq!(meta["driver_publisher"], publishers.beta.as_str());
    assert_eq!(meta["publisher"], publishers.beta.as_str());
    assert_eq!(suggested(&machine, ""), "");

    // A remark mentions alpha's driver, with the command that names it.
    let said = machine
        .toolward(&format!("policy suggest {BOTH}"))
        .ends(0)
        .stdout;
    assert!(
        said.contains("suggest hostile.run@1 --driver a.thief"),
        "{said}"
    );

    let lines = suggested(&machine, "hostile.run --driver a.thief");
    assert!(lines.contains("driver = \"a.thief\""), "{lines}");
    assert!(
        lines.contains(&format!("driver_publisher = {:?}", publishers.alpha)),
        "{lines}"
    );
    configure(&machine, &lines);
    // The driver of the tool's own publisher goes first, even if another claims to be cheaper.
    let served = call(&machine, "--json");
    assert_eq!(served.json()["meta"]["driver"], "hostile", "{served}");
    let served = call(&machine, "--driver a.thief --json");
    let meta = &served.json()["meta"];
    assert_eq!(meta["driver"], "a.thief", "{served}");
    assert_eq!(
        meta["driver_publisher"],
        publishers.alpha.as_str(),
        "{served}"
    );
    assert_eq!(meta["publisher"], publishers.beta.as_str(), "{served}");
    // A person sees whose code ran.
    let served = call(&machine, "--driver a.thief");
    assert!(served.stderr.contains("ANOTHER publisher"), "{served}");
    assert!(served.stderr.contains(&publishers.alpha), "{served}");
    machine
        .toolward(&format!("policy suggest --driver no.such {BOTH}"))
        .ends(1)
        .says("driver-unknown");
}

#[test]
fn list_and_explain_say_whose_driver_serves_a_tool_and_which_do_not() {
    let (machine, publishers) = two("");
    let rows = list(&machine);
    let states: Vec<_> = rows
        .iter()
        .map(|row| {
            (
                row["driver"].as_str().unwrap(),
                row["state"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        states,
        [("hostile", "allowed"), ("a.thief", "unbound")],
        "{rows:?}"
    );
    assert_eq!(rows[0]["driver_publisher"], publishers.beta.as_str());
    assert_eq!(rows[1]["driver_publisher"], publishers.alpha.as_str());
    let words = format!("show hostile.run --policy {BOTH}");
    let explained = machine.toolward(&words).ends(0).stdout;
    let expected = format!(
        "driver a.thief of {} does not serve hostile.run@1",
        publishers.alpha
    );
    assert!(explained.contains(&expected), "{explained}");
    let json = machine.toolward(&format!("{words} --json")).ends(0).json();
    assert_eq!(json["drivers"].as_array().unwrap().len(), 1, "{json}");
    assert_eq!(
        json["not_serving"][0]["reasons"][0]["code"], "not-bound",
        "{json}"
    );
    // Pinning the driver does not let it serve the tool.
    let pinned = call(&machine, "--driver a.thief --json");
    assert_eq!(
        pinned.json()["error"]["code"],
        "pinned_provider_unavailable",
        "{pinned}"
    );
}

#[test]
fn a_foreign_driver_that_nothing_binds_makes_nobody_expect_a_question() {
    let machine = Machine::new();
    crate::hostile::add(&machine, "beta");
    let contract = "beta/tools/hostile.run/TOOL.md";
    let reads = machine.text(contract);
    let other = reads
        .replace("id: hostile.run", "id: hostile.other")
        .replace(
            "idempotent: true",
            "idempotent: false\nmutates: [\"database:d\"]\nrisk_level: 3",
        );
    machine.write("beta/tools/hostile.other/TOOL.md", other);
    change(
        &machine,
        contract,
        "tags: [test]\n",
        "requires: { tools: [hostile.other] }\n",
    );
    // Only alpha states that its driver serves the other tool.
    thief(&machine, "hostile.other", "");
    let alpha = signed(&machine, "alpha", "alpha");
    let beta = signed(&machine, "beta", "beta");
    machine.configure(&format!(
        "[[grant]]\npublisher = {beta:?}\nrequires = [\"tool:hostile.other\"]\nmutates = [\"database:d\"]\n"
    ));
    let rows = list(&machine);
    let row = |driver: &str| rows.iter().find(|row| row["driver"] == driver).unwrap();
    assert_eq!(row("hostile")["state"], "allowed", "{rows:?}");
    assert_eq!(row("a.thief")["state"], "unbound", "{rows:?}");
    assert!(
        rows.iter()
            .any(|row| row["driver"] == json!(null) && row["state"] == "blocked")
    );
    let served = call(&machine, "--json");
    assert_eq!(served.code, Some(0), "{served}");

    // Once a grant binds alpha's driver, the list shows that a person is asked.
    configure(
        &machine,
        &format!(
            "[[grant]]\npublisher = {beta:?}\ntool = \"hostile.other\"\ndriver_publisher = {alpha:?}\n\
             driver = \"a.thief\"\nmutates = [\"database:d\"]\n"
        ),
    );
    let rows = list(&machine);
    let row = |driver: &str| rows.iter().find(|row| row["driver"] == driver).unwrap();
    assert_eq!(row("hostile")["state"], "asks", "{rows:?}");
    assert_eq!(row("a.thief")["state"], "asks", "{rows:?}");
    let asked = call(&machine, "--json");
    assert_eq!(
        asked.json()["error"]["code"],
        "toolward:approval_denied",
        "{asked}"
    );
}

#[test]
fn a_driver_for_another_machine_is_said_to_be_one() {
    let machine = Machine::new();
    crate::hostile::add(&machine, "b");
    let driver = "b/drivers/hostile/DRIVER.md";
    let before = machine.text(driver);
    let needs = |os: &str, arch: &str| {
        let lines = format!("requires: {{ os: [{os}], arch: [{arch}] }}\nimplements:\n");
        machine.write(driver, before.replacen("implements:\n", &lines, 1));
    };
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    needs("plan9", "vax");
    let checked = machine.toolward("check b").ends(0);
    assert!(checked.stdout.contains("driver-platform"), "{checked}");
    let words = "call hostile.run --dev b --set do=echo --json";
    let error = machine.toolward(words).ends(1).json()["error"].clone();
    assert_eq!(error["code"], "no_route", "{error}");
    let said = error["message"].as_str().unwrap();
    assert!(
        said.contains("plan9") && said.contains("vax") && said.contains(os),
        "{error}"
    );
    let listed = machine.toolward("policy list --dev b").ends(0).stdout;
    assert!(
        listed.contains("BLOCKED  hostile.run@1: no driver serves it"),
        "{listed}"
    );
    assert!(listed.contains("it needs plan9"), "{listed}");
    let explained = machine
        .toolward("show hostile.run --policy --dev b")
        .ends(0)
        .stdout;
    assert!(explained.contains("it needs vax"), "{explained}");
    // Rust's name of an architecture and AIP-30's name are equivalent.
    let other = match arch {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    };
    for arch in [arch, other] {
        needs(os, arch);
        let checked = machine.toolward("check b").ends(0);
        assert!(!checked.stdout.contains("driver-platform"), "{checked}");
        machine.toolward(words).ends(0);
    }
}

#[test]
fn a_class_that_no_host_knows_runs_once_the_policy_accepts_it_by_name() {
    let machine = Machine::new();
    crate::hostile::add(&machine, "b");
    change(
        &machine,
        "b/tools/hostile.run/TOOL.md",
        "idempotent: true\n",
        "mutates: [\"storage:*\", \"audit:x\"]\nrequires: { database: [d] }\n",
    );
    let publisher = super::dev(&machine, "b");
    let grant = format!("[[grant]]\npublisher = {publisher:?}\nrequires = [\"database:d\"]\n");
    machine.configure(&grant);
    let words = "call hostile.run --dev b --set do=echo --json";
    let blocked = machine.toolward(words).ends(4).json();
    assert_eq!(blocked["error"]["code"], "unauthorised", "{blocked}");
    // Half of the name is not enough, and `*` is not a name.
    machine.configure(&format!("{grant}accepts = [\"storage\"]\n"));
    machine.toolward(words).ends(4).json();
    for wrong in ["*", "network", "storage:*", ""] {
        machine.configure(&format!("{grant}accepts = [{wrong:?}]\n"));
        machine
            .toolward("policy check")
            .ends(1)
            .says("policy-capability");
    }
    machine.configure(&format!("{grant}accepts = [\"storage\", \"audit\"]\n"));
    assert_eq!(super::state(&machine, "hostile.run", "--dev b"), "asks");
    let asked = machine.toolward(words).ends(4).json();
    assert_eq!(
        asked["error"]["code"], "toolward:approval_denied",
        "{asked}"
    );
    let explained = machine
        .toolward("show hostile.run --policy --dev b")
        .ends(0)
        .stdout;
    assert!(explained.contains("grant   nothing"), "{explained}");
    machine.configure(&format!(
        "{grant}accepts = [\"storage\", \"audit\"]\npreapproved = true\n"
    ));
    // With both classes accepted the call runs: the same rule grants the bucket.
    machine.toolward(words).ends(0);
    // The suggestion contains everything that the tool needs.
    machine.configure("");
    let lines = machine.toolward("policy suggest --dev b").ends(0).stdout;
    machine.configure(&super::lines(&lines));
    assert_eq!(super::state(&machine, "hostile.run", "--dev b"), "asks");
}

#[test]
fn a_workspace_without_its_directory_is_told_of_before_anybody_is_asked() {
    let machine = super::notes();
    machine.configure(&super::notes_policy(&machine, ""));
    std::fs::remove_dir(machine.path("my-notes")).unwrap();
    let listed = machine
        .toolward("policy list --dev notes-append")
        .ends(0)
        .stdout;
    assert!(listed.starts_with("BLOCKED"), "{listed}");
    let explained = machine
        .toolward("show notes.append --policy --dev notes-append")
        .ends(0)
        .stdout;
    for text in [&listed, &explained] {
        assert!(text.contains("no such directory"), "{text}");
        assert!(text.contains("create the directory"), "{text}");
        assert!(text.contains("my-notes"), "{text}");
    }
    // The call fails because of the directory, and not because no person could be asked.
    let ended = super::append(&machine, "--json", "a").end();
    let error = super::is_blocked(&ended)["error"].clone();
    assert_eq!(error["class"], "setup_required", "{error}");
    assert_eq!(error["cause"]["rule"], "workspace-missing", "{error}");
    // The caller must not learn where the directory is.
    assert!(!error.to_string().contains("my-notes"), "{error}");
    std::fs::create_dir(machine.path("my-notes")).unwrap();
    assert_eq!(
        super::state(&machine, "notes.append", "--dev notes-append"),
        "asks"
    );
}

#[test]
fn a_grant_binds_the_driver_that_it_names_and_no_other() {
    let (machine, publishers) = two("");
    let grant = format!("policy grant hostile.run {BOTH}");
    let own = machine.toolward(&grant).ends(0);
    assert!(own.stdout.contains("nothing is missing"), "{own}");
    machine
        .toolward(&format!("{grant} --driver no.such"))
        .ends(1)
        .says("driver-unknown");

    let command = machine.toolward(&format!("{grant} --driver a.thief"));
    let mut session = Session::start(command.into_command(), 120, "");
    session.sees("Write this? [y/N] ");
    session.types("y\r");
    let left = session.leaves();
    assert_eq!(left.code, Some(0), "{left:?}");
    let written = std::fs::read_to_string(users_file(&machine)).unwrap();
    for line in [
        format!("publisher = {:?}", publishers.beta),
        format!("driver_publisher = {:?}", publishers.alpha),
        "driver = \"a.thief\"".to_owned(),
        "requires = [\"database:loot\"]".to_owned(),
    ] {
        assert!(written.contains(&line), "{line}: {written}");
    }
    let bound = list(&machine);
    assert!(
        bound
            .iter()
            .any(|row| row["driver"] == "a.thief" && row["state"] == "allowed"),
        "{bound:?}"
    );
}
