//! Writing files, and files that must stay unchanged.

use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::sync::Barrier;

use toolward_support::files::{create, replace, write_new};

use crate::{Place, mode};

#[test]
fn a_new_file_has_the_mode_asked_for_and_nothing_is_left_beside_it() {
    let place = Place::new();
    write_new(&place.path("one"), &[b"1", b"2"], 0o600).unwrap();
    create(&place.path("two"), b"2", 0o600).unwrap();
    replace(&place.path("three"), b"3", 0o400).unwrap();
    for (name, text, bits) in [
        ("one", "12", 0o600),
        ("two", "2", 0o600),
        ("three", "3", 0o400),
    ] {
        assert_eq!(std::fs::read_to_string(place.path(name)).unwrap(), text);
        assert_eq!(mode(&place.path(name)), bits);
    }
    assert_eq!(place.count(), 3);
}

#[test]
fn what_is_there_is_not_overwritten_by_something_new() {
    let place = Place::new();
    let elsewhere = place.file("elsewhere", "mine", 0o600);
    symlink(&elsewhere, place.path("link")).unwrap();
    symlink(place.path("new"), place.path("dangling")).unwrap();
    for name in ["elsewhere", "link", "dangling"] {
        let path = place.path(name);
        let refused = [
            write_new(&path, &[b"theirs"], 0o600),
            create(&path, b"theirs", 0o600),
        ];
        for refused in refused {
            let refused = refused.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::AlreadyExists, "{name}");
        }
    }
    assert_eq!(std::fs::read_to_string(&elsewhere).unwrap(), "mine");
    assert_eq!(place.count(), 3);
}

#[test]
fn replacing_keeps_no_mode_and_writes_through_no_link_and_no_further_name() {
    let place = Place::new();
    let elsewhere = place.file("elsewhere", "mine", 0o644);
    let (link, name) = (place.path("link"), place.path("name"));
    symlink(&elsewhere, &link).unwrap();
    std::fs::hard_link(&elsewhere, &name).unwrap();
    for path in [&link, &name] {
        replace(path, b"new", 0o600).unwrap();
        assert_eq!(mode(path), 0o600);
        assert_eq!(std::fs::read_to_string(path).unwrap(), "new");
        assert!(!path.is_symlink());
    }
    assert_eq!(std::fs::read_to_string(&elsewhere).unwrap(), "mine");
    assert_eq!(place.count(), 3);
}

#[test]
fn what_can_not_be_written_leaves_nothing_behind() {
    let place = Place::new();
    std::fs::create_dir(place.path("folder")).unwrap();
    replace(&place.path("folder"), b"", 0o600).unwrap_err();
    create(&place.path("folder"), b"", 0o600).unwrap_err();
    replace(&place.path(".."), b"", 0o600).unwrap_err();
    create(&place.path("none/file"), b"", 0o600).unwrap_err();
    assert_eq!(place.count(), 1);
}

#[test]
fn of_many_who_create_one_file_one_succeeds_and_the_file_is_whole() {
    const WRITERS: u8 = 8;
    let place = Place::new();
    let path = place.path("file");
    let start = Barrier::new(usize::from(WRITERS));
    let texts = (0..WRITERS).map(|number| vec![number; 10_000]);
    let won: Vec<Vec<u8>> = std::thread::scope(|scope| {
        let writers: Vec<_> = texts
            .map(|text| {
                scope.spawn(|| {
                    let text = text;
                    start.wait();
                    create(&path, &text, 0o600).is_ok().then_some(text)
                })
            })
            .collect();
        let done = writers.into_iter().map(|writer| writer.join().unwrap());
        done.flatten().collect()
    });
    assert_eq!(won.len(), 1);
    assert_eq!(std::fs::read(&path).unwrap(), won[0]);
    assert_eq!(place.count(), 1);
}
