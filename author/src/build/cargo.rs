//! Runs Cargo, and finds the component that it made among its messages, and names the compiler for the
//! provenance.

mod prepare;

#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use self::prepare::{Workspace, fetch};
use super::confine::Confinement;
use super::error::{BuildError, BuildReason};
use super::program::Tools;
use super::scratch::Scratch;
use super::tool::{Tool, tells_of_denial};
use super::{BuildProgress, Options, TARGET, compiler, lines};

/// A crate that is going to be built.
pub(super) struct Crate<'a> {
    /// Cargo.
    pub(super) program: &'a Path,
    /// Where to run it, if not in the current directory.
    pub(super) directory: Option<&'a Path>,
    pub(super) manifest: &'a Path,
    /// Its name for the user.
    pub(super) from: &'a str,
    pub(super) scratch: &'a Scratch,
}

/// Runs Cargo, and gives the path of the component that it made.
///
/// A confined build has no network, and writes to no directory that other builds read.
/// So Cargo fetches first, which runs none of what it fetches.
pub(super) fn run_cargo(
    krate: &Crate<'_>,
    options: &Options,
    progress: &mut dyn FnMut(BuildProgress<'_>),
) -> Result<PathBuf, BuildError> {
    let unusable = |source| BuildError::Cargo {
        program: krate.program.to_owned(),
        source,
    };
    let mut tool = Tool::of(Command::new(krate.program), krate.scratch, options);
    if let Some(directory) = krate.directory {
        tool.current_dir(directory);
    }
    tool.args(["build", "--release", "--target", TARGET, "--manifest-path"])
        .arg(krate.manifest)
        .args(["--message-format", "json-render-diagnostics"])
        // Else `COMPILER_FILE` could be that of an earlier build.
        .env("CARGO_CACHE_RUSTC_INFO", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if options.locked {
        tool.arg("--locked");
    }
    let confined = tool.confinement().is_some();
    if options.offline || confined {
        tool.arg("--offline");
    }
    if confined {
        let workspace = Workspace::find(krate, options)?;
        fetch(krate, options, progress)?;
        restrict(&mut tool, &workspace, krate.scratch, &options.tools);
    }
    let mut child = tool.start(|program, source| BuildError::Cargo { program, source })?;
    let messages = collect_messages(&mut child).map_err(unusable)?;
    let mut reason = None;
    if let Some(stderr) = child.stderr.take() {
        let mut watch = |line: &str| {
            reason = reason
                .into_iter()
                .chain(failure_reason(line, confined))
                .min();
            progress(BuildProgress::Line(line));
        };
        lines::read(stderr, &mut watch).map_err(unusable)?;
    }
    let status = child.wait().map_err(unusable)?;
    let artifacts = messages.and_then(|thread| thread.join().ok());
    if !status.success() {
        return Err(BuildError::Failed {
            from: krate.from.to_owned(),
            status,
            reason: reason.unwrap_or(BuildReason::Cargo),
        });
    }
    let canonical = krate.manifest.canonicalize().map_err(unusable)?;
    artifacts
        .unwrap_or_default()
        .into_iter()
        .filter(|(of, _)| Path::new(of).canonicalize().is_ok_and(|of| of == canonical))
        .map(|(_, file)| PathBuf::from(file))
        .next_back()
        .ok_or_else(|| BuildError::NoComponent {
            from: krate.from.to_owned(),
        })
}

/// Names the directories that the build writes to, regardless of settings in the checkout,
/// and allows what Cargo needs besides.
fn restrict(tool: &mut Tool, workspace: &Workspace, scratch: &Scratch, tools: &Tools) {
    tool.arg("--target-dir").arg(&workspace.target);
    tool.env("TMPDIR", scratch.directory());
    for token in &tools.rust.tokens {
        tool.env_remove(token);
    }
    tool.write(&workspace.target);
    if let Some(intermediate) = &workspace.intermediate {
        tool.env("CARGO_BUILD_BUILD_DIR", intermediate);
        tool.write(intermediate);
    }
    let Some(confinement) = tool.confinement() else {
        return;
    };
    confinement.read(&workspace.root);
    if let Some(lock) = workspace.lock() {
        confinement.write(&lock);
    }
    // What Cargo starts, and a script in its place.
    for program in ["cargo", "rustc"] {
        if let Some(program) = tools.named(program.as_ref(), scratch.bundle()) {
            confinement.run(&program);
        }
    }
    // Not the directory itself, so that its entries may be links.
    if let Some(cargo_home) = tools.cargo_home() {
        confinement.read_entries(&cargo_home);
    }
    if let Some(rustup_home) = tools.rustup_home() {
        confinement.read(&rustup_home);
    }
    read_settings(confinement);
}

/// Lets Cargo and rustup read their settings in the current directory and those above it.
fn read_settings(confinement: &mut Confinement) {
    const SETTINGS: [&str; 4] = [
        ".cargo/config.toml",
        ".cargo/config",
        "rust-toolchain.toml",
        "rust-toolchain",
    ];
    let current = std::env::current_dir().unwrap_or_default();
    for directory in current.ancestors() {
        for file in SETTINGS {
            let file = directory.join(file);
            // A link in the checkout could lead to any file.
            if file.canonicalize().is_ok_and(|real| real == file) {
                confinement.read(&file);
            }
        }
    }
}

/// The `.wasm` files that Cargo reports, each with its crate's manifest.
type Artifacts = Vec<(String, String)>;

/// The cause of a failure that a line of Cargo's output shows; `confined` is whether it is confined.
fn failure_reason(line: &str, confined: bool) -> Option<BuildReason> {
    let lacks = [
        "may not be installed",
        "can't find crate for `std`",
        "can't find crate for `core`",
    ];
    if lacks.iter().any(|lack| line.contains(lack)) {
        return Some(BuildReason::TargetMissing);
    }
    // `std` and the guest library without it both define the handler of panics.
    let twice = line.contains("duplicate lang item") && line.contains("`panic_impl`");
    let unknown = ["crate `std`", "module `std`", "macro `println`"];
    let unknown = line.starts_with("error") && unknown.iter().any(|one| line.contains(one));
    if twice || unknown {
        return Some(BuildReason::StdNeeded);
    }
    (confined && tells_of_denial(line)).then_some(BuildReason::Denied)
}

/// Reads Cargo's messages in parallel to its other output, so that neither pipe fills.
fn collect_messages(child: &mut Child) -> io::Result<Option<std::thread::JoinHandle<Artifacts>>> {
    let Some(stdout) = child.stdout.take() else {
        return Ok(None);
    };
    let reading = std::thread::Builder::new().spawn(move || {
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
    });
    reading.map(Some)
}

/// Where Cargo keeps its compiler's version, in the target directory.
const COMPILER_FILE: &str = ".rustc_info.json";

/// How the compiler that made the artifact names itself. Only Cargo knows which one that
/// was: `RUSTC`, settings or rustup choose it. Where Cargo has left no word of it, how
/// Cargo names itself.
pub(in crate::build) fn name_compiler(
    krate: &Crate<'_>,
    options: &Options,
    artifact: &Path,
) -> String {
    // TARGET-DIRECTORY/wasm32-wasip2/release/NAME.wasm
    let directory = artifact.ancestors().nth(3);
    directory.and_then(compiler_in).unwrap_or_else(|| {
        let mut cargo = Tool::of(Command::new(krate.program), krate.scratch, options);
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
