//! C: Zig's compiler, or a clang with wasi-libc, makes a core module for WASI preview 1.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use toolward_bundle::files::FilesError;

use super::BuildOptions;
use super::error::BuildError;
use super::language::{BuildJob, BuildLanguage, BuildOutput, NewDriver, library, templates};
use super::program::{BuildTools, Wanted};
use super::tool::{Tool, version};
use crate::error::AuthorError;

/// The compilers, in order of preference. Zig comes first, since it has its own C library.
const COMPILERS: [&str; 3] = ["zig", "python-zig", "clang"];

/// Any of the compilers.
const COMPILER: Wanted = Wanted {
    name: "zig or clang",
    install: "python3 -m venv {}/python && {}/python/bin/pip install ziglang==0.17.1, or \
              your system's clang, lld, wasi-libc and libclang-rt for wasm32",
};

/// The folder in the driver's folder that contains Toolward's library for C.
const LIBRARY: &str = "toolward";

/// Clang's names for WASI preview 1, in newer and in older packages.
const TARGETS: [&str; 2] = ["wasm32-wasip1", "wasm32-wasi"];

/// Returns the installed compilers, each with its name.
fn found(tools: &BuildTools, bundle: &Path) -> impl Iterator<Item = (&'static str, PathBuf)> {
    COMPILERS.into_iter().filter_map(|name| {
        let wanted = Wanted { name, ..COMPILER };
        Some((name, tools.find(&wanted, bundle).ok()?))
    })
}

fn missing(tools: &BuildTools) -> BuildError {
    tools.missing("a C compiler for WASI", COMPILER.install)
}

pub(super) static LANGUAGE: BuildLanguage = BuildLanguage {
    wanted: &COMPILER,
    is_reproducible: true,
    look: Some(look),
    build,
    new_drivers: &[NewDriver {
        word: "c",
        build: "kind = \"c\"\nsource = \"driver\"",
        templates: templates!("../../sdk/c/template":
            "driver.c" => "driver.c",
        ),
        library: library!("c/" => "toolward/":
            "toolward.c",
            "toolward.h",
            "wit.c",
            "wit.h",
        ),
    }],
};

/// Finds a compiler. Whether a clang has wasi-libc is only known when the clang is used.
fn look(options: &BuildOptions, directory: &Path) -> Result<String, BuildError> {
    match found(&options.tools, directory).next() {
        Some((_, program)) => Ok(program.display().to_string()),
        None => Err(missing(&options.tools)),
    }
}

fn build(job: &mut BuildJob<'_>) -> Result<BuildOutput, BuildError> {
    let module = job.scratch.path("driver.wasm");
    let (name, mut command, asked) = compiler(job)?;
    let mut map = OsString::from("-ffile-prefix-map=");
    map.push(job.source);
    map.push("=.");
    command
        .args(["-mexec-model=reactor", "-Os", "-g0"])
        .arg(map);
    for folder in [job.source.to_owned(), job.source.join(LIBRARY)] {
        let mut include = OsString::from("-I");
        include.push(folder);
        command.arg(include);
    }
    command.arg("-o").arg(&module).args(sources(job.source)?);
    command.args(["-Wl,--strip-all", "-Wl,-z,stack-size=1048576"]);
    job.run(command)?;
    Ok((module, vec![version(name, asked)]))
}

/// Returns a compiler that has the target: its name, the command that compiles, and the command
/// that prints its version.
fn compiler(job: &BuildJob<'_>) -> Result<(&'static str, Tool, Tool), BuildError> {
    let (scratch, tools) = (job.scratch, &job.options.tools);
    for (name, program) in found(tools, &scratch.bundle) {
        let (mut compiler, mut asked) = (job.tool(&program), job.tool(&program));
        if name != "clang" {
            asked.arg("version");
            compiler.env("ZIG_LOCAL_CACHE_DIR", scratch.path("cache"));
            let cache = tools.cache("zig", scratch);
            compiler.write(&cache);
            compiler.env("ZIG_GLOBAL_CACHE_DIR", cache);
            compiler.args(["cc", "--target=wasm32-wasi"]);
            return Ok(("zig", compiler, asked));
        }
        scratch.write("probe", &[("probe.c", "#include <stdio.h>\n")])?;
        for target in TARGETS {
            let mut probe = job.tool(&program);
            probe
                .arg(format!("--target={target}"))
                .arg("-fsyntax-only")
                .arg(scratch.path("probe/probe.c"));
            // A clang without wasi-libc can't compile drivers.
            if probe.succeeds()? {
                compiler.arg(format!("--target={target}"));
                // A stack overflow traps instead of overwriting data.
                compiler.arg("-Wl,--stack-first");
                asked.arg("--version");
                return Ok((name, compiler, asked));
            }
        }
    }
    Err(missing(tools))
}

/// Returns the `.c` files of the driver and of its library, if it has one, always in the same
/// order.
fn sources(source: &Path) -> Result<Vec<PathBuf>, BuildError> {
    let mut found = Vec::new();
    for folder in [source.to_owned(), source.join(LIBRARY)] {
        let failed = |error| AuthorError::from(FilesError::io(&folder)(error));
        let is_folder = |found: std::fs::Metadata| found.is_dir();
        if folder != source && !folder.symlink_metadata().is_ok_and(is_folder) {
            continue;
        }
        let mut files = Vec::new();
        for entry in std::fs::read_dir(&folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let path = entry.path();
            // A link could lead out of the bundle.
            let is_file = entry.file_type().map_err(failed)?.is_file();
            if is_file && path.extension().is_some_and(|ending| ending == "c") {
                files.push(path);
            }
        }
        files.sort();
        found.append(&mut files);
    }
    Ok(found)
}
