//! `notes.append`: adds a paragraph to a note below `/notes`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toolward_guest::{Call, Error, driver};

/// Where the contract says that the notes are.
const NOTES: &str = "/notes";

/// Largest note in bytes, with what is added to it.
const MAX_NOTE: u64 = 1 << 20;

#[derive(Deserialize)]
struct Input {
    note: String,
    text: String,
    #[serde(default)]
    heading: Option<String>,
}

#[derive(Serialize)]
struct Output {
    path: String,
    created: bool,
    bytes: u64,
}

fn append(call: Call<Input>) -> Result<Output, Error> {
    append_below(Path::new(NOTES), &call.input)
}

fn append_below(notes: &Path, input: &Input) -> Result<Output, Error> {
    let path = file_of(notes, &input.note)?;
    let text = input.text.trim_matches('\n');
    if text.trim().is_empty() {
        return Err(Error::new(
            "input_invalid",
            "expected a text, found only white space",
        ));
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|error| failed(&path, &error))?;
    }
    let created = !fs::exists(&path).map_err(|error| failed(&path, &error))?;
    let mut file = OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .open(&path)
        .map_err(|error| failed(&path, &error))?;

    let before = file
        .metadata()
        .map_err(|error| failed(&path, &error))?
        .len();
    let mut added = String::new();
    if before > 0 {
        let ends = ends_with_line_break(&mut file).map_err(|error| failed(&path, &error))?;
        added.push_str(if ends { "\n" } else { "\n\n" });
    }
    if let Some(heading) = &input.heading {
        added.push_str(&format!("## {}\n\n", one_line(heading)));
    }
    added.push_str(text);
    added.push('\n');

    let bytes = before.saturating_add(added.len() as u64);
    if bytes > MAX_NOTE {
        return Err(Error::new(
            "notes:full",
            format!(
                "{} would have {bytes} bytes, {MAX_NOTE} are allowed",
                input.note
            ),
        ));
    }
    // One write, so that a paragraph is whole even where two calls write at once.
    file.write_all(added.as_bytes())
        .map_err(|error| failed(&path, &error))?;
    Ok(Output {
        path: format!("{NOTES}/{}.md", input.note),
        created,
        bytes,
    })
}

/// The note's file. The contract's pattern has refused all else before; what a
/// path may be is so important that it is not left to the pattern alone.
fn file_of(notes: &Path, name: &str) -> Result<PathBuf, Error> {
    let plain = |part: &str| {
        part.starts_with(|first: char| first.is_ascii_alphanumeric())
            && part
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    if !name.split('/').all(plain) {
        return Err(Error::new(
            "input_invalid",
            format!("expected a note's name such as `work/ideas`, found {name:?}"),
        ));
    }
    Ok(notes.join(format!("{name}.md")))
}

fn ends_with_line_break(file: &mut File) -> io::Result<bool> {
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn failed(path: &Path, error: &io::Error) -> Error {
    let code = match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => "unauthorised",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "notes:full",
        _ => "upstream_error",
    };
    Error::new(code, format!("{}: {error}", path.display()))
}

driver! { "notes.append" => append }

#[cfg(test)]
mod tests {
    use super::*;

    fn input(note: &str, text: &str) -> Input {
        Input {
            note: note.to_owned(),
            text: text.to_owned(),
            heading: None,
        }
    }

    #[test]
    fn paragraphs_are_added_with_one_blank_line_between_them() {
        let notes = tempfile::tempdir().unwrap();
        let first = append_below(notes.path(), &input("work/ideas", "One.\n\n")).unwrap();
        assert!(first.created);
        assert_eq!(
            (first.path.as_str(), first.bytes),
            ("/notes/work/ideas.md", 5)
        );
        let second = Input {
            heading: Some("On\ntwo".to_owned()),
            ..input("work/ideas", "Two.")
        };
        let second = append_below(notes.path(), &second).unwrap();
        assert!(!second.created);
        let file = notes.path().join("work/ideas.md");
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(text, "One.\n\n## On two\n\nTwo.\n");
        assert_eq!(second.bytes, text.len() as u64);

        fs::write(&file, "no end").unwrap();
        append_below(notes.path(), &input("work/ideas", "Three.")).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "no end\n\nThree.\n");
    }

    #[test]
    fn a_name_that_could_lead_elsewhere_writes_nothing() {
        let around = tempfile::tempdir().unwrap();
        let notes = around.path().join("notes");
        fs::create_dir(&notes).unwrap();
        for name in [
            "",
            "..",
            "../x",
            "a/../../x",
            "/etc/x",
            "a//b",
            "a/",
            ".hidden",
            "a\\b",
            "a\0b",
            "ä",
        ] {
            let error = append_below(&notes, &input(name, "x"))
                .map(|_| ())
                .unwrap_err();
            assert_eq!(error.code(), "input_invalid", "{name:?}");
        }
        assert_eq!(fs::read_dir(&notes).unwrap().count(), 0);
        assert_eq!(fs::read_dir(around.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_full_note_stays_as_it_is() {
        let notes = tempfile::tempdir().unwrap();
        let file = notes.path().join("a.md");
        fs::write(&file, vec![b'x'; MAX_NOTE as usize - 10]).unwrap();
        let error = append_below(notes.path(), &input("a", "much too long")).map(|_| ());
        assert_eq!(error.unwrap_err().code(), "notes:full");
        assert_eq!(fs::metadata(&file).unwrap().len(), MAX_NOTE - 10);
    }

    #[test]
    fn nothing_is_no_text() {
        let notes = tempfile::tempdir().unwrap();
        let error = append_below(notes.path(), &input("a", " \n\n")).map(|_| ());
        assert_eq!(error.unwrap_err().code(), "input_invalid");
        assert!(!notes.path().join("a.md").exists());
    }

    #[test]
    fn a_folder_that_may_not_be_written_is_named() {
        let notes = tempfile::tempdir().unwrap();
        fs::create_dir(notes.path().join("a.md")).unwrap();
        let error = append_below(notes.path(), &input("a", "x")).map(|_| ());
        assert!(error.unwrap_err().message().contains("a.md"));
    }
}
