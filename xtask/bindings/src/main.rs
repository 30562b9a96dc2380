//! Writes the Rust bindings of one world in `wit/` to standard output. A package
//! of its own, so that the other chores don't wait for the generator to build.
//! It writes no file: `cargo xtask bindings` compares, or replaces.

use std::io::Write;
use std::process::ExitCode;

use wit_bindgen_core::wit_parser::Resolve;
use wit_bindgen_core::{Files, WorldGenerator};
use wit_bindgen_rust::Opts;

fn generate(wit: &str, world: &str) -> Result<Vec<u8>, String> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(wit).map_err(|e| format!("{e:?}"))?;
    let world = resolve
        .select_world(&[package], Some(world))
        .map_err(|e| format!("{e:?}"))?;
    let options = Opts {
        format: true,
        generate_all: true,
        pub_export_macro: true,
        export_macro_name: Some("export_driver".to_owned()),
        default_bindings_module: Some("$crate::bindings".to_owned()),
        additional_derive_attributes: vec!["PartialEq".to_owned()],
        ..Opts::default()
    };
    let mut files = Files::default();
    options
        .build()
        .generate(&mut resolve, world, &mut files)
        .map_err(|e| format!("{e:?}"))?;
    let mut all = files.iter();
    match (all.next(), all.next()) {
        (Some((_, bytes)), None) => Ok(bytes.to_vec()),
        _ => Err("the generator is expected to make exactly one file".to_owned()),
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [wit, world] = arguments.as_slice() else {
        eprintln!("usage: xtask-bindings FOLDER WORLD");
        return ExitCode::from(2);
    };
    let done = generate(wit, world).and_then(|bytes| {
        std::io::stdout()
            .write_all(&bytes)
            .map_err(|e| format!("standard output: {e}"))
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}
