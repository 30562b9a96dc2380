//! Publishers that are trusted by a bare key: a person types the key's fingerprint, releases have a
//! maximum age, and the publisher gets no ids of other publishers unless the operator states so.

use toolward_signing::key::SigningKey;
use toolward_signing::timestamp::Timestamp;

use super::fronted::Fronted;
use super::web::Web;
use super::{ID, document, is_not_loaded, kept, listed, refused, release, reworded, runs};
use super::{sequence, ship, trusting};
use crate::support::bundle::new_key;
use crate::support::{Draft, Left, Machine, Session, root};

const TYPE: &str = "compares nothing. ";
const QUESTION: &str = "Trust it like this? [y/N] ";
const FILE: &str = "keys/acme.pub.pem";
const ADD: &str = "trust add keys/acme.pub.pem --prefix text. --prefix text-stats";

/// A machine with acme's public key in a separate folder, and its first release.
fn met() -> (Machine, SigningKey) {
    let machine = Machine::new();
    let one = key(&machine, "acme");
    ship(&machine, &release(1), &one, "b.toolbundle");
    (machine, one)
}

/// Makes a new key, whose public half is in `keys`.
fn key(machine: &Machine, name: &str) -> SigningKey {
    std::fs::create_dir_all(machine.path("keys")).unwrap();
    new_key(&machine.path("keys"), name)
}

fn fingerprint(key: &SigningKey) -> String {
    key.public().key_id().to_string()
}

/// Runs a command on a terminal, and types this at the question.
fn typed(machine: &Machine, words: &str, question: &str, keys: &str) -> Left {
    typed_after(machine, words, "", question, keys)
}

/// Does the same, but other keys wait in the terminal before the question is shown.
fn typed_after(machine: &Machine, words: &str, before: &str, question: &str, keys: &str) -> Left {
    let command = machine.toolward(words).into_command();
    let mut session = Session::start(command, 120, before);
    session.sees(question);
    session.types(keys);
    session.leaves()
}

/// Trusts the key by its fingerprint.
#[track_caller]
fn trusts(machine: &Machine, words: &str, key: &SigningKey) -> Left {
    let left = typed(machine, words, TYPE, &format!("{}\r", fingerprint(key)));
    assert_eq!(left.code, Some(0), "{left:?}");
    left
}

/// A machine that trusts acme by its key.
fn trusting_a_key() -> (Machine, SigningKey) {
    let (machine, one) = met();
    trusts(&machine, ADD, &one);
    (machine, one)
}

/// A release that was made this many days ago.
fn aged(sequence: u64, days: i64) -> Draft {
    let mut draft = release(sequence);
    let made = draft.manifest.created.unix() - days * 86_400;
    draft.manifest.created = Timestamp::from_unix(made).unwrap();
    draft
}

/// The page's lines that are typed on a terminal.
fn printed() -> Vec<String> {
    let page = std::fs::read_to_string(root().join("docs/src/operators.md")).unwrap();
    let (_, section) = page.split_once("\n## A bare key\n").unwrap();
    let (_, block) = section.split_once("```text\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    block.lines().map(str::to_owned).collect()
}

#[test]
fn a_bare_key_is_trusted_only_once_its_fingerprint_was_typed_on_a_terminal() {
    let (machine, one) = met();
    let id = fingerprint(&one);
    // Without a terminal no person is asked, whatever is piped in.
    let before = kept(&machine);
    for run in [
        machine.toolward(ADD),
        machine.toolward(ADD).stdin(format!("{id}\n")),
        machine.toolward(ADD).env("TOOLWARD_YES", "1"),
    ] {
        run.ends(3).says("fingerprint-unconfirmed");
    }
    let flag = format!("{ADD} --fingerprint {id}");
    refused(&machine, &flag, 2, "setting-invalid");
    let ended = machine.toolward(&format!("{ADD} --yes")).ends(2);
    assert!(ended.stderr.contains("--yes"), "{ended}");
    // The person types something else.
    let other = fingerprint(&key(&machine, "other"));
    for (keys, code) in [
        ("\r", "fingerprint-unconfirmed"),
        ("\u{3}", "fingerprint-unconfirmed"),
        ("y\r", "fingerprint-mismatch"),
        (&format!("{other}\r"), "fingerprint-mismatch"),
        (
            &format!("{}\r", id.get(..63).unwrap()),
            "fingerprint-mismatch",
        ),
    ] {
        let left = typed(&machine, ADD, TYPE, keys);
        assert_eq!(left.code, Some(3), "{keys:?} {left:?}");
        assert!(left.screen.contains(code), "{keys:?} {left:?}");
        // The fingerprint that the person must know is not on the screen.
        let echoed = left.screen.matches(&id).count();
        assert_eq!(echoed, 0, "{left:?}");
    }
    // Keys that were typed before the question do not answer it.
    let ahead = format!("{id}\r");
    let left = typed_after(&machine, ADD, &ahead, TYPE, "\r");
    assert!(left.screen.contains("fingerprint-unconfirmed"), "{left:?}");
    assert_eq!(kept(&machine), before);
    refused(&machine, "install b.toolbundle", 2, "nobody-trusted");
    let doctor = machine.toolward("doctor").end();
    assert!(!doctor.stdout.contains("`trust add`"), "{doctor}");

    let left = trusts(&machine, ADD, &one);
    for told in [
        "acme, by a bare key",
        "+ text\r",
        "+ text-stats\r",
        "+ at most 90 days old",
        "can't be rotated",
        "can't revoke it",
    ] {
        assert!(left.screen.contains(told), "no {told:?} in {}", left.screen);
    }
    let shown = machine.toolward("trust list").ends(0).stdout;
    for told in [
        "acme by a bare key, for text, text-stats",
        &id,
        "at most 90 days old",
        "lacks        rotation, revocation",
    ] {
        assert!(shown.contains(told), "no {told:?} in {shown}");
    }
    let shown = machine.toolward("trust show acme --json").ends(0);
    let shown = shown.json_lines();
    assert_eq!(shown[0]["kind"], "key", "{shown:?}");
    assert_eq!(shown[0]["fingerprint"], id.as_str());
    assert_eq!(shown[0]["max_age_days"], 90);
    let lacks = serde_json::json!(["rotation", "revocation"]);
    assert_eq!(shown[0]["lacks"], lacks);
    assert_eq!(shown[1]["action"], "trust-add");
    let doctor = machine.toolward("doctor").end();
    let told = "`trust add` trusts the bare key of acme for text, text-stats (at most 90 days old)";
    assert!(doctor.stdout.contains(told), "{doctor}");
    assert!(doctor.stdout.contains("1 by bare keys"), "{doctor}");
    // The same command again changes nothing and asks nothing.
    let before = kept(&machine);
    machine.toolward(ADD).ends(0);
    assert_eq!(kept(&machine), before);
}

#[test]
fn a_bare_key_installs_what_lies_below_its_prefixes_only() {
    let (machine, one) = trusting_a_key();
    machine.toolward("install b.toolbundle").ends(0);
    assert_eq!(listed(&machine)[0]["publisher"], "acme");
    runs(&machine);
    // Another key can't sign as acme, and acme's key can't sign as another publisher.
    let other = key(&machine, "other");
    ship(&machine, &release(2), &other, "other.toolbundle");
    refused(&machine, "install other.toolbundle", 3, "unknown-publisher");
    let mut named = release(2);
    named.manifest.publisher = "beta".to_owned();
    ship(&machine, &named, &one, "named.toolbundle");
    refused(&machine, "install named.toolbundle", 3, "wrong-publisher");

    for prefix in ["csv", "tex", "text.other", ID] {
        let (machine, one) = met();
        let add = format!("trust add {FILE} --prefix {prefix}");
        trusts(&machine, &add, &one);
        refused(&machine, "install b.toolbundle", 3, "prefix-not-granted");
    }
    let (machine, _) = met();
    for (prefix, code) in [
        ("*", "trust-invalid"),
        ("Text", "id-invalid"),
        ("teхt", "id-invalid"),
    ] {
        let add = format!("trust add {FILE} --prefix {prefix}");
        let ended = machine.toolward(&add).end();
        assert_ne!(ended.code, Some(0), "{ended}");
        ended.says(code);
    }
}

#[test]
fn what_a_bare_key_signed_is_refused_once_it_is_too_old() {
    let (machine, one) = trusting_a_key();
    ship(&machine, &aged(1, 91), &one, "old.toolbundle");
    let ended = refused(&machine, "install old.toolbundle", 3, "too-old");
    assert!(ended.stderr.contains("--max-age-days DAYS"), "{ended}");
    ship(&machine, &aged(1, 30), &one, "b.toolbundle");
    machine.toolward("install b.toolbundle").ends(0);
    runs(&machine);
    // The new maximum age also applies to installed bundles.
    let shorter = format!("trust add {FILE} --prefix text --max-age-days 10");
    let left = typed(&machine, &shorter, QUESTION, "y\r");
    assert_eq!(left.code, Some(0), "{left:?}");
    assert!(left.screen.contains("- at most 90 days old"), "{left:?}");
    assert!(left.screen.contains("+ at most 10 days old"), "{left:?}");
    is_not_loaded(&machine, "too-old");
    // Only a person can raise the maximum age.
    let update = "trust update acme --max-age-days 365";
    refused(&machine, update, 2, "publisher-bare");
    let longer = format!("trust add {FILE} --prefix text --max-age-days 365");
    machine
        .toolward(&longer)
        .ends(3)
        .says("fingerprint-unconfirmed");
    is_not_loaded(&machine, "too-old");
    assert_eq!(typed(&machine, &longer, QUESTION, "n\r").code, Some(4));
    is_not_loaded(&machine, "too-old");
    assert_eq!(typed(&machine, &longer, QUESTION, "y\r").code, Some(0));
    runs(&machine);
}

#[test]
fn a_bare_key_gets_another_prefix_after_a_typed_yes() {
    let (machine, one) = met();
    trusts(&machine, &format!("trust add {FILE} --prefix text"), &one);
    refused(&machine, "install b.toolbundle", 3, "prefix-not-granted");
    let add = format!("trust add {FILE} --prefix text-stats");
    machine
        .toolward(&add)
        .stdin("y\n")
        .ends(3)
        .says("fingerprint-unconfirmed");
    for keys in ["\r", "n\r", "\u{3}"] {
        let left = typed_after(&machine, &add, "y\r", QUESTION, keys);
        assert_eq!(left.code, Some(4), "{left:?}");
        assert!(left.screen.contains("change-unconfirmed"), "{left:?}");
    }
    refused(&machine, "install b.toolbundle", 3, "prefix-not-granted");
    let left = typed(&machine, &add, QUESTION, "y\r");
    assert_eq!(left.code, Some(0), "{left:?}");
    assert!(left.screen.contains("+ text-stats\r"), "{left:?}");
    assert!(!left.screen.contains("+ text\r"), "{left:?}");
    machine.toolward("install b.toolbundle").ends(0);
    runs(&machine);
    let doctor = machine.toolward("doctor").end();
    assert_eq!(doctor.stdout.matches("`trust add`").count(), 2, "{doctor}");
}

#[test]
fn a_bare_key_takes_no_ids_of_another_publisher_unless_that_is_said() {
    // acme is trusted by its document for `text` and `text-stats`.
    let (machine, one) = trusting();
    let beta = key(&machine, "beta");
    for prefix in ["text", "text.stats", "text-stats.x"] {
        let add = format!("trust add keys/beta.pub.pem --prefix {prefix}");
        let ended = refused(&machine, &add, 4, "prefix-taken");
        assert!(ended.stderr.contains("--takes-from acme"), "{ended}");
        let wrong = format!("{add} --takes-from gamma");
        refused(&machine, &wrong, 4, "prefix-taken");
    }
    let add = "trust add keys/beta.pub.pem --prefix beta --takes-from acme";
    refused(&machine, add, 4, "prefix-taken");
    let add = "trust add keys/beta.pub.pem --prefix text.stats --takes-from acme";
    machine
        .toolward(add)
        .ends(3)
        .says("fingerprint-unconfirmed");
    let left = trusts(&machine, add, &beta);
    assert!(left.screen.contains("takes from + acme"), "{left:?}");
    let doctor = machine.toolward("doctor").end();
    assert!(doctor.stdout.contains("text.stats beside acme"), "{doctor}");
    // The longer prefix takes precedence.
    ship(&machine, &release(1), &one, "b.toolbundle");
    refused(&machine, "install b.toolbundle", 3, "prefix-not-granted");
}

#[test]
fn a_key_that_comes_with_a_bundle_is_not_trusted() {
    let (machine, one) = met();
    let pem = machine.text(FILE);
    let add = |file: &str| format!("trust add {file} --prefix text");
    machine.write("acme.pub.pem", &pem);
    let ended = refused(&machine, &add("acme.pub.pem"), 3, "key-misplaced");
    assert!(ended.stderr.contains("b.toolbundle"), "{ended}");
    std::fs::create_dir(machine.path("unpacked")).unwrap();
    release(1)
        .sign(&one)
        .write_directory(&machine.path("unpacked/b"));
    for file in [
        "unpacked/acme.pub.pem",
        "unpacked/b/acme.pub.pem",
        "unpacked/b/more/acme.pub.pem",
    ] {
        machine.write(file, &pem);
        refused(&machine, &add(file), 3, "key-misplaced");
    }
    std::os::unix::fs::symlink(machine.path("acme.pub.pem"), machine.path("keys/l.pub.pem"))
        .unwrap();
    refused(&machine, &add("keys/l.pub.pem"), 3, "key-misplaced");
    // A key from a web server is refused as well.
    let web = Web::serve(pem.into_bytes());
    let fetched = format!("{} --plain-http", add(&web.url("acme.pub.pem")));
    refused(&machine, &fetched, 3, "key-misplaced");
    // A key in a separate folder leads to a question.
    machine
        .toolward(&add(FILE))
        .ends(3)
        .says("fingerprint-unconfirmed");
}

#[test]
fn a_file_that_is_no_single_public_key_is_not_trusted() {
    let (machine, _) = met();
    machine
        .toolward("publisher keys new --out keys/me.pem")
        .ends(0);
    let two = machine.text(FILE) + &machine.text("keys/me.pub.pem");
    machine.write("keys/two.pub.pem", two);
    for (file, says) in [("me.pem", "private key"), ("two.pub.pem", "several keys")] {
        let add = format!("trust add keys/{file} --prefix text");
        let ended = refused(&machine, &add, 2, "key-invalid");
        assert!(ended.stderr.contains(says), "{ended}");
    }
    std::fs::copy(
        root().join("examples/keys/example.pub.pem"),
        machine.path("keys/example.pub.pem"),
    )
    .unwrap();
    let add = "trust add keys/example.pub.pem --prefix text";
    refused(&machine, add, 3, "trust-example-key");
}

#[test]
fn a_publisher_that_is_trusted_by_its_document_is_not_trusted_by_a_key() {
    let (machine, one) = trusting();
    machine.write(FILE, one.public().to_pem().unwrap());
    for words in [
        format!("trust add {FILE} --prefix more"),
        format!("trust add {FILE} --prefix more --name other"),
    ] {
        let ended = refused(&machine, &words, 2, "publisher-known");
        assert!(ended.stderr.contains("trust show acme"), "{ended}");
    }
    key(&machine, "acme");
    let words = format!("trust add {FILE} --prefix more");
    refused(&machine, &words, 2, "publisher-known");
    // Flags for keys are refused for a document, and flags for documents are refused for a key.
    for flag in ["--name acme", "--takes-from acme"] {
        let words = format!("trust add acme.publisher.json --prefix text {flag}");
        refused(&machine, &words, 2, "setting-invalid");
    }
    let words = format!("trust add {FILE} --prefix text --actions text");
    refused(&machine, &words, 2, "setting-invalid");

    let (machine, _) = trusting_a_key();
    super::key(&machine, "acme");
    let fingerprint = document(&machine, "acme", "acme");
    let run = super::add(&machine, "acme", "--prefix text", &fingerprint);
    let ended = super::refused_run(&machine, run, 2, "publisher-known");
    assert!(ended.stderr.contains("trust remove acme"), "{ended}");
}

#[test]
fn a_bare_key_is_removed_and_what_it_signed_is_loaded_no_more() {
    let (machine, one) = trusting_a_key();
    machine.toolward("install b.toolbundle").ends(0);
    // A key has no documents and no list: the operator revokes it.
    machine.write("list.json", "{}");
    for update in ["list.json", "--revocations list.json", "--actions text", ""] {
        let words = format!("trust update acme {update}");
        let ended = refused(&machine, &words, 2, "publisher-bare");
        assert!(ended.stderr.contains("[trust.deny]"), "{ended}");
    }
    let id = fingerprint(&one);
    machine.configure(&format!("[trust.deny]\nkeys = [\"{id}\"]\n"));
    is_not_loaded(&machine, "key-revoked");
    let more = format!("trust add {FILE} --prefix more");
    refused(&machine, &more, 3, "key-revoked");
    machine.configure("");
    runs(&machine);
    let removed = machine.toolward("trust remove acme --json").ends(0).json();
    assert_eq!(removed["removed"], "acme");
    is_not_loaded(&machine, "unknown-publisher");
    let shown = machine.toolward("trust list").ends(0);
    assert_eq!(shown.stdout, "", "{shown}");
    // The publisher is trusted again only by its fingerprint.
    machine
        .toolward(ADD)
        .ends(3)
        .says("fingerprint-unconfirmed");
    trusts(&machine, ADD, &one);
    runs(&machine);
}

#[test]
fn what_a_bare_key_signed_is_installed_and_updated_from_elsewhere() {
    let (machine, one) = trusting_a_key();
    let first = Web::serve(machine.read("b.toolbundle"));
    let url = first.url("b.toolbundle");
    // The publisher's maximum age serves as the rule of freshness.
    machine
        .toolward(&format!("install {url} --plain-http"))
        .ends(0);
    runs(&machine);
    let put = |draft: &Draft| {
        ship(&machine, draft, &one, "next.toolbundle");
        first.replace(machine.read("next.toolbundle"));
    };
    put(&release(2));
    machine.toolward("update --plain-http").ends(0);
    assert_eq!(sequence(&machine), 2);
    // A release with another surface waits.
    put(&reworded(release(3)));
    machine.toolward("update --plain-http").ends(4);
    let surface = listed(&machine)[0]["held_surface"]
        .as_str()
        .unwrap()
        .to_owned();
    machine
        .toolward(&format!("update {ID} --accept {surface} --plain-http"))
        .ends(0);
    assert_eq!(sequence(&machine), 3);
    put(&aged(4, 91));
    let ended = machine.toolward("update --plain-http").ends(3);
    ended.warns("(too-old)");
    assert_eq!(sequence(&machine), 3);
    runs(&machine);
}

#[test]
fn what_a_bare_key_signed_is_installed_and_updated_over_a_registry_elsewhere() {
    let Some(fronted) = Fronted::start() else {
        return;
    };
    let (machine, one) = trusting_a_key();
    machine.configure(&fronted.table(&machine, ""));
    let publish = |sequence: u64| {
        let file = format!("{sequence}.toolbundle");
        ship(&machine, &release(sequence), &one, &file);
        let tag = format!("text-stats:1.{}.0", sequence - 1);
        let push = format!("publisher push {file} oci://registry.example/acme/{tag}");
        fronted.toolward(&machine, &push).ends(0);
    };
    publish(1);
    let install = "install oci://registry.example/acme/text-stats:1.0.0";
    fronted.toolward(&machine, install).ends(0);
    runs(&machine);
    publish(2);
    fronted.toolward(&machine, "update").ends(0);
    assert_eq!(sequence(&machine), 2);
    runs(&machine);
}

#[test]
fn the_page_s_lines_about_a_bare_key_run_as_printed() {
    let lines = printed();
    let [first, second] = lines.as_slice() else {
        panic!("two commands: {lines:?}");
    };
    let machine = Machine::new();
    let one = key(&machine, "acme");
    let words = |line: &str| {
        line.strip_prefix("toolward ")
            .expect("a command")
            .to_owned()
    };
    let left = trusts(&machine, &words(first), &one);
    assert!(
        left.stdout.contains("acme by a bare key, for memo"),
        "{left:?}"
    );
    let left = typed(&machine, &words(second), QUESTION, "y\r");
    assert_eq!(left.code, Some(0), "{left:?}");
    assert!(left.stdout.contains("for memo, acme-notes"), "{left:?}");
}
