//! Checks the laws of the fuzz targets on the committed inputs.

use std::collections::BTreeSet;
use std::path::Path;

use toolward_fuzz::{TARGETS, replay};

#[test]
fn every_seed_keeps_the_law_of_its_target() {
    match replay() {
        Ok(counts) => {
            for (name, accepted, count) in counts {
                // Some seeds must be accepted, or the law is never checked; and some must be
                // refused, or refusals are never checked.
                assert!(
                    (1..count).contains(&accepted),
                    "{name} takes {accepted} of {count}"
                );
            }
        }
        Err(broken) => panic!("{broken}"),
    }
}

/// The names of the files in a folder, without their extension.
fn names(folder: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().path());
    names
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect()
}

#[test]
fn every_target_has_a_binary_and_seeds_of_its_own() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz");
    let targets: BTreeSet<String> = TARGETS
        .iter()
        .map(|target| target.name.to_owned())
        .collect();
    assert_eq!(names(&fuzz.join("targets")), targets);
    assert_eq!(names(&fuzz.join("corpus")), targets);
    let manifest = std::fs::read_to_string(fuzz.join("Cargo.toml")).unwrap();
    for name in &targets {
        assert!(
            manifest.contains(&format!("path = \"targets/{name}.rs\"")),
            "{name}"
        );
    }
}

#[test]
fn the_seeds_stay_small() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
    let folders = std::fs::read_dir(corpus).unwrap();
    let files = folders.flat_map(|folder| std::fs::read_dir(folder.unwrap().path()).unwrap());
    let bytes: u64 = files
        .map(|file| file.unwrap().metadata().unwrap().len())
        .sum();
    assert!(bytes < 1 << 20, "{bytes} bytes");
}
