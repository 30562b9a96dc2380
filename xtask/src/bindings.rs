//! `bindings`: the guest SDK's generated module, written or compared.

use std::process::Command;

use crate::{Outcome, process, repository};

const FILE: &str = "guest-sdk/src/bindings.rs";

/// Generates the bindings; with `check` it only compares.
pub(crate) fn run(check: bool) -> Outcome {
    let root = repository::root()?;
    let wanted = process::output(
        Command::new(repository::cargo())
            .args(["run", "--quiet", "--locked", "--manifest-path"])
            .arg(root.join("xtask/bindings/Cargo.toml"))
            .arg("--target-dir")
            .arg(repository::target()?.join("xtask-bindings"))
            .arg("--")
            .arg(root.join("wit/driver.wit")),
    )?;
    let file = root.join(FILE);
    let found = std::fs::read(&file).unwrap_or_default();
    if found == wanted {
        println!("{FILE} is what wit/driver.wit gives");
        return Ok(());
    }
    if check {
        return Err(format!(
            "{FILE} is not what wit/driver.wit gives; run `cargo xtask bindings` and commit it"
        ));
    }
    std::fs::write(&file, wanted).map_err(|error| format!("{FILE}: {error}"))?;
    println!("{FILE} written");
    Ok(())
}
