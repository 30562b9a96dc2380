//! Writes the bindings of one world for one language to a folder. It is a separate package, so that
//! other chores don't wait for the generators to build. It writes nothing to the repository:
//! `cargo xtask bindings` compares or replaces the files.

mod c;
mod go;
mod rust;

use std::path::Path;
use std::process::ExitCode;

use wit_bindgen_core::Files;
use wit_bindgen_core::wit_parser::Resolve;

/// A file of the bindings.
struct Generated {
    /// Its path below the folder of the bindings.
    name: String,
    text: String,
}

/// The language of the bindings.
#[derive(Clone, Copy)]
enum Language<'a> {
    Rust,
    C,
    /// Files of the module with this import path.
    Go(&'a str),
}

impl<'a> Language<'a> {
    fn parse(word: &'a str) -> Result<Self, String> {
        match word.split_once(':') {
            None if word == "rust" => Ok(Self::Rust),
            None if word == "c" => Ok(Self::C),
            Some(("go", module)) => Ok(Self::Go(module)),
            _ => Err(format!("no generator for {word}")),
        }
    }
}

fn generate(wit: &str, world: &str, language: &str) -> Result<Vec<Generated>, String> {
    let language = Language::parse(language)?;
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(wit).map_err(|e| format!("{e:?}"))?;
    let world = resolve
        .select_world(&[package], Some(world))
        .map_err(|e| format!("{e:?}"))?;
    let mut generator = match language {
        Language::Rust => rust::generator(),
        Language::C => c::generator(),
        Language::Go(module) => go::generator(module),
    };
    let mut files = Files::default();
    generator
        .generate(&mut resolve, world, &mut files)
        .map_err(|e| format!("{e:?}"))?;
    let files = files
        .iter()
        .map(|(name, bytes)| {
            Ok(Generated {
                name: name.to_owned(),
                text: String::from_utf8(bytes.to_vec()).map_err(|e| format!("{name}: {e}"))?,
            })
        })
        .collect::<Result<Vec<_>, String>>()?;
    match language {
        Language::Rust => Ok(files),
        Language::C => c::finish(files),
        Language::Go(module) => go::finish(files, module),
    }
}

fn write(folder: &Path, files: Vec<Generated>) -> Result<(), String> {
    for file in files {
        let path = folder.join(&file.name);
        let parent = path.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent)
            .and_then(|()| std::fs::write(&path, file.text))
            .map_err(|e| format!("{}: {e}", path.display()))?;
    }
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [wit, world, language, folder] = arguments.as_slice() else {
        eprintln!("usage: xtask-bindings WIT WORLD rust|c|go:MODULE FOLDER");
        return ExitCode::from(2);
    };
    let done = generate(wit, world, language).and_then(|files| write(Path::new(folder), files));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}
