//! Rules for bare keys (public keys that are trusted without a publisher's document): where a key's
//! file may be, and whose prefixes a key may have. A key's file in or next to a bundle is refused,
//! since it may come from the sender of the bundle.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use toolward_bundle::text::visible_line;
use toolward_signing::id::Prefix;
use toolward_signing::manifest::ENVELOPE_FILE;
use toolward_signing::trust::TrustStore;

use crate::{Code, Error, Kind, Result, joined};

/// The file that marks a directory under work (an unsigned bundle).
pub(crate) const BUNDLE_TOML: &str = "bundle.toml";

/// The suffix of a bundle's archive.
const ARCHIVE_SUFFIX: &str = ".toolbundle";

/// The most files in the folder of a key. If the folder has more, the key is refused.
const MAX_BESIDE: usize = 10_000;

/// Refuses a key in the directory of a bundle, or next to a bundle. Links are resolved.
///
/// # Errors
/// `key-misplaced`; `file-unreadable` if a folder can't be read.
pub(super) fn check_place(key: &Path) -> Result<()> {
    let unreadable = |error| Error::unreadable(key, error);
    let named = std::path::absolute(key).map_err(unreadable)?;
    let real = key.canonicalize().map_err(unreadable)?;
    // The real folder of a path with `..` or links may differ from the folder that the path names,
    // so both are checked.
    let folder = named.parent().unwrap_or(Path::new("/"));
    let folder = folder.canonicalize().map_err(unreadable)?;
    let target = real.parent().unwrap_or(Path::new("/")).to_owned();
    for folder in BTreeSet::from([target, folder]) {
        if let Some(bundle) = folder.ancestors().find(|folder| is_bundle(folder)) {
            return Err(misplaced(key, "in a bundle", bundle));
        }
        if let Some(bundle) = bundle_in(&folder)? {
            return Err(misplaced(key, "beside a bundle", &bundle));
        }
    }
    Ok(())
}

/// The error for a key from a registry or a web server. Such a key is refused, since bundles come
/// from there, too.
pub(super) fn fetched(source: &str) -> Error {
    let source = visible_line(source, 1000);
    let message =
        format!("{source}: this is a public key, and a key is not fetched as bundles are");
    Error::new(Kind::Refused, Code::KeyMisplaced, message).hint(
        "ask the publisher for its document, NAME.publisher.json; or get the key from it by another way than its bundles, \
         into a folder of its own, and name that file",
    )
}

fn misplaced(key: &Path, place: &str, bundle: &Path) -> Error {
    let (key, bundle) = (key.display().to_string(), bundle.display().to_string());
    let (key, bundle) = (visible_line(&key, 1000), visible_line(&bundle, 1000));
    let message = format!("{key}: this key lies {place}, {bundle}");
    Error::new(Kind::Refused, Code::KeyMisplaced, message).hint(
        "whoever sent the bundle may have put it there: get the key from its publisher, by another way than the bundle, \
         into a folder of its own",
    )
}

/// Returns a bundle among the files of a folder, if it has one.
fn bundle_in(folder: &Path) -> Result<Option<PathBuf>> {
    let unreadable = |error| Error::unreadable(folder, error);
    let entries = std::fs::read_dir(folder).map_err(unreadable)?;
    for (number, entry) in entries.enumerate() {
        if number >= MAX_BESIDE {
            let many = format!("more than {MAX_BESIDE} files lie beside the key");
            return Err(Error::unreadable(folder, many));
        }
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name();
        let name = name.to_string_lossy().to_ascii_lowercase();
        if name.ends_with(ARCHIVE_SUFFIX) || is_bundle(&entry.path()) {
            return Ok(Some(entry.path()));
        }
    }
    Ok(None)
}

/// Whether this is the directory of a bundle, packed or under work.
fn is_bundle(folder: &Path) -> bool {
    let has = |name: &str| folder.join(name).symlink_metadata().is_ok();
    has(ENVELOPE_FILE) || has(BUNDLE_TOML)
}

/// Returns the publishers whose prefixes overlap with these prefixes, each with the prefix that
/// overlaps.
pub(super) fn overlaps(store: &TrustStore, prefixes: &[Prefix]) -> Vec<(String, String)> {
    let overlaps = prefixes.iter().flat_map(|prefix| {
        let publishers = store.overlapping(prefix);
        publishers.map(move |one| (one.name().to_owned(), prefix.to_string()))
    });
    overlaps.collect()
}

/// Refuses prefixes for the document of `own` that overlap with the prefixes of another publisher's
/// bare key, because the operator has not stated that the bare key may keep its prefixes.
///
/// # Errors
/// `prefix-taken`
pub(super) fn hold_none_of(store: &TrustStore, own: &str, prefixes: &[Prefix]) -> Result<()> {
    let held = prefixes.iter().find_map(|prefix| {
        let mut bare = store.overlapping(prefix).filter(|one| one.is_bare);
        Some((bare.find(|one| one.name() != own)?.name(), prefix))
    });
    let Some((holder, prefix)) = held else {
        return Ok(());
    };
    let message = format!(
        "the prefix {prefix} is inside, equal to or around one of {holder}'s, which is trusted by a bare key"
    );
    Err(Error::new(Kind::Denied, Code::PrefixTaken, message).hint(format!(
        "take the key out first: toolward trust remove {holder}. If it shall publish such ids as well, add it again afterwards, with \
         --takes-from {own}"
    )))
}

/// Checks that `--takes-from` names all publishers in `overlaps`, and only publishers in
/// `possible`.
pub(super) fn are_given_up(
    overlaps: &[(String, String)],
    possible: &[(String, String)],
    named: &[String],
) -> Result<()> {
    let taken = |message: String| Error::new(Kind::Denied, Code::PrefixTaken, message);
    let missing = overlaps.iter().find(|(name, _)| !named.contains(name));
    if let Some((name, prefix)) = missing {
        let names: BTreeSet<&str> = overlaps.iter().map(|(name, _)| name.as_str()).collect();
        let flags = names.iter().map(|name| format!("--takes-from {name}"));
        let flags = joined(flags, " ");
        let message = format!("the prefix {prefix} is inside, equal to or around one of {name}'s");
        return Err(taken(message).hint(format!(
            "if this key shall publish ids that are {name}'s otherwise, say so: {flags}"
        )));
    }
    let other = named
        .iter()
        .find(|named| !possible.iter().any(|(name, _)| name == *named));
    match other {
        Some(other) => Err(taken(format!(
            "--takes-from {}: no prefix that was given overlaps with one of theirs",
            visible_line(other, 100)
        ))
        .hint("name the publishers whose prefixes overlap, and no others; `toolward trust list` shows them")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// Makes a folder with a key in its folder `keys`.
    fn place() -> (tempfile::TempDir, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("keys")).unwrap();
        let key = place.path().join("keys/acme.pub.pem");
        fs::write(&key, "a key").unwrap();
        (place, key)
    }

    #[track_caller]
    fn refused(key: &Path) {
        let failure = check_place(key).unwrap_err();
        assert_eq!(failure.code, "key-misplaced", "{failure}");
    }

    #[test]
    fn a_key_in_a_folder_of_its_own_is_taken() {
        let (place, key) = place();
        check_place(&key).unwrap();
        // A bundle one folder up is not next to it.
        fs::write(place.path().join("a.toolbundle"), "").unwrap();
        check_place(&key).unwrap();
    }

    #[test]
    fn a_key_beside_an_archive_is_refused_however_its_name_is_written() {
        for name in ["a.toolbundle", "A.ToolBundle", ".toolbundle"] {
            let (_place, key) = place();
            fs::write(key.with_file_name(name), "").unwrap();
            refused(&key);
        }
    }

    #[test]
    fn a_key_beside_or_below_a_bundle_s_directory_is_refused() {
        for file in ["manifest.dsse.json", "bundle.toml"] {
            let (place, key) = place();
            let bundle = key.with_file_name("bundle");
            fs::create_dir(&bundle).unwrap();
            fs::write(bundle.join(file), "").unwrap();
            refused(&key);
            fs::remove_dir_all(&bundle).unwrap();
            check_place(&key).unwrap();
            fs::write(place.path().join(file), "").unwrap();
            refused(&key);
        }
    }

    #[test]
    fn links_do_not_hide_where_a_key_lies() {
        let (place, key) = place();
        let (clean, bundle) = (place.path().join("clean"), place.path().join("bundle"));
        fs::create_dir_all(bundle.join("inside")).unwrap();
        fs::create_dir(&clean).unwrap();
        fs::write(bundle.join("manifest.dsse.json"), "").unwrap();
        fs::write(bundle.join("inside/acme.pub.pem"), "a key").unwrap();
        // A link to a key in a bundle, a link in a bundle, a link to a folder in a bundle, and a
        // path with `..`.
        symlink(bundle.join("inside/acme.pub.pem"), clean.join("a.pub.pem")).unwrap();
        refused(&clean.join("a.pub.pem"));
        fs::remove_file(clean.join("a.pub.pem")).unwrap();
        symlink(&key, bundle.join("inside/b.pub.pem")).unwrap();
        refused(&bundle.join("inside/b.pub.pem"));
        symlink(bundle.join("inside"), clean.join("folder")).unwrap();
        refused(&clean.join("folder/acme.pub.pem"));
        refused(&clean.join("../bundle/inside/acme.pub.pem"));
        check_place(&key).unwrap();
    }

    #[test]
    fn a_key_that_is_not_there_or_among_too_many_files_is_unreadable() {
        let (place, key) = place();
        let failure = check_place(&place.path().join("none.pub.pem")).unwrap_err();
        assert_eq!(failure.code, "file-unreadable");
        for number in 0..MAX_BESIDE {
            fs::write(key.with_file_name(number.to_string()), "").unwrap();
        }
        let failure = check_place(&key).unwrap_err();
        assert_eq!(failure.code, "file-unreadable");
    }
}
