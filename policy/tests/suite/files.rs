//! Policy files: each invalid file is next to its error, as `code line:column message` and the
//! hint. `BLESS=1 cargo test` writes the errors; read the difference.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use toolward_policy::{CODES, LimitName, Policy, PolicyError};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/invalid")
}

fn shown(error: &PolicyError) -> String {
    let (line, column) = (error.line(), error.column());
    let place = line.zip(column).map_or_else(
        || "-".to_owned(),
        |(line, column)| format!("{line}:{column}"),
    );
    let hint = error
        .hint()
        .map_or(String::new(), |hint| format!("hint: {hint}\n"));
    format!("{} {place} {}\n{hint}", error.code(), error.message())
}

#[test]
fn each_wrong_file_gives_its_error() {
    let mut seen = BTreeSet::new();
    for entry in fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "toml") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let error = match Policy::from_toml(&text) {
            Ok(_) => panic!("{} is accepted", path.display()),
            Err(error) => error,
        };
        seen.insert(error.code());
        let expected = path.with_extension("expected");
        if std::env::var_os("BLESS").is_some() {
            fs::write(&expected, shown(&error)).unwrap();
        }
        let expected = fs::read_to_string(&expected).unwrap_or_default();
        assert_eq!(shown(&error), expected, "{}", path.display());
    }
    // Errors of texts that are too large, and errors that only code can cause, need no file.
    let tested: BTreeSet<&str> = CODES.iter().map(|code| code.code).collect();
    let unseen: Vec<_> = tested.difference(&seen).copied().collect();
    assert_eq!(unseen, ["policy-too-large"]);
}

#[test]
fn codes_are_unique_and_kebab_case() {
    let codes: BTreeSet<&str> = CODES.iter().map(|code| code.code).collect();
    assert_eq!(codes.len(), CODES.len());
    for code in codes {
        assert!(code.starts_with("policy-"), "{code}");
        assert!(
            code.chars().all(|c| c.is_ascii_lowercase() || c == '-'),
            "{code}"
        );
    }
}

#[test]
fn sizes_are_bounded() {
    let long = format!("# {}", "x".repeat(1 << 20));
    assert_eq!(
        Policy::from_toml(&long).unwrap_err().code(),
        "policy-too-large"
    );
    let rules = "[[deny]]\n".repeat(4097);
    assert_eq!(
        Policy::from_toml(&rules).unwrap_err().code(),
        "policy-too-large"
    );
    assert!(Policy::from_toml(&"[[deny]]\n".repeat(4096)).is_ok());
    let entries = "\"database:a\",".repeat(1025);
    let list = format!("[[deny]]\ncapabilities = [{entries}]");
    assert_eq!(
        Policy::from_toml(&list).unwrap_err().code(),
        "policy-too-large"
    );
    let deep = format!("a = {}{}", "[".repeat(10_000), "]".repeat(10_000));
    assert_eq!(
        Policy::from_toml(&deep).unwrap_err().code(),
        "policy-syntax"
    );
}

#[test]
fn publishers_of_the_trust_store_are_skipped() {
    let text = "[[publisher]]\nname = \"acme\"\nkey_files = [\"a.pem\"]\nprefixes = [\"acme\"]\n";
    assert_eq!(Policy::from_toml(text).unwrap(), Policy::empty());
    let text = "[trust]\nmode = \"audit\"\n[[channel]]\nname = \"stable\"\n";
    assert_eq!(Policy::from_toml(text).unwrap(), Policy::empty());
}

#[test]
fn every_limit_can_be_set_by_name() {
    for name in LimitName::settable_by_policy() {
        let text = format!("[limits]\n{name} = {{ default = 7, maximum = 0x10 }}");
        let setting = Policy::from_toml(&text).unwrap().tables().limits.get(name);
        assert_eq!(
            (setting.default, setting.maximum),
            (Some(7), Some(16)),
            "{name}"
        );
        let text = format!("[limits]\n{name} = 1_000");
        let setting = Policy::from_toml(&text).unwrap().tables().limits.get(name);
        assert_eq!(
            (setting.default, setting.maximum),
            (None, Some(1000)),
            "{name}"
        );
    }
}

/// The book's pages about policies, and the generated page of limits that they link to.
const PAGE: &str = concat!(
    include_str!("../../../docs/src/policy.md"),
    include_str!("../../../docs/src/policy-secrets.md"),
    include_str!("../../../docs/src/policy-drivers.md"),
    include_str!("../../../docs/src/policy-errors.md"),
    include_str!("../../../docs/src/reference/limits.md"),
);

fn examples() -> impl Iterator<Item = &'static str> {
    PAGE.split("```toml\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap_or_default())
}

#[test]
fn the_examples_in_the_book_are_policies() {
    assert!(examples().count() > 5);
    for example in examples() {
        if let Err(error) = Policy::from_toml(example) {
            panic!("{error}\n{example}");
        }
    }
}

#[test]
fn the_book_names_every_code_and_limit() {
    for code in CODES {
        assert!(PAGE.contains(&format!("`{}`", code.code)), "{}", code.code);
    }
    for name in LimitName::settable_by_policy() {
        assert!(PAGE.contains(&format!("`{name}`")), "{name}");
    }
}
