//! Calls of a tool by a tool: each within the one before, and one after the other.

use std::time::Duration;

use serde_json::{Value, json};

use super::bundle::Bundle;
use super::data::Point;
use super::place::Place;
use super::{Measured, Rig};
use crate::Outcome;
use crate::measure::{median, milliseconds};
use crate::stdio::Called;

/// The answer of each level has two objects more, and neither the host nor this client reads JSON of more than 127
/// levels.
const DEPTHS: [usize; 7] = [1, 2, 4, 8, 16, 32, 60];
const TIMES: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];
const RUNS: usize = 301;
const BUDGET: Duration = Duration::from_secs(3);

/// The tool may call itself, and deeper than by default. The memory of all levels counts together.
const POLICY: &str = "
[limits]
nested_depth = 64
json_depth = 127
memory_bytes = { default = 268435456 }

[[grant]]
publisher = \"growth\"
tool = \"growth.nest\"
requires = [\"tool:growth.nest\"]
";

pub(super) fn measure(rig: &Rig) -> Outcome<Measured> {
    let place = Place::new(rig, POLICY)?;
    let hostile = rig.component(super::HOSTILE)?;
    let bundle = Bundle {
        calls: Some("growth.nest"),
        ..Bundle::of_one("growth.nests", "growth.nest", &hostile)
    };
    place.install(&place.pack(&bundle)?)?;
    let mut server = place.serve(&[])?;
    let mut measured = Vec::new();
    for (id, sizes, called) in [
        ("nested-depth", DEPTHS, depth as fn(usize) -> Called),
        ("nested-sequence", TIMES, sequence),
    ] {
        for &size in rig.sizes(&sizes) {
            let called = called(size);
            let (_, answer) = server.request("tools/call", &called.params())?;
            check(&answer)?;
            let time = median(RUNS, BUDGET, || server.call(&called))?;
            let figure = milliseconds(time);
            measured.push((id, Point { size, figure }));
        }
    }
    server.end()?;
    Ok(measured)
}

/// The driver gives a refused call back as a value, within those of all levels above.
fn check(answer: &Value) -> Outcome {
    let answer = answer
        .get("structuredContent")
        .unwrap_or(answer)
        .to_string();
    match answer.split_once("\"err\":") {
        Some((_, why)) => Err(format!("a nested call failed: {why}")),
        None => Ok(()),
    }
}

fn depth(size: usize) -> Called {
    let chain = vec!["growth.nest"; size];
    let last = json!({ "do": "count" });
    Called::of(
        "growth_nest",
        json!({ "do": "nest", "chain": chain, "last": last }),
    )
}

fn sequence(size: usize) -> Called {
    let input = json!({ "do": "count" });
    Called::of(
        "growth_nest",
        json!({ "do": "call-tool", "tool": "growth.nest", "input": input, "times": size }),
    )
}
