//! Folders, and creating files in them.

use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Barrier;

use toolward_support::files::{Folder, Problem, Protection, private_file};

use crate::{Place, mode, set_mode};

#[test]
fn a_folder_is_made_with_those_above_it_for_its_user_alone() {
    let place = Place::new();
    let path = place.path("a/b");
    let folder = Folder::make(&path, Protection::Private).unwrap();
    assert_eq!((mode(&place.path("a")), mode(&path)), (0o700, 0o700));
    folder.sync().unwrap();
}

#[test]
fn a_folder_that_others_may_enter_is_private_to_nobody() {
    let place = Place::new();
    let path = place.path("folder");
    drop(Folder::make(&path, Protection::Private).unwrap());
    for bits in [0o750, 0o701, 0o755, 0o777] {
        set_mode(&path, bits);
        let refused = Folder::make(&path, Protection::Private).unwrap_err();
        assert!(matches!(refused.problem, Problem::Mode { mode } if mode == bits));
        let written = bits & 0o022 != 0;
        for protection in [Protection::Own, Protection::OwnOrRoot] {
            assert_eq!(Folder::open(&path, protection).is_err(), written);
        }
    }
}

#[test]
fn a_folder_is_reached_through_a_link_and_its_target_checked() {
    let place = Place::new();
    let path = place.path("folder");
    drop(Folder::make(&path, Protection::Private).unwrap());
    let link = place.path("link");
    symlink(&path, &link).unwrap();
    drop(Folder::open(&link, Protection::Private).unwrap());
    set_mode(&path, 0o755);
    Folder::open(&link, Protection::Private).unwrap_err();
}

#[test]
fn what_is_no_folder_is_refused() {
    let place = Place::new();
    let path = place.file("file", "", 0o600);
    let refused = Folder::open(&path, Protection::Private).unwrap_err();
    assert!(matches!(refused.problem, Problem::NotAFolder), "{refused}");
    Folder::make(&path, Protection::Private).unwrap_err();
    let missing = Folder::open(&place.path("none"), Protection::Private).unwrap_err();
    assert!(missing.is_missing());
}

#[test]
fn a_private_file_is_made_once_and_then_looked_at() {
    let place = Place::new();
    let path = place.path("state/file");
    let made = private_file(&path).unwrap();
    assert_eq!(made, path.canonicalize().unwrap());
    assert_eq!((mode(&made), mode(&place.path("state"))), (0o600, 0o700));
    std::fs::write(&made, "kept").unwrap();
    assert_eq!(private_file(&path).unwrap(), made);
    assert_eq!(std::fs::read_to_string(&made).unwrap(), "kept");
    assert_eq!(std::fs::read_dir(place.path("state")).unwrap().count(), 1);
    set_mode(&made, 0o640);
    let refused = private_file(&path).unwrap_err();
    assert!(matches!(refused.problem, Problem::Mode { mode: 0o640 }));
}

#[test]
fn a_link_or_anything_but_a_file_is_refused_and_not_followed() {
    let place = Place::new();
    let path = place.path("state/file");
    std::fs::remove_file(private_file(&path).unwrap()).unwrap();
    let elsewhere = place.file("elsewhere", "untouched", 0o600);
    let refused = || {
        let error = private_file(&path).unwrap_err();
        assert!(matches!(error.problem, Problem::NotAFile), "{error}");
    };
    symlink(&elsewhere, &path).unwrap();
    refused();
    std::fs::remove_file(&path).unwrap();
    symlink(place.path("new"), &path).unwrap();
    refused();
    assert!(!place.path("new").exists());
    std::fs::remove_file(&path).unwrap();
    let _socket = UnixListener::bind(&path).unwrap();
    refused();
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    refused();
    assert_eq!(std::fs::read_to_string(&elsewhere).unwrap(), "untouched");
    let nameless = private_file(Path::new("/")).unwrap_err();
    assert!(matches!(nameless.problem, Problem::NoName));
}

#[test]
fn of_many_who_make_one_file_all_use_the_same() {
    const MAKERS: usize = 8;
    let place = Place::new();
    let path = place.path("state/file");
    let start = Barrier::new(MAKERS);
    std::thread::scope(|scope| {
        for _ in 0..MAKERS {
            scope.spawn(|| {
                start.wait();
                private_file(&path).unwrap();
            });
        }
    });
    assert_eq!(std::fs::read_dir(place.path("state")).unwrap().count(), 1);
}
