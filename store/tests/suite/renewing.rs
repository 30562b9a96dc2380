//! Accepted surfaces of an earlier version.

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

/// Replaces the surface of the installed or held release.
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
    // The bundle still matches the accepted surface.
    let result = store.verify_all(&verifier(), &NoLibraries, now(), &mut |_| {});
    assert_eq!(result.unwrap(), 0);
    renew(&store);
    assert!(!store.has_earlier_surfaces().unwrap());
    assert_eq!(store.list().unwrap(), [first]);
    let second = install(&store, &Release::new(2));
    assert_eq!(second.acceptance, Acceptance::SameSurface);
    let changed = Release::described(3, "Reads your mail.");
    let outcome = store
        .install(&changed.bundle(), &options(), &NoLibraries)
        .unwrap();
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
        .install(&Release::new(2).bundle(), &options(), &NoLibraries)
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
    store
        .install(&new.bundle(), &options(), &NoLibraries)
        .unwrap();
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

/// The surfaces that the previous version recorded for the archives in `examples/bundles`.
const RECORDED: [(&str, &str); 15] = [
    (
        "check-digits",
        "5f62817e9480dab9bd34b9a600bab277d4c469b2778a6c211618be30d72ed1dc",
    ),
    (
        "csv-sql",
        "6399a46450a04454f2b449d44760847776fb9f3d3b2ee6612019bf59fb8cd72b",
    ),
    (
        "csv-summary",
        "e5df3883edebaa826742cd516d4de09b192d59f1669cbe9f5b5cab082acb707f",
    ),
    (
        "demo-thief",
        "4d2245b0fc69f1ed8317c9899caa2bc13e07fe341706d4e9d3de346780b0bee8",
    ),
    (
        "demo-tools",
        "80a37892b5f808e05d86884855f43b32f503627a452f055480cbfba46f3e8ae7",
    ),
    (
        "files-search",
        "305314d68fc24251755fe32a50c3e5a031a5dbfbddfadf6020f72dc4043fa223",
    ),
    (
        "html-text",
        "650f053d315c98fe61e92d1927276ab87969d4a886791588b5c136754a1751d9",
    ),
    (
        "http-fetch",
        "601a9fa4dcaf7fb1b27b71b09b4c3a61b595c9d4198151b39914788ccd61fb03",
    ),
    (
        "json-query",
        "3b8afd6a294a7b9f231ff8f8ec71b9ca60a663e7a2e6ad5e7b00c88e71e87b25",
    ),
    (
        "kv-counter",
        "bde75c23dd1e62f33dd121bcb9032bb72502c02d2cad272804815107212106e1",
    ),
    (
        "markdown-html",
        "1d9cb0afcad402993b8b7cf57a586a79b3e9fcd9ad8e3caf788d2cae4e9d84c8",
    ),
    (
        "notes-append",
        "957f692cc11f71858c7abf4c5208378672489839f8e0148aa8494dd7e5f67775",
    ),
    (
        "text-digest",
        "5ac049acfab43ede774a546d4cbe13a771585168155cd0eda7b0453b417d97b6",
    ),
    (
        "text-stats",
        "e3ab46fd58c557167e0e8fe0252649a2c74ba3c4722a98c4349ebdf91891269e",
    ),
    (
        "units-dates",
        "424d1da423ea57b27d44de1a53205b81cb1297e7341ecd56a0af5ec331cac503",
    ),
];

#[test]
fn no_update_of_the_example_bundles_is_held_for_the_surface_that_the_version_before_recorded() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let pem = std::fs::read_to_string(root.join("keys/example.pub.pem")).unwrap();
    let key = toolward_signing::key::PublicKey::from_pem(&pem).unwrap();
    let trust = toolward_signing::trust::TrustStore::for_key(key);
    for (name, recorded) in RECORDED {
        let place = Place::new();
        let store = place.open();
        let bundle = || {
            let archive = std::fs::read(root.join(format!("bundles/{name}.toolbundle"))).unwrap();
            let options = toolward_signing::verify::VerifyOptions::default();
            toolward_signing::verify::archive_bytes(&archive, &trust, &options).unwrap()
        };
        store.install(&bundle(), &options(), &NoLibraries).unwrap();
        let content = Content::from_verified(bundle()).unwrap();
        let before = BundleSurface::of_version(&content, Version::V2);
        assert_eq!(before.digest().to_string(), recorded, "{name}");
        put(&place, "installed", &before);
        let verify = |archive: &mut std::fs::File| {
            let options = toolward_signing::verify::VerifyOptions::default();
            toolward_signing::verify::archive_file(archive, &trust, &options)
        };
        store.renew_surfaces(&verify, &NoLibraries, now()).unwrap();
        let outcome = store.install(&bundle(), &options(), &NoLibraries).unwrap();
        assert!(
            !matches!(outcome, InstallOutcome::Held { .. }),
            "{name}: {outcome:?}"
        );
        assert_eq!(
            store.list().unwrap()[0].surface,
            BundleSurface::of(&content).digest()
        );
    }
}
