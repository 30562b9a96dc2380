//! Compiled drivers on disk are used if they are genuine, and compiled again if not.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::CALL;
use crate::support::{Machine, tree};

fn machine() -> Machine {
    Machine::with_example("text-stats").with_own_cache()
}

fn words(machine: &Machine) -> u64 {
    let run = machine.toolward(&format!("{CALL} --set text=one,two,three"));
    run.ends(0).json()["words"].as_u64().unwrap()
}

/// Returns the only compiled driver.
fn artefact(cache: &Path) -> PathBuf {
    let found: Vec<_> = tree(cache)
        .into_keys()
        .filter(|name| name.ends_with(".cwasm"))
        .collect();
    assert_eq!(found.len(), 1, "{found:?}");
    cache.join(&found[0])
}

fn inodes(cache: &Path) -> BTreeMap<String, (u64, i64)> {
    let names = tree(cache).into_keys();
    names
        .map(|name| {
            let metadata = fs::metadata(cache.join(&name)).unwrap();
            (name, (metadata.ino(), metadata.mtime_nsec()))
        })
        .collect()
}

#[test]
fn the_second_call_finds_the_driver_compiled() {
    let machine = machine();
    assert!(!machine.cache().exists());
    assert_eq!(words(&machine), 3);
    let first = inodes(&machine.cache());
    artefact(&machine.cache());
    assert_eq!(words(&machine), 3);
    // Compiling again would write a new file.
    assert_eq!(inodes(&machine.cache()), first);
}

#[test]
fn the_cache_is_its_users_alone() {
    let machine = machine();
    words(&machine);
    for (name, found) in tree(&machine.cache()) {
        let mode = u32::from_str_radix(found.split(' ').next().unwrap(), 8).unwrap();
        assert_eq!(mode & 0o077, 0, "{name} has mode {mode:o}");
    }
    let mode = fs::metadata(machine.cache()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn a_changed_cache_file_is_compiled_again_and_never_run() {
    let machine = machine();
    words(&machine);
    let path = artefact(&machine.cache());
    let good = fs::read(&path).unwrap();
    for position in [0, good.len() / 3, good.len() / 2, good.len() - 1] {
        let mut bad = good.clone();
        bad[position] ^= 0x40;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, bad).unwrap();
        assert_eq!(words(&machine), 3);
        assert!(
            fs::read(artefact(&machine.cache())).unwrap() == good,
            "byte {position}"
        );
    }
}

#[test]
fn a_foreign_cache_file_is_not_run() {
    let one = machine();
    let other = machine();
    words(&one);
    words(&other);
    // Each cache authenticates drivers with its own key, so a copied driver is not genuine.
    let (from, to) = (artefact(&one.cache()), artefact(&other.cache()));
    let good = fs::read(&to).unwrap();
    fs::remove_file(&to).unwrap();
    fs::copy(&from, &to).unwrap();
    assert!(fs::read(&to).unwrap() != good);
    assert_eq!(words(&other), 3);
    assert!(fs::read(artefact(&other.cache())).unwrap() == good);
}

#[test]
fn a_cache_that_others_can_write_to_is_not_used() {
    let machine = machine();
    fs::create_dir_all(machine.cache()).unwrap();
    fs::set_permissions(machine.cache(), fs::Permissions::from_mode(0o777)).unwrap();
    let ended = machine.toolward(&format!("{CALL} --set text=a")).ends(0);
    ended.warns("others have access");
    assert_eq!(tree(&machine.cache()).len(), 0);
    // If the cache is set by a flag, it must be usable.
    fs::create_dir(machine.path("open")).unwrap();
    fs::set_permissions(machine.path("open"), fs::Permissions::from_mode(0o777)).unwrap();
    let ended = machine
        .toolward(&format!("{CALL} --set text=a --cache-dir open"))
        .ends(1);
    assert!(ended.stderr.contains("others have access"), "{ended}");
    assert_eq!(tree(&machine.path("open")).len(), 0);
}
