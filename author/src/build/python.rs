//! Python: `componentize-py` runs the top level of the module, and makes a component of the
//! interpreter in its state after that.

use super::error::BuildError;
use super::language::{BuildJob, BuildLanguage, BuildOutput, NewDriver, library, templates};
use super::program::Wanted;
use super::tool::version;

const COMPONENTIZE: Wanted = Wanted {
    name: "componentize-py",
    install: "python3 -m venv {}/python && {}/python/bin/pip install componentize-py==0.25.1",
};

/// Names for the two interfaces that are called `types`. Without these names, `componentize-py`
/// would name their modules differently when both are in the world, but the SDK imports the modules
/// by fixed names.
const INTERFACE_NAMES: [&str; 2] = [
    "wasi:http/types@0.2.12=types",
    "toolward:driver/types@0.1.0=toolward_types",
];

pub(super) static LANGUAGE: BuildLanguage = BuildLanguage {
    wanted: &COMPONENTIZE,
    is_reproducible: false,
    look: None,
    build,
    new_drivers: &[NewDriver {
        word: "python",
        build: "kind = \"python\"\nsource = \"driver/driver.py\"\nworld = \"driver\"",
        templates: templates!("../../sdk/python/template":
            "driver.py" => "driver.py",
            "test_driver.py" => "test_driver.py",
            "requirements.txt" => "requirements.txt",
        ),
        library: library!("python/" => "":
            "toolward_guest.py",
        ),
    }],
};

fn build(job: &mut BuildJob<'_>) -> Result<BuildOutput, BuildError> {
    let program = job.find(&COMPONENTIZE)?;
    let module = job.source.file_stem().and_then(|stem| stem.to_str());
    let (Some(module), Some(folder)) = (module, job.source.parent()) else {
        return Err(BuildError::SourceMissing(job.source.to_owned()));
    };
    let scratch = job.scratch;
    let component = scratch.path("driver.wasm");
    // Without a named virtual environment, `componentize-py` starts other programs to look for one.
    // This one is empty: the driver's own modules are found next to its sources.
    scratch.write("no-packages/lib/python3/site-packages", &[])?;
    let mut command = job.tool(&program);
    command.env("VIRTUAL_ENV", scratch.path("no-packages"));
    command.arg("-q").arg("-d").arg(scratch.worlds());
    command.args(["-w", job.world.word()]);
    for name in INTERFACE_NAMES {
        command.args(["--import-interface-name", name]);
    }
    command.arg("componentize").arg("-p").arg(folder);
    command.arg(module).arg("-o").arg(&component);
    job.run(command)?;
    let mut asked = job.tool(&program);
    asked.env("VIRTUAL_ENV", scratch.path("no-packages"));
    asked.arg("--version");
    Ok((component, vec![version(COMPONENTIZE.name, asked)]))
}
