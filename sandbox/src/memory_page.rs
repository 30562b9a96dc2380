//! Tests that the book's page about the memory of each resource agrees with the code.

use toolward_contract::json::weight;

use crate::call_hook::HOST_CALL_BYTES;
use crate::files::{FILE_STREAM, LISTING, OPEN_FILE};
use crate::held::{CHUNK, HANDLE};
use crate::http::view::{EXCHANGE, FIELD, OUTGOING_BODY};
use crate::imports::PROGRESS_REPORT_BYTES;
use crate::limiter::{ELEMENT, LIFTED};

const PAGE: &str = include_str!("../../docs/src/reference/host-memory.md");

/// A number of bytes in the form of the page.
fn bytes(number: u64) -> String {
    match number {
        n if n % 1024 == 0 && n > 0 => format!("{} KiB", n / 1024),
        n => format!("{n} B"),
    }
}

/// The cells of the row that starts with `what`.
fn row(what: &str) -> Vec<&'static str> {
    let row = PAGE
        .lines()
        .find(|line| {
            line.strip_prefix("| ")
                .is_some_and(|row| row.starts_with(what))
        })
        .unwrap_or_else(|| panic!("no row for {what}"));
    row.trim_matches('|').split('|').map(str::trim).collect()
}

#[test]
fn the_page_says_what_is_counted() {
    let rows = [
        ("a handle of any interface", HANDLE),
        ("a header field", FIELD),
        ("an outgoing body", 2 * OUTGOING_BODY),
        ("a chunk of a body", CHUNK),
        ("a request under way", EXCHANGE),
        ("an open file", OPEN_FILE),
        ("a stream of a file", FILE_STREAM),
        ("a directory stream", LISTING),
        ("a report of progress", PROGRESS_REPORT_BYTES),
        ("an element of a table", ELEMENT),
        ("a value in a result", weight::ITEM),
    ];
    for (what, cost) in rows {
        let cells = row(what);
        let said = cells.get(1).copied().unwrap_or_default();
        let said = said.strip_prefix("at least ").unwrap_or(said);
        let own = said
            .split([',', ' ', ':'])
            .take(2)
            .collect::<Vec<_>>()
            .join(" ");
        assert_eq!(own, bytes(cost), "{cells:?}");
    }
    let lifted = format!("{} units", HOST_CALL_BYTES >> 10);
    assert!(PAGE.contains(&lifted) && PAGE.contains(&format!("{LIFTED} times")));
}

#[test]
fn the_page_on_the_world_has_a_row_for_each_interface_that_is_linked() {
    let world = include_str!("../../docs/src/formats/world.md");
    let own = include_str!("../../wit/driver.wit").lines();
    let own = own.filter_map(|line| line.strip_prefix("    import ")?.strip_suffix(';'));
    let own: Vec<&str> = own.collect();
    assert!(own.contains(&"tools"), "{own:?}");
    let wasi = [
        "wasi:cli",
        "wasi:clocks",
        "wasi:filesystem",
        "wasi:http",
        "wasi:io",
        "wasi:keyvalue",
        "wasi:random",
        "wasi:sockets",
    ];
    let rows = world.lines().filter(|line| line.starts_with("| `"));
    let rows = rows.map(|row| row.trim_end_matches('|').split(" | ").collect::<Vec<_>>());
    let rows: Vec<Vec<&str>> = rows.collect();
    for interface in own.into_iter().chain(wasi) {
        let name = format!("`{interface}`");
        let row = rows.iter().find(|row| row[0].contains(&name));
        let memory = row.and_then(|row| row.get(2)).map(|cell| cell.trim());
        assert!(memory.is_some_and(|cell| !cell.is_empty()), "{interface}");
    }
}
