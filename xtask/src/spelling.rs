//! `spelling`: finds misspelt words in the book and the documents next to it, by codespell's list
//! of common ones. Correct words that the list contains are in `xtask/spelling/words.txt`, one on
//! each line.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::{Outcome, process, repository};

/// The checked paths, relative to the root.
const CHECKED: [&str; 5] = [
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "docs/src",
];

/// A text in which a working checker finds an error.
const MISSPELT: &str = "recieve\n";

/// Downloads the checker, and runs it on all checked paths.
pub(crate) fn check() -> Outcome {
    let root = repository::root()?;
    let printed = process::output(
        Command::new(root.join("xtask/spelling.sh"))
            .env("SPELLING_DIR", repository::target()?.join("spelling"))
            .stdin(Stdio::null()),
    )?;
    let folder = String::from_utf8(printed).map_err(|error| error.to_string())?;
    let python = Path::new(folder.trim()).join("bin/python");
    let checker = || {
        let mut command = Command::new(&python);
        command
            .args(["-I", "-m", "codespell_lib", "--builtin", "clear,rare"])
            .arg("--ignore-words")
            .arg(root.join("xtask/spelling/words.txt"))
            .current_dir(&root);
        command
    };
    let trial = repository::target()?.join("spelling/misspelt.txt");
    std::fs::write(&trial, MISSPELT).map_err(|error| error.to_string())?;
    let tried = checker().arg(&trial).stdout(Stdio::null()).status();
    match tried.map_err(|error| error.to_string())?.success() {
        true => return Err("the spell checker finds nothing in a misspelt text".to_owned()),
        false => process::run(checker().args(CHECKED))?,
    }
    println!("docs: no common misspelling");
    Ok(())
}
