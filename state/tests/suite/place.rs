//! Tests the allowed places of a store, and who can read it.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

use toolward_state::{Error, Store};

use crate::{Place, bucket};

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn refusal(path: &Path) -> Error {
    let error = Store::open(path).expect_err("refused");
    assert_eq!(error.code(), "store-unusable", "{error}");
    assert!(error.hint().is_some());
    error
}

#[test]
fn directory_and_files_are_for_their_user_only() {
    let place = Place::new();
    let store = place.open();
    bucket(&store, "acme", "alice", "b")
        .set("key", b"")
        .unwrap();
    let directory = place.file().parent().unwrap().to_owned();
    assert_eq!(mode(&directory), 0o700);
    let mut names: Vec<_> = fs::read_dir(&directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    names.sort();
    assert_eq!(names.len(), 3, "{names:?}");
    for name in names {
        assert_eq!(mode(&name), 0o600, "{name:?}");
    }
}

#[test]
fn a_directory_that_others_may_enter_is_refused() {
    let place = Place::new();
    drop(place.open());
    let directory = place.file().parent().unwrap().to_owned();
    for bits in [0o750, 0o701, 0o777] {
        set_mode(&directory, bits);
        let error = refusal(&place.file());
        assert!(error.to_string().contains("chmod"), "{error}");
    }
    set_mode(&directory, 0o700);
    place.open();
}

#[test]
fn a_file_that_others_may_read_is_refused() {
    let place = Place::new();
    drop(place.open());
    for bits in [0o640, 0o604, 0o666] {
        set_mode(&place.file(), bits);
        refusal(&place.file());
    }
}

#[test]
fn a_link_or_anything_but_a_file_is_refused_and_not_followed() {
    let place = Place::new();
    drop(place.open());
    let elsewhere = place.directory.path().join("elsewhere");
    fs::write(&elsewhere, "untouched").unwrap();
    set_mode(&elsewhere, 0o600);
    fs::remove_file(place.file()).unwrap();
    symlink(&elsewhere, place.file()).unwrap();
    refusal(&place.file());
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "untouched");

    fs::remove_file(place.file()).unwrap();
    // A dangling link is not written through either.
    symlink(place.directory.path().join("new"), place.file()).unwrap();
    refusal(&place.file());
    assert!(!place.directory.path().join("new").exists());

    fs::remove_file(place.file()).unwrap();
    let socket = UnixListener::bind(place.file()).unwrap();
    set_mode(&place.file(), 0o600);
    refusal(&place.file());
    drop(socket);

    fs::remove_file(place.file()).unwrap();
    fs::create_dir(place.file()).unwrap();
    set_mode(&place.file(), 0o700);
    refusal(&place.file());
    refusal(Path::new("/"));
}

#[test]
fn the_directory_may_be_reached_through_a_link() {
    let place = Place::new();
    bucket(&place.open(), "acme", "alice", "b")
        .set("key", b"1")
        .unwrap();
    let link = place.directory.path().join("link");
    symlink(place.file().parent().unwrap(), &link).unwrap();
    let store = Store::open(link.join("buckets.sqlite")).unwrap();
    let value = bucket(&store, "acme", "alice", "b").get("key").unwrap();
    assert_eq!(value.unwrap(), b"1");
}
