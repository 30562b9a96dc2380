//! Many tools installed: what a start, a list, a search and a call cost then.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::bundle::Bundle;
use super::data::Point;
use super::place::Place;
use super::{Measured, Rig};
use crate::Outcome;
use crate::measure::{median, milliseconds, resident};
use crate::stdio::{Called, Server};

const SIZES: [usize; 5] = [10, 100, 1_000, 3_000, 10_000];
/// Tools of one bundle at most: a DRIVER.md has room for some more.
const IN_BUNDLE: usize = 500;
const RUNS: usize = 101;
const BUDGET: Duration = Duration::from_secs(3);

pub(super) fn measure(rig: &Rig) -> Outcome<Measured> {
    let place = Place::new(rig, "")?;
    let hostile = rig.component(super::HOSTILE)?;
    let mut installed = 0;
    let mut measured = Vec::new();
    for &size in rig.sizes(&SIZES) {
        while installed < size {
            let end = size.min(installed + IN_BUNDLE);
            let bundle = Bundle {
                id: format!("growth.many-{installed}"),
                sequence: 1,
                tools: (installed..end).map(id).collect(),
                component: &hostile,
                calls: None,
            };
            place.install(&place.pack(&bundle)?)?;
            installed = end;
        }
        for (id, figure) in of_catalogue(&place, size)? {
            measured.push((id, Point { size, figure }));
        }
    }
    Ok(measured)
}

/// Each tool's words are those of others, and a number of its own.
fn id(number: usize) -> String {
    const WORDS: [&str; 8] = [
        "mail", "notes", "files", "pages", "tables", "images", "dates", "units",
    ];
    let word = WORDS.get(number % WORDS.len()).unwrap_or(&"others");
    format!("growth.{word}.tool-{number}")
}

fn of_catalogue(place: &Place, size: usize) -> Outcome<[(&'static str, f64); 5]> {
    let start = median(RUNS, BUDGET, || {
        let begun = Instant::now();
        let server = place.serve(&[])?;
        let took = begun.elapsed();
        server.end()?;
        Ok(took)
    })?;
    let echo = Called::of("growth_mail_tool-0", json!({ "do": "echo" }));

    // One that lists all of them.
    let mut server = place.serve(&["--defer-above", &size.to_string()])?;
    let list = median(RUNS, BUDGET, || list(&mut server, size))?;
    let call = median(RUNS, BUDGET, || server.call(&echo))?;
    server.end()?;

    // One whose tools are searched for.
    let mut server = place.serve(&["--defer-above", "1"])?;
    let search = median(RUNS, BUDGET, || search(&mut server))?;
    let memory = resident(server.id());
    server.end()?;
    Ok([
        ("tools-start", milliseconds(start)),
        ("tools-memory", memory),
        ("tools-list", milliseconds(list)),
        ("tools-search", milliseconds(search)),
        ("tools-call", milliseconds(call)),
    ])
}

/// The whole list, however many answers it takes.
fn list(server: &mut Server, size: usize) -> Outcome<Duration> {
    let mut params = json!({});
    let mut whole = Duration::ZERO;
    let mut listed = 0;
    loop {
        let (took, answer) = server.request("tools/list", &params)?;
        whole += took;
        let tools = answer.get("tools").and_then(Value::as_array);
        listed += tools.map_or(0, Vec::len);
        match answer.get("nextCursor") {
            Some(cursor) => params = json!({ "cursor": cursor }),
            None if listed == size => return Ok(whole),
            None => return Err(format!("{listed} tools are listed instead of {size}")),
        }
    }
}

/// A word that an eighth of the tools have.
fn search(server: &mut Server) -> Outcome<Duration> {
    let called = Called::of("search_tools", json!({ "query": "mail tool" }));
    let (took, answer) = server.request("tools/call", &called.params())?;
    match answer.to_string().contains("growth.mail.tool-") {
        true => Ok(took),
        false => Err(format!("a search finds no tool: {answer}")),
    }
}
