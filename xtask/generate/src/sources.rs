//! The sources of the example drivers, as named sets of files, and the tools that build them.

use std::path::Path;

use serde::Deserialize;
use toolward_bundle::dev::{BuildKind, read_bundle_toml};
use toolward_signing::provenance::source_digest;
use toolward_signing::provenance::{Provenance, SourceSet};

use crate::Outcome;

/// What `xtask` reads of `guest-sdk/*/language.json`.
#[derive(Deserialize)]
struct LanguageFile {
    example: Language,
}

/// A language of the examples: its sources and its tools.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Language {
    /// The guest library below `guest-sdk`.
    #[serde(skip)]
    library: &'static str,
    /// The compiler's target.
    target: String,
    /// Whether another build gives the same bytes.
    reproducible: bool,
    /// Patterns of the names of sources.
    sources: Vec<String>,
    /// Patterns of the names that are not sources.
    tests: Vec<String>,
    /// The files in `tests/languages` that pin the tools.
    toolchain: Vec<String>,
    /// The names of the compilers in these files.
    compilers: Vec<String>,
}

/// Returns the language of a bundle; `None` for Rust.
fn language(root: &Path, bundle: &Path) -> Outcome<Option<Language>> {
    let manifest = read_bundle_toml(bundle).map_err(|error| error.to_string())?;
    let library = match manifest.builds.first().map(|build| build.kind) {
        Some(BuildKind::Rust) => return Ok(None),
        Some(kind) => kind.word(),
        None => return Err(format!("{}: nothing is built", bundle.display())),
    };
    let path = root.join("guest-sdk").join(library).join("language.json");
    let described = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let text = std::fs::read_to_string(&path).map_err(|error| described(&error))?;
    let read: LanguageFile = serde_json::from_str(&text).map_err(|error| described(&error))?;
    Ok(Some(Language {
        library,
        ..read.example
    }))
}

/// Whether another build of a bundle gives the same bytes.
pub(crate) fn is_reproducible(root: &Path, bundle: &Path) -> Outcome<bool> {
    Ok(language(root, bundle)?.is_none_or(|language| language.reproducible))
}

/// Returns the provenance of a bundle's driver. `rustc` is the compiler of drivers in Rust.
pub(crate) fn provenance(root: &Path, bundle: &Path, rustc: &str) -> Outcome<Provenance> {
    let sources = of_driver(root, bundle)?;
    let (compiler, target) = match language(root, bundle)? {
        None => (rustc.to_owned(), "wasm32-wasip2".to_owned()),
        Some(language) => (language.compiler(root)?, language.target),
    };
    Ok(Provenance::new(sources, compiler, target))
}

/// Returns the driver's sources, the guest library, the world, and the files that pin and build
/// them.
pub(crate) fn of_driver(root: &Path, bundle: &Path) -> Outcome<Vec<SourceSet>> {
    let driver = bundle.join("driver");
    let wit = |parts: &[&str]| set("wit", &root.join("wit"), parts, |_| true);
    let sdk = root.join("guest-sdk");
    let Some(language) = language(root, bundle)? else {
        let krate = ["Cargo.toml", "src"];
        let files = ["Cargo.toml", "Cargo.lock"];
        let workspace = set("workspace", &root.join("examples"), &files, |_| true)?;
        // A component with its own world is built without the guest SDK.
        if driver.join("wit").is_dir() {
            let krate = ["Cargo.toml", "src", "wit"];
            return Ok(vec![set("driver", &driver, &krate, |_| true)?, workspace]);
        }
        return Ok(vec![
            set("driver", &driver, &krate, |_| true)?,
            set("guest-sdk", &sdk, &krate, |_| true)?,
            // The files from which the guest SDK is generated.
            wit(&["driver.wit", "deps/keyvalue"])?,
            workspace,
        ]);
    };
    let library = sdk.join(language.library);
    let toolchain = root.join("tests/languages");
    Ok(vec![
        set("driver", &driver, &["."], |name| language.takes(name))?,
        set("guest-sdk", &library, &["."], |name| language.takes(name))?,
        wit(&["."])?,
        set("toolchain", &toolchain, &language.toolchain, |_| true)?,
    ])
}

impl Language {
    fn takes(&self, name: &str) -> bool {
        let is_one = |all: &[String]| all.iter().any(|pattern| fits(name, pattern));
        is_one(&self.sources) && !is_one(&self.tests)
    }

    /// Returns the packages that build it, with their pinned versions.
    fn compiler(&self, root: &Path) -> Outcome<String> {
        let mut all = Vec::new();
        for name in &self.compilers {
            let mut version = None;
            for file in &self.toolchain {
                let path = root.join("tests/languages").join(file);
                let text = std::fs::read_to_string(&path)
                    .map_err(|error| format!("{}: {error}", path.display()))?;
                version = version.or_else(|| pinned(&text, name));
            }
            let version = version.ok_or_else(|| format!("no version of {name} is pinned"))?;
            all.push(format!("{name} {version}"));
        }
        Ok(all.join(", "))
    }
}

/// Whether a name fits a pattern, in which `*` stands for any text.
fn fits(name: &str, pattern: &str) -> bool {
    match pattern.split_once('*') {
        Some((start, end)) => name
            .strip_prefix(start)
            .is_some_and(|rest| rest.ends_with(end)),
        None => name == pattern,
    }
}

/// Returns the version of a package, from `"name": "1.0.0"` or `name==1.0.0`.
fn pinned(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let line = line.trim();
        let json = line.strip_prefix(&format!("\"{name}\": \""));
        let version = json.or_else(|| line.strip_prefix(&format!("{name}==")))?;
        version.split(['"', ' ']).next().map(str::to_owned)
    })
}

fn set(
    name: &str,
    folder: &Path,
    parts: &[impl AsRef<str>],
    takes: impl Fn(&str) -> bool,
) -> Outcome<SourceSet> {
    let mut files = Vec::new();
    for part in parts {
        collect(folder, &folder.join(part.as_ref()), &mut files)?;
    }
    files.retain(|(path, _)| takes(path.rsplit('/').next().unwrap_or_default()));
    let files = files
        .iter()
        .map(|(path, bytes)| (path.as_str(), bytes.as_slice()));
    Ok(SourceSet {
        name: name.to_owned(),
        digest: source_digest(files),
    })
}

/// Collects files. Links to the guest library are skipped, since the library's files are a separate
/// set, and so are files that tools leave behind.
fn collect(folder: &Path, path: &Path, files: &mut Vec<(String, Vec<u8>)>) -> Outcome {
    let describe = |error| format!("{}: {error}", path.display());
    if path.is_symlink() {
        return Ok(());
    }
    if path.is_dir() {
        for entry in std::fs::read_dir(path).map_err(describe)? {
            collect(folder, &entry.map_err(describe)?.path(), files)?;
        }
        return Ok(());
    }
    let relative = path.strip_prefix(folder).unwrap_or(path);
    // `Path` drops the `.` of a set that is a whole folder.
    let name: Vec<_> = relative
        .iter()
        .map(|part| part.to_string_lossy())
        .filter(|part| part != ".")
        .collect();
    files.push((name.join("/"), std::fs::read(path).map_err(describe)?));
    Ok(())
}
