//! JavaScript and TypeScript: esbuild makes one module of the sources, and an engine's
//! packager a component of that.

use std::path::{Path, PathBuf};

use toolward_bundle::dev::World;

use super::BuildOptions;
use super::error::BuildError;
use super::language::{BuildJob, BuildLanguage, BuildOutput};
use super::program::{BuildTools, Wanted};
use super::tool::{named, read_json, version};

const NODE: Wanted = Wanted {
    name: "node",
    install: "Node.js 20 or later, from your system's packages",
};

/// What runs in Node, and the modules that a driver's sources are bundled with.
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

/// Which engine a driver runs in: the small one, unless it makes requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Engine {
    QuickJs,
    StarlingMonkey,
}

impl Engine {
    fn of(world: World) -> Self {
        match world.has_http() {
            true => Self::StarlingMonkey,
            false => Self::QuickJs,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::QuickJs => "quickjs",
            Self::StarlingMonkey => "starlingmonkey",
        }
    }

    /// The packages that make components of it.
    fn packages(self) -> &'static [&'static str] {
        match self {
            Self::QuickJs => &["componentize-qjs@0.4.5", BUNDLER],
            Self::StarlingMonkey => &[
                "@bytecodealliance/componentize-js@0.23.0",
                // It imports this one, and does not depend on it.
                "@bytecodealliance/preview2-shim@0.25.0",
                BUNDLER,
            ],
        }
    }
}

/// What makes one module of the sources.
const BUNDLER: &str = "esbuild@0.28.2";

pub(super) struct Js;

impl BuildLanguage for Js {
    fn program(&self) -> &'static str {
        NODE.name
    }

    fn is_reproducible(&self) -> bool {
        false
    }

    /// Node, and each engine that components can be made of.
    fn look(&self, options: &BuildOptions, directory: &Path) -> Result<String, BuildError> {
        let tools = &options.tools;
        let node = tools.find(&NODE, directory)?;
        let mut engines = vec![Engine::QuickJs, Engine::StarlingMonkey];
        engines.retain(|engine| packages(*engine, tools).is_ok());
        if engines.is_empty() {
            packages(Engine::QuickJs, tools)?;
        }
        let names: Vec<&str> = engines.into_iter().map(Engine::name).collect();
        Ok(format!("{} with {}", node.display(), names.join(", ")))
    }

    fn build(&self, job: &mut BuildJob<'_>) -> Result<BuildOutput, BuildError> {
        let world = match job.world {
            // Without its own randomness, `Math.random` gives in each call the numbers
            // of the snapshot.
            World::Driver => World::Random,
            other => other,
        };
        let engine = Engine::of(world);
        let node = job.find(&NODE)?;
        let toolchain = packages(engine, &job.options.tools)?;
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
        componentize.args(["--engine", engine.name(), "--world", world.word()]);
        componentize.arg("--wit").arg(scratch.worlds());
        componentize.arg("--toolchain").arg(&toolchain);
        job.run(componentize)?;
        let mut compilers = package_versions(engine, &toolchain);
        let mut asked = job.tool(&node);
        asked.arg("--version");
        compilers.push(version(NODE.name, asked));
        Ok(BuildOutput {
            file: component,
            compilers,
        })
    }
}

/// The engine's packages with the versions that are installed, which may be others than
/// those that are proposed.
fn package_versions(engine: Engine, toolchain: &Path) -> Vec<String> {
    let modules = toolchain.join("node_modules");
    let names = engine
        .packages()
        .iter()
        .map(|package| package_name(package));
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

/// The name of a package that is given with its version.
fn package_name(package: &'static str) -> &'static str {
    package.rsplit_once('@').map_or(package, |(name, _)| name)
}

/// The directory with `node_modules`, if what the engine needs is in it.
fn packages(engine: Engine, tools: &BuildTools) -> Result<PathBuf, BuildError> {
    let own = tools.directory.as_ref().map(|own| own.join("js"));
    for package in engine.packages() {
        let name = package_name(package);
        let there = own
            .as_ref()
            .is_some_and(|own| own.join("node_modules").join(name).is_dir());
        if !there {
            let all = engine.packages().join(" ");
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
        let versions = |engine| package_versions(engine, toolchain.path());
        assert_eq!(
            versions(Engine::QuickJs),
            ["componentize-qjs 9.8.7", "esbuild"]
        );
        assert_eq!(
            versions(Engine::StarlingMonkey),
            [
                "@bytecodealliance/componentize-js",
                "@bytecodealliance/preview2-shim 1.0.0",
                "esbuild"
            ]
        );
    }
}
