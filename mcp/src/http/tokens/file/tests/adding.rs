//! New entries, and files that are written.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::PathBuf;
use std::time::SystemTime;

use super::*;

fn entry(name: &str, hash: TokenHash) -> Entry {
    Entry::new(name, hash, &["open.*".to_owned()], false).unwrap()
}

/// A directory with nothing in it, and a path in it.
fn place() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tokens.toml");
    (directory, path)
}

#[test]
fn a_written_token_is_readable_by_its_owner_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("token");
    // What was there, and where it led, stays as it was.
    let elsewhere = directory.path().join("elsewhere");
    std::fs::write(&elsewhere, "mine").unwrap();
    symlink(&elsewhere, &path).unwrap();

    let (secret, _) = generate().unwrap();
    write(&path, &secret).unwrap();
    assert_eq!(std::fs::read_to_string(&elsewhere).unwrap(), "mine");
    assert_eq!(
        std::fs::read_to_string(&path).unwrap().trim_end(),
        secret.expose()
    );
    assert_eq!(std::fs::symlink_metadata(&path).unwrap().mode(), 0o100_600);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
}

#[test]
fn a_file_that_a_killed_process_left_behind_is_in_nobodys_way() {
    let (directory, path) = place();
    for left in [
        format!(".tokens.toml.{}", std::process::id()),
        ".tokens.toml.1".to_owned(),
    ] {
        std::fs::write(directory.path().join(left), "").unwrap();
    }
    let (secret, _) = generate().unwrap();
    write(&path, &secret).unwrap();
    let written = std::fs::read_to_string(&path).unwrap();
    assert_eq!(written.trim_end(), secret.expose());
}

#[test]
fn an_entry_that_is_added_is_read_and_what_was_there_stays() {
    let (directory, path) = place();
    let (first, hash) = generate().unwrap();
    add(&path, &entry("first", hash)).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().mode(), 0o100_600);
    let mut text = std::fs::read_to_string(&path).unwrap();
    text.insert_str(0, "# Mine.\n");
    text.truncate(text.trim_end().len());
    std::fs::write(&path, &text).unwrap();

    let (second, hash) = generate().unwrap();
    let more = Entry::new("second", hash, &["*".to_owned()], true).unwrap();
    add(&path, &more).unwrap();
    let written = std::fs::read_to_string(&path).unwrap();
    assert_eq!(written, format!("{text}\n\n{}", more.text()));
    let (tokens, now) = (read(&path).unwrap(), SystemTime::now());
    let first = tokens.find(Some(first.expose()), now).unwrap().principal;
    assert_eq!(&*first.name, "first");
    assert!(first.tools.include("open.door", 1) && !first.tools.include("shut.door", 1));
    assert!(!first.may_approve);
    let second = tokens.find(Some(second.expose()), now).unwrap().principal;
    assert!(second.tools.include("shut.door", 1) && second.may_approve);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn an_entry_without_tools_reaches_nothing() {
    let (_directory, path) = place();
    let (secret, hash) = generate().unwrap();
    add(&path, &Entry::new("bare", hash, &[], false).unwrap()).unwrap();
    let found = read(&path)
        .unwrap()
        .find(Some(secret.expose()), SystemTime::now());
    assert!(!found.unwrap().principal.tools.include("open.door", 1));
}

#[test]
fn nothing_is_added_to_a_file_that_is_unfit_or_knows_the_name() {
    let (directory, path) = place();
    let (_, hash) = generate().unwrap();
    add(&path, &entry("one", hash)).unwrap();
    let refused = |code: &str, more: &Entry| {
        let before = std::fs::read(&path).unwrap();
        assert_eq!(add(&path, more).unwrap_err().code(), code);
        assert_eq!(std::fs::read(&path).unwrap(), before);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    };
    let (_, other) = generate().unwrap();
    refused("token-known", &entry("one", other));
    refused("token-file-invalid", &entry("two", hash));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    refused("token-file-unsafe", &entry("two", other));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let held = alone(&path).unwrap();
    refused("token-file-unusable", &entry("two", other));
    drop(held);
    std::fs::write(&path, "token = 1").unwrap();
    refused("token-file-invalid", &entry("two", other));
}

#[test]
fn through_a_link_the_file_behind_it_is_added_to() {
    let (directory, path) = place();
    let link = directory.path().join("link");
    let (_, hash) = generate().unwrap();
    add(&path, &entry("one", hash)).unwrap();
    symlink(&path, &link).unwrap();
    let (_, hash) = generate().unwrap();
    add(&link, &entry("two", hash)).unwrap();
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(read(&path).unwrap().len(), 2);
}

#[test]
fn a_link_to_nothing_stays_as_it_is() {
    let (directory, path) = place();
    symlink(directory.path().join("gone"), &path).unwrap();
    let (_, hash) = generate().unwrap();
    let refused = add(&path, &entry("one", hash)).unwrap_err();
    assert_eq!(refused.code(), "token-file-unusable");
    assert!(std::fs::symlink_metadata(&path).unwrap().is_symlink());
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn nothing_is_added_that_makes_a_file_larger_than_is_read() {
    let (_directory, path) = place();
    let (_, hash) = generate().unwrap();
    add(&path, &entry("one", hash)).unwrap();
    let mut text = std::fs::read_to_string(&path).unwrap();
    text.push_str(&"#".repeat(1024 * 1024 - text.len()));
    std::fs::write(&path, &text).unwrap();
    assert_eq!(read(&path).unwrap().len(), 1);
    let (_, hash) = generate().unwrap();
    let refused = add(&path, &entry("two", hash)).unwrap_err();
    assert_eq!(refused.code(), "token-file-invalid");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
}

#[test]
fn what_the_file_can_not_have_is_no_entry() {
    let (_, hash) = generate().unwrap();
    for (name, tool) in [
        ("Alice", "a.b"),
        ("local", "a.b"),
        ("", "a.b"),
        ("a\"\nb", "a.b"),
        ("alice", "a\"b"),
        ("alice", "a*"),
        ("alice", ""),
    ] {
        let refused = Entry::new(name, hash, &[tool.to_owned()], false).unwrap_err();
        assert_eq!(refused.code(), "token-invalid", "{name:?} {tool:?}");
    }
}
