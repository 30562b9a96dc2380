//! `drivers`: the driver that `toolward new` writes, built in each language, for
//! `cargo bench -p toolward-host --bench languages`.

use std::path::Path;
use std::process::Command;

use crate::{Outcome, languages, process, program, repository};

/// Each with the language that `new` takes.
const SCAFFOLDS: [(&str, &str); 6] = [
    ("rust", "rust"),
    ("js", "js"),
    ("js-requests", "js"),
    ("python", "python"),
    ("go", "go"),
    ("c", "c"),
];

/// A driver in C alone, without WASI and with it.
const BARE: [(&str, &str); 2] = [("c-bare", ""), ("c-bare-wasi", "#define WITH_STDIO\n")];

/// Writes and builds all of them below `target/drivers`.
pub(crate) fn run() -> Outcome {
    let root = repository::root()?;
    let folder = repository::target()?.join("drivers");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(|error| languages::describe(&folder, &error))?;
    }
    let guest_cargo = crate::guests::toolchain(&root)?;
    let toolchain = languages::toolchain(&root)?;
    let toolward = program::build("toolward")?;
    let new = |name: &str, language: &str| {
        process::run(
            Command::new(&toolward)
                .args(["new", "--id", "text.greet", "--language", language])
                .arg(folder.join(name)),
        )
    };
    let build = |name: &str| {
        process::run(
            Command::new(&toolward)
                .args(["build", "--allow-build", "--guest-cargo"])
                .arg(&guest_cargo)
                .arg("--toolchain")
                .arg(&toolchain)
                .arg(folder.join(name)),
        )
    };
    for (name, language) in SCAFFOLDS {
        new(name, language)?;
        if name == "js-requests" {
            with_requests(&folder.join(name))?;
        }
        build(name)?;
    }
    let source = repository::read(&root.join("host/benches/languages/greet.c"))?;
    for (name, first) in BARE {
        new(name, "c")?;
        let driver = folder.join(name).join("driver");
        write(&driver.join("driver.c"), &format!("{first}{source}"))?;
        let library = driver.join("toolward/toolward.c");
        std::fs::remove_file(&library).map_err(|error| languages::describe(&library, &error))?;
        build(name)?;
    }
    Ok(())
}

/// Declares requests, for which `build` takes the engine that has them.
fn with_requests(bundle: &Path) -> Outcome {
    for (file, from, to) in [
        ("bundle.toml", "\"driver-random\"", "\"driver-http\""),
        (
            "tools/text.greet/TOOL.md",
            "\nidempotent:",
            "\nrequires:\n  network: [greetings.example]\nidempotent:",
        ),
        (
            "drivers/text.greet.driver/DRIVER.md",
            "\nkind:",
            "\nnetwork:\n  egress: [greetings.example]\nkind:",
        ),
    ] {
        let path = bundle.join(file);
        let text = repository::read(&path)?;
        let changed = text.replacen(from, to, 1);
        if changed == text {
            return Err(format!("{}: there is no {from}", path.display()));
        }
        write(&path, &changed)?;
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Outcome {
    std::fs::write(path, text).map_err(|error| languages::describe(path, &error))
}
