//! User files that are changed in place.

use std::os::unix::fs::symlink;

use toolward_support::files::{EditedFile, Error};

use super::*;

const LIMIT: u64 = 1000;

fn open(place: &Place, name: &str) -> Result<EditedFile, Error> {
    EditedFile::beneath(place.0.path(), name.as_ref(), LIMIT)
}

fn problem(place: &Place, name: &str) -> String {
    open(place, name).unwrap_err().problem.to_string()
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn a_file_keeps_its_mode_and_its_first_contents_are_the_one_backup() {
    for kept in [0o600, 0o640, 0o644, 0o755] {
        let place = Place::new();
        let path = place.file("a.json", "one", kept);
        for (before, after) in [("one", "two"), ("two", "three")] {
            let file = open(&place, "a.json").unwrap();
            assert_eq!(file.bytes(), Some(before.as_bytes()));
            let backup = file.backup().unwrap();
            assert_eq!(file.has_backup(), before == "two");
            file.write(after.as_bytes()).unwrap();
            assert_eq!((text(&path), mode(&path)), (after.to_owned(), kept));
            assert_eq!((text(&backup), mode(&backup)), ("one".to_owned(), 0o600));
            assert_eq!(place.count(), 2);
        }
    }
}

#[test]
fn a_new_file_is_private_as_are_the_folders_that_are_made_for_it() {
    let place = Place::new();
    let file = open(&place, ".a/b/c.json").unwrap();
    assert_eq!((file.bytes(), file.backup()), (None, None));
    assert_eq!(place.count(), 0, "made before it is written");
    file.write(b"{}").unwrap();
    assert_eq!(text(&place.path(".a/b/c.json")), "{}");
    assert_eq!(mode(&place.path(".a/b/c.json")), 0o600);
    for folder in [".a", ".a/b"] {
        assert_eq!(mode(&place.path(folder)), 0o700, "{folder}");
    }
    assert_eq!(std::fs::read_dir(place.path(".a/b")).unwrap().count(), 1);
}

#[test]
fn a_link_is_never_followed() {
    let place = Place::new();
    let outside = Place::new();
    let target = outside.file("a.json", "theirs", 0o600);
    symlink(&target, place.path("a.json")).unwrap();
    symlink(outside.0.path(), place.path("folder")).unwrap();
    symlink("nowhere", place.path("dangling")).unwrap();
    for name in [
        "a.json",
        "folder/a.json",
        "folder/new/a.json",
        "dangling",
        "dangling/a",
    ] {
        assert_eq!(problem(&place, name), "is a symbolic link", "{name}");
    }
    // A link that is created after the file was read is refused, too.
    let file = open(&place, "b.json").unwrap();
    symlink(&target, place.path("b.json")).unwrap();
    assert_eq!(
        file.write(b"ours").unwrap_err().problem.to_string(),
        "is a symbolic link"
    );
    let file = open(&place, "c/d.json").unwrap();
    symlink(outside.0.path(), place.path("c")).unwrap();
    assert_eq!(
        file.write(b"ours").unwrap_err().problem.to_string(),
        "is a symbolic link"
    );
    assert_eq!((text(&target), outside.count()), ("theirs".to_owned(), 1));
}

#[test]
fn a_backup_that_is_a_link_is_replaced_and_not_followed() {
    let place = Place::new();
    let target = place.file("precious", "theirs", 0o600);
    place.file("a.json", "one", 0o600);
    let file = open(&place, "a.json").unwrap();
    let backup = file.backup().unwrap();
    symlink(&target, &backup).unwrap();
    file.write(b"two").unwrap();
    assert_eq!(
        (text(&target), text(&backup)),
        ("theirs".to_owned(), "one".to_owned())
    );
    assert!(!backup.is_symlink());
}

#[test]
fn a_file_with_a_second_name_or_that_others_may_change_is_refused() {
    let place = Place::new();
    let path = place.file("a.json", "one", 0o600);
    std::fs::hard_link(&path, place.path("second")).unwrap();
    assert_eq!(problem(&place, "a.json"), "has 2 names (hard links)");
    for bits in [0o620, 0o602, 0o666] {
        place.file("b.json", "one", bits);
        assert!(
            problem(&place, "b.json").contains("others have access"),
            "{bits:o}"
        );
    }
    std::fs::create_dir(place.path("open")).unwrap();
    set_mode(&place.path("open"), 0o777);
    assert!(problem(&place, "open/a.json").contains("others have access"));
    assert!(problem(&place, "open/new/a.json").contains("others have access"));
}

#[test]
fn what_is_not_a_file_of_a_bounded_size_beneath_the_folder_is_refused() {
    let place = Place::new();
    std::fs::create_dir(place.path("folder")).unwrap();
    place.file("file", "", 0o600);
    place.file("large", &"a".repeat(1001), 0o600);
    let fifo = rustix::fs::CWD;
    rustix::fs::mknodat(
        fifo,
        place.path("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    for (name, said) in [
        ("folder", "is not a regular file"),
        ("pipe", "is not a regular file"),
        ("file/a", "is not a directory"),
        ("large", "is larger than 1000 bytes"),
        ("", "names no file"),
        ("../a", "names no file"),
        ("/etc/hosts", "names no file"),
        ("folder/../file", "names no file"),
    ] {
        assert_eq!(problem(&place, name), said, "{name:?}");
    }
}

#[test]
fn a_file_that_has_changed_since_it_was_read_is_not_written() {
    let place = Place::new();
    let path = place.file("a.json", "one", 0o600);
    let file = open(&place, "a.json").unwrap();
    std::fs::write(&path, "theirs").unwrap();
    assert_eq!(
        file.write(b"two").unwrap_err().problem.to_string(),
        "was changed meanwhile"
    );
    assert_eq!((text(&path), place.count()), ("theirs".to_owned(), 1));

    let file = open(&place, "b.json").unwrap();
    let path = place.file("b.json", "theirs", 0o600);
    assert_eq!(
        file.write(b"two").unwrap_err().problem.to_string(),
        "was changed meanwhile"
    );
    assert_eq!((text(&path), place.count()), ("theirs".to_owned(), 2));
}
