//! Runs Cargo, and finds the component that it made among its messages.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::error::BuildError;
use super::{BuildProgress, Options, TARGET, compiler, lines};

/// Where Cargo keeps what its compiler said of itself, in the target directory.
const COMPILER_FILE: &str = ".rustc_info.json";

/// Runs Cargo, in a directory if one is given, and gives the path of the component that
/// it made.
pub(super) fn run_cargo(
    program: &Path,
    directory: Option<&Path>,
    manifest: &Path,
    from: &str,
    options: &Options,
    progress: &mut dyn FnMut(BuildProgress<'_>),
) -> Result<PathBuf, BuildError> {
    let unusable = |source| BuildError::Cargo {
        program: program.to_owned(),
        source,
    };
    let mut command = Command::new(program);
    if let Some(directory) = directory {
        command.current_dir(directory);
    }
    command
        .args(["build", "--release", "--target", TARGET, "--manifest-path"])
        .arg(manifest)
        .args(["--message-format", "json-render-diagnostics"])
        // Else `COMPILER_FILE` could be that of an earlier build.
        .env("CARGO_CACHE_RUSTC_INFO", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if options.locked {
        command.arg("--locked");
    }
    if options.offline {
        command.arg("--offline");
    }
    let mut child = command.spawn().map_err(unusable)?;
    let messages = collect_messages(&mut child);
    let mut target_missing = false;
    if let Some(stderr) = child.stderr.take() {
        let mut watch = |line: &str| {
            target_missing |= line.contains("may not be installed")
                || line.contains("can't find crate for `std`")
                || line.contains("can't find crate for `core`");
            progress(BuildProgress::Line(line));
        };
        lines::read(stderr, &mut watch).map_err(unusable)?;
    }
    let status = child.wait().map_err(unusable)?;
    let artifacts = messages.and_then(|thread| thread.join().ok());
    if !status.success() {
        return Err(BuildError::Failed {
            from: from.to_owned(),
            status,
            target_missing,
        });
    }
    let canonical = manifest.canonicalize().map_err(unusable)?;
    artifacts
        .unwrap_or_default()
        .into_iter()
        .filter(|(of, _)| Path::new(of).canonicalize().is_ok_and(|of| of == canonical))
        .map(|(_, file)| PathBuf::from(file))
        .next_back()
        .ok_or_else(|| BuildError::NoComponent {
            from: from.to_owned(),
        })
}

/// How the compiler that made the artifact names itself. Only Cargo knows which one that
/// was: `RUSTC`, settings or rustup choose it. Where Cargo has left no word of it, how
/// Cargo names itself.
pub(super) fn name_compiler(program: &Path, artifact: &Path) -> String {
    // TARGET-DIRECTORY/wasm32-wasip2/release/NAME.wasm
    let directory = artifact.ancestors().nth(3);
    directory.and_then(compiler_in).unwrap_or_else(|| {
        let mut cargo = Command::new(program);
        cargo.arg("--version");
        compiler::ask("cargo", cargo)
    })
}

/// The compiler that was used in a target directory.
fn compiler_in(directory: &Path) -> Option<String> {
    let told = compiler::read_json(&directory.join(COMPILER_FILE))?;
    let outputs = told.get("outputs")?.as_object()?;
    let answers = outputs.values().filter_map(|output| {
        let answer = output.get("stdout")?.as_str()?;
        answer
            .starts_with("rustc ")
            .then(|| compiler::named("rustc", answer))
    });
    let mut names: Vec<String> = answers.collect();
    names.dedup();
    // Two would leave open which of them it was.
    match <[String; 1]>::try_from(names) {
        Ok([name]) => Some(name),
        Err(_) => None,
    }
}

/// The `.wasm` files that Cargo says it made, each with its crate's manifest.
type Artifacts = Vec<(String, String)>;

/// Reads Cargo's messages beside its other output, so that neither pipe fills.
fn collect_messages(child: &mut Child) -> Option<std::thread::JoinHandle<Artifacts>> {
    let stdout = child.stdout.take()?;
    Some(std::thread::spawn(move || {
        let mut artifacts = Artifacts::new();
        // Without an artifact the build is reported to have made none.
        let _ = lines::read(stdout, &mut |line| {
            let Ok(message) = serde_json::from_str::<Value>(line) else {
                return;
            };
            if message.get("reason").and_then(Value::as_str) != Some("compiler-artifact") {
                return;
            }
            let Some(manifest) = message.get("manifest_path").and_then(Value::as_str) else {
                return;
            };
            let files = message.get("filenames").and_then(Value::as_array);
            for file in files.into_iter().flatten().filter_map(Value::as_str) {
                if file.ends_with(".wasm") {
                    artifacts.push((manifest.to_owned(), file.to_owned()));
                }
            }
        });
        artifacts
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The compiler's name after a build in a target directory where Cargo has left this.
    fn name_after(told: &str) -> String {
        let target = tempfile::tempdir().unwrap();
        std::fs::write(target.path().join(COMPILER_FILE), told).unwrap();
        let artifact = target.path().join("wasm32-wasip2/release/x.wasm");
        name_compiler("/no/such/cargo".as_ref(), &artifact)
    }

    #[test]
    fn the_compiler_is_the_one_that_cargo_asked_for_its_version() {
        let told = r#"{ "rustc_fingerprint": 1, "outputs": {
            "1": { "success": true, "stdout": "___\nlib___.rlib\n", "stderr": "" },
            "2": { "success": true, "stdout": "rustc 1.95.0 (59807616e 2026-04-14)\nbinary: rustc\n" }
        } }"#;
        assert_eq!(name_after(told), "rustc 1.95.0 (59807616e 2026-04-14)");
    }

    #[test]
    fn without_a_word_of_the_compiler_it_is_cargo() {
        let two =
            r#"{ "outputs": { "1": { "stdout": "rustc 1" }, "2": { "stdout": "rustc 2" } } }"#;
        for told in ["", "{}", r#"{ "outputs": { "1": 7 } }"#, two] {
            assert_eq!(name_after(told), "cargo", "{told}");
        }
    }
}
