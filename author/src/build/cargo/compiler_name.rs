//! The compiler that Cargo has used, for the provenance.

use std::path::Path;
use std::process::Command;

use super::super::tool::Tool;
use super::super::{Options, compiler};
use super::Crate;

/// Where Cargo keeps what its compiler said of itself, in the target directory.
const COMPILER_FILE: &str = ".rustc_info.json";

/// How the compiler that made the artifact names itself. Only Cargo knows which one that
/// was: `RUSTC`, settings or rustup choose it. Where Cargo has left no word of it, how
/// Cargo names itself.
pub(in crate::build) fn name_compiler(
    krate: &Crate<'_>,
    options: &Options,
    artifact: &Path,
) -> String {
    // TARGET-DIRECTORY/wasm32-wasip2/release/NAME.wasm
    let directory = artifact.ancestors().nth(3);
    directory.and_then(compiler_in).unwrap_or_else(|| {
        let mut cargo = Tool::of(Command::new(krate.program), krate.scratch, options);
        cargo.arg("--version");
        compiler::ask("cargo", cargo)
    })
}

/// The compiler that was used in a target directory.
fn compiler_in(directory: &Path) -> Option<String> {
    let told = compiler::read_json(&directory.join(COMPILER_FILE))?;
    let outputs = told.get("outputs")?.as_object()?;
    let answers = outputs.values().filter_map(|output| {
        let answer = output.get("stdout")?.as_str()?;
        answer
            .starts_with("rustc ")
            .then(|| compiler::named("rustc", answer))
    });
    let mut names: Vec<String> = answers.collect();
    names.dedup();
    // Two would leave open which of them it was.
    match <[String; 1]>::try_from(names) {
        Ok([name]) => Some(name),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The compiler's name after a build in a target directory where Cargo has left this.
    fn name_after(told: &str) -> Option<String> {
        let target = tempfile::tempdir().unwrap();
        std::fs::write(target.path().join(COMPILER_FILE), told).unwrap();
        compiler_in(target.path())
    }

    #[test]
    fn the_compiler_is_the_one_that_cargo_asked_for_its_version() {
        let told = r#"{ "rustc_fingerprint": 1, "outputs": {
            "1": { "success": true, "stdout": "___\nlib___.rlib\n", "stderr": "" },
            "2": { "success": true, "stdout": "rustc 1.95.0 (59807616e 2026-04-14)\nbinary: rustc\n" }
        } }"#;
        let name = name_after(told);
        assert_eq!(name.as_deref(), Some("rustc 1.95.0 (59807616e 2026-04-14)"));
    }

    #[test]
    fn what_does_not_name_one_compiler_names_none() {
        let two =
            r#"{ "outputs": { "1": { "stdout": "rustc 1" }, "2": { "stdout": "rustc 2" } } }"#;
        for told in ["", "{}", r#"{ "outputs": { "1": 7 } }"#, two] {
            assert_eq!(name_after(told), None, "{told}");
        }
    }
}
