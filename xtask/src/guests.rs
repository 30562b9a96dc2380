//! `guests`: installs a compiler for wasm32-wasip2, and builds every driver of the example bundles
//! and of the tests. Each is copied to the place that its `bundle.toml` names. `languages` builds
//! drivers in other languages.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::repository::{self, GUEST_TARGET, GUEST_WORKSPACES};
use crate::{Outcome, languages, process};

/// Installs the toolchain and builds all drivers.
pub(crate) fn build() -> Outcome {
    let root = repository::root()?;
    let cargo = toolchain(&root)?;
    for workspace in GUEST_WORKSPACES {
        let started = Instant::now();
        let folder = root.join(workspace);
        let target = folder.join("target");
        process::run(
            Command::new(&cargo)
                .args([
                    "build",
                    "--quiet",
                    "--release",
                    "--locked",
                    "--target",
                    GUEST_TARGET,
                ])
                .arg("--target-dir")
                .arg(&target)
                .env("CARGO_TARGET_WASM32_WASIP2_RUSTFLAGS", remapping(&root)?)
                .current_dir(&folder),
        )?;
        let built = target.join(GUEST_TARGET).join("release");
        for bundle in repository::entries(&folder)? {
            if bundle.join("bundle.toml").is_file() {
                place(&bundle, &built)?;
            }
        }
        println!(
            "{workspace}: built in {:.1} s",
            started.elapsed().as_secs_f64()
        );
    }
    languages::build(&root)
}

/// Runs the script that sets up the toolchain. Returns the path of the Cargo that it wrote.
pub(crate) fn toolchain(root: &Path) -> Outcome<PathBuf> {
    process::run(&mut Command::new(root.join("xtask/guest-toolchain.sh")))?;
    Ok(toolchain_folder()?.join("guest-cargo"))
}

/// Returns the folder to which the script writes.
pub(crate) fn toolchain_folder() -> Outcome<PathBuf> {
    match std::env::var_os("GUEST_TOOLCHAIN_DIR") {
        Some(folder) => Ok(PathBuf::from(folder)),
        None => Ok(repository::root()?.join("target/guest-toolchain")),
    }
}

/// Returns compiler flags that remove this machine's paths from the components, since panics name
/// their source file. Builds from two checkouts at different paths still differ: cargo hashes the
/// SDK's path into names, which affects the order of the code.
fn remapping(root: &Path) -> Outcome<OsString> {
    let mut flags = OsString::new();
    let mut remap = |from: &Path, to: &str| {
        if !flags.is_empty() {
            flags.push(" ");
        }
        flags.push("--remap-path-prefix=");
        flags.push(from);
        flags.push("=");
        flags.push(to);
    };
    remap(root, "/toolward");
    let home = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cargo")));
    let sources = home.map(|home| home.join("registry/src"));
    if let Some(sources) = sources.filter(|sources| sources.is_dir()) {
        for registry in repository::entries(&sources)? {
            remap(&registry, "/crates");
        }
    }
    Ok(flags)
}

/// Copies the components of one bundle from the target folder.
fn place(bundle: &Path, built: &Path) -> Outcome {
    for Build { krate, output } in builds(&repository::read(&bundle.join("bundle.toml"))?) {
        let manifest = bundle.join(&krate).join("Cargo.toml");
        let name = value(&repository::read(&manifest)?, "name")
            .ok_or_else(|| format!("{} has no package name", manifest.display()))?;
        let from = built.join(format!("{}.wasm", name.replace('-', "_")));
        let to = bundle.join(&output);
        let bytes = std::fs::read(&from).map_err(|error| format!("{}: {error}", from.display()))?;
        std::fs::write(&to, &bytes).map_err(|error| format!("{}: {error}", to.display()))?;
        println!("{output}: {} KiB", bytes.len().div_ceil(1024));
    }
    Ok(())
}

#[derive(Debug, Default, PartialEq)]
struct Build {
    krate: String,
    output: String,
}

/// Reads the `[[build]]` tables. It parses only the part of TOML that this repository's files use.
/// The complete parser is in `toolward-bundle`, and this package does not wait for that crate.
fn builds(toml: &str) -> Vec<Build> {
    toml.split("[[build]]")
        .skip(1)
        .filter_map(|table| {
            Some(Build {
                krate: value(table, "crate")?,
                output: value(table, "output")?,
            })
        })
        .collect()
}

/// Returns the value of the first `key = "value"` line with this key.
fn value(toml: &str, key: &str) -> Option<String> {
    toml.lines().find_map(|line| {
        let (name, value) = line.split_once('=')?;
        (name.trim() == key).then(|| value.trim().trim_matches('"').to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_build_table_of_a_bundle_is_read() {
        let toml = "id = \"a.b\"\n\n[[build]]\ncrate = \"driver\"\noutput = \"x/driver.wasm\"\n\
                    \n[[build]]\noutput = \"y\"\ncrate = \"z\"\n";
        let build = |krate: &str, output: &str| Build {
            krate: krate.to_owned(),
            output: output.to_owned(),
        };
        assert_eq!(
            builds(toml),
            [build("driver", "x/driver.wasm"), build("z", "y")]
        );
    }
}
