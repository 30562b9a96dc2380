//! The page of limits, from their table.

use std::fmt::Write as _;

use toolward_bundle::component::MAX_CORE_INSTANCES;
use toolward_host::{LimitName, Limits};

use super::GENERATED;

/// The limits on a component before it runs.
const STRUCTURE: [(&str, u64, &str); 3] = [
    (
        "core instances",
        MAX_CORE_INSTANCES as u64,
        "Core instances of a component. `check`, `pack` and `install` count them, too.",
    ),
    ("memories", 4, "Memories of a component."),
    ("tables", 16, "Tables of a component."),
];

pub(super) fn page() -> String {
    let limits = Limits::default();
    let mut page = format!(
        "{GENERATED}# Limits\n\n\
         This page lists what one call may spend. Contract and driver may ask for less or more \
         than the default. A call gets the value that they ask for, or else the default, but never \
         more than the maximum. The operator sets default and maximum in \
         [`[limits]`](../policy.md#limits) of the policy. An embedder sets them in \
         `toolward_host::Limits`; there, `timeout_ms` and `http_timeout_ms` are the durations \
         `timeout` and `http_timeout`.\n\n\
         | limit | default | maximum | |\n|---|---|---|---|\n"
    );
    let set = |name: &&LimitName| limits.get(**name).is_some();
    let (fixed, ranges): (Vec<&LimitName>, Vec<&LimitName>) =
        LimitName::ALL.iter().filter(set).partition(|name| {
            let limit = limits.get(**name);
            limit.is_some_and(|limit| limit.default == limit.maximum)
        });
    for name in ranges {
        let Some(limit) = limits.get(*name) else {
            continue;
        };
        let (default, maximum) = (shown(*name, limit.default), shown(*name, limit.maximum));
        row(
            &mut page,
            &[&code(*name), &default, &maximum, name.meaning()],
        );
    }
    page.push_str(
        "\nEach other limit has one value, set by the operator unless noted:\n\n| limit | value | |\n|---|---|---|\n",
    );
    for name in fixed {
        let Some(limit) = limits.get(*name) else {
            continue;
        };
        row(
            &mut page,
            &[&code(*name), &shown(*name, limit.maximum), name.meaning()],
        );
    }
    page.push_str(
        "\nIf one of these limits ends a call, the error's `limit` field has the name, the used amount \
         and the allowed amount, and the error's hint names the setting to raise. An input that is too \
         large or too deep is an exception: its error is `input_invalid`, without that field.\n\n\
         A call may start a driver several times, or several drivers. The following limits count all \
         these attempts together: timeout, fuel, `http_requests_total`, `egress_bytes`, the limits on \
         workspaces, directory entries and nested calls, and the host's own limits on buckets and \
         stored secrets. Log records are counted for each driver. The other limits on what a call \
         spends count each attempt separately. Starting a component runs guest code, so the limits \
         apply to the start, too.\n\n\
         The host's own limits can't be set:\n\n| limit | value | |\n|---|---|---|\n",
    );
    for name in LimitName::ALL {
        if let Some(value) = name.own() {
            row(
                &mut page,
                &[&code(*name), &shown(*name, value), name.meaning()],
            );
        }
    }
    for (name, value, meaning) in STRUCTURE {
        row(&mut page, &[name, &count(value), meaning]);
    }
    page
}

fn row(page: &mut String, cells: &[&str]) {
    let cells: Vec<&str> = cells.iter().map(|cell| cell.trim()).collect();
    let _ = writeln!(page, "| {} |", cells.join(" | "));
}

fn code(name: LimitName) -> String {
    format!("`{name}`")
}

/// Returns a value in a unit for people.
fn shown(name: LimitName, value: u64) -> String {
    match name.unit() {
        _ if value == 0 && is_of_the_machine(name) => "by the machine".to_owned(),
        "bytes" => bytes(value),
        "ms" => format!("{} s", value / 1000),
        _ => count(value),
    }
}

/// Whether the host chooses the default.
fn is_of_the_machine(name: LimitName) -> bool {
    matches!(name, LimitName::MemoryTotal | LimitName::OpenFilesTotal)
}

fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(' ');
        }
        grouped.push(digit);
    }
    grouped
}

fn bytes(number: u64) -> String {
    match number {
        _ if number.is_multiple_of(1 << 20) => format!("{} MiB", number >> 20),
        _ if number.is_multiple_of(1 << 10) => format!("{} KiB", number >> 10),
        _ => count(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_all_limits() {
        let page = page();
        for name in LimitName::ALL {
            assert_eq!(page.matches(&format!("| `{name}` |")).count(), 1, "{name}");
        }
    }
}
