//! Python: `componentize-py` runs the module's top level, and makes a component of the
//! interpreter as it then is.

use std::path::Path;

use toolward_bundle::dev::BuildEntry;

use super::error::BuildError;
use super::program::{Tools, Wanted};
use super::scratch::Scratch;
use super::tool::{Tool, run};
use super::{BuildProgress, Made, Options, compiler};

const COMPONENTIZE: Wanted = Wanted {
    name: "componentize-py",
    install: "python3 -m venv {}/python && {}/python/bin/pip install componentize-py==0.25.1",
};

/// Names for the two interfaces called `types`: without them each would change the
/// other's name, and with it the modules that the SDK imports.
const INTERFACE_NAMES: [&str; 2] = [
    "wasi:http/types@0.2.12=types",
    "toolward:driver/types@0.1.0=toolward_types",
];

/// The program, if it exists.
pub(super) fn look(tools: &Tools, bundle: &Path) -> Result<String, BuildError> {
    Ok(tools.find(&COMPONENTIZE, bundle)?.display().to_string())
}

pub(super) fn build(
    source: &Path,
    entry: &BuildEntry,
    scratch: &Scratch,
    options: &Options,
    progress: &mut dyn FnMut(BuildProgress<'_>),
) -> Result<Made, BuildError> {
    let program = options.tools.find(&COMPONENTIZE, scratch.bundle())?;
    let module = source.file_stem().and_then(|stem| stem.to_str());
    let (Some(module), Some(folder)) = (module, source.parent()) else {
        return Err(BuildError::SourceMissing {
            path: source.to_owned(),
        });
    };
    let component = scratch.path("driver.wasm");
    // It looks for a virtual environment by starting other programs, unless it is told
    // of one. Modules of the sources are found beside them.
    scratch.write("no-packages/lib/python3/site-packages", &[])?;
    let componentize = || {
        let mut command = Tool::new(&program, scratch, options);
        command.env("VIRTUAL_ENV", scratch.path("no-packages"));
        command
    };
    let mut command = componentize();
    command.arg("-q").arg("-d").arg(scratch.worlds());
    command.args(["-w", entry.world.word()]);
    for name in INTERFACE_NAMES {
        command.args(["--import-interface-name", name]);
    }
    command.arg("componentize").arg("-p").arg(folder);
    command.arg(module).arg("-o").arg(&component);
    run(command, &entry.source, progress)?;
    let mut version = componentize();
    version.arg("--version");
    Ok(Made {
        file: component,
        compilers: vec![compiler::ask(COMPONENTIZE.name, version)],
    })
}
