//! JavaScript and TypeScript: esbuild makes one module of the sources, and an engine's packager
//! makes a component of that module.

use std::path::{Path, PathBuf};

use toolward_bundle::dev::World;

use super::BuildOptions;
use super::error::BuildError;
use super::language::{BuildJob, BuildLanguage, BuildOutput, Files, NewDriver, library, templates};
use super::program::{BuildTools, Wanted};
use super::tool::{named, read_json, version};

const NODE: Wanted = Wanted {
    name: "node",
    install: "Node.js 20 or later, from your system's packages",
};

/// The scripts that run in Node, and the modules that are bundled with a driver's sources.
const SCRIPTS: [(&str, &str); 5] = [
    ("package.json", include_str!("../../sdk/js/package.json")),
    ("bundle.mjs", include_str!("../../sdk/js/bundle.mjs")),
    (
        "componentize.mjs",
        include_str!("../../sdk/js/componentize.mjs"),
    ),
    ("runtime.js", include_str!("../../sdk/js/runtime.js")),
    ("warm.js", include_str!("../../sdk/js/warm.js")),
];

/// The engine in which a driver runs.
struct Engine {
    name: &'static str,
    /// The packages that make components with it.
    packages: &'static [&'static str],
}

const QUICK_JS: Engine = Engine {
    name: "quickjs",
    packages: &["componentize-qjs@0.4.5", BUNDLER],
};

/// For drivers that make requests.
const STARLING_MONKEY: Engine = Engine {
    name: "starlingmonkey",
    packages: &[
        "@bytecodealliance/componentize-js@0.23.0",
        // componentize-js imports this package, but does not depend on it.
        "@bytecodealliance/preview2-shim@0.25.0",
        BUNDLER,
    ],
};

/// The package that makes one module of the sources.
const BUNDLER: &str = "esbuild@0.28.2";

pub(super) static LANGUAGE: BuildLanguage = BuildLanguage {
    wanted: &NODE,
    is_reproducible: false,
    look: Some(look),
    build,
    new_drivers: &[
        NewDriver {
            word: "js",
            build: "kind = \"js\"\nsource = \"driver/driver.js\"\nworld = \"driver-random\"",
            templates: templates!("../../sdk/js/template":
                "driver.js" => "driver.js",
                "driver.test.js" => "driver.test.js",
                "package.json" => "package.json",
                "package-lock.json" => "package-lock.json",
            ),
            library: JS,
        },
        NewDriver {
            word: "ts",
            build: "kind = \"js\"\nsource = \"driver/driver.ts\"\nworld = \"driver-random\"",
            templates: templates!("../../sdk/js/template":
                "driver.ts" => "driver.ts",
                "driver.test.ts" => "driver.test.ts",
                "package.ts.json" => "package.json",
                "package-lock.ts.json" => "package-lock.json",
                "tsconfig.json" => "tsconfig.json",
            ),
            library: JS,
        },
    ],
};

/// The library for drivers.
const JS: Files = library!("js/" => "":
    "toolward.js",
    "toolward.d.ts",
    "toolward-testing.js",
    "toolward-testing.d.ts",
);

/// Finds Node, and each engine with which components can be made.
fn look(options: &BuildOptions, directory: &Path) -> Result<String, BuildError> {
    let tools = &options.tools;
    let node = tools.find(&NODE, directory)?;
    let mut engines = vec![QUICK_JS, STARLING_MONKEY];
    engines.retain(|engine| packages(engine, tools).is_ok());
    if engines.is_empty() {
        packages(&QUICK_JS, tools)?;
    }
    let names: Vec<&str> = engines.into_iter().map(|engine| engine.name).collect();
    Ok(format!("{} with {}", node.display(), names.join(", ")))
}

fn build(job: &mut BuildJob<'_>) -> Result<BuildOutput, BuildError> {
    let world = match job.world {
        // Without random numbers from the host, `Math.random` would return the same numbers in each
        // call, since its state is part of the component.
        World::Driver => World::Random,
        other => other,
    };
    let engine = match world.has_http() {
        true => STARLING_MONKEY,
        false => QUICK_JS,
    };
    let node = job.find(&NODE)?;
    let toolchain = packages(&engine, &job.options.tools)?;
    let scratch = job.scratch;
    scratch.write("js", &SCRIPTS)?;
    let (module, component) = (scratch.path("driver.js"), scratch.path("driver.wasm"));

    let mut bundle = job.tool(&node);
    bundle.arg(scratch.path("js/bundle.mjs"));
    bundle.arg(job.source).arg(&module);
    bundle.args(["--world", world.word()]);
    bundle.arg("--toolchain").arg(&toolchain);
    job.run(bundle)?;

    let mut componentize = job.tool(&node);
    componentize.arg(scratch.path("js/componentize.mjs"));
    componentize.arg(&module).arg(&component);
    componentize.args(["--engine", engine.name, "--world", world.word()]);
    componentize.arg("--wit").arg(scratch.worlds());
    componentize.arg("--toolchain").arg(&toolchain);
    job.run(componentize)?;
    let mut compilers = package_versions(&engine, &toolchain);
    let mut asked = job.tool(&node);
    asked.arg("--version");
    compilers.push(version(NODE.name, asked));
    Ok((component, compilers))
}

/// Returns the engine's packages with the installed versions, which may differ from the suggested
/// versions.
fn package_versions(engine: &Engine, toolchain: &Path) -> Vec<String> {
    let modules = toolchain.join("node_modules");
    let names = engine.packages.iter().map(|package| package_name(package));
    names
        .map(|name| {
            let about = read_json(&modules.join(name).join("package.json"));
            let version = about
                .as_ref()
                .and_then(|about| about.get("version")?.as_str());
            named(name, version.unwrap_or_default())
        })
        .collect()
}

/// Returns the name of a package that is given with its version.
fn package_name(package: &'static str) -> &'static str {
    package.rsplit_once('@').map_or(package, |(name, _)| name)
}

/// Returns the directory with `node_modules`, if it has all packages of the engine.
fn packages(engine: &Engine, tools: &BuildTools) -> Result<PathBuf, BuildError> {
    let own = tools.directory.as_ref().map(|own| own.join("js"));
    for package in engine.packages {
        let name = package_name(package);
        let is_there = |own: &PathBuf| own.join("node_modules").join(name).is_dir();
        if !own.as_ref().is_some_and(is_there) {
            let all = engine.packages.join(" ");
            let install = format!("npm install --ignore-scripts --prefix {{}}/js {all}");
            return Err(tools.missing(name, &install));
        }
    }
    Ok(own.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_named_with_the_versions_that_are_installed() {
        let toolchain = tempfile::tempdir().unwrap();
        let install = |name: &str, about: &str| {
            let folder = toolchain.path().join("node_modules").join(name);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("package.json"), about).unwrap();
        };
        install("componentize-qjs", r#"{ "version": "9.8.7" }"#);
        install("esbuild", "{}");
        let shim = "@bytecodealliance/preview2-shim";
        install(shim, r#"{ "version": "1.0.0\n2.0.0" }"#);
        let versions = |engine: Engine| package_versions(&engine, toolchain.path());
        assert_eq!(versions(QUICK_JS), ["componentize-qjs 9.8.7", "esbuild"]);
        assert_eq!(
            versions(STARLING_MONKEY),
            [
                "@bytecodealliance/componentize-js",
                "@bytecodealliance/preview2-shim 1.0.0",
                "esbuild"
            ]
        );
    }
}
