//! A store on a disk that is full or read-only: it can be shown, verified and used, and a bundle
//! can be removed to make room. The test mounts a small disk in its own mount namespace.

use std::fs;
use std::process::Command;

use super::{ID, installed, release, ship};
use crate::support::machine::toolward;
use crate::support::outside::skipped;
use crate::support::{Machine, Run};

/// How to get a mount namespace: as root, or in a user namespace.
pub(crate) fn namespace() -> Option<Vec<&'static str>> {
    let tried = [vec!["--mount"], vec!["--map-root-user", "--mount"]];
    let works = |arguments: &Vec<&str>| {
        let mut unshare = Command::new("unshare");
        unshare.args(arguments).args([
            "sh",
            "-c",
            "mount -t tmpfs -o size=1m tmpfs /tmp && mount -o remount,ro /tmp",
        ]);
        unshare.output().is_ok_and(|output| output.status.success())
    };
    let found = tried.into_iter().find(works);
    if found.is_none() {
        skipped("a disk of the test's own can't be mounted here");
    }
    found
}

/// Installs acme's first release on a disk of four megabytes, and runs a script there. In the
/// script, `run NAME ARGUMENTS` stores the exit code and output of the command as `NAME`.
fn on_a_small_disk(script: &str) -> Option<Machine> {
    let namespace = namespace()?;
    let (machine, one) = installed();
    ship(&machine, &release(2), &one, "next.toolbundle");
    let before = format!(
        "set -eu
         cp -a \"$HOME/.local\" \"$HOME/kept\"
         mount -t tmpfs -o size=4m,mode=700 tmpfs \"$HOME/.local\"
         cp -a \"$HOME/kept/.\" \"$HOME/.local\"
         run() {{
             name=$1; shift
             status=0
             '{}' \"$@\" >\"$name.out\" 2>\"$name.err\" || status=$?
             echo $status >\"$name.code\"
         }}
         fill() {{
             for size in 64k 4k; do
                 dd if=/dev/zero of=\"$HOME/.local/fill.$size\" bs=$size 2>/dev/null || true
             done
         }}
         state=\"$HOME/.local/state/toolward/trust/trust.db\"
         ",
        toolward().display()
    );
    let mut unshare = machine.program("unshare");
    unshare.args(namespace).args(["bash", "-c"]);
    unshare.arg(format!("{before}{script}"));
    Run::new(unshare).ends(0);
    Some(machine)
}

/// Returns the exit code, and the whole output.
#[track_caller]
fn ended(machine: &Machine, name: &str) -> (String, String) {
    let part = |ending: &str| machine.text(&format!("{name}.{ending}"));
    let code = part("code").trim().to_owned();
    (code, format!("{}{}", part("out"), part("err")))
}

#[track_caller]
fn ends(machine: &Machine, name: &str, code: &str, says: &str) {
    let (found, said) = ended(machine, name);
    assert_eq!(found, code, "{name}: {said}");
    assert!(said.contains(says), "{name}: {said}");
}

#[test]
fn on_a_full_disk_bundles_are_shown_used_and_removed_and_marks_stay() {
    let script = "
        fill
        run list list
        run verify verify --all
        run call call text.stats --set text=one
        run install install next.toolbundle
        run remove remove text.stats-bundle
        run after list --json
        rm \"$HOME\"/.local/fill.*
        run again install next.toolbundle
        run back install b.toolbundle
        run marks list --json
    ";
    let Some(machine) = on_a_small_disk(script) else {
        return;
    };
    ends(&machine, "list", "0", ID);
    ends(&machine, "verify", "0", "verified");
    ends(&machine, "call", "0", "\"words\": 1");
    ends(&machine, "install", "1", "disk-full");
    ends(&machine, "remove", "0", "removed");
    assert!(!ended(&machine, "after").1.contains(ID));
    // The accepted surface is still known.
    ends(&machine, "again", "0", "sequence 2");
    ends(&machine, "back", "3", "rollback");
}

#[test]
fn removing_on_a_full_disk_keeps_what_was_accepted_before() {
    let script = "
        run next install next.toolbundle
        fill
        run remove remove text.stats-bundle
        rm \"$HOME\"/.local/fill.*
        run back install b.toolbundle
    ";
    let Some(machine) = on_a_small_disk(script) else {
        return;
    };
    ends(&machine, "next", "0", "sequence 2");
    ends(&machine, "remove", "0", "removed");
    ends(&machine, "back", "3", "rollback");
}

#[test]
fn on_a_read_only_disk_bundles_are_shown_and_used_and_nothing_is_changed() {
    let script = "
        mount -o remount,ro \"$HOME/.local\"
        run list list
        run search search words
        run verify verify --all
        run call call text.stats --set text=one
        run install install next.toolbundle
        run remove remove text.stats-bundle
    ";
    let Some(machine) = on_a_small_disk(script) else {
        return;
    };
    ends(&machine, "list", "0", ID);
    ends(&machine, "search", "0", "text.stats");
    ends(&machine, "verify", "0", "verified");
    ends(&machine, "call", "0", "\"words\": 1");
    ends(&machine, "call", "0", "not recorded (store-read-only)");
    ends(&machine, "install", "1", "error[store-read-only]");
    ends(&machine, "remove", "1", "error[store-read-only]");
}

#[test]
fn where_the_newest_changes_can_not_be_read_nothing_is_called_or_verified() {
    // A write-ahead log without an index, which SQLite can't create here.
    let script = "
        printf 'what was revoked last' >\"$state-wal\"
        rm -f \"$state-shm\"
        mount -o remount,ro \"$HOME/.local\"
        run list list
        run verify verify --all
        run call call text.stats --set text=one
        run serve serve </dev/null
        run remove remove text.stats-bundle
    ";
    let Some(machine) = on_a_small_disk(script) else {
        return;
    };
    ends(&machine, "list", "0", "store-log-unreadable");
    ends(&machine, "list", "0", ID);
    for name in ["verify", "call", "serve"] {
        ends(&machine, name, "1", "error[store-log-unreadable]");
    }
    ends(&machine, "remove", "1", "error[store-read-only]");
}

#[test]
fn a_store_that_its_user_may_only_read_is_read() {
    use std::os::unix::fs::PermissionsExt as _;
    if fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0) {
        skipped("modes of directories do not bind root");
        return;
    }
    let (machine, _) = installed();
    let places = [
        ".local/share/toolward/store",
        ".local/share/toolward/store/objects",
        ".local/share/toolward/store/tmp",
        ".local/state/toolward/trust",
    ];
    let mode = |mode: u32| {
        for place in places {
            let permissions = fs::Permissions::from_mode(mode);
            fs::set_permissions(machine.home().join(place), permissions).unwrap();
        }
    };
    mode(0o500);
    for words in ["list", "verify --all", "call text.stats --set text=one"] {
        machine.toolward(words).ends(0);
    }
    mode(0o700);
}
