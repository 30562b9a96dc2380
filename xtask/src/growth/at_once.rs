//! Many calls that are sent before the first answer is read.

use std::time::Duration;

use serde_json::json;

use super::bundle::Bundle;
use super::data::Point;
use super::place::Place;
use super::{Measured, Rig};
use crate::Outcome;
use crate::measure::{median, milliseconds, peak};
use crate::stdio::Called;

const SIZES: [usize; 7] = [1, 3, 10, 30, 100, 300, 1_000];
/// Rounds that are timed, where they fit into the budget.
const RUNS: usize = 101;
const BUDGET: Duration = Duration::from_secs(3);

pub(super) fn measure(rig: &Rig) -> Outcome<Measured> {
    let place = Place::new(rig, "")?;
    let hostile = rig.component(super::HOSTILE)?;
    let bundle = Bundle::of_one("growth.echoes", "growth.echo", &hostile);
    place.install(&place.pack(&bundle)?)?;
    let called = Called::of("growth_echo", json!({ "do": "echo", "value": "two words" }));
    let mut measured = Vec::new();
    for &size in rig.sizes(&SIZES) {
        // A server for each size, as its memory may stay what it once was.
        let mut server = place.serve(&[])?;
        let time = median(RUNS, BUDGET, || server.calls_at_once(&called, size))?;
        let memory = peak(server.id());
        server.end()?;
        for (id, figure) in [("at-once", milliseconds(time)), ("at-once-memory", memory)] {
            measured.push((id, Point { size, figure }));
        }
    }
    Ok(measured)
}
