//! A configuration that is not what it seems. Each command that reads it reports that.

use super::{installed, listed};
use crate::support::Machine;

#[test]
fn a_grant_that_is_about_no_installed_tool_is_reported_by_each_command() {
    let (machine, _) = installed();
    let grant = |tool: &str| format!("[[grant]]\npublisher = \"acme\"\ntool = {tool:?}\n");
    machine.configure(&grant("text.stats"));
    let check = machine.toolward("policy check").ends(0);
    assert!(check.stdout.contains(": fine ("), "{check}");
    machine.configure(&grant("text.stat"));
    for command in ["policy check", "policy list", "list"] {
        let ended = machine.toolward(command).ends(0);
        ended.warns("it matches no installed tool");
        assert!(!ended.stdout.contains(": fine ("), "{ended}");
    }
    let doctor = machine.toolward("doctor").end();
    assert!(doctor.stdout.contains("warning  grant"), "{doctor}");
    assert!(
        doctor.stdout.contains("matches no installed tool"),
        "{doctor}"
    );
}

#[test]
fn a_context_for_a_tool_without_a_schema_for_it_is_reported_by_each_command() {
    let (machine, _) = installed();
    let lines = "[[grant]]\npublisher = \"acme\"\n\n[[context]]\npublisher = \"acme\"\ntool = \"text.stats\"\nprincipal = \"*\"\nvalues.tenant = \"a\"\n";
    machine.configure(lines);
    for command in ["policy check", "policy list", "list"] {
        let ended = machine.toolward(command).ends(0);
        ended.warns("[context-without-schema]");
    }
    let doctor = machine.toolward("doctor").end();
    assert!(
        doctor.stdout.contains("[context-without-schema]"),
        "{doctor}"
    );
    machine.configure(&lines.replace("text.stats", "text.stat"));
    machine
        .toolward("policy check")
        .ends(0)
        .warns("[context-without-tool]");
}

#[test]
fn a_configuration_that_can_not_be_read_is_an_error_wherever_one_asks() {
    // With and without installed bundles.
    for machine in [Machine::new(), installed().0] {
        let bundles = listed(&machine).len();
        machine.configure("[[grant\n");
        for command in [
            "list",
            "policy list",
            "policy suggest",
            "show text.stats --policy",
            "show text.stats --drivers",
            "show text.stats",
        ] {
            let ended = machine.toolward(command).ends(2);
            assert!(ended.stderr.contains("error[policy-syntax]"), "{ended}");
        }
        // Installed bundles are shown nevertheless.
        let shown = machine.toolward("list --json").ends(2).json_lines();
        let rows = shown.iter().filter(|row| row["id"].is_string()).count();
        assert_eq!(rows, bundles);
        let doctor = machine.toolward("doctor").ends(1);
        assert!(doctor.stdout.contains("ERROR"), "{doctor}");
    }
}
