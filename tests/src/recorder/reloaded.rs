//! A server that applies another policy records that in its ledger.

use super::{COUNT, kinds, machine, rows, serve, signal, verifies};
use crate::mcp::raw::PATIENCE;

#[test]
fn a_policy_that_gives_less_is_recorded_once_a_server_follows_it() {
    let machine = machine();
    let mut raw = serve(&machine);
    machine.write("policy.toml", "");
    signal(&machine, "HUP", raw.process());
    while raw.next(PATIENCE).expect("word of the change")["method"]
        != "notifications/tools/list_changed"
    {}
    raw.call(1, "kv_counter", &serde_json::from_str(COUNT).unwrap());
    assert_eq!(raw.answer(1)["result"]["isError"], true);
    raw.said();
    assert_eq!(kinds(&machine), ["opened", "opened", "refused", "closed"]);
    let rows = rows(&machine);
    let [first, second] = [0, 1].map(|row| &rows[row]["record"]);
    assert_eq!(first["session"], second["session"]);
    for same in ["build", "bundles", "confinement"] {
        assert_eq!(first["body"][same], second["body"][same], "{same}");
    }
    let digests = [first, second].map(|row| row["body"]["policy"].as_str().unwrap());
    assert_ne!(digests[0], digests[1]);
    verifies(&machine);
}
