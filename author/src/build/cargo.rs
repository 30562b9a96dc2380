//! Runs Cargo, and finds the component that it made among its messages.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::error::BuildError;
use super::{BuildProgress, Options, TARGET, lines};

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
