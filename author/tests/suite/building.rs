//! `[[build]]`: its rules in bundle.toml, and builds that need no toolchain.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use toolward_author::build::{BuildError, BuildOptions, BuildTools, Plan, build};
use toolward_author::check::check_path;
use toolward_author::{
    AuthorError, BuildKind, BundleToml, ReadError, World, compilers, provenance,
};

const BUNDLE: &str =
    "id = \"demo.greet\"\nversion = \"1.0.0\"\nsequence = 1\npublisher = \"acme\"\n";

const OUTPUT: &str = "drivers/demo-greet/driver.wasm";

/// A `bundle.toml` with one build.
fn with(lines: &str) -> String {
    format!("{BUNDLE}[[build]]\n{lines}\noutput = \"{OUTPUT}\"\n")
}

#[test]
fn each_kind_is_read_with_its_source_and_world() {
    for (lines, kind, world) in [
        ("crate = \"a/b\"", BuildKind::Rust, World::Driver),
        (
            "kind = \"rust\"\ncrate = \"a/b\"",
            BuildKind::Rust,
            World::Driver,
        ),
        (
            "kind = \"js\"\nsource = \"a/b\"",
            BuildKind::Js,
            World::Driver,
        ),
        (
            "kind = \"python\"\nsource = \"a/b\"\nworld = \"driver-all\"",
            BuildKind::Python,
            World::All,
        ),
        (
            "kind = \"go\"\nsource = \"a/b\"",
            BuildKind::Go,
            World::Driver,
        ),
        (
            "kind = \"c\"\nsource = \"a/b\"",
            BuildKind::C,
            World::Driver,
        ),
        (
            "kind = \"wasm\"\nsource = \"a/b\"",
            BuildKind::Wasm,
            World::Driver,
        ),
    ] {
        let parsed = BundleToml::parse("bundle.toml", &with(lines));
        let bundle = parsed
            .value
            .unwrap_or_else(|| panic!("{:?}", parsed.diagnostics));
        let entry = &bundle.builds[0];
        assert_eq!((entry.kind, entry.world), (kind, world), "{lines}");
        assert_eq!(
            (entry.source.as_str(), entry.output.as_str()),
            ("a/b", OUTPUT)
        );
    }
}

#[test]
fn each_mistake_has_its_code_and_place() {
    for (lines, code, line) in [
        ("kind = \"cobol\"\nsource = \"a\"", "bundle-toml-value", 6),
        ("kind = \"js\"", "bundle-toml-missing-key", 7),
        (
            "kind = \"js\"\ncrate = \"a\"\nsource = \"a\"",
            "bundle-toml-unknown-key",
            7,
        ),
        (
            "crate = \"a\"\nsource = \"a\"",
            "bundle-toml-unknown-key",
            7,
        ),
        ("kind = \"js\"\nsource = \"../a\"", "bundle-toml-value", 7),
        ("kind = \"js\"\nsource = \"/a\"", "bundle-toml-value", 7),
        (
            "kind = \"js\"\nsource = \"a\"\nworld = \"all\"",
            "bundle-toml-value",
            8,
        ),
        (
            "kind = \"go\"\nsource = \"a\"\nworld = \"driver\"",
            "bundle-toml-value",
            8,
        ),
        ("crate = \"a\"\nworld = \"driver\"", "bundle-toml-value", 7),
        (
            "kind = \"c\"\nsource = \"a\"\nsnapshot = true",
            "bundle-toml-value",
            8,
        ),
    ] {
        let parsed = BundleToml::parse("bundle.toml", &with(lines));
        assert!(parsed.value.is_none(), "{lines}");
        let found = &parsed.diagnostics[0];
        assert_eq!((found.code, found.line), (code, line), "{lines}");
    }
}

/// A bundle under work whose driver is `made.wasm`.
fn bundle(module: &str) -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(place.path().join(name), bytes).unwrap();
    write(
        "bundle.toml",
        with("kind = \"wasm\"\nsource = \"made.wasm\"").as_bytes(),
    );
    write("made.wasm", &wat::parse_str(module).unwrap());
    place
}

fn built(directory: &Path) -> Result<Vec<u8>, BuildError> {
    let options = BuildOptions {
        cargo: directory.join("no-cargo").into(),
        locked: false,
        offline: true,
        confine: true,
        tools: BuildTools::default(),
    };
    let plan = Plan::read(directory)?;
    let built = build(&plan, &options, &mut |_| {})?;
    Ok(std::fs::read(directory.join(&built[0].entry.output)).unwrap())
}

/// A module in the form of a compiler for WASI preview 1, except that `execute` does nothing.
const MODULE: &str = r#"(module
    (memory (export "memory") 1)
    (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) i32.const 1024)
    (func (export "toolward:driver/handler@0.1.0#execute") (param i32) (result i32)
        unreachable))"#;

#[test]
fn a_module_becomes_a_component_and_a_component_stays_one() {
    let place = bundle(MODULE);
    assert!(Plan::read(place.path()).unwrap().programs().is_empty());
    let component = built(place.path()).unwrap();
    std::fs::write(place.path().join("made.wasm"), &component).unwrap();
    assert_eq!(built(place.path()).unwrap(), component);
}

/// A program that copies a module in place of a C compiler.
fn compiler(path: &Path, module: &Path, version: &str) {
    let script = format!(
        "#!/bin/sh\n\
         [ \"$1\" = version ] && {{ echo '{version}'; exit; }}\n\
         while [ \"$1\" != -o ]; do shift; done\n\
         cat '{}' >\"$2\"\n",
        module.display()
    );
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, script).unwrap();
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(path, mode).unwrap();
}

/// Uses the tools in a directory, and the tools of the system.
fn options_with(tools: &Path) -> BuildOptions {
    BuildOptions {
        cargo: tools.join("no-cargo").into(),
        locked: false,
        offline: true,
        confine: true,
        tools: BuildTools {
            directory: Some(tools.to_owned()),
            path: vec!["/usr/bin".into(), "/bin".into()],
            ..BuildTools::default()
        },
    }
}

#[test]
fn each_tool_that_builds_is_named_once_for_the_provenance() {
    let place = bundle(MODULE);
    let toolchain = tempfile::tempdir().unwrap();
    let (zig, module) = (
        toolchain.path().join("python/bin/zig"),
        place.path().join("made.wasm"),
    );
    compiler(&zig, &module, "0.99.1");
    let source = |number: u32| format!("kind = \"c\"\nsource = \"c{number}\"");
    let output = |number: u32| format!("output = \"out{number}/driver.wasm\"");
    let mut text = with("kind = \"wasm\"\nsource = \"made.wasm\"");
    for number in [1, 2] {
        text += &format!("[[build]]\n{}\n{}\n", source(number), output(number));
        std::fs::create_dir(place.path().join(format!("c{number}"))).unwrap();
        std::fs::write(place.path().join(format!("c{number}/driver.c")), "").unwrap();
    }
    std::fs::write(place.path().join("bundle.toml"), text).unwrap();
    let options = options_with(toolchain.path());
    let plan = Plan::read(place.path()).unwrap();
    let built = build(&plan, &options, &mut |_| {}).unwrap();
    let names: Vec<_> = built.iter().map(|one| one.compilers.len()).collect();
    assert_eq!(names, [0, 1, 1], "a module that was there has none");
    assert_eq!(compilers(&built), "zig 0.99.1");
    let said = provenance(place.path(), &compilers(&built)).unwrap();
    assert_eq!(said.compiler, "zig 0.99.1");
    assert_eq!(said.sources.len(), 3);
    // Without compilers there is nothing to name.
    assert_eq!(compilers(&built[..1]), "");
}

/// A bundle in Go that requests a snapshot, and a compiler that returns a module with the start
/// function `start`.
fn snapshot_bundle(start: &str, contract: &str) -> (tempfile::TempDir, BuildOptions) {
    let end = "(func (export \"toolward:driver/handler@0.1.0#execute\")";
    let starting = format!(
        "(global $mark (mut i32) (i32.const 1)) (func (export \"_initialize\") {start})
         (func (export \"toolward_adapter_memory\") (result i32) i32.const 4096) {end}"
    );
    let module = MODULE.replace(end, &starting).replace(
        "(memory (export \"memory\") 1)",
        "(memory (export \"memory\") 4)",
    );
    let place = bundle(&module);
    let go = place.path().join("tools-of-go/python/bin/go");
    compiler(&go, &place.path().join("made.wasm"), "go version go1.99");
    std::fs::create_dir(place.path().join("driver")).unwrap();
    let write = |path: &str, text: String| {
        let path = place.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let toml = with("kind = \"go\"\nsource = \"driver\"\nsnapshot = true");
    write("bundle.toml", toml);
    let driver = "---\nname: Driver\ndescription: Does it.\nid: acme.driver\nversion: 1.0.0\nkind: component\n\
        component: driver.wasm\nimplements: [{tool: acme.tool, version: ^1.0.0}]\n---\n\nDoes it.\n";
    write(&OUTPUT.replace("driver.wasm", "DRIVER.md"), driver.into());
    let tool = format!(
        "---\nname: Tool\nid: acme.tool\ndescription: Does it.\nversion: 1.0.0\n\
        inputs: {{type: object}}\noutputs: {{type: object}}\n{contract}---\n\nDoes it.\n"
    );
    write("tools/acme.tool/TOOL.md", tool);
    let options = options_with(&place.path().join("tools-of-go"));
    (place, options)
}

fn built_with(place: &tempfile::TempDir, options: &BuildOptions) -> Result<Vec<u8>, BuildError> {
    let plan = Plan::read(place.path())?;
    build(&plan, options, &mut |_| {})?;
    Ok(std::fs::read(place.path().join(OUTPUT)).unwrap())
}

/// Returns whether a core module of the component has a start function, and the initial values of
/// its globals.
fn start_of(wasm: &[u8]) -> (bool, Vec<i32>) {
    let (mut starts, mut globals) = (false, Vec::new());
    for payload in wasmparser::Parser::new(0).parse_all(wasm) {
        match payload.unwrap() {
            wasmparser::Payload::ExportSection(section) => {
                let mut exports = section.into_iter().map(Result::unwrap);
                starts |= exports.any(|export| export.name == "_initialize");
            }
            wasmparser::Payload::GlobalSection(section) => {
                for global in section {
                    let mut value = global.unwrap().init_expr.get_operators_reader();
                    if let wasmparser::Operator::I32Const { value } = value.read().unwrap() {
                        globals.push(value);
                    }
                }
            }
            _ => {}
        }
    }
    (starts, globals)
}

#[test]
fn a_snapshot_has_what_the_start_left_and_no_start() {
    let (place, options) = snapshot_bundle("(global.set $mark (i32.const 2))", "");
    let (starts, globals) = start_of(&built_with(&place, &options).unwrap());
    assert!(!starts);
    assert!(globals.contains(&2), "{globals:?}");
    let toml = with("kind = \"go\"\nsource = \"driver\"");
    std::fs::write(place.path().join("bundle.toml"), toml).unwrap();
    let (starts, globals) = start_of(&built_with(&place, &options).unwrap());
    assert!(starts);
    assert!(!globals.contains(&2), "{globals:?}");
}

#[test]
fn a_start_that_fails_when_a_driver_is_built_is_refused() {
    let (place, options) = snapshot_bundle("unreachable", "");
    let error = built_with(&place, &options).unwrap_err();
    assert_eq!(error.code(), "snapshot-failed", "{error}");
    assert!(error.to_string().contains("unreachable"), "{error}");
}

/// Go looks up its directories when it starts, and a snapshot has none.
#[test]
fn a_driver_that_may_be_given_files_has_no_snapshot() {
    let refused = |place: &tempfile::TempDir, options: &BuildOptions, expected: &str| {
        let error = built_with(place, options).unwrap_err();
        let BuildError::Author(AuthorError::Read(ReadError::Invalid(found))) = error else {
            panic!("{error}");
        };
        assert_eq!(found[0].code, "snapshot-files", "{found:?}");
        assert!(found[0].message.contains(expected), "{found:?}");
        // Checked after a build as well, since the contract may have changed.
        let checked = check_path(place.path());
        let codes: Vec<_> = checked.diagnostics.iter().map(|found| found.code).collect();
        assert!(codes.contains(&"snapshot-files"), "{codes:?}");
    };
    for contract in [
        "requires: {workspace: [/data]}\n",
        "mutates: [\"workspace:/data\"]\n",
    ] {
        let (place, options) = snapshot_bundle("", contract);
        refused(&place, &options, "may be given files");
    }
    // The declarations of a contract in another bundle are unknown.
    let (place, options) = snapshot_bundle("", "");
    built_with(&place, &options).unwrap();
    std::fs::remove_dir_all(place.path().join("tools")).unwrap();
    refused(&place, &options, "may be given files");
    std::fs::remove_file(place.path().join(OUTPUT).with_file_name("DRIVER.md")).unwrap();
    refused(&place, &options, "no DRIVER.md says");
}

#[test]
fn what_is_no_driver_is_refused_and_not_written() {
    for (module, code) in [
        ("(module)", "component-wrap-failed"),
        ("(component)", "component-world"),
        (
            "(component (core module (memory i64 1)) (instance $i) \
             (export \"toolward:driver/handler@0.1.0\" (instance $i)))",
            "component-features",
        ),
    ] {
        let place = bundle(module);
        let error = built(place.path()).unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        assert!(!place.path().join("drivers").exists(), "{module}");
    }
}

#[test]
fn a_component_is_not_written_through_a_link() {
    let place = bundle(MODULE);
    let elsewhere = tempfile::tempdir().unwrap();
    // A folder that no other rule checks.
    let text = std::fs::read_to_string(place.path().join("bundle.toml")).unwrap();
    let out = text.replace(OUTPUT, "out/x.wasm");
    std::fs::write(place.path().join("bundle.toml"), out).unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), place.path().join("out")).unwrap();
    assert_eq!(built(place.path()).unwrap_err().code(), "write-failed");
    std::fs::write(place.path().join("bundle.toml"), text).unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), place.path().join("drivers")).unwrap();
    assert!(built(place.path()).is_err());
    std::fs::remove_file(place.path().join("drivers")).unwrap();
    let folder = place.path().join("drivers/demo-greet");
    std::fs::create_dir_all(folder.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), &folder).unwrap();
    assert!(built(place.path()).is_err());
    assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    // A link at the file's path is replaced.
    std::fs::remove_file(&folder).unwrap();
    std::fs::create_dir(&folder).unwrap();
    let target = elsewhere.path().join("victim");
    std::fs::write(&target, "victim").unwrap();
    std::os::unix::fs::symlink(&target, folder.join("driver.wasm")).unwrap();
    let outcome = built(place.path());
    assert_eq!(std::fs::read(&target).unwrap(), b"victim", "{outcome:?}");
}

#[test]
fn a_module_is_not_asked_which_world_it_is_of() {
    let claims = MODULE.replace(
        "(module\n",
        "(module (@custom \"component-type:x\" \"\\00asm\\0d\\00\\01\\00garbage\")\n",
    );
    assert!(claims.contains("@custom"));
    assert_eq!(
        built(bundle(&claims).path()).unwrap(),
        built(bundle(MODULE).path()).unwrap()
    );
    let mut invalid = wat::parse_str(MODULE).unwrap();
    let end = invalid.len() - 3;
    invalid.truncate(end);
    let place = bundle(MODULE);
    std::fs::write(place.path().join("made.wasm"), invalid).unwrap();
    let error = built(place.path()).unwrap_err();
    assert_eq!(error.code(), "component-wrap-failed", "{error}");
}

#[test]
fn a_source_that_a_link_leads_to_is_not_built() {
    let place = bundle(MODULE);
    let made = place.path().join("made.wasm");
    let elsewhere = tempfile::tempdir().unwrap();
    std::fs::rename(&made, elsewhere.path().join("made.wasm")).unwrap();
    assert_eq!(built(place.path()).unwrap_err().code(), "source-missing");
    std::os::unix::fs::symlink(elsewhere.path().join("made.wasm"), &made).unwrap();
    assert_eq!(built(place.path()).unwrap_err().code(), "source-missing");
    // A crate behind a link is refused as well.
    let crates = with("crate = \"driver\"");
    std::fs::write(place.path().join("bundle.toml"), crates).unwrap();
    std::fs::write(elsewhere.path().join("Cargo.toml"), "").unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), place.path().join("driver")).unwrap();
    assert_eq!(built(place.path()).unwrap_err().code(), "crate-missing");
}
