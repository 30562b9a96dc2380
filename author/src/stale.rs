//! Checks whether the sources of a component have changed since `build` made it. `build` stores the
//! digests of the sources and of the component next to `bundle.toml`. Without these digests, or for
//! a component that `build` did not write, the answer is unknown.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use toolward_bundle::codes;
use toolward_bundle::component::MAX_SIZE;
use toolward_bundle::dev::{BuildEntry, BuildKind};
use toolward_bundle::files::{self, Files, FilesError};
use toolward_bundle::locate::about_file;
use toolward_contract::diagnostic::Diagnostic;
use toolward_signing::digest::Digest;
use toolward_signing::provenance::source_digest;

use crate::error::AuthorError;
use crate::output;

/// The file next to `bundle.toml`. Each line has the path of a component, the digest of its
/// sources, and the digest of the component, separated by tabs. The file is hidden, so it is never
/// part of a bundle.
const FILE: &str = ".toolward-built";

/// Largest file that is read, in bytes.
const MAX_BYTES: u64 = 256 * 1024;

/// The file that Cargo may write while it builds.
const LOCK: &str = "Cargo.lock";

/// The sources of a component before it is built.
pub(crate) struct BuildSources(Option<Files>);

impl BuildSources {
    /// Reads the sources. Sources that can't be read have no digest.
    pub(crate) fn read(directory: &Path, entry: &BuildEntry) -> Self {
        Self(sources_of(directory, entry))
    }

    /// Stores the sources' digest for the component that was built from them.
    ///
    /// # Errors
    ///
    /// If the file can't be written.
    pub(crate) fn keep(
        self,
        directory: &Path,
        entry: &BuildEntry,
        component: &[u8],
    ) -> Result<(), AuthorError> {
        let mut all = kept(directory);
        all.remove(&entry.output);
        if let Some(mut before) = self.0 {
            // Another program may change a source during the build. So the earlier sources count,
            // except for the lock file, which the build itself may change.
            let lock = sources_of(directory, entry);
            let lock = lock.and_then(|mut after| after.remove(LOCK));
            before.extend(lock.map(|lock| (LOCK.to_owned(), lock)));
            let digests = (digest(entry, &before), Digest::of(component));
            all.insert(entry.output.clone(), digests);
        }
        let mut text = String::new();
        for (output, (sources, component)) in all {
            let _ = writeln!(text, "{output}\t{sources}\t{component}");
        }
        output::file_beneath(directory, FILE, text.as_bytes())
    }
}

/// Returns findings for the components whose sources have changed since `build` made them.
pub(crate) fn components(directory: &Path, builds: &[BuildEntry]) -> Vec<Diagnostic> {
    let all = kept(directory);
    if all.is_empty() {
        return Vec::new();
    }
    let stale = builds.iter().filter(|entry| {
        let Some((sources, component)) = all.get(&entry.output) else {
            return false;
        };
        let place = files::place(directory, &entry.output);
        let is_built = |bytes: Arc<[u8]>| Digest::of(&bytes) == *component;
        files::read(directory, &place, MAX_SIZE).is_ok_and(is_built)
            && sources_of(directory, entry).is_some_and(|now| digest(entry, &now) != *sources)
    });
    let stale = stale.map(|entry| {
        let message = format!("it was built before {:?} changed", entry.source);
        let hint = "build it again: `toolward build`";
        about_file(&entry.output, &codes::COMPONENT_STALE, message, hint)
    });
    stale.collect()
}

fn kept(directory: &Path) -> BTreeMap<String, (Digest, Digest)> {
    let bytes = files::read(directory, FILE, MAX_BYTES).unwrap_or_default();
    let text = str::from_utf8(&bytes).unwrap_or_default();
    let lines = text.lines().filter_map(|line| {
        let mut fields = line.split('\t');
        let output = fields.next()?.to_owned();
        let mut next = || fields.next()?.parse().ok();
        Some((output, (next()?, next()?)))
    });
    lines.collect()
}

/// Returns the files of a source: the files of its directory, which include the files that a script
/// imports; for a module that another tool made, only the module. `read` reads a directory.
pub(crate) fn files_of(
    directory: &Path,
    entry: &BuildEntry,
    read: impl FnOnce(&Path) -> Result<Files, FilesError>,
) -> Result<Files, AuthorError> {
    if entry.kind == BuildKind::Wasm {
        let bytes = files::read(directory, &entry.source, MAX_SIZE)?;
        return Ok(Files::from([(entry.source.clone(), bytes)]));
    }
    let source = directory.join(&entry.source);
    let folder = match entry.kind.is_file() {
        true => source.parent().unwrap_or(directory),
        false => &source,
    };
    Ok(read(folder)?)
}

/// Returns the files in a source's directory that a build may read. A file that can't be read, such
/// as a link, is skipped, so that it does not hide changes of the other files.
fn sources_of(directory: &Path, entry: &BuildEntry) -> Option<Files> {
    let mut files = files_of(directory, entry, files::readable_sources).ok()?;
    files.retain(|name, _| *name == entry.source || is_source(name));
    Some(files)
}

/// Whether a file is a source, and not a document, a file that an editor or interpreter left, or a
/// file of the bundle next to a script at its root.
fn is_source(name: &str) -> bool {
    let last = name.rsplit('/').next().unwrap_or(name);
    let ends = [".md", "~", ".bak", ".orig", ".swp", ".swo", ".pyc"];
    let is_left = ends.iter().any(|end| last.ends_with(end))
        || (last.starts_with('#') && last.ends_with('#'));
    !is_left && !["bundle.toml", "tools.json"].contains(&name)
}

/// Returns the digest of the sources and of the build's settings in `bundle.toml`. The built
/// component does not count, if it is among the files.
fn digest(entry: &BuildEntry, sources: &Files) -> Digest {
    let is_output = |name: &str| {
        let output = Path::new(&entry.output);
        *name != entry.source && output.ends_with(name) && name.ends_with(".wasm")
    };
    let found = sources.iter().filter(|(name, _)| !is_output(name));
    let found = found.map(|(name, bytes)| (name.as_str(), bytes.as_ref()));
    let settings = format!("{} {}", entry.kind.word(), entry.snapshot);
    let settings = std::iter::once(("bundle.toml", settings.as_bytes()));
    source_digest(found.chain(settings))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::symlink;

    use toolward_bundle::dev;

    use super::*;

    fn write(directory: &Path, name: &str, text: &str) {
        let path = directory.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A bundle whose component was built with these lines, and its entry.
    fn built(lines: &str) -> (tempfile::TempDir, BuildEntry) {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        for name in [
            "driver/src/lib.rs",
            "main.py",
            "README.md",
            "driver/README.md",
        ] {
            write(root, name, "built from this");
        }
        let toml = "id = \"acme.stats\"\nversion = \"1.0.0\"\nsequence = 1\npublisher = \"acme\"\n[[build]]\n\
            output = \"drivers/a/driver.wasm\"\n";
        write(root, "bundle.toml", &format!("{toml}{lines}"));
        let entry = dev::read_bundle_toml(root).unwrap().builds.remove(0);
        let sources = BuildSources::read(root, &entry);
        write(root, &entry.output, "component");
        sources.keep(root, &entry, b"component").unwrap();
        (directory, entry)
    }

    #[test]
    fn documents_and_leftovers_make_no_component_stale_and_what_can_not_be_read_hides_no_change() {
        for (lines, below) in [
            ("crate = \"driver\"\n", "driver/"),
            (
                "kind = \"python\"\nsource = \"main.py\"\nworld = \"driver\"\n",
                "",
            ),
        ] {
            let (directory, entry) = built(lines);
            let root = directory.path();
            let is_stale = || !components(root, std::slice::from_ref(&entry)).is_empty();
            assert!(!is_stale());
            for name in [
                "README.md",
                "bundle.toml",
                "tools/a/TOOL.md",
                "driver/README.md",
                "driver/src/notes.md",
                "driver/src/lib.rs~",
                "driver/src/#lib.rs#",
                "driver/src/lib.rs.bak",
                "driver/src/.lib.rs.swp",
                "driver/target/debug/x",
                "driver/node_modules/a/index.js",
                "driver/__pycache__/main.cpython-312.pyc",
                "__pycache__/main.cpython-312.pyc",
                "main.py~",
            ] {
                write(root, name, "other");
                assert!(!is_stale(), "{lines} {name}");
            }
            symlink("nowhere", root.join("driver/src/link.rs")).unwrap();
            symlink("..", root.join("driver/src/loop")).unwrap();
            fs::write(
                root.join("driver/src").join(OsStr::from_bytes(b"odd\xff")),
                "x",
            )
            .unwrap();
            assert!(!is_stale(), "{lines}");
            write(root, &format!("{below}more.txt"), "new");
            assert!(is_stale(), "{lines}");
        }
    }
}
