//! The place of the record of calls, and that it can be read on a full disk.

use super::{COUNT, WITH, call, machine, rows};
use crate::installing::disks::namespace;
use crate::support::Run;
use crate::support::machine::toolward;

#[test]
fn calls_with_a_state_directory_of_their_own_are_recorded_there() {
    let machine = machine();
    let words = format!("call kv.counter --bundle kv-counter.toolbundle {WITH} --state-dir state");
    machine.toolward(&words).arg("--input").arg(COUNT).ends(0);
    assert!(!super::directory(&machine).exists());
    machine
        .toolward("ledger verify --directory state/ledger")
        .ends(0);
    call(&machine, "kv.counter", "kv-counter", COUNT).ends(0);
    assert_eq!(rows(&machine).len(), 4);
}

#[test]
fn a_ledger_on_a_full_disk_is_verified() {
    let Some(namespace) = namespace() else { return };
    let machine = machine();
    call(&machine, "kv.counter", "kv-counter", COUNT).ends(0);
    let script = format!(
        "set -eu
         state=\"$HOME/.local/state\"
         cp -a \"$state\" kept
         mount -t tmpfs -o size=4m,mode=700 tmpfs \"$state\"
         cp -a kept/. \"$state\"
         for size in 64k 4k 1; do
             dd if=/dev/zero of=\"$state/fill.$size\" bs=$size 2>/dev/null || true
         done
         exec '{}' ledger verify",
        toolward().display()
    );
    let mut unshare = machine.program("unshare");
    unshare.args(namespace).args(["bash", "-c"]).arg(script);
    Run::new(unshare).ends(0);
}
