//! Installing, updating and removing bundles, and the files that stay on disk.

use toolward_bundle::libraries::NoLibraries;
use toolward_store::{Acceptance, InstallOutcome};

use crate::support::{Place, Release, install, now, options, refused, verifier};

#[test]
fn an_installed_bundle_loads_verified_and_with_the_bytes_that_were_signed() {
    let place = Place::new();
    let store = place.open();
    let installed = install(&store, &Release::new(1));
    assert_eq!(installed.acceptance, Acceptance::First);
    assert_eq!(installed.publisher, "acme");
    let (_, bundle) = store.load("demo.greet", &verifier(), now()).unwrap();
    assert_eq!(bundle.manifest_digest, installed.digest);
    assert_eq!(&**bundle.file("icons/payload.bin").unwrap(), b"release 1\n");
    assert_eq!(store.list().unwrap(), [installed]);
}

#[test]
fn the_state_is_there_for_the_next_process() {
    let place = Place::new();
    let installed = install(&place.open(), &Release::new(1));
    assert_eq!(place.open().list().unwrap(), [installed]);
}

#[test]
fn an_update_with_the_same_surface_replaces_and_its_old_file_is_collected() {
    let place = Place::new();
    let store = place.open();
    let old = install(&store, &Release::new(1));
    let InstallOutcome::Installed {
        installed,
        previous,
    } = store
        .install(&Release::new(2).bundle(), &options(), &NoLibraries)
        .unwrap()
    else {
        panic!("expected an installation");
    };
    assert_eq!(previous, Some(old.clone()));
    assert_eq!(installed.acceptance, Acceptance::SameSurface);
    assert!(place.object(&old.digest).exists());
    assert_eq!(store.gc().unwrap(), 1);
    assert_eq!(
        place.files(),
        [format!("objects/{}.toolbundle", installed.digest)]
    );
    store.load("demo.greet", &verifier(), now()).unwrap();
}

#[test]
fn the_same_bundle_twice_is_unchanged() {
    let place = Place::new();
    let store = place.open();
    let installed = install(&store, &Release::new(1));
    let again = store
        .install(&Release::new(1).bundle(), &options(), &NoLibraries)
        .unwrap();
    assert_eq!(again, InstallOutcome::Unchanged(installed));
}

#[test]
fn installing_again_repairs_a_damaged_file() {
    let place = Place::new();
    let store = place.open();
    let installed = install(&store, &Release::new(1));
    std::fs::write(place.object(&installed.digest), b"damaged").unwrap();
    store
        .install(&Release::new(1).bundle(), &options(), &NoLibraries)
        .unwrap();
    store.load("demo.greet", &verifier(), now()).unwrap();
}

#[test]
fn a_removed_bundle_is_not_loaded_and_its_file_collected() {
    let place = Place::new();
    let store = place.open();
    install(&store, &Release::new(1));
    store.remove("demo.greet", now()).unwrap();
    assert!(store.list().unwrap().is_empty());
    let error = store.load("demo.greet", &verifier(), now()).unwrap_err();
    assert_eq!(error.code(), "not-installed");
    assert_eq!(
        store.remove("demo.greet", now()).unwrap_err().code(),
        "not-installed"
    );
    store.gc().unwrap();
    assert!(place.files().is_empty());
}

#[test]
fn two_bundles_with_the_same_tool_are_refused_and_nothing_is_written() {
    let place = Place::new();
    let store = place.open();
    install(&store, &Release::new(1));
    let files = place.files();
    let other = Release {
        id: "demo.other".to_owned(),
        ..Release::new(1)
    };
    assert_eq!(refused(&store, &other), "duplicate-id");
    assert_eq!(place.files(), files);
    store.remove("demo.greet", now()).unwrap();
    install(&store, &other);
}

#[test]
fn all_installed_bundles_load_by_id_and_one_refusal_keeps_none_of_the_others() {
    let place = Place::new();
    let store = place.open();
    for number in 0..20 {
        install(
            &store,
            &Release::named(&format!("demo.greet{number:02}"), 1),
        );
    }
    let bad = store.installed("demo.greet07").unwrap().unwrap();
    std::fs::remove_file(place.object(&bad.digest)).unwrap();
    let loaded = store
        .load_all_as(&|file, _| verifier()(file), &|bundle| bundle, now())
        .unwrap();
    let ids: Vec<_> = loaded.iter().map(|one| one.installed.id.clone()).collect();
    assert!(ids.is_sorted() && ids.len() == 20);
    let refused: Vec<_> = loaded.iter().filter(|one| one.bundle.is_err()).collect();
    assert_eq!(refused.len(), 1);
    assert_eq!(
        refused[0].bundle.as_ref().unwrap_err().code(),
        "object-missing"
    );
    assert_eq!(store.list().unwrap().len(), 20);
}
