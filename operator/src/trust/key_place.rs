//! Where a bare key lies: not in or beside a bundle, where whoever sent the bundle could have put it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use toolward_bundle::text::visible_line;
use toolward_signing::manifest::ENVELOPE_FILE;

use super::BUNDLE_TOML;
use crate::error::{Code, Error, Kind};

/// How the archive of a bundle is named.
const ARCHIVE_SUFFIX: &str = ".toolbundle";

/// How many files beside a key are looked at. Beside more, it is refused.
const MAX_BESIDE: usize = 10_000;

/// Refuses a key that lies in the directory of a bundle, or beside a bundle: where it is named, and where links lead.
///
/// # Errors
/// `key-misplaced`, and `file-unreadable` where that can't be found out.
pub(super) fn check(key: &Path) -> Result<(), Error> {
    let unreadable = |error| Error::unreadable(key, error);
    let named = std::path::absolute(key).map_err(unreadable)?;
    let real = key.canonicalize().map_err(unreadable)?;
    // A path with `..` names other folders than those that it leads through.
    let folder = named.parent().unwrap_or(Path::new("/"));
    let folder = folder.canonicalize().map_err(unreadable)?;
    let target = real.parent().unwrap_or(Path::new("/")).to_owned();
    for folder in BTreeSet::from([target, folder]) {
        if let Some(bundle) = folder.ancestors().find(|folder| is_bundle(folder)) {
            return Err(misplaced(key, "in a bundle", bundle));
        }
        if let Some(bundle) = beside(&folder)? {
            return Err(misplaced(key, "beside a bundle", &bundle));
        }
    }
    Ok(())
}

/// The error for a key that a registry or a web server gave: bundles come from there, too.
pub(super) fn fetched(source: &str) -> Error {
    let source = visible_line(source, 1000);
    Error::new(
        Kind::Refused,
        Code::KeyMisplaced,
        format!("{source}: this is a public key, and a key is not fetched as bundles are"),
    )
    .hint(
        "ask the publisher for its document, NAME.publisher.json; or get the key from it by another way than its bundles, \
         into a folder of its own, and name that file",
    )
}

fn misplaced(key: &Path, place: &str, bundle: &Path) -> Error {
    let (key, bundle) = (key.display().to_string(), bundle.display().to_string());
    let (key, bundle) = (visible_line(&key, 1000), visible_line(&bundle, 1000));
    Error::new(
        Kind::Refused,
        Code::KeyMisplaced,
        format!("{key}: this key lies {place}, {bundle}"),
    )
    .hint(
        "whoever sent the bundle may have put it there: get the key from its publisher, by another way than the bundle, \
         into a folder of its own",
    )
}

/// A bundle among the files of a folder.
fn beside(folder: &Path) -> Result<Option<PathBuf>, Error> {
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
    [ENVELOPE_FILE, BUNDLE_TOML]
        .iter()
        .any(|name| folder.join(name).symlink_metadata().is_ok())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// A folder with a key in it, in `keys`.
    fn place() -> (tempfile::TempDir, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("keys")).unwrap();
        let key = place.path().join("keys/acme.pub.pem");
        fs::write(&key, "a key").unwrap();
        (place, key)
    }

    #[track_caller]
    fn refused(key: &Path) {
        let failure = check(key).unwrap_err();
        assert_eq!(failure.code, "key-misplaced", "{failure}");
    }

    #[test]
    fn a_key_in_a_folder_of_its_own_is_taken() {
        let (place, key) = place();
        check(&key).unwrap();
        // What lies one folder up is not beside it.
        fs::write(place.path().join("a.toolbundle"), "").unwrap();
        check(&key).unwrap();
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
            check(&key).unwrap();
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
        // A link to a key in a bundle, one in a bundle, a folder that is a link, and a way through `..`.
        symlink(bundle.join("inside/acme.pub.pem"), clean.join("a.pub.pem")).unwrap();
        refused(&clean.join("a.pub.pem"));
        fs::remove_file(clean.join("a.pub.pem")).unwrap();
        symlink(&key, bundle.join("inside/b.pub.pem")).unwrap();
        refused(&bundle.join("inside/b.pub.pem"));
        symlink(bundle.join("inside"), clean.join("folder")).unwrap();
        refused(&clean.join("folder/acme.pub.pem"));
        refused(&clean.join("../bundle/inside/acme.pub.pem"));
        check(&key).unwrap();
    }

    #[test]
    fn a_key_that_is_not_there_or_among_too_many_files_is_unreadable() {
        let (place, key) = place();
        let failure = check(&place.path().join("none.pub.pem")).unwrap_err();
        assert_eq!(failure.code, "file-unreadable");
        for number in 0..MAX_BESIDE {
            fs::write(key.with_file_name(number.to_string()), "").unwrap();
        }
        let failure = check(&key).unwrap_err();
        assert_eq!(failure.code, "file-unreadable");
    }
}
