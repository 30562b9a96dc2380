//! Files that are opened and read, and files that are refused.

use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::sync::mpsc;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use toolward_support::files::{Links, Problem, Protection, open, open_regular, read};

use crate::{Place, set_mode};

#[test]
fn a_private_file_is_read_and_one_that_others_have_access_to_is_not() {
    let place = Place::new();
    let path = place.file("secret", "text", 0o600);
    let file = open(&path, Protection::Private, Links::Refuse).unwrap();
    assert_eq!(read(file, &path, 4).unwrap(), b"text");
    for bits in [0o640, 0o604, 0o620, 0o602, 0o610, 0o601] {
        set_mode(&path, bits);
        let error = open(&path, Protection::Private, Links::Refuse).unwrap_err();
        assert!(matches!(error.problem, Problem::Mode { mode } if mode == bits));
        assert!(error.to_string().contains(&format!("{bits:o}")), "{error}");
        assert_eq!(error.path, path);
    }
}

#[test]
fn what_others_may_read_may_still_not_be_written_by_them() {
    let place = Place::new();
    let path = place.file("public", "text", 0o644);
    for protection in [Protection::Own, Protection::OwnOrRoot] {
        set_mode(&path, 0o644);
        open(&path, protection, Links::Refuse).unwrap();
        for bits in [0o664, 0o646] {
            set_mode(&path, bits);
            let error = open(&path, protection, Links::Refuse).unwrap_err();
            assert!(matches!(error.problem, Problem::Mode { .. }), "{error}");
        }
    }
}

#[test]
fn a_link_is_followed_only_where_that_is_said_and_what_it_leads_to_is_checked() {
    let place = Place::new();
    let path = place.file("file", "text", 0o600);
    let link = place.path("link");
    symlink(&path, &link).unwrap();
    let refused = open(&link, Protection::Private, Links::Refuse).unwrap_err();
    assert!(matches!(refused.problem, Problem::Io { .. }), "{refused}");
    assert!(!refused.is_missing());
    let file = open(&link, Protection::Private, Links::Follow).unwrap();
    assert_eq!(read(file, &link, 100).unwrap(), b"text");
    set_mode(&path, 0o644);
    let refused = open(&link, Protection::Private, Links::Follow).unwrap_err();
    assert!(matches!(refused.problem, Problem::Mode { mode: 0o644 }));
}

#[test]
fn a_link_that_leads_nowhere_is_not_missing_where_links_are_refused() {
    let place = Place::new();
    let link = place.path("link");
    symlink(place.path("nowhere"), &link).unwrap();
    let refused = open(&link, Protection::Private, Links::Refuse).unwrap_err();
    assert!(!refused.is_missing());
    let missing = open(&place.path("none"), Protection::Private, Links::Refuse).unwrap_err();
    assert!(missing.is_missing());
}

#[test]
fn what_is_no_regular_file_is_refused_and_not_waited_for() {
    let place = Place::new();
    mknodat(CWD, place.path("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    let _socket = UnixListener::bind(place.path("socket")).unwrap();
    symlink("pipe", place.path("link")).unwrap();
    let paths = ["pipe", "socket", "link", "."].map(|name| place.path(name));
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        for path in paths {
            let regular = open_regular(&path).unwrap_err();
            let private = open(&path, Protection::Private, Links::Follow).unwrap_err();
            tell.send((regular.problem, private.problem)).unwrap();
        }
    });
    for _ in 0..4 {
        let problems = told.recv_timeout(Duration::from_secs(20)).unwrap();
        assert!(
            matches!(problems, (Problem::NotAFile, Problem::NotAFile)),
            "{problems:?}"
        );
    }
}

#[test]
fn what_is_read_is_what_was_checked_although_the_name_leads_elsewhere_by_then() {
    let place = Place::new();
    let path = place.file("file", "checked", 0o600);
    let file = open(&path, Protection::Private, Links::Refuse).unwrap();
    let other = place.file("other", "another", 0o644);
    std::fs::rename(&other, &path).unwrap();
    assert_eq!(read(file, &path, 100).unwrap(), b"checked");
}

#[test]
fn a_file_with_a_further_name_is_judged_by_what_it_is() {
    let place = Place::new();
    let path = place.file("file", "text", 0o644);
    std::fs::hard_link(&path, place.path("name")).unwrap();
    let refused = open(&place.path("name"), Protection::Private, Links::Refuse).unwrap_err();
    assert!(matches!(refused.problem, Problem::Mode { mode: 0o644 }));
}

#[test]
fn no_more_is_read_than_is_allowed() {
    let place = Place::new();
    let path = place.file("file", "text", 0o600);
    for limit in 0..4 {
        let refused = read(open_regular(&path).unwrap(), &path, limit).unwrap_err();
        assert!(matches!(refused.problem, Problem::TooLarge { limit: found } if found == limit));
    }
    // A file without a length and without an end.
    let zero = std::path::Path::new("/dev/zero");
    let refused = read(std::fs::File::open(zero).unwrap(), zero, 10).unwrap_err();
    assert!(matches!(refused.problem, Problem::TooLarge { limit: 10 }));
}

#[test]
fn who_is_not_root_reads_nothing_of_roots_in_a_private_place() {
    if rustix::process::geteuid().is_root() {
        return;
    }
    let passwd = std::path::Path::new("/etc/passwd");
    for protection in [Protection::Private, Protection::Own] {
        let refused = open(passwd, protection, Links::Refuse).unwrap_err();
        assert!(matches!(refused.problem, Problem::Owner { owner: 0, .. }));
    }
    open(passwd, Protection::OwnOrRoot, Links::Refuse).unwrap();
}
