//! Bundles that are updated one after the other, by a command each, while a server runs calls.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::bundle::Bundle;
use super::data::Point;
use super::place::Place;
use super::{Measured, Rig};
use crate::Outcome;
use crate::measure::{milliseconds, quantile};
use crate::stdio::{Called, Server};

const SIZES: [usize; 5] = [1, 3, 10, 30, 100];
/// Time between two looks at which releases are served.
const LOOK: Duration = Duration::from_millis(50);
/// How long updates may take, with what the server makes of them.
const TIMEOUT: Duration = Duration::from_secs(180);

pub(super) fn measure(rig: &Rig) -> Outcome<Measured> {
    let place = Place::new(rig, "")?;
    let hostile = rig.component(super::HOSTILE)?;
    // Small: it is packed once for each release.
    let echo = rig.component("tests/guests/plain/drivers/echo/driver.wasm")?;
    let steady = Bundle::of_one("growth.steady", "growth.echo", &hostile);
    place.install(&place.pack(&steady)?)?;
    let sizes = rig.sizes(&SIZES);
    for number in 0..sizes.last().copied().unwrap_or(0) {
        place.install(&place.pack(&release(number, 1, &echo))?)?;
    }
    let mut server = place.serve(&["--defer-above", "1000"])?;
    let mut measured = Vec::new();
    let mut sequence = 1;
    for &size in sizes {
        let mut rounds = Vec::new();
        for _ in 0..rounds_of(size) {
            sequence += 1;
            let archives: Outcome<Vec<PathBuf>> = (0..size)
                .map(|number| place.pack(&release(number, sequence, &echo)))
                .collect();
            rounds.push(update(&place, &mut server, archives?, sequence)?);
        }
        for (id, of) in FIGURES {
            let mut times: Vec<Duration> = rounds.iter().map(of).collect();
            let figure = milliseconds(quantile(&mut times, 50));
            measured.push((id, Point { size, figure }));
        }
    }
    server.end()?;
    Ok(measured)
}

fn release(number: usize, sequence: usize, component: &[u8]) -> Bundle<'_> {
    let (id, tool) = (
        format!("growth.moving-{number}"),
        format!("growth.moves-{number}"),
    );
    Bundle {
        sequence,
        ..Bundle::of_one(&id, &tool, component)
    }
}

/// How many rounds are measured that update this number of bundles.
fn rounds_of(size: usize) -> usize {
    match size {
        ..=10 => 3,
        _ => 1,
    }
}

/// What one round took.
struct Round {
    all: Duration,
    /// From the end of the last update until all are served.
    last: Duration,
    /// Of the calls meanwhile.
    median: Duration,
    slowest: Duration,
}

type Figure = fn(&Round) -> Duration;

const FIGURES: [(&str, Figure); 4] = [
    ("updates", |round| round.all),
    ("updates-last", |round| round.last),
    ("updates-call", |round| round.median),
    ("updates-slow", |round| round.slowest),
];

/// Installs the archives on another thread, and calls the server until it serves all of them.
fn update(
    place: &Place,
    server: &mut Server,
    archives: Vec<PathBuf>,
    sequence: usize,
) -> Outcome<Round> {
    let called = Called::of("growth_echo", json!({ "do": "echo" }));
    let version = format!("1.0.{sequence}");
    let count = archives.len();
    let begun = Instant::now();
    let mut calls = Vec::new();
    let mut looked = begun;
    std::thread::scope(|scope| {
        let installing = scope.spawn(move || -> Outcome<Instant> {
            for archive in archives {
                place.install(&archive)?;
            }
            Ok(Instant::now())
        });
        let mut installing = Some(installing);
        let mut installed = None;
        let installed = loop {
            // Calls alone between two looks, so that the list costs little.
            while looked.elapsed() < LOOK {
                calls.push(server.call(&called)?);
            }
            looked = Instant::now();
            if let Some(ended) = installing.take_if(|thread| thread.is_finished()) {
                let ended = ended.join();
                installed = Some(ended.map_err(|_| "the updates ended in a panic".to_owned())??);
            }
            if let Some(installed) = installed
                && served(server, &version)? == count
            {
                break installed;
            }
            if begun.elapsed() > TIMEOUT {
                return Err(format!(
                    "the server does not serve {version} of all bundles"
                ));
            }
        };
        let end = Instant::now();
        Ok(Round {
            all: end - begun,
            last: end - installed,
            median: quantile(&mut calls, 50),
            slowest: quantile(&mut calls, 100),
        })
    })
}

/// Of how many tools this version is listed.
fn served(server: &mut Server, version: &str) -> Outcome<usize> {
    let (_, answer) = server.request("tools/list", &json!({}))?;
    let tools = answer.get("tools").and_then(Value::as_array);
    let tools = tools.ok_or("`tools/list` gives no list")?;
    let of_version = |tool: &&Value| {
        let found = tool.pointer("/_meta/toolward~1tool/version");
        found.and_then(Value::as_str) == Some(version)
    };
    Ok(tools.iter().filter(of_version).count())
}
