//! `dist`: makes the files of a release in `target/dist`: a tarball, a Debian package, the contents
//! of an image, their digests, and a signature of the digests.

mod archive;
mod contents;
mod signature;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Outcome, process, program, repository};
use archive::Archiver;

/// The options of `dist`.
#[derive(Debug, Default)]
struct Options {
    /// The command, if it is built already.
    binary: Option<PathBuf>,
    /// The key that signs, an Ed25519 key in PEM.
    key: Option<PathBuf>,
    /// Whether to test the result.
    check: bool,
}

impl Options {
    fn parse(arguments: &[String]) -> Outcome<Self> {
        let mut options = Self::default();
        let mut arguments = arguments.iter();
        while let Some(flag) = arguments.next() {
            let mut file = || {
                let file = arguments.next().ok_or(format!("{flag} needs a file"))?;
                std::path::absolute(file).map_err(|error| format!("{file}: {error}"))
            };
            match flag.as_str() {
                "--check" => options.check = true,
                "--binary" => options.binary = Some(file()?),
                "--key" => options.key = Some(file()?),
                other => return Err(format!("dist does not take {other}")),
            }
        }
        Ok(options)
    }
}

/// Makes the release. With `--check` it is made from the debug build, in another folder, and
/// tested.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let options = Options::parse(arguments)?;
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None if options.check => program::build("toolward")?,
        None => program::release()?,
    };
    if !options.check {
        let compare = repository::root()?.join("bench/functions.py");
        process::run(Command::new(compare).arg("--compare").arg(&binary))?;
    }
    if let Some(key) = &options.key {
        signature::check(key)?;
    }
    let name = if options.check { "dist-check" } else { "dist" };
    let folder = repository::target()?.join(name);
    let made = make(&binary, &folder)?;
    if options.check {
        try_release(&binary, &folder)?;
    }
    match &options.key {
        Some(key) => signature::sign(&folder, key)?,
        None => println!("no signature was made: --key FILE names the key"),
    }
    for file in made.iter().map(String::as_str).chain(["SHA256SUMS"]) {
        println!("{}", folder.join(file).display());
    }
    Ok(())
}

/// Tests the files made from this binary: a second build gives the same files, and a new user can
/// use them.
fn try_release(binary: &Path, folder: &Path) -> Outcome {
    let again = folder.join("again");
    make(binary, &again)?;
    let sums = |folder: &Path| repository::read(&folder.join("SHA256SUMS"));
    if sums(folder)? != sums(&again)? {
        return Err("made twice, a release has other bytes".to_owned());
    }
    remove(&again)?;
    let root = repository::root()?;
    let clients = repository::target()?.join("mcp-clients");
    let mut fetch = Command::new(root.join("xtask/mcp-clients.sh"));
    process::output(fetch.env("MCP_CLIENTS_DIR", &clients))?;
    process::run(
        Command::new("python3")
            .arg(root.join("xtask/dist/trial.py"))
            .args([folder, &clients.join("python/bin/python")]),
    )
}

/// Makes the archives and their digests in a new folder, and returns the archives' names.
fn make(binary: &Path, folder: &Path) -> Outcome<Vec<String>> {
    renew(folder)?;
    let staged = folder.join("staged");
    let release = contents::Release::stage(binary, &staged)?;
    let archiver = Archiver::new()?;
    let version = &release.version;
    let tarball = format!("toolward-{version}-x86_64-linux.tar.gz");
    let package = format!("toolward_{version}_amd64.deb");
    let image = format!("toolward-{version}-x86_64-image.tar.gz");
    archiver.tarball(&staged.join("tarball"), &folder.join(&tarball))?;
    archiver.package(&staged, &folder.join(&package))?;
    archiver.tarball(&staged.join("image"), &folder.join(&image))?;
    remove(&staged)?;
    let made = vec![tarball, package, image];
    let sums = process::output(Command::new("sha256sum").args(&made).current_dir(folder))?;
    write(&folder.join("SHA256SUMS"), &sums)?;
    Ok(made)
}

/// Makes an empty folder. An existing one is replaced.
fn renew(folder: &Path) -> Outcome {
    remove(folder)?;
    create(folder)
}

fn remove(folder: &Path) -> Outcome {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("{}: {error}", folder.display()))
        }
        _ => Ok(()),
    }
}

fn create(folder: &Path) -> Outcome {
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))
}

fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Outcome {
    if let Some(folder) = path.parent() {
        create(folder)?;
    }
    std::fs::write(path, bytes).map_err(|error| format!("{}: {error}", path.display()))
}

fn copy(from: &Path, to: &Path) -> Outcome {
    if let Some(folder) = to.parent() {
        create(folder)?;
    }
    let copied = std::fs::copy(from, to);
    copied.map_err(|error| format!("{}: {error}", from.display()))?;
    Ok(())
}
