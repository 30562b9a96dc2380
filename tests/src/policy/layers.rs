//! The files from which a policy is read, and how they combine.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;

use super::{
    append, dev, is_blocked, notes, notes_policy, signed, state, under_work, users_file, written,
};

const PREAPPROVED: &str = "preapproved = true";

#[test]
fn a_policy_of_the_current_directory_or_the_bundle_is_none() {
    let machine = notes();
    let policy = notes_policy(&machine, PREAPPROVED);
    let before = machine.text("notes-append/bundle.toml");
    for place in [
        "toolward.toml",
        ".toolward.toml",
        ".config/toolward/toolward.toml",
        "toolward/toolward.toml",
        "notes-append/tools/notes.append/toolward.toml",
        "notes-append/toolward.toml",
        "my-notes/toolward.toml",
    ] {
        machine.write(place, &policy);
    }
    is_blocked(&append(&machine, "--json", "a").end());
    // Variables in an agent's environment do not name a policy file either.
    for (name, value) in [
        ("TOOLWARD_POLICY", "toolward.toml"),
        ("XDG_CONFIG_HOME", "."),
    ] {
        let run = append(&machine, "--json", "a").env(name, value);
        is_blocked(&run.end());
    }
    assert_eq!(written(&machine), ["toolward.toml"]);
    assert_eq!(machine.text("notes-append/bundle.toml"), before);
    // The same text has an effect in the right file.
    machine.configure(&policy);
    append(&machine, "", "a").ends(0);
}

#[test]
fn a_configuration_that_can_not_be_read_is_never_taken_for_none() {
    let machine = notes();
    machine.write("whole.toml", notes_policy(&machine, PREAPPROVED));
    let call = || append(&machine, "--policy-file whole.toml", "a");
    let file = users_file(&machine);
    let folder = file.parent().unwrap().to_owned();
    let fails = |case: &str| {
        let ended = call().ends(2);
        assert!(ended.stderr.contains("file-unreadable"), "{case}: {ended}");
        assert_eq!(written(&machine), [""; 0], "{case}");
    };
    fs::create_dir_all(&folder).unwrap();
    symlink("nowhere.toml", &file).unwrap();
    fails("a link that leads nowhere");
    fs::remove_file(&file).unwrap();

    fs::create_dir(&file).unwrap();
    fails("a directory");
    fs::remove_dir(&file).unwrap();

    let made = machine.program("mkfifo").arg(&file).status().unwrap();
    assert!(made.success());
    fails("a pipe");
    fs::remove_file(&file).unwrap();

    fs::remove_dir(&folder).unwrap();
    fs::write(&folder, "").unwrap();
    fails("in a file");
    fs::remove_file(&folder).unwrap();

    symlink("nowhere", &folder).unwrap();
    fails("in a link that leads nowhere");
    fs::remove_file(&folder).unwrap();

    call().ends(0);
    assert_eq!(written(&machine), ["journal.md"]);
}

#[test]
fn a_configuration_may_be_a_link_to_a_file() {
    let machine = notes();
    machine.write("mine.toml", notes_policy(&machine, PREAPPROVED));
    let file = users_file(&machine);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    symlink(machine.path("mine.toml"), &file).unwrap();
    append(&machine, "", "a").ends(0);
}

#[test]
fn layers_add_up_and_a_deny_of_any_of_them_wins() {
    let machine = notes();
    let whole = notes_policy(&machine, PREAPPROVED);
    let (workspace, grant) = whole.split_at(whole.find("[[grant]]").unwrap());
    machine.configure(workspace);
    machine.write("grant.toml", grant);
    machine.write("deny.toml", "[[deny]]\ntool = \"notes.append\"\n");
    machine.write(
        "deny-write.toml",
        "[[deny]]\ncapabilities = [\"workspace:/notes\"]\n",
    );
    let blocked = |flags: &str| {
        is_blocked(&append(&machine, &format!("{flags} --json"), "a").end());
    };
    blocked("");
    append(&machine, "--policy-file grant.toml", "a").ends(0);
    for deny in ["deny.toml", "deny-write.toml"] {
        blocked(&format!("--policy-file grant.toml --policy-file {deny}"));
        blocked(&format!("--policy-file {deny} --policy-file grant.toml"));
    }
    // A deny in the user's own file takes precedence over all flags.
    machine.configure(&format!("{workspace}\n[[deny]]\n"));
    blocked("--policy-file grant.toml");
    assert_eq!(machine.text("my-notes/journal.md"), "a\n");
}

#[test]
fn later_single_values_win_over_earlier_ones() {
    let machine = notes();
    machine.configure(&notes_policy(&machine, PREAPPROVED));
    machine.write("always.toml", "[defaults]\napproval = \"always\"\n");
    machine.write("auto.toml", "[defaults]\napproval = \"auto\"\n");
    append(
        &machine,
        "--policy-file always.toml --policy-file auto.toml",
        "a",
    )
    .ends(0);
    let ended = append(
        &machine,
        "--policy-file auto.toml --policy-file always.toml",
        "b",
    )
    .ends(4);
    ended.says("toolward:approval_denied");
    assert_eq!(machine.text("my-notes/journal.md"), "a\n");
}

#[test]
fn a_limit_of_the_policy_holds() {
    let machine = notes();
    machine.configure(&notes_policy(&machine, PREAPPROVED));
    machine.write("small.toml", "[limits]\ninput_bytes = 40\n");
    append(&machine, "--policy-file small.toml", "a").ends(0);
    let ended = append(&machine, "--policy-file small.toml --json", &"a".repeat(40)).ends(1);
    assert_eq!(ended.json()["error"]["code"], "input_invalid");
    assert_eq!(machine.text("my-notes/journal.md"), "a\n");
}

#[test]
fn another_configuration_replaces_the_users_and_its_grants() {
    let machine = notes();
    signed(&machine, "notes-append", "acme");
    let policy =
        notes_policy(&machine, PREAPPROVED).replace(&dev(&machine, "notes-append"), "acme");
    let trust =
        "[[publisher]]\nname = \"acme\"\nkey_files = [\"../acme.pub.pem\"]\nprefixes = [\"*\"]\n";
    machine.write("full/toolward.toml", format!("{trust}\n{policy}"));
    machine.write("poor/toolward.toml", trust);
    let call = |config: &str| {
        machine
            .toolward(&format!(
                "call notes.append --bundle acme.toolbundle {config} --json --input"
            ))
            .arg(json!({ "note": "journal", "text": "a" }).to_string())
    };
    call("--config full/toolward.toml").ends(0);
    machine.configure(&format!(
        "{}\n{policy}",
        trust.replace("..", machine.work().to_str().unwrap())
    ));
    call("").ends(0);
    is_blocked(&call("--config poor/toolward.toml").end());
    assert_eq!(machine.text("my-notes/journal.md"), "a\n\na\n");
}

#[test]
fn a_key_of_a_flag_has_only_the_grants_that_name_it() {
    let machine = notes();
    let acme = signed(&machine, "notes-append", "acme");
    let other = signed(&machine, "notes-append", "other");
    assert_ne!(acme, other);
    let policy = notes_policy(&machine, PREAPPROVED).replace(&dev(&machine, "notes-append"), &acme);
    machine.configure(&policy);
    let call = |name: &str| {
        machine
            .toolward(&format!(
                "call notes.append --bundle {name}.toolbundle --trust-key {name}.pub.pem \
                 --json --input"
            ))
            .arg(json!({ "note": "journal", "text": name }).to_string())
    };
    call("acme").ends(0);
    is_blocked(&call("other").end());
    // The bundle's name for its publisher is not the publisher's name.
    machine.configure(&policy.replace(&acme, "toolward-examples"));
    is_blocked(&call("acme").end());
    assert_eq!(machine.text("my-notes/journal.md"), "acme\n");
}

#[test]
fn a_relative_directory_lies_where_the_policy_does() {
    let machine = notes();
    let policy = notes_policy(&machine, PREAPPROVED)
        .replace(&format!("{:?}", machine.path("my-notes")), "\"notes\"");
    machine.write("policies/p.toml", &policy);
    fs::create_dir_all(machine.path("policies/notes")).unwrap();
    // The current directory contains this name as well.
    fs::create_dir(machine.path("notes")).unwrap();
    append(&machine, "--policy-file policies/p.toml", "a").ends(0);
    assert_eq!(machine.text("policies/notes/journal.md"), "a\n");
    assert!(!machine.path("notes/journal.md").exists());
}

#[test]
fn a_broken_policy_is_shown_with_its_place_and_nothing_runs() {
    let machine = notes();
    let policy = notes_policy(&machine, PREAPPROVED);
    for (text, code, place) in [
        (format!("{policy}tols = 1\n"), "policy-unknown-key", (10, 1)),
        (
            format!("{policy}requires = [\"network\"]\n"),
            "policy-capability",
            (10, 13),
        ),
        (
            policy.replace("notes.append", "not*s"),
            "policy-tool",
            (7, 8),
        ),
        (format!("{policy}= 1\n"), "policy-syntax", (10, 1)),
    ] {
        machine.configure(&text);
        let ended = append(&machine, "", "a").ends(2);
        ended.says(code);
        let file = super::users_file(&machine);
        let place = format!(
            "{}:{}:{}: error[{code}]: ",
            file.display(),
            place.0,
            place.1
        );
        assert!(ended.stderr.contains(&place), "no {place} in {ended}");
        let error = append(&machine, "--json", "a").ends(2).json();
        assert_eq!(error["error"]["code"], code);
        assert_eq!(
            error["error"]["diagnostics"][0]["file"],
            file.to_str().unwrap()
        );
        // The same in a layer, and in a file that is checked.
        machine.configure("");
        machine.write("layer.toml", &text);
        append(&machine, "--policy-file layer.toml", "a")
            .ends(2)
            .says(code);
        let checked = machine.toolward("policy check layer.toml").ends(1);
        checked.says(code);
        assert!(checked.stderr.contains("layer.toml:"), "{checked}");
        let mut lines = checked.stderr.lines();
        let line = lines.find_map(|line| line.trim_start().split_once(" | "));
        let (_, shown) = line.unwrap_or_else(|| panic!("no line of the file in {checked}"));
        assert!(text.contains(shown), "{checked}");
    }
    machine.configure("");
    append(&machine, "--policy-file gone.toml", "a")
        .ends(2)
        .says("file-unreadable");
    machine.configure(&policy);
    machine.write("layer.toml", &policy);
    // Each file is valid alone, but both declare an item that may be declared once.
    append(&machine, "--policy-file layer.toml", "a")
        .ends(2)
        .says("policy-duplicate");
    assert_eq!(written(&machine), [""; 0]);
}

#[test]
fn a_workspace_where_configuration_state_or_keys_are_is_refused() {
    let machine = notes();
    let key = signed(&machine, "notes-append", "acme");
    let trust = |file: &str| {
        format!("[[publisher]]\nname = \"acme\"\nkey_files = [{file:?}]\nprefixes = [\"*\"]\n")
    };
    fs::create_dir_all(machine.path("keys")).unwrap();
    fs::rename(
        machine.path("acme.pub.pem"),
        machine.path("keys/acme.pub.pem"),
    )
    .unwrap();
    fs::create_dir_all(machine.home().join(".local/state/toolward")).unwrap();
    let policy = |directory: &std::path::Path| {
        notes_policy(&machine, PREAPPROVED)
            .replace(
                machine.path("my-notes").to_str().unwrap(),
                directory.to_str().unwrap(),
            )
            .replace(&dev(&machine, "notes-append"), &key)
    };
    let call = |flags: &str| {
        machine
            .toolward(&format!(
                "call notes.append --bundle acme.toolbundle {flags} --input"
            ))
            .arg(json!({ "note": "journal", "text": "a" }).to_string())
    };
    let config = machine.home().join(".config/toolward");
    for directory in [
        machine.home(),
        config.clone(),
        config.join("notes"),
        machine.home().join(".local/state/toolward"),
        machine.home().join(".local"),
        machine.home().join(".local/share/toolward/store"),
        machine.cache(),
        machine.path("keys"),
    ] {
        machine.configure(&format!(
            "{}\n{}",
            trust(machine.path("keys/acme.pub.pem").to_str().unwrap()),
            policy(&directory)
        ));
        fs::create_dir_all(&directory).unwrap();
        call("").ends(2).says("workspace-refused");
        assert!(!directory.join("journal.md").exists());
    }
    // The policy itself, and a key that a flag names.
    machine.configure("");
    machine.write("policies/p.toml", policy(&machine.path("policies")));
    call("--trust-key keys/acme.pub.pem --policy-file policies/p.toml")
        .ends(2)
        .says("workspace-refused");
    machine.write("p.toml", policy(&machine.path("keys")));
    call("--trust-key keys/acme.pub.pem --policy-file p.toml")
        .ends(2)
        .says("workspace-refused");
}

#[test]
fn unsigned_work_is_never_a_trusted_publisher() {
    let machine = notes();
    under_work(&machine, "files-search");
    let policy = notes_policy(&machine, PREAPPROVED);
    let named = policy.replace(&dev(&machine, "notes-append"), "toolward-examples");
    machine.configure(&named);
    assert_eq!(
        state(&machine, "notes.append", "--dev notes-append"),
        "blocked"
    );
}
