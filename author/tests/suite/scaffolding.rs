//! `new`. That the result builds and passes its tests needs the guest
//! toolchain, and is tested where that is.

use std::path::PathBuf;

use toolward_author::check::check_path;
use toolward_author::scaffold::{Options, Sdk, create};

fn options() -> Options {
    Options {
        id: "text.greet".to_owned(),
        publisher: "acme".to_owned(),
        created: 1_700_000_000,
        sdk: Sdk::Version("0.1.0".to_owned()),
    }
}

#[test]
fn a_new_bundle_passes_the_check_but_for_what_is_not_built() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("text.greet");
    create(&path, &options()).unwrap();
    let report = check_path(&path);
    let codes: Vec<_> = report.diagnostics.iter().map(|found| found.code).collect();
    assert_eq!(codes, ["component-missing"], "{:?}", report.diagnostics);
    assert_eq!(report.errors(), 0);
}

#[test]
fn no_placeholder_is_left_in_any_file() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("new");
    for file in create(&path, &options()).unwrap() {
        let text = std::fs::read_to_string(path.join(&file)).unwrap();
        let left = text
            .split('@')
            .filter(|part| part.chars().all(|c| c.is_ascii_uppercase()) && part.len() > 1);
        assert_eq!(left.count(), 0, "{file}");
    }
}

#[test]
fn the_guest_sdk_is_taken_from_where_it_was_said_to_be() {
    let place = tempfile::tempdir().unwrap();
    let read = |name: &str, sdk: Sdk| {
        let path = place.path().join(name);
        create(&path, &Options { sdk, ..options() }).unwrap();
        std::fs::read_to_string(path.join("driver/Cargo.toml")).unwrap()
    };
    let by_version = read("a", Sdk::Version("1.2.3".to_owned()));
    assert!(by_version.contains("toolward-guest = \"1.2.3\""));
    let odd = PathBuf::from("/a \"quoted\"\\path");
    let by_path: toml::Table = read("b", Sdk::Path(odd.clone())).parse().unwrap();
    assert_eq!(
        by_path["dependencies"]["toolward-guest"]["path"].as_str(),
        odd.to_str()
    );
}

#[test]
fn nothing_is_written_over_and_bad_names_write_nothing() {
    let place = tempfile::tempdir().unwrap();
    let error = create(place.path(), &options()).unwrap_err();
    assert_eq!(error.code(), "output-exists");
    let path = place.path().join("x");
    let bad = Options {
        id: "Not An Id".to_owned(),
        ..options()
    };
    create(&path, &bad).unwrap_err();
    assert!(!path.exists());
}
