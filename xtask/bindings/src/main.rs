//! Writes the bindings of one world in `wit/` for one language into a folder. A
//! package of its own, so that the other chores don't wait for the generators to
//! build. It writes nothing into the repository: `cargo xtask bindings` compares,
//! or replaces.

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

fn generate(wit: &str, world: &str, language: &str) -> Result<Vec<Generated>, String> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(wit).map_err(|e| format!("{e:?}"))?;
    let world = resolve
        .select_world(&[package], Some(world))
        .map_err(|e| format!("{e:?}"))?;
    let mut generator = match language {
        "rust" => rust::generator(),
        "go" => go::generator(),
        "c" => c::generator(),
        _ => return Err(format!("no generator for {language}")),
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
        "go" => go::finish(files),
        "c" => c::finish(files),
        _ => Ok(files),
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
        eprintln!("usage: xtask-bindings WIT WORLD rust|go|c FOLDER");
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
