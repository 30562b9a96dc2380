//! Runs the examples on files as people have them. The tests compute the expected figures
//! themselves.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::support::{Draft, Machine, root};

fn call(machine: &Machine, example: &str, tool: &str, words: &str) -> Value {
    machine.add_example(example);
    let bundle = format!("--bundle {example}.toolbundle --trust-key example.pub.pem");
    machine
        .toolward(&format!("call {tool} {bundle} {words}"))
        .ends(0)
        .json()
}

#[test]
fn text_stats_counts_the_readme() {
    let machine = Machine::new();
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    machine.write("README.md", &readme);
    let value = call(
        &machine,
        "text-stats",
        "text.stats",
        "--set text=@README.md --set top=1",
    );
    assert_eq!(value["bytes"], readme.len());
    assert_eq!(value["lines"], readme.lines().count());
    let longest = readme
        .lines()
        .map(|line| line.chars().count())
        .max()
        .unwrap();
    // Characters are graphemes, so there are never more of them than code points.
    assert!(value["longest_line"].as_u64().unwrap() <= longest as u64);
    assert!(value["words"].as_u64().unwrap() > 100);
    let word = value["most_frequent"][0]["word"].as_str().unwrap();
    assert!(readme.to_lowercase().contains(word));
}

#[test]
fn markdown_to_html_renders_the_readme() {
    let machine = Machine::new();
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    machine.write("README.md", &readme);
    let value = call(
        &machine,
        "markdown-html",
        "markdown.to-html",
        "--set markdown=@README.md",
    );
    let title = readme
        .lines()
        .find_map(|line| line.strip_prefix("# "))
        .unwrap();
    let first = &value["headings"][0];
    assert_eq!(
        (&first["level"], &first["text"]),
        (&json!(1), &json!(title))
    );
    let headings = value["headings"].as_array().unwrap().len();
    assert!(headings > 1);
    let html = value["html"].as_str().unwrap();
    let opened: usize = (1..=6)
        .map(|level| html.matches(&format!("<h{level}>")).count())
        .sum();
    assert_eq!(opened, headings);
    assert!(!html.contains("<script"));
}

#[test]
fn json_query_reads_what_inspect_prints() {
    let machine = Machine::new();
    machine.add_example("csv-summary");
    let inspected = machine
        .toolward("inspect csv-summary.toolbundle --trust-key example.pub.pem --json")
        .ends(0);
    machine.write("inspected.json", &inspected.stdout);
    let value = call(
        &machine,
        "json-query",
        "json.query",
        "--set text=@inspected.json --set query=[.files[].size]|add",
    );
    let files = inspected.json()["files"].as_array().unwrap().clone();
    let sum: u64 = files
        .iter()
        .map(|file| file["size"].as_u64().unwrap())
        .sum();
    assert_eq!(
        value,
        json!({ "results": [sum], "count": 1, "truncated": false })
    );
}

#[test]
fn csv_summary_groups_the_files_of_a_bundle() {
    let machine = Machine::new();
    let mut csv = "file,kind,size\n".to_owned();
    let mut sums: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let draft = Draft::of("json-query");
    for (name, bytes) in &draft.files {
        let kind = name.rsplit('.').next().unwrap();
        writeln!(csv, "{name},{kind},{}", bytes.len()).unwrap();
        let (rows, sum) = sums.entry(kind).or_default();
        *rows += 1;
        *sum += bytes.len();
    }
    machine.write("files.csv", csv);
    let value = call(
        &machine,
        "csv-summary",
        "csv.summary",
        r#"--set csv=@files.csv --set group_by=["kind"]"#,
    );
    assert_eq!(value["rows"], draft.files.len());
    assert_eq!(value["groups_total"], sums.len());
    for group in value["groups"].as_array().unwrap() {
        let (rows, sum) = sums[group["key"]["kind"].as_str().unwrap()];
        assert_eq!(group["rows"], rows);
        let found = group["figures"]["size"]["sum"].as_f64().unwrap();
        assert!((found - sum as f64).abs() < 0.5, "{group}, expected {sum}");
    }
}
