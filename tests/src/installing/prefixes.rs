//! A trusted publisher gets another prefix: shown, and typed.

use super::{listed, release_of, ship, trusting};
use crate::support::{Machine, Session};

const UPDATE: &str = "trust update acme --prefix kv --prefix kv-counter";

fn prefixes(machine: &Machine) -> String {
    let shown = machine.toolward("trust show acme --json").ends(0);
    shown.json_lines()[0]["prefixes"].to_string()
}

/// Gives the command at a terminal, and types these keys.
fn typed(machine: &Machine, keys: &str) -> (Option<i32>, String) {
    let mut session = Session::start(machine.toolward(UPDATE).into_command(), 120, "y\r");
    session.sees("Trust it for the added ids, too? [y/N] ");
    session.types(keys);
    let left = session.leaves();
    (left.code, left.screen)
}

#[test]
fn a_second_prefix_is_added_after_a_typed_yes_and_each_refusal_leads_there() {
    let (machine, one) = trusting();
    let mut draft = release_of("kv-counter", 1);
    draft.manifest.publisher = "acme".to_owned();
    ship(&machine, &draft, &one, "second.toolbundle");
    let refused = machine.toolward("install second.toolbundle").ends(3);
    refused.says("prefix-not-granted");
    assert!(
        refused
            .stderr
            .contains("toolward trust update acme --prefix PREFIX"),
        "{refused}"
    );
    // The command that trusted it first names the same next step.
    let again = machine
        .toolward("trust add acme.publisher.json --prefix kv")
        .ends(2);
    again.says("publisher-known");
    assert!(
        again.stderr.contains("toolward trust update acme --prefix"),
        "{again}"
    );

    let before = prefixes(&machine);
    machine.toolward(UPDATE).ends(4).says("change-unconfirmed");
    let (code, _) = typed(&machine, "n\r");
    assert_eq!(code, Some(4));
    assert_eq!(prefixes(&machine), before);
    let (code, screen) = typed(&machine, "y\r");
    assert_eq!(code, Some(0), "{screen}");
    for part in [
        "publisher    acme",
        "fingerprint  ",
        "added        kv, kv-counter",
    ] {
        assert!(screen.contains(part), "{part}: {screen}");
    }
    assert_ne!(prefixes(&machine), before);
    assert!(prefixes(&machine).contains("\"kv\""));
    machine.toolward("install second.toolbundle").ends(0);
    assert_eq!(listed(&machine).len(), 1);
}
