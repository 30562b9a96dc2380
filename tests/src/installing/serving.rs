//! What is installed, removed or trusted no more while tools are served over MCP.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{ID, installed, release, ship};
use crate::mcp::raw::Raw;
use crate::support::Machine;

/// The server looks once a second.
const SOON: Duration = Duration::from_secs(30);

fn serve(machine: &Machine) -> Raw {
    Raw::open(machine.toolward("serve").into_command(), json!({}))
}

fn call(raw: &mut Raw, id: u32) -> Value {
    raw.call(id, "text.stats", &json!({"text": "one"}));
    raw.answer(id)
}

fn works(answer: &Value) -> bool {
    answer["result"]["structuredContent"]["words"] == json!(1)
}

/// Calls until it comes out like this.
#[track_caller]
fn until(raw: &mut Raw, wanted: impl Fn(&Value) -> bool) {
    let end = Instant::now() + SOON;
    for id in 1000.. {
        let answer = call(raw, id);
        if wanted(&answer) {
            return;
        }
        assert!(Instant::now() < end, "{answer}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

fn tools(raw: &mut Raw, id: &str) -> usize {
    raw.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"}));
    raw.answer(id)["result"]["tools"].as_array().unwrap().len()
}

#[test]
fn a_bundle_that_is_removed_is_served_no_more_and_clients_are_told() {
    let (machine, one) = installed();
    let mut raw = serve(&machine);
    assert!(works(&call(&mut raw, 1)));
    assert_eq!(tools(&mut raw, "before"), 1);

    machine.toolward(&format!("remove {ID}")).ends(0);
    until(&mut raw, |answer| answer["error"]["code"] == json!(-32602));
    assert_eq!(tools(&mut raw, "without"), 0);
    let told = |raw: &mut Raw| {
        let rest = raw.rest();
        let changed = rest
            .iter()
            .filter(|message| message["method"] == "notifications/tools/list_changed");
        changed.count()
    };
    assert_eq!(told(&mut raw), 1);

    ship(&machine, &release(2), &one, "c.toolbundle");
    machine.toolward("install c.toolbundle").ends(0);
    until(&mut raw, works);
    assert_eq!(tools(&mut raw, "again"), 1);
    assert_eq!(told(&mut raw), 1);
}

#[test]
fn who_is_trusted_no_more_is_served_no_more() {
    let (machine, _) = installed();
    let mut raw = serve(&machine);
    assert!(works(&call(&mut raw, 1)));
    machine.toolward("trust remove acme").ends(0);
    until(&mut raw, |answer| !works(answer));
    assert_eq!(tools(&mut raw, "after"), 0);
}

#[test]
fn a_client_that_says_ever_again_that_it_is_ready_is_told_once() {
    let (machine, _) = installed();
    let mut raw = serve(&machine);
    assert!(works(&call(&mut raw, 1)));
    for _ in 0..100 {
        raw.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    }
    machine.toolward(&format!("remove {ID}")).ends(0);
    until(&mut raw, |answer| !works(answer));
    let rest = raw.rest();
    let changed = rest
        .iter()
        .filter(|message| message["method"] == "notifications/tools/list_changed");
    assert_eq!(changed.count(), 1);
}
