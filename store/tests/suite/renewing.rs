//! Surfaces that were accepted in an earlier version.

use toolward_bundle::Content;
use toolward_bundle::libraries::NoLibraries;
use toolward_bundle::surface::{BundleSurface, Version};
use toolward_signing::Digest;
use toolward_store::{Acceptance, InstallOutcome, Store};

use crate::support::{Place, Release, install, now, options, verifier};

fn earlier(release: &Release) -> BundleSurface {
    let content = Content::from_verified(release.bundle()).unwrap();
    BundleSurface::of_version(&content, Version::V1)
}

/// Writes a surface in place of the one of what is installed or held.
fn put(place: &Place, table: &str, surface: &BundleSurface) {
    let sql = rusqlite::Connection::open(place.state()).unwrap();
    sql.execute(
        "INSERT INTO surface (digest, bytes) VALUES (?1, ?2)",
        rusqlite::params![surface.digest().to_string(), surface.to_bytes()],
    )
    .unwrap();
    let changed = sql.execute(
        &format!("UPDATE {table} SET surface = ?1"),
        [surface.digest().to_string()],
    );
    assert_eq!(changed.unwrap(), 1);
    sql.execute(
        "DELETE FROM surface WHERE digest NOT IN
             (SELECT surface FROM installed UNION ALL SELECT surface FROM held)",
        [],
    )
    .unwrap();
}

fn renew(store: &Store) {
    store
        .renew_surfaces(&verifier(), &NoLibraries, now())
        .unwrap();
}

#[test]
fn an_update_of_what_was_accepted_in_an_earlier_version_is_installed_once_it_is_renewed() {
    let place = Place::new();
    let store = place.open();
    let first = install(&store, &Release::new(1));
    assert!(!store.has_earlier_surfaces().unwrap());
    put(&place, "installed", &earlier(&Release::new(1)));
    assert!(store.has_earlier_surfaces().unwrap());
    // It is still what was accepted.
    let result = store.verify_all(&verifier(), &NoLibraries, now(), &mut |_| {});
    assert_eq!(result.unwrap(), 0);
    renew(&store);
    assert!(!store.has_earlier_surfaces().unwrap());
    assert_eq!(store.list().unwrap(), [first]);
    let second = install(&store, &Release::new(2));
    assert_eq!(second.acceptance, Acceptance::SameSurface);
    let changed = Release::described(3, "Reads your mail.");
    let outcome = store.install(&changed.bundle(), &options()).unwrap();
    assert!(
        matches!(outcome, InstallOutcome::Held { .. }),
        "{outcome:?}"
    );
}

#[test]
fn an_update_of_what_was_not_renewed_is_held() {
    let place = Place::new();
    let store = place.open();
    install(&store, &Release::new(1));
    put(&place, "installed", &earlier(&Release::new(1)));
    let outcome = store
        .install(&Release::new(2).bundle(), &options())
        .unwrap();
    assert!(
        matches!(outcome, InstallOutcome::Held { .. }),
        "{outcome:?}"
    );
}

#[test]
fn a_surface_that_is_not_the_bundles_own_is_not_renewed() {
    let place = Place::new();
    let store = place.open();
    install(&store, &Release::new(1));
    let other = earlier(&Release::described(1, "Reads your mail."));
    put(&place, "installed", &other);
    renew(&store);
    assert_eq!(store.list().unwrap()[0].surface, other.digest());
}

#[test]
fn a_bundle_that_no_longer_verifies_keeps_its_surface() {
    let place = Place::new();
    let store = place.open();
    let first = install(&store, &Release::new(1));
    let old = earlier(&Release::new(1));
    put(&place, "installed", &old);
    std::fs::remove_file(place.object(&first.digest)).unwrap();
    renew(&store);
    assert_eq!(store.list().unwrap()[0].surface, old.digest());
}

#[test]
fn an_update_that_waits_is_accepted_by_its_new_surface_only() {
    let place = Place::new();
    let store = place.open();
    install(&store, &Release::new(1));
    let new = Release::described(2, "Reads your mail.");
    store.install(&new.bundle(), &options()).unwrap();
    let old = earlier(&new);
    put(&place, "held", &old);
    renew(&store);
    let accept = |surface: &Digest| store.accept("demo.greet", surface, &verifier(), now());
    assert_eq!(
        accept(&old.digest()).unwrap_err().code(),
        "surface-mismatch"
    );
    let (held, difference) = store.pending().unwrap().remove(0);
    assert_eq!(difference.changes.len(), 1, "{difference}");
    accept(&held.surface).unwrap();
}
