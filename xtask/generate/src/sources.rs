//! What a driver of the examples is built from, as named sets of files.

use std::path::Path;

use toolward_signing::provenance::SourceSet;
use toolward_signing::sources;

use crate::Outcome;

/// The driver's crate, the guest SDK, the world, and what pins and builds them.
pub(crate) fn of_driver(root: &Path, krate: &Path) -> Outcome<Vec<SourceSet>> {
    Ok(vec![
        set("driver", krate, &["Cargo.toml", "src"])?,
        set("guest-sdk", &root.join("guest-sdk"), &["Cargo.toml", "src"])?,
        set("wit", &root.join("wit"), &["."])?,
        set(
            "workspace",
            &root.join("examples"),
            &["Cargo.toml", "Cargo.lock"],
        )?,
    ])
}

fn set(name: &str, folder: &Path, parts: &[&str]) -> Outcome<SourceSet> {
    let mut files = Vec::new();
    for part in parts {
        collect(folder, &folder.join(part), &mut files)?;
    }
    let files = files
        .iter()
        .map(|(path, bytes)| (path.as_str(), bytes.as_slice()));
    Ok(SourceSet {
        name: name.to_owned(),
        digest: sources::digest(files),
    })
}

fn collect(folder: &Path, path: &Path, files: &mut Vec<(String, Vec<u8>)>) -> Outcome {
    let describe = |error| format!("{}: {error}", path.display());
    if path.is_dir() {
        for entry in std::fs::read_dir(path).map_err(describe)? {
            collect(folder, &entry.map_err(describe)?.path(), files)?;
        }
        return Ok(());
    }
    let relative = path.strip_prefix(folder).unwrap_or(path);
    // `Path` drops the `.` of a set that is its whole folder.
    let name: Vec<_> = relative
        .iter()
        .map(|part| part.to_string_lossy())
        .filter(|part| part != ".")
        .collect();
    files.push((name.join("/"), std::fs::read(path).map_err(describe)?));
    Ok(())
}
