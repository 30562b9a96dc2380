//! Unpacking and writing files: all of it, or nothing.

use std::fs;

use toolward_signing::{archive, verify};

use crate::support::{Sample, acme, assert_same, key, options};

fn names(directory: &std::path::Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn an_unpacked_bundle_verifies_and_packs_to_the_same_archive() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = Sample::new().sign(&[&key(1)]).archive();
    let bundle = verify::archive_bytes(&bytes, &acme(), &options()).unwrap();
    let target = folder.path().join("text-stats.bundle");
    archive::unpack(&bundle, &target).unwrap();
    let again = verify::open(&target, &acme(), &options()).unwrap();
    assert_same(&bundle, &again);
    assert_eq!(archive::to_bytes(&again.contents()).unwrap(), bytes);
    assert_eq!(names(folder.path()), ["text-stats.bundle"]);
}

#[test]
fn a_name_that_is_taken_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = Sample::new().sign(&[&key(1)]).archive();
    let bundle = verify::archive_bytes(&bytes, &acme(), &options()).unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "mine").unwrap();
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    for target in [&file, &empty] {
        assert_eq!(archive::unpack(&bundle, target).unwrap_err().code(), "io");
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    assert!(names(&empty).is_empty());
    assert_eq!(names(folder.path()), ["empty", "file"]);
}

#[cfg(unix)]
#[test]
fn a_dangling_link_in_place_of_the_target_is_not_written_through() {
    let folder = tempfile::tempdir().unwrap();
    let elsewhere = folder.path().join("elsewhere");
    std::os::unix::fs::symlink(&elsewhere, folder.path().join("link")).unwrap();
    let bytes = Sample::new().sign(&[&key(1)]).archive();
    let bundle = verify::archive_bytes(&bytes, &acme(), &options()).unwrap();
    assert!(archive::unpack(&bundle, &folder.path().join("link")).is_err());
    assert!(!elsewhere.exists());
}

#[test]
fn a_failure_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = Sample::new().sign(&[&key(1)]).archive();
    let bundle = verify::archive_bytes(&bytes, &acme(), &options()).unwrap();
    let missing = folder.path().join("no/such/parent");
    assert_eq!(archive::unpack(&bundle, &missing).unwrap_err().code(), "io");
    // A name so long that the temporary one is too long.
    let long = folder.path().join("x".repeat(250));
    assert_eq!(archive::unpack(&bundle, &long).unwrap_err().code(), "io");
    assert!(archive::unpack(&bundle, std::path::Path::new("/")).is_err());
    // Renaming a file over a folder fails after all was written.
    let taken = folder.path().join("taken");
    fs::create_dir(&taken).unwrap();
    assert!(archive::write_file(&bundle.contents(), &taken).is_err());
    assert_eq!(names(folder.path()), ["taken"]);
}

#[test]
fn an_archive_file_replaces_the_one_before() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("x.toolbundle");
    fs::write(&target, "old").unwrap();
    let bytes = Sample::new().sign(&[&key(1)]).archive();
    let bundle = verify::archive_bytes(&bytes, &acme(), &options()).unwrap();
    archive::write_file(&bundle.contents(), &target).unwrap();
    assert_eq!(fs::read(&target).unwrap(), bytes);
    assert_eq!(names(folder.path()), ["x.toolbundle"]);
}
