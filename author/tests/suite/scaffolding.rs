//! `new`. Whether the result builds and passes its tests is tested elsewhere, since that needs the
//! guest toolchain.

use toolward_author::check::check_path;
use toolward_author::scaffold::{Language, ScaffoldOptions, create};

fn options() -> ScaffoldOptions {
    ScaffoldOptions {
        id: "text.greet".to_owned(),
        publisher: "acme".to_owned(),
        created: 1_700_000_000,
        language: Language::named("rust").unwrap(),
    }
}

#[test]
fn a_new_bundle_passes_the_check_but_for_what_is_not_built() {
    let place = tempfile::tempdir().unwrap();
    for language in Language::all() {
        let path = place.path().join(language.word());
        let options = ScaffoldOptions {
            language,
            ..options()
        };
        create(&path, &options).unwrap();
        let report = check_path(&path);
        let codes: Vec<_> = report.diagnostics.iter().map(|found| found.code).collect();
        assert_eq!(codes, ["component-missing"], "{:?}", report.diagnostics);
        assert_eq!(report.errors(), 0);
    }
}

#[test]
fn no_placeholder_is_left_in_any_file() {
    let place = tempfile::tempdir().unwrap();
    for language in Language::all() {
        let path = place.path().join(language.word());
        let options = ScaffoldOptions {
            language,
            ..options()
        };
        for file in create(&path, &options).unwrap() {
            let text = std::fs::read_to_string(path.join(&file)).unwrap();
            let left = text
                .split('@')
                .filter(|part| part.chars().all(|c| c.is_ascii_uppercase()) && part.len() > 1);
            assert_eq!(left.count(), 0, "{file}");
            assert!(!file.contains('@'), "{file}");
        }
    }
}

#[test]
fn a_driver_in_rust_has_the_guest_library_beside_it() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("a");
    create(&path, &options()).unwrap();
    let text = std::fs::read_to_string(path.join("driver/Cargo.toml")).unwrap();
    let manifest: toml::Table = text.parse().unwrap();
    let named = &manifest["dependencies"]["toolward-guest"]["path"];
    let library = path.join("driver").join(named.as_str().unwrap());
    assert!(library.starts_with(&path));
    assert!(library.join("Cargo.toml").is_file());
    assert!(library.join("src/lib.rs").is_file());
}

#[test]
fn nothing_is_written_over_and_bad_names_write_nothing() {
    let place = tempfile::tempdir().unwrap();
    let error = create(place.path(), &options()).unwrap_err();
    assert_eq!(error.code(), "output-exists");
    let path = place.path().join("x");
    let bad = ScaffoldOptions {
        id: "Not An Id".to_owned(),
        ..options()
    };
    create(&path, &bad).unwrap_err();
    assert!(!path.exists());
}
