//! The page with the differences from the JSON Schemas of the specifications: the rules that are
//! stricter here, and the rules that are wider. It comes from a table. The tests of the contract
//! crate check the table against the schemas and against the crate.

use std::fmt::Write as _;

use self::table::{Difference, Direction, Specification};
use super::GENERATED;

/// The table is next to its tests.
#[expect(dead_code, reason = "the tests use the rest of it")]
#[path = "../../../../contract/tests/suite/published/differences.rs"]
mod table;

const INTRODUCTION: &str = "\
# Differences from the specifications

AIP-14, AIP-30, AIP-31 and AIP-39 each publish a JSON Schema of their documents. Toolward accepts what these schemas accept and
refuses what they refuse, except for the differences below. The tests generate documents from the schemas (of agentproto/agentproto at
commit `dddee02`, 9 August 2026); they fail on a difference that is not listed, and on a listed difference that does not exist.

All documents also have rules that a JSON Schema can't express: the front matter is YAML without anchors, tags, merge keys, duplicate
keys and second documents, and a whole file has at most 1 MiB.
";

const SECTIONS: [(Specification, &str, &str); 4] = [
    (Specification::Contract, "AIP-14: TOOL.md", ""),
    (
        Specification::Driver,
        "AIP-30: DRIVER.md",
        "Drivers of kind `cli`, `mcp`, `sdk` and `builtin` may have additional fields with any names.\n\n\
         Handled differently at a call:\n\n| field | rule | why | code |\n|---|---|---|---|\n\
         | `region` | A driver of the region `global` does not serve a call that must stay in another region, unless \
         [`[resolve]`](../policy-drivers.md#resolve) lists `global`, too. | A driver that may send data anywhere does \
         not keep the data in one region. | `region` |\n\n",
    ),
    (
        Specification::Http,
        "AIP-31: kind http",
        "The differences under AIP-30 apply too.\n\n",
    ),
    (Specification::Action, "AIP-39: ACTION.md", ""),
];

pub(super) fn page() -> String {
    let mut page = format!("{GENERATED}{INTRODUCTION}");
    for (specification, title, note) in SECTIONS {
        let _ = write!(page, "\n## {title}\n\n{note}");
        for (direction, heading) in [
            (Direction::Stricter, "Refused here"),
            (Direction::Wider, "Accepted here, and refused by the schema"),
        ] {
            let _ = writeln!(
                page,
                "{heading}:\n\n| field | rule | why | code |\n|---|---|---|---|"
            );
            let rows = table::all().filter(|row| row.specification == specification);
            for row in rows.filter(|row| row.direction == direction) {
                write_row(&mut page, row);
            }
            page.push('\n');
        }
        page.truncate(page.trim_end().len());
        page.push('\n');
    }
    page
}

fn write_row(page: &mut String, row: &Difference) {
    let fields = match row.fields {
        [""] | ["**"] => "the document".to_owned(),
        fields => {
            let shown = fields
                .iter()
                .filter(|field| !field.is_empty() && !repeats(field, fields));
            let shown: Vec<String> = shown.map(|field| format!("`{field}`")).collect();
            shown.join(", ")
        }
    };
    let codes: Vec<String> = row.codes.iter().map(|code| format!("`{code}`")).collect();
    let _ = writeln!(
        page,
        "| {fields} | {} | {} | {} |",
        row.rule,
        row.reason,
        codes.join(", ")
    );
}

/// Whether the field is `a.**` and `fields` contains `a`.
fn repeats(field: &str, fields: &[&str]) -> bool {
    field
        .strip_suffix(".**")
        .is_some_and(|parent| fields.contains(&parent))
}
