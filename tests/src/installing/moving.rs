//! An installed bundle comes from another place only after a person has seen both places and typed
//! a yes.

use super::fronted::Fronted;
use super::web::Web;
use super::{ID, listed, release, sequence, ship, trusting};
use crate::support::{Left, Machine, Session};

const QUESTION: &str = "Move it? [y/N] ";

fn typed(machine: &Machine, command: &str, keys: &str) -> Left {
    let mut session = Session::start(machine.toolward(command).into_command(), 160, "y\r");
    session.sees(QUESTION);
    session.types(keys);
    session.leaves()
}

fn source(machine: &Machine) -> String {
    listed(machine)[0]["source"].as_str().unwrap().to_owned()
}

#[test]
fn a_source_moves_after_a_typed_yes_and_leaves_a_line() {
    let (machine, one) = trusting();
    machine.configure("[trust]\nmax_age_days = 90\n");
    ship(&machine, &release(1), &one, "1.toolbundle");
    ship(&machine, &release(2), &one, "2.toolbundle");
    machine.toolward("install 1.toolbundle").ends(0);
    let file = source(&machine);
    let web = Web::serve(machine.read("2.toolbundle"));
    let url = web.url("2.toolbundle");
    let install = format!("install {url} --plain-http");
    let ended = machine.toolward(&install).ends(4);
    ended.says("source-moves");
    for told in ["--move-source", &file, &url] {
        assert!(ended.stderr.contains(told), "no {told} in {ended}");
    }
    let moving = format!("{install} --move-source");
    machine
        .toolward(&moving)
        .stdin("y\n")
        .ends(4)
        .says("change-unconfirmed");
    for keys in ["\r", "n\r", "\u{3}"] {
        let left = typed(&machine, &moving, keys);
        assert_eq!(left.code, Some(4), "{left:?}");
    }
    assert_eq!((sequence(&machine), source(&machine)), (1, file.clone()));
    let doctor = machine.toolward("doctor").end();
    assert!(!doctor.stdout.contains("--move-source"), "{doctor}");

    let left = typed(&machine, &moving, "y\r");
    assert_eq!(left.code, Some(0), "{left:?}");
    assert_eq!((sequence(&machine), source(&machine)), (2, url.clone()));
    let doctor = machine.toolward("doctor").end();
    assert!(doctor.stdout.contains("install --move-source"), "{doctor}");
    assert!(doctor.stdout.contains(&url), "{doctor}");

    // Moving back to a file is also a move, but moving to another file of the folder is not.
    machine
        .toolward("install 2.toolbundle")
        .ends(4)
        .says("source-moves");
    let left = typed(&machine, "install 2.toolbundle --move-source", "y\r");
    assert_eq!(left.code, Some(0), "{left:?}");
    assert!(
        source(&machine).ends_with("/2.toolbundle"),
        "the same release"
    );
    machine.toolward(&format!("remove {ID}")).ends(0);
    machine.toolward("install 2.toolbundle").ends(0);
    std::fs::copy(machine.path("2.toolbundle"), machine.path("3.toolbundle")).unwrap();
    machine.toolward("install 3.toolbundle").ends(0);
    std::fs::create_dir(machine.path("received")).unwrap();
    std::fs::copy(
        machine.path("2.toolbundle"),
        machine.path("received/2.toolbundle"),
    )
    .unwrap();
    // The same folder, written in another way.
    machine.toolward("install received/../3.toolbundle").ends(0);
    let before = source(&machine);
    let ended = machine.toolward("install received/2.toolbundle").ends(4);
    ended.says("source-moves");
    assert!(ended.stderr.contains("/received/2.toolbundle"), "{ended}");
    assert_eq!(source(&machine), before);
}

#[test]
fn the_maximum_age_holds_for_the_new_source() {
    let (machine, one) = trusting();
    ship(&machine, &release(1), &one, "1.toolbundle");
    machine.toolward("install 1.toolbundle").ends(0);
    let web = Web::serve(machine.read("1.toolbundle"));
    let install = format!(
        "install {} --plain-http --move-source",
        web.url("1.toolbundle")
    );
    // Without a rule of freshness it is refused before a question.
    machine.toolward(&install).ends(3).says("freshness-unknown");
}

#[test]
fn another_tag_of_the_repository_is_no_move() {
    let Some(fronted) = Fronted::start() else {
        return;
    };
    let (machine, one) = trusting();
    let trust = "[trust]\nmax_age_days = 90\n";
    machine.configure(&format!("{trust}{}", fronted.table(&machine, "")));
    ship(&machine, &release(1), &one, "1.toolbundle");
    for tag in [
        "acme/text-stats:1.0.0",
        "acme/text-stats:stable",
        "acme/other:1.0.0",
    ] {
        let push = format!("publisher push 1.toolbundle oci://registry.example/{tag}");
        fronted.toolward(&machine, &push).ends(0);
    }
    for (tag, exit) in [
        ("text-stats:1.0.0", 0),
        ("text-stats:stable", 0),
        ("other:1.0.0", 4),
    ] {
        let install = format!("install oci://registry.example/acme/{tag}");
        fronted.toolward(&machine, &install).ends(exit);
    }
    assert!(source(&machine).ends_with("acme/text-stats:stable"));
}
