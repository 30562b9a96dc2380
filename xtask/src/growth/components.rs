//! A driver whose component grows by code that nothing runs: compiling it, mapping what was compiled, and a call.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use super::bundle::Bundle;
use super::data::Point;
use super::place::Place;
use super::{Measured, Rig, wasm};
use crate::Outcome;
use crate::measure::{median, milliseconds};
use crate::stdio::{Called, Server};

/// In megabytes of 1,000,000 bytes.
const SIZES: [usize; 6] = [1, 2, 4, 8, 16, 32];
const STARTS: usize = 15;
const CALLS: usize = 301;
const BUDGET: Duration = Duration::from_secs(3);

pub(super) fn measure(rig: &Rig) -> Outcome<Measured> {
    let place = Place::new(rig, "")?;
    let hostile = rig.component(super::HOSTILE)?;
    let called = Called::of("growth_large", json!({ "do": "echo" }));
    let mut measured = Vec::new();
    for &size in rig.sizes(&SIZES) {
        let component = wasm::grown(&hostile, size * 1_000_000)?;
        let bundle = Bundle::of_one("growth.larger", "growth.large", &component);
        // Unsigned: packing would compress it, which takes longer than all the rest.
        let folder = place.write(&bundle)?;
        let cache = place.path(&format!("compiled-{size}"));
        let (server, compile) = answered(&place, &folder, &cache, &called)?;
        server.end()?;
        let map = median(STARTS, BUDGET, || {
            let (server, took) = answered(&place, &folder, &cache, &called)?;
            server.end()?;
            Ok(took)
        })?;
        let (mut server, _) = answered(&place, &folder, &cache, &called)?;
        let call = median(CALLS, BUDGET, || server.call(&called))?;
        server.end()?;
        for (id, time) in [
            ("component-compile", compile),
            ("component-map", map),
            ("component-call", call),
        ] {
            let figure = milliseconds(time);
            measured.push((id, Point { size, figure }));
        }
    }
    Ok(measured)
}

/// Starts a server, and takes the time until it answered its first call.
fn answered(
    place: &Place,
    folder: &Path,
    cache: &Path,
    called: &Called,
) -> Outcome<(Server, Duration)> {
    let begun = Instant::now();
    let mut server = place.serve_work(folder, cache)?;
    server.call(called)?;
    Ok((server, begun.elapsed()))
}
