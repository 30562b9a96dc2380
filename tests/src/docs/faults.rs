//! The table of faults names tests that exist.

use super::threats::read_all;
use crate::support::root;

/// The ids of the rows: a letter for the subject, then a number.
const IDS: [(&str, usize); 5] = [("M", 14), ("R", 2), ("D", 24), ("O", 12), ("S", 12)];

/// Ids without a row: large results, and the id of an approved call.
const ELSEWHERE: [&str; 2] = ["M4", "M9"];

#[test]
fn each_fault_has_tests_that_exist_or_a_reason() {
    let mut sources = String::new();
    read_all(&root(), &mut sources);
    let table = std::fs::read_to_string(root().join("tests/faults.toml")).unwrap();
    let table: toml::Table = toml::from_str(&table).unwrap();
    let rows = table["fault"].as_array().unwrap();
    let expected: Vec<String> = IDS
        .iter()
        .flat_map(|(letter, last)| (1..=*last).map(move |number| format!("{letter}{number}")))
        .filter(|id| !ELSEWHERE.contains(&id.as_str()))
        .collect();
    let ids: Vec<&str> = rows.iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!(ids, expected);
    for row in rows {
        let id = row["id"].as_str().unwrap();
        let tests = row["tests"].as_array().unwrap();
        let reason = row.get("reason").and_then(toml::Value::as_str);
        assert!(
            !tests.is_empty() || reason.is_some_and(|reason| !reason.is_empty()),
            "{id} has neither tests nor a reason"
        );
        for test in tests {
            let name = test.as_str().unwrap();
            assert!(
                sources.contains(&format!("fn {name}(")),
                "{id}: there is no test {name}"
            );
        }
    }
}
