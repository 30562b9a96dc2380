//! Rust: Cargo builds the crate, and its messages name the component that it made.

mod prepare;

#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command};

use serde_json::Value;
use toolward_bundle::component::Surface;
use toolward_bundle::dev::World;

use self::prepare::{CargoWorkspace, fetch};
use super::confine::BuildConfinement;
use super::error::{BuildError, BuildReason};
use super::language::{BuildJob, BuildLanguage, BuildOutput, NewDriver, library, templates};
use super::program::{BuildTools, Scratch, Wanted};
use super::tool::{Tool, named, read_json, read_lines, tells_of_denial, version, watch};
use super::{BuildOptions, BuildProgress, TARGET, read_bounded};
use crate::error::AuthorError;

const CARGO: Wanted = Wanted {
    name: "cargo",
    install: "",
};

pub(super) static LANGUAGE: BuildLanguage = BuildLanguage {
    wanted: &CARGO,
    is_reproducible: true,
    look: Some(look),
    build,
    new_drivers: &[NewDriver {
        word: "rust",
        build: "crate = \"driver\"",
        templates: templates!("../scaffold/rust":
            "Cargo.toml" => "Cargo.toml",
            "lib.rs" => "src/lib.rs",
            ; "toolward-guest.Cargo.toml" => "toolward-guest/Cargo.toml"
        ),
        library: library!("" => "toolward-guest/":
            "src/ask.rs",
            "src/bindings.rs",
            "src/block.rs",
            "src/call.rs",
            "src/error.rs",
            "src/http/failure.rs",
            "src/http/mod.rs",
            "src/http/request.rs",
            "src/http/response.rs",
            "src/http/send.rs",
            "src/http/url.rs",
            "src/keyvalue/bindings.rs",
            "src/keyvalue/mod.rs",
            "src/lib.rs",
            "src/log.rs",
            "src/outcome.rs",
            "src/panics.rs",
            "src/prelude.rs",
            "src/progress.rs",
            "src/run.rs",
            "src/secrets.rs",
            "src/testing/bucket.rs",
            "src/testing/grants.rs",
            "src/testing/mod.rs",
            "src/tools.rs",
            "src/without_std.rs",
        ),
    }],
};

fn look(options: &BuildOptions, _: &Path) -> Result<String, BuildError> {
    probe(options)?;
    let cargo = options.cargo.to_string_lossy();
    Ok(format!("{cargo} makes components for {TARGET}"))
}

fn build(job: &mut BuildJob<'_>) -> Result<BuildOutput, BuildError> {
    let manifest = job.source.join("Cargo.toml");
    if !manifest.is_file() {
        return Err(BuildError::NoCrate(job.source.to_owned()));
    }
    let cargo = Cargo {
        program: find_cargo(job)?,
        directory: None,
        manifest,
    };
    let file = cargo.build(job)?;
    let compilers = vec![cargo.compiler(job, &file)];
    Ok((file, compilers))
}

/// Checks that Cargo makes components: builds an empty crate in a new directory, without network,
/// and confined if the kernel can confine.
fn probe(options: &BuildOptions) -> Result<(), BuildError> {
    let scratch = Scratch::with_bundle()?;
    let manifest = "[package]\nname = \"probe\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\
        [lib]\ncrate-type = [\"cdylib\"]\n[workspace]\n";
    scratch.write("", &[("Cargo.toml", manifest)])?;
    scratch.write("src", &[("lib.rs", "")])?;
    let from = "an empty crate";
    let mut printed = String::new();
    let mut job = BuildJob {
        from,
        source: scratch.directory(),
        world: World::Driver,
        snapshot: false,
        scratch: &scratch,
        options: &BuildOptions {
            locked: false,
            offline: true,
            confine: true,
            ..options.clone()
        },
        progress: &mut |progress| {
            if let BuildProgress::Line(line) = progress
                && line.starts_with("error")
                && printed.is_empty()
            {
                printed = line.to_owned();
            }
        },
    };
    // Cargo takes settings, among them programs, from the current directory and the directories
    // above it. In the root directory, only the system's owner can write such settings.
    let cargo = Cargo {
        program: find_cargo(&job)?,
        directory: Some(Path::new("/")),
        manifest: scratch.path("Cargo.toml"),
    };
    let artifact = cargo.build(&mut job).map_err(|error| match error {
        BuildError::Failed(_, status, reason) if !printed.is_empty() => {
            BuildError::Failed(format!("{from} ({printed})"), status, reason)
        }
        other => other,
    })?;
    let failed = AuthorError::write(Path::new("temporary directory"));
    let bytes = read_bounded(&artifact).map_err(failed)?;
    let surface = Surface::read(&bytes).map(drop);
    surface.map_err(|source| BuildError::Surface(from.to_owned(), source))
}

fn find_cargo(job: &BuildJob<'_>) -> Result<PathBuf, BuildError> {
    let BuildOptions { cargo, tools, .. } = job.options;
    let found = tools.named(cargo, &job.scratch.bundle);
    found.ok_or_else(|| BuildError::Cargo(PathBuf::from(cargo), io::ErrorKind::NotFound.into()))
}

/// Cargo, and the crate that it builds.
struct Cargo {
    program: PathBuf,
    /// The directory in which it runs; `None` for the current directory.
    directory: Option<&'static Path>,
    manifest: PathBuf,
}

impl Cargo {
    /// Runs Cargo, and returns the path of the component that it made.
    ///
    /// A confined build has no network, and can't write to the directories that other builds read.
    /// So Cargo fetches before the build, unconfined. Fetching runs none of the fetched code.
    fn build(&self, job: &mut BuildJob<'_>) -> Result<PathBuf, BuildError> {
        let options = job.options;
        let mut tool = self.tool(job);
        if let Some(directory) = self.directory {
            tool.current_dir(directory);
        }
        tool.args(["build", "--release", "--target", TARGET, "--manifest-path"])
            .arg(&self.manifest)
            .args(["--message-format", "json-render-diagnostics"])
            // Otherwise `COMPILER_FILE` could be missing, or from an earlier build.
            .env("CARGO_CACHE_RUSTC_INFO", "1");
        if options.locked {
            tool.arg("--locked");
        }
        let confined = tool.confinement().is_some();
        if options.offline || confined {
            tool.arg("--offline");
        }
        if confined {
            let workspace = CargoWorkspace::find(self, job)?;
            fetch(self, job)?;
            restrict(&mut tool, &workspace, job.scratch, &options.tools);
        }
        let mut reason = None;
        let mut show = |line: &str| {
            let found = failure_reason(line, confined);
            reason = reason.into_iter().chain(found).min();
            (job.progress)(BuildProgress::Line(line));
        };
        let (status, artifacts) = watch(&mut tool, BuildError::Cargo, artifacts, &mut show)?;
        if !status.success() {
            let reason = reason.unwrap_or(BuildReason::Cargo);
            return Err(BuildError::Failed(job.from.to_owned(), status, reason));
        }
        let failed = |source| BuildError::Cargo(self.program.clone(), source);
        let canonical = self.manifest.canonicalize().map_err(failed)?;
        artifacts
            .into_iter()
            .filter(|(of, _)| Path::new(of).canonicalize().is_ok_and(|of| of == canonical))
            .map(|(_, file)| PathBuf::from(file))
            .next_back()
            .ok_or_else(|| BuildError::NoComponent(job.from.to_owned()))
    }

    /// Returns the name that the compiler of the artifact gives itself. Only Cargo knows the
    /// compiler: `RUSTC`, settings or rustup choose it. If Cargo has not recorded it, returns the
    /// name that Cargo gives itself.
    fn compiler(&self, job: &BuildJob<'_>, artifact: &Path) -> String {
        // TARGET-DIRECTORY/wasm32-wasip2/release/NAME.wasm
        let directory = artifact.ancestors().nth(3);
        directory.and_then(compiler_in).unwrap_or_else(|| {
            let mut cargo = self.tool(job);
            cargo.arg("--version");
            version("cargo", cargo)
        })
    }

    fn tool(&self, job: &BuildJob<'_>) -> Tool {
        Tool::of(Command::new(&self.program), job.scratch, job.options)
    }
}

/// Chooses the directories to which the build writes, so that settings in the checkout can't.
/// Allows everything else that Cargo needs.
fn restrict(tool: &mut Tool, workspace: &CargoWorkspace, scratch: &Scratch, tools: &BuildTools) {
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
    // The programs that Cargo starts. A user may have replaced one of them by a script.
    for program in ["cargo", "rustc"] {
        if let Some(program) = tools.named(program.as_ref(), &scratch.bundle) {
            confinement.run(&program);
        }
    }
    // Allows the entries and not the directory itself, so that entries may be links.
    if let Some(cargo_home) = tools.cargo_home() {
        confinement.read_entries(&cargo_home);
    }
    if let Some(rustup_home) = tools.rustup_home() {
        confinement.read(&rustup_home);
    }
    read_settings(confinement);
}

/// Lets Cargo and rustup read their settings in the current directory and the directories above it.
fn read_settings(confinement: &mut BuildConfinement) {
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

/// Returns the cause of a failure that a line of Cargo's output shows.
fn failure_reason(line: &str, confined: bool) -> Option<BuildReason> {
    let lacks = [
        "may not be installed",
        "can't find crate for `std`",
        "can't find crate for `core`",
    ];
    if lacks.iter().any(|lack| line.contains(lack)) {
        return Some(BuildReason::TargetMissing);
    }
    // Both `std` and a guest library without `std` define the panic handler.
    let twice = line.contains("duplicate lang item") && line.contains("`panic_impl`");
    let unknown = ["crate `std`", "module `std`", "macro `println`"];
    let unknown = line.starts_with("error") && unknown.iter().any(|one| line.contains(one));
    if twice || unknown {
        return Some(BuildReason::StdNeeded);
    }
    (confined && tells_of_denial(line)).then_some(BuildReason::Denied)
}

/// Reads Cargo's messages. Without an artifact, the build reports a missing component.
fn artifacts(stdout: ChildStdout) -> Artifacts {
    let mut artifacts = Artifacts::new();
    let _ = read_lines(stdout, &mut |line| {
        let message: Value = serde_json::from_str(line).unwrap_or_default();
        let reason = message.get("reason").and_then(Value::as_str);
        let is_artifact = reason == Some("compiler-artifact");
        let manifest = message.get("manifest_path").and_then(Value::as_str);
        let files = message.get("filenames").and_then(Value::as_array);
        let (true, Some(manifest), Some(files)) = (is_artifact, manifest, files) else {
            return;
        };
        let files = files.iter().filter_map(Value::as_str);
        let files = files.filter(|file| file.ends_with(".wasm"));
        artifacts.extend(files.map(|file| (manifest.to_owned(), file.to_owned())));
    });
    artifacts
}

/// The file in the target directory in which Cargo stores its compiler's version.
const COMPILER_FILE: &str = ".rustc_info.json";

/// Returns the compiler that was used in a target directory.
fn compiler_in(directory: &Path) -> Option<String> {
    let info = read_json(&directory.join(COMPILER_FILE))?;
    let outputs = info.get("outputs")?.as_object()?;
    let answers = outputs.values().filter_map(|output| {
        let answer = output.get("stdout")?.as_str()?;
        answer.starts_with("rustc ").then(|| named("rustc", answer))
    });
    let mut names: Vec<String> = answers.collect();
    names.dedup();
    // With two versions, the right one is unknown.
    let [name] = <[String; 1]>::try_from(names).ok()?;
    Some(name)
}
