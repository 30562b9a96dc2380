//! Absolute paths in the sources of tests. A test creates the files that it needs in its own
//! temporary directory. A path that must be missing is a name in that directory, since another
//! program may create any other path.

use std::fs;
use std::path::Path;

use crate::support::root;

/// The directories at the root of a Linux machine.
const SYSTEM: [&str; 19] = [
    "bin", "boot", "dev", "etc", "home", "lib", "lib64", "media", "mnt", "opt", "proc", "root",
    "run", "sbin", "srv", "sys", "tmp", "usr", "var",
];

/// Starts of paths that are meant to be missing.
const MISSING: [&str; 9] = [
    "absent",
    "does-not-exist",
    "gone",
    "missing",
    "no",
    "none",
    "nonexistent",
    "not",
    "nowhere",
];

const KERNEL: &str = "from the kernel: no program leaves anything there";
const EVERYWHERE: &str = "on every Linux machine";
const PARSED: &str = "parsed or compared, not opened";

/// Where a path is allowed: the start of a file's name, the path (with everything below it if it
/// ends with a slash), and the reason.
const ALLOWED: &[(&str, &str, &str)] = &[
    ("", "/proc/", KERNEL),
    ("", "/sys/", KERNEL),
    ("", "/dev/", KERNEL),
    ("", "/bin/sh", EVERYWHERE),
    ("", "/bin/true", EVERYWHERE),
    ("", "/bin/false", EVERYWHERE),
    ("", "/usr/bin/env", EVERYWHERE),
    ("", "/usr/bin/true", EVERYWHERE),
    ("", "/etc", EVERYWHERE),
    ("", "/etc/passwd", EVERYWHERE),
    ("", "/tmp", EVERYWHERE),
    ("author/tests/suite/building.rs", "/bin", EVERYWHERE),
    ("author/tests/suite/building.rs", "/usr/bin", EVERYWHERE),
    ("tests/src/support/varying.rs", "/tmp/.tmp", PARSED),
    (
        "host/tests/suite/confine/",
        "/lib64/",
        "the loader of programs",
    ),
    (
        "tests/src/exec/hostile.c",
        "/tmp/exec-XXXXXX",
        "the kernel refuses it, or `mkstemp` names it",
    ),
    (
        "tests/src/exec/lines.rs",
        "/usr/bin/python3",
        "refused by its name",
    ),
    (
        "tests/src/screens",
        "/",
        "put in the place of the real path",
    ),
    ("tests/src/languages/conformance.rs", "/gone", "of a URL"),
    ("tests/src/policy/looking.rs", "/gone", "a guest's"),
    ("host/tests/suite/promised/", "/gone", "a guest's"),
    (
        "author/tests/suite/authoring.rs",
        "/tmp/driver.wasm",
        PARSED,
    ),
    ("cli/src/commands/mcp/", "/bin/toolward", PARSED),
    (
        "clients/python/amplifier-module-tool-toolward/tests/test_config.py",
        "/",
        PARSED,
    ),
    ("contract/", "/", PARSED),
    ("examples/notes-append/", "/etc/x", PARSED),
    ("support/tests/suite/edited.rs", "/etc/hosts", PARSED),
    ("operator/src/client_file/", "/bin/toolward", PARSED),
    ("operator/src/ledger.rs", "/", PARSED),
    ("operator/src/registries/", "/etc/tools/", PARSED),
    ("policy/", "/", PARSED),
    ("signing/tests/suite/channels.rs", "/srv/", PARSED),
    ("signing/tests/suite/settings.rs", "/srv/", PARSED),
];

fn allows((files, place, _): &(&str, &str, &str), file: &str, path: &str) -> bool {
    let below = place.strip_suffix('/');
    file.starts_with(files)
        && (path == *place || below.is_some_and(|folder| path == folder || path.starts_with(place)))
}

/// Returns the absolute paths of the machine in a text, except in comments.
fn paths(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let code = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    for line in code {
        for (at, _) in line.match_indices('/') {
            let (before, path) = line.split_at(at);
            let starts =
                before.is_empty() || before.ends_with(['"', '\'', ' ', '=', '<', '>', '!']);
            let path = path.split(|c: char| c.is_whitespace() || "\"'`\\,;()&|<>".contains(c));
            let path = path.into_iter().next().unwrap_or_default();
            let first = path.split('/').nth(1).unwrap_or_default();
            if starts && (SYSTEM.contains(&first) || MISSING.contains(&first)) {
                found.push(path);
            }
        }
    }
    found
}

/// Returns the part of a source that contains tests.
fn tests<'a>(file: &str, text: &'a str) -> &'a str {
    let whole = file
        .split('/')
        .any(|part| ["tests", "tests.rs"].contains(&part));
    match text.find("#[cfg(test)]\nmod tests {") {
        _ if whole => text,
        Some(start) => text.split_at(start).1,
        None => "",
    }
}

/// Calls `each` with the name of every source below a folder, and its text.
fn sources(folder: &Path, each: &mut impl FnMut(&str, &str)) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path
            .strip_prefix(root())
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned();
        // The paths of guests are paths in their sandboxes.
        let skipped = ["target", ".git", "node_modules"]
            .iter()
            .any(|part| path.ends_with(part))
            || name == "tests/guests";
        let source = ["rs", "c", "py", "mjs", "sh"];
        if path.is_dir() && !path.is_symlink() && !skipped {
            sources(&path, each);
        } else if source
            .iter()
            .any(|end| path.extension().is_some_and(|found| found == *end))
        {
            each(&name, &fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn tests_depend_on_no_path_outside_their_directories() {
    let mut used = vec![false; ALLOWED.len()];
    let mut problems = Vec::new();
    sources(&root(), &mut |file, text| {
        if file == "tests/src/docs/paths.rs" {
            return;
        }
        for path in paths(tests(file, text)) {
            match ALLOWED.iter().position(|line| allows(line, file, path)) {
                Some(line) => used[line] = true,
                None => problems.push(format!("{file}: {path}")),
            }
        }
        if tests(file, text).contains("temp_dir()") {
            problems.push(format!("{file}: use `tempfile`, which finds a new name"));
        }
    });
    let unused = ALLOWED.iter().zip(&used).filter(|(_, used)| !**used);
    problems.extend(unused.map(|(line, _)| format!("no longer used: {line:?}")));
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn a_path_of_the_machine_is_found_in_each_form() {
    let text = "fs::read(\"/etc/x\")\n--cargo /no/such\n// \"/tmp/y\"\nif=/dev/zero of=\"$HOME/tmp\"\n\
                directory = \\\"/gone/x\\\"\\n\n\"https://a.example/usr\" \"/notes\" \"a/tmp\"\n";
    assert_eq!(paths(text), ["/etc/x", "/no/such", "/dev/zero", "/gone/x"]);
    let source = "Path::new(\"/tmp/a\");\n#[cfg(test)]\nmod tests {\n    \"/tmp/b\"\n}\n";
    assert_eq!(paths(tests("a/src/b.rs", source)), ["/tmp/b"]);
    assert_eq!(paths(tests("a/tests/b.rs", source)), ["/tmp/a", "/tmp/b"]);
    let below = ("a/", "/tmp/", "");
    assert!(allows(&below, "a/b.rs", "/tmp/c") && allows(&below, "a/b.rs", "/tmp"));
    assert!(!allows(&below, "b/a.rs", "/tmp/c") && !allows(&below, "a/b.rs", "/tmpc"));
}
