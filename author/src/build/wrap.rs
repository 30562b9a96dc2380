//! Makes a component of a core module for WASI preview 1. Also has the worlds of `wit/`.

use std::path::Path;

use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
};
use wasmparser::{Parser, Payload, Validator};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::{Resolve, WorldId};

use toolward_bundle::dev::World;

/// The header of a core module: the magic number, version 1, layer 0.
const MODULE: &[u8] = b"\0asm\x01\0\0\0";

/// The prefix of the sections that name the world for which a core module was compiled. They are
/// not used: reading such a section of someone else's module would only be a risk.
const WORLD_SECTION: &str = "component-type";

/// Makes a component of a core module. A component is returned unchanged. `worlds` is a directory
/// that [`write`] wrote.
///
/// The module is treated as a module of the largest world. The component does not import what the
/// module does not import.
pub(super) fn component(wasm: Vec<u8>, worlds: &Path) -> Result<Vec<u8>, String> {
    if !wasm.starts_with(MODULE) {
        return Ok(wasm);
    }
    let encode = || -> anyhow::Result<Vec<u8>> {
        let mut wasm = without_world(&wasm)?;
        let (resolve, id) = resolve(worlds, World::All)?;
        embed_component_metadata(&mut wasm, &resolve, id, StringEncoding::UTF8)?;
        ComponentEncoder::default()
            .module(&wasm)?
            .adapter(
                WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME,
                WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
            )?
            .validate(true)
            .encode()
    };
    // The alternate form writes the whole chain of errors on one line.
    encode().map_err(|error| format!("{error:#}"))
}

/// Returns the module without the sections about its world, if the module is valid.
fn without_world(wasm: &[u8]) -> anyhow::Result<Vec<u8>> {
    Validator::new().validate_all(wasm)?;
    let mut kept = MODULE.to_vec();
    let mut start = MODULE.len();
    for payload in Parser::new(0).parse_all(wasm) {
        let payload = payload?;
        // The other payloads, such as single functions, are parts of a section.
        let Some((_, range)) = payload.as_section() else {
            continue;
        };
        let of_world = matches!(&payload, Payload::CustomSection(section)
            if section.name().starts_with(WORLD_SECTION));
        if !of_world {
            // The kept bytes include the section's header.
            kept.extend_from_slice(wasm.get(start..range.end).unwrap_or_default());
        }
        start = range.end;
    }
    Ok(kept)
}

macro_rules! files {
    ($($name:literal,)*) => {
        [$(($name, include_str!(concat!("../../wit/", $name)))),*]
    };
}

/// The files of `wit/`.
const FILES: [(&str, &str); 10] = files! {
    "driver.wit",
    "worlds.wit",
    "deps/clocks/clocks.wit",
    "deps/http/http.wit",
    "deps/io/io.wit",
    "deps/keyvalue/atomics.wit",
    "deps/keyvalue/batch.wit",
    "deps/keyvalue/store.wit",
    "deps/keyvalue/world.wit",
    "deps/random/random.wit",
};

/// Writes the files of `wit/` below a directory, as the tools of other languages read them.
pub(super) fn write(directory: &Path) -> std::io::Result<()> {
    for (name, text) in FILES {
        let path = directory.join(name);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(path, text)?;
    }
    Ok(())
}

/// Reads a world from a directory that [`write`] wrote.
pub(super) fn resolve(directory: &Path, world: World) -> anyhow::Result<(Resolve, WorldId)> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(directory)?;
    let id = resolve.select_world(&[package], Some(world.word()))?;
    Ok((resolve, id))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A module in the form of a compiler for WASI preview 1, except that `execute` does nothing.
    const MODULE_OF_A_DRIVER: &str = r#"(module
        (import "wasi_snapshot_preview1" "random_get" (func (param i32 i32) (result i32)))
        (memory (export "memory") 1)
        (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) i32.const 1024)
        (func (export "toolward:driver/handler@0.1.0#execute") (param i32) (result i32)
            unreachable))"#;

    fn worlds() -> tempfile::TempDir {
        let worlds = tempfile::tempdir().unwrap();
        write(worlds.path()).unwrap();
        worlds
    }

    #[test]
    fn a_module_of_wasi_preview_1_becomes_a_driver() {
        let worlds = worlds();
        let module = wat::parse_str(MODULE_OF_A_DRIVER).unwrap();
        let wasm = component(module, worlds.path()).unwrap();
        let surface = toolward_bundle::component::Surface::read(&wasm).unwrap();
        assert!(surface.exports_handler());
        assert!(
            surface.imports_package("wasi:random"),
            "{:?}",
            surface.imports
        );
        // It is a component now, and stays unchanged.
        let again = component(wasm.clone(), worlds.path()).unwrap();
        assert_eq!(again, wasm);
    }

    #[test]
    fn a_module_without_the_handler_is_refused_by_its_name() {
        let worlds = worlds();
        let module = wat::parse_str("(module (memory (export \"memory\") 1))").unwrap();
        let error = component(module, worlds.path()).unwrap_err();
        assert!(error.contains("toolward:driver/handler@0.1.0"), "{error}");
    }

    #[test]
    fn each_world_of_bundle_toml_is_in_the_files() {
        let directory = tempfile::tempdir().unwrap();
        write(directory.path()).unwrap();
        for world in World::ALL {
            let (resolve, id) = resolve(directory.path(), *world).unwrap();
            let imports = resolve.worlds[id].imports.len();
            assert!(imports >= 4, "{}: {imports}", world.word());
        }
    }
}
