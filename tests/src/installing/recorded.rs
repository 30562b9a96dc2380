//! Decisions about bundles are recorded in the ledger of calls, in addition to the store's own log.

use serde_json::Value;

use super::{ID, installed, release, reworded, runs, sequence, ship, trusting};
use crate::support::Machine;

/// The rows about bundles, oldest first.
fn rows(machine: &Machine) -> Vec<Value> {
    let rows = machine.toolward("ledger list --json").ends(0).json_lines();
    let of_trust = |row: &Value| row["record"]["kind"] == "trust";
    let mut rows: Vec<Value> = rows.into_iter().filter(of_trust).collect();
    rows.sort_by_key(|row| row["seq"].as_u64());
    rows.iter()
        .map(|row| row["record"]["body"].clone())
        .collect()
}

/// Returns each action with its sequence.
fn actions(machine: &Machine) -> Vec<(String, u64)> {
    let rows = rows(machine);
    let of = |row: &Value| {
        let action = row["action"].as_str().unwrap().to_owned();
        (action, row["sequence"].as_u64().unwrap())
    };
    rows.iter().map(of).collect()
}

#[track_caller]
fn says(machine: &Machine, expected: &[(&str, u64)]) {
    let expected = expected
        .iter()
        .map(|(action, at)| ((*action).to_owned(), *at));
    assert_eq!(actions(machine), expected.collect::<Vec<_>>());
    machine.toolward("ledger verify").ends(0);
}

#[test]
fn what_is_installed_held_accepted_rolled_back_and_revoked_has_a_row_each() {
    let (machine, one) = installed();
    says(&machine, &[("installed", 1)]);
    let digest = ship(&machine, &reworded(release(2)), &one, "two.toolbundle");
    let held = machine.toolward("install two.toolbundle --json");
    let held = held.ends(4).json();
    let mut expected = vec![("installed", 1), ("held", 2)];
    says(&machine, &expected);
    // A release that waits or is installed already, and a refused one, change nothing.
    machine.toolward("install two.toolbundle").ends(4);
    machine.toolward("install b.toolbundle").ends(0);
    let surface = held["surface"].as_str().unwrap();
    let wrong = format!("update {ID} --accept {}", digest);
    machine.toolward(&wrong).ends(3);
    says(&machine, &expected);
    machine
        .toolward(&format!("update {ID} --accept {surface}"))
        .ends(0);
    expected.push(("accepted", 2));
    says(&machine, &expected);
    let back = "install b.toolbundle --allow-rollback the-new-one-is-broken --accept";
    let first = machine.toolward("install b.toolbundle --allow-rollback why --json");
    let first = first.ends(4).json();
    let first = first["surface"].as_str().unwrap();
    expected.push(("held", 1));
    machine.toolward(&format!("{back} {first}")).ends(0);
    assert_eq!(sequence(&machine), 1);
    expected.push(("rolled-back", 1));
    says(&machine, &expected);
    let installed = super::listed(&machine)[0]["digest"]
        .as_str()
        .unwrap()
        .to_owned();
    machine
        .toolward("publisher revoke acme --key one.pem -o list.json")
        .arg(format!("--bundle={installed}=leaks"))
        .ends(0);
    machine
        .toolward("trust update acme --revocations list.json")
        .ends(0);
    expected.push(("revoked", 1));
    says(&machine, &expected);
    // The same list again revokes nothing more.
    machine
        .toolward("trust update acme --revocations list.json")
        .end();
    says(&machine, &expected);

    let all = rows(&machine);
    for row in &all {
        assert_eq!(
            (&row["id"], &row["publisher"]),
            (&ID.into(), &"acme".into())
        );
        let sequence = row["sequence"].as_u64().unwrap();
        assert_eq!(row["version"], format!("1.{sequence}.0"));
    }
    assert_eq!(all[1]["bundle"], digest);
    let listed = machine.toolward("ledger list").ends(0).stdout;
    for action in ["installed", "held", "accepted", "rolled-back", "revoked"] {
        let line = format!("trust         {action}  {ID}");
        assert!(listed.contains(&line), "{line}: {listed}");
    }
}

#[test]
fn a_ledger_that_fails_is_a_warning_and_one_that_is_off_is_not_made() {
    let (machine, one) = trusting();
    ship(&machine, &release(1), &one, "b.toolbundle");
    machine.configure("[ledger]\ndirectory = \"/proc/nowhere\"\n");
    let installed = machine.toolward("install b.toolbundle").ends(0);
    installed.warns("is not in the ledger");
    assert_eq!(sequence(&machine), 1);

    ship(&machine, &release(2), &one, "b.toolbundle");
    machine.configure("[ledger]\noff = true\n");
    let updated = machine.toolward("update").ends(0);
    assert!(!updated.stderr.contains("ledger"), "{updated}");
    assert_eq!(sequence(&machine), 2);
    machine.configure("");
    machine
        .toolward("ledger list")
        .ends(1)
        .says("ledger-missing");
    runs(&machine);
}
