//! A call whose input or output grows: one long text, or a long list of numbers.

use std::time::Duration;

use serde_json::{Value, json};

use super::bundle::Bundle;
use super::data::Point;
use super::place::Place;
use super::{Measured, Rig};
use crate::Outcome;
use crate::measure::{median, milliseconds};
use crate::stdio::{Called, Server};

/// Of the input's or the output's JSON, without what stands around the text or the list.
const SIZES: [usize; 5] = [100, 1_000, 10_000, 100_000, 1_000_000];
/// Calls that are timed, where they fit into the budget.
const RUNS: usize = 301;
const BUDGET: Duration = Duration::from_secs(3);

/// The first number of a list, and how long it is with the comma after it.
const FIRST: usize = 1_000_000;
const NUMBER: usize = 8;

pub(super) fn measure(rig: &Rig) -> Outcome<Measured> {
    let place = Place::new(rig, "")?;
    let hostile = rig.component(super::HOSTILE)?;
    let query = rig.component("examples/json-query/drivers/json-query/driver.wasm")?;
    let takes = Bundle::of_one("growth.takes", "growth.take", &hostile);
    let gives = Bundle::of_one("growth.gives", "json.query", &query);
    for bundle in [takes, gives] {
        place.install(&place.pack(&bundle)?)?;
    }
    let mut server = place.serve(&[])?;
    let mut measured = Vec::new();
    for (id, called) in [
        ("input-text", input_text as fn(usize) -> Called),
        ("input-list", input_list),
        ("output-text", output_text),
        ("output-list", output_list),
    ] {
        for &size in rig.sizes(&SIZES) {
            let figure = time(&mut server, &called(size))?;
            measured.push((id, Point { size, figure }));
        }
    }
    server.end()?;
    Ok(measured)
}

fn time(server: &mut Server, called: &Called) -> Outcome<f64> {
    median(RUNS, BUDGET, || server.call(called)).map(milliseconds)
}

/// The driver answers with a number.
fn takes(value: Value) -> Called {
    Called::of("growth_take", json!({ "do": "count", "value": value }))
}

fn input_text(size: usize) -> Called {
    takes(Value::String("x".repeat(size)))
}

fn input_list(size: usize) -> Called {
    takes((FIRST..FIRST + size / NUMBER).collect())
}

/// The driver makes the output by a short program.
fn gives(program: &str) -> Called {
    Called::of("json_query", json!({ "query": program }))
}

fn output_text(size: usize) -> Called {
    gives(&format!("\"x\" * {size}"))
}

fn output_list(size: usize) -> Called {
    gives(&format!("[range({FIRST}; {})]", FIRST + size / NUMBER))
}
