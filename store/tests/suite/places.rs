//! The directories that a store may be in.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use toolward_store::Store;

use crate::support::{Place, Release, install};

fn mode(path: &std::path::Path) -> u32 {
    path.metadata().unwrap().mode() & 0o777
}

#[test]
fn directories_and_files_are_for_their_user_only() {
    let place = Place::new();
    let installed = install(&place.open(), &Release::new(1));
    assert_eq!(mode(&place.store()), 0o700);
    assert_eq!(mode(&place.store().join("objects")), 0o700);
    assert_eq!(mode(&place.store().join("tmp")), 0o700);
    assert_eq!(mode(&place.object(&installed.digest)), 0o600);
    assert_eq!(mode(&place.state()), 0o600);
    assert_eq!(mode(place.state().parent().unwrap()), 0o700);
}

#[test]
fn a_directory_or_state_that_others_have_access_to_is_refused() {
    let place = Place::new();
    drop(place.open());
    for path in [
        place.store(),
        place.store().join("objects"),
        place.store().join("tmp"),
        place.state(),
        place.state().parent().unwrap().to_owned(),
    ] {
        let good = mode(&path);
        for bad in [good | 0o050, good | 0o002] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(bad)).unwrap();
            let error = Store::open(&place.store(), &place.state()).unwrap_err();
            assert_eq!(error.code(), "store-unusable", "{}", path.display());
        }
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(good)).unwrap();
    }
    drop(place.open());
}

#[test]
fn another_programs_file_is_no_state_and_stays_as_it_is() {
    let place = Place::new();
    drop(place.open());
    for name in ["trust.db-wal", "trust.db-shm"] {
        let _ = std::fs::remove_file(place.state().with_file_name(name));
    }
    std::fs::write(place.state(), b"a diary of more than a few bytes").unwrap();
    let error = Store::open(&place.store(), &place.state()).unwrap_err();
    assert_eq!(error.code(), "store-corrupt");
    assert_eq!(
        std::fs::read(place.state()).unwrap(),
        b"a diary of more than a few bytes"
    );
}
