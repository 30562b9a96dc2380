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
        "Of a component; `check`, `pack` and `install` count them, too.",
    ),
    ("memories", 4, "Of a component."),
    ("tables", 16, "Of a component."),
];

pub(super) fn page() -> String {
    let limits = Limits::default();
    let mut page = format!(
        "{GENERATED}# Limits\n\n\
         What one call may spend. Contract and driver may ask for less or more than the default. A call gets what \
         they ask for, or else the default, and never more than the maximum. The operator sets default and maximum in \
         [`[limits]`](../policy.md#limits) of the policy, an embedder in `toolward_host::Limits`, where `timeout_ms` and \
         `http_timeout_ms` are durations without `_ms`.\n\n\
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
        "\nThe other limits have one value each, which the operator sets:\n\n| limit | value | |\n|---|---|---|\n",
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
        "\nA call that hits a limit ends with an error whose `limit` field gives the name, what was used and \
         what was allowed, and whose hint names the setting to raise. An input \
         that is too large or too deep is `input_invalid`, without that field. Timeout, fuel, requests altogether, \
         egress and the host's own limits on buckets and stored secrets cover all attempts; everything else is \
         counted again for each. Starting a component runs guest code, so every limit counts it.\n\n\
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
