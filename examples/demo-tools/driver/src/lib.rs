//! `demo.words` counts in a text; `demo.note` adds a line to the notes.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use serde::{Deserialize, Serialize};
use toolward_guest::{Call, Error, driver};

/// Where the contract says that the notes are.
const NOTES: &str = "/notes";

/// The file of all notes.
const FILE: &str = "notes.md";

#[derive(Deserialize)]
struct Text {
    text: String,
}

#[derive(Serialize)]
struct Counts {
    characters: usize,
    words: usize,
    lines: usize,
}

#[derive(Serialize)]
struct Noted {
    path: String,
    bytes: u64,
}

fn words(call: Call<Text>) -> Result<Counts, Error> {
    let text = call.input.text;
    Ok(Counts {
        characters: text.chars().count(),
        words: text.split_whitespace().count(),
        lines: text.lines().count(),
    })
}

fn note(call: Call<Text>) -> Result<Noted, Error> {
    let bytes = add(Path::new(NOTES), &call.input.text)
        .map_err(|error| Error::new("upstream_error", format!("{NOTES}/{FILE}: {error}")))?;
    Ok(Noted {
        path: format!("{NOTES}/{FILE}"),
        bytes,
    })
}

/// Adds a line to the notes in `folder`; returns how long they are now, in bytes.
fn add(folder: &Path, text: &str) -> std::io::Result<u64> {
    let path = folder.join(FILE);
    let mut file = OpenOptions::new().append(true).create(true).open(path)?;
    // One write, so that a line is whole even where two calls write at once.
    let line: Vec<&str> = text.split_whitespace().collect();
    file.write_all(format!("- {}\n", line.join(" ")).as_bytes())?;
    Ok(file.metadata()?.len())
}

driver! {
    "demo.words" => words,
    "demo.note" => note,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_note_is_one_line() {
        let folder = tempfile::tempdir().unwrap();
        add(folder.path(), "Tea\nwith Ada.").unwrap();
        let bytes = add(folder.path(), "Coffee.").unwrap();
        let text = std::fs::read_to_string(folder.path().join(FILE)).unwrap();
        assert_eq!(text, "- Tea with Ada.\n- Coffee.\n");
        assert_eq!(bytes, text.len() as u64);
    }
}
