//! `bindings`: the guest SDK's generated modules, written or compared.

use std::path::Path;
use std::process::Command;

use crate::{Outcome, process, repository};

/// A world of `wit/`, and the file that its bindings go to.
const FILES: [(&str, &str); 2] = [
    ("driver", "guest-sdk/src/bindings.rs"),
    (
        "wasi:keyvalue/imports@0.2.0-draft",
        "guest-sdk/src/keyvalue/bindings.rs",
    ),
];

/// Generates the bindings; with `check` it only compares.
pub(crate) fn run(check: bool) -> Outcome {
    let root = repository::root()?;
    for (world, file) in FILES {
        one(&root, world, file, check)?;
    }
    Ok(())
}

fn one(root: &Path, world: &str, name: &str, check: bool) -> Outcome {
    let wanted = process::output(
        Command::new(repository::cargo())
            .args(["run", "--quiet", "--locked", "--manifest-path"])
            .arg(root.join("xtask/bindings/Cargo.toml"))
            .arg("--target-dir")
            .arg(repository::target()?.join("xtask-bindings"))
            .arg("--")
            .arg(root.join("wit"))
            .arg(world),
    )?;
    let file = root.join(name);
    let found = std::fs::read(&file).unwrap_or_default();
    if found == wanted {
        println!("{name} is what wit/ gives");
        return Ok(());
    }
    if check {
        return Err(format!(
            "{name} is not what wit/ gives; run `cargo xtask bindings` and commit it"
        ));
    }
    std::fs::write(&file, wanted).map_err(|error| format!("{name}: {error}"))?;
    println!("{name} written");
    Ok(())
}
