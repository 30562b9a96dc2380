//! The signature of `SHA256SUMS`: Ed25519 over the file's bytes, with a key of
//! `toolward publisher keys new`. OpenSSL makes it, and anyone can check it with OpenSSL.

use std::path::Path;
use std::process::Command;

use crate::{Outcome, process, repository};

/// Refuses a key that is not a private Ed25519 key, and a key that is in the repository, since
/// everyone has such a key.
pub(super) fn check(key: &Path) -> Outcome {
    let public = public(key, &[])?;
    let text = process::output(
        Command::new("openssl")
            .args(["pkey", "-noout", "-text", "-in"])
            .arg(key),
    )?;
    if !text.starts_with(b"ED25519 Private-Key:") {
        return Err(format!("{}: expected a private Ed25519 key", key.display()));
    }
    let root = repository::root()?;
    let mut git = Command::new("git");
    git.args(["ls-files", "*.pem"]).current_dir(&root);
    let known = String::from_utf8_lossy(&process::output(&mut git)?).into_owned();
    for file in known.lines() {
        let kind: &[&str] = match file.ends_with(".pub.pem") {
            true => &["-pubin"],
            false => &[],
        };
        if self::public(&root.join(file), kind)? == public {
            return Err(format!("{}: this is the key {file}", key.display()));
        }
    }
    Ok(())
}

fn public(key: &Path, kind: &[&str]) -> Outcome<Vec<u8>> {
    let mut openssl = Command::new("openssl");
    openssl.args(["pkey", "-pubout"]).args(kind);
    process::output(openssl.arg("-in").arg(key))
}

/// Writes `SHA256SUMS.sig`.
pub(super) fn sign(folder: &Path, key: &Path) -> Outcome {
    process::run(
        Command::new("openssl")
            .args(["pkeyutl", "-sign", "-rawin", "-in", "SHA256SUMS"])
            .args(["-out", "SHA256SUMS.sig", "-inkey"])
            .arg(key)
            .current_dir(folder),
    )
}
