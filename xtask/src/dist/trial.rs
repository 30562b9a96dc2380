//! Tries a release: made twice it is the same, its digests hold, and from each archive,
//! unpacked into an empty folder, the command runs in an empty home and leaves nothing.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::newcomer::Newcomer;
use super::{create, make, remove};
use crate::{Outcome, process, repository};

/// Tries what was `made` of this binary.
pub(super) fn run(binary: &Path, folder: &Path, made: &[String]) -> Outcome {
    let again = folder.join("again");
    make(binary, &again)?;
    let sums = |folder: &Path| repository::read(&folder.join("SHA256SUMS"));
    if sums(folder)? != sums(&again)? {
        return Err("made twice, a release has other bytes".to_owned());
    }
    remove(&again)?;
    process::run(
        Command::new("sha256sum")
            .args(["--check", "--strict", "--quiet", "SHA256SUMS"])
            .current_dir(folder),
    )?;
    for (name, place) in made.iter().zip(["*/bin", "usr/bin", "root"]) {
        println!("{name}:");
        let trial = folder.join("trial");
        unpack(&folder.join(name), &trial.join("root"))?;
        let tried = match place {
            "root" => try_image(&trial.join("root/root")),
            place => try_installed(&trial, place),
        };
        tried.map_err(|error| format!("{name}: {error}"))?;
        remove(&trial)?;
    }
    Ok(())
}

fn unpack(archive: &Path, root: &Path) -> Outcome {
    create(root)?;
    let package = archive
        .extension()
        .is_some_and(|extension| extension == "deb");
    let mut command = match package {
        true => Command::new("dpkg-deb"),
        false => Command::new("tar"),
    };
    match package {
        true => command.arg("--extract").arg(archive).arg(root),
        false => command.arg("-xzf").arg(archive).arg("-C").arg(root),
    };
    process::run(&mut command)
}

/// The command in an empty home, and the manual pages beside it.
fn try_installed(trial: &Path, place: &str) -> Outcome {
    let root = trial.join("root");
    let prefix = match place.strip_prefix("*/") {
        Some(_) => {
            let entries = repository::entries(&root)?;
            let [top] = entries.as_slice() else {
                return Err(format!("expected one folder, found {entries:?}"));
            };
            top.clone()
        }
        None => root.join("usr"),
    };
    let home = trial.join("home");
    create(&home)?;
    Newcomer::new(&prefix.join("bin/toolward"), &home).play()?;
    let mut left = Vec::new();
    files(&home, &mut left)?;
    if !left.is_empty() {
        return Err(format!("the demo left {left:?}"));
    }
    check_pages(&prefix)
}

/// Appends the files below a folder.
fn files(folder: &Path, found: &mut Vec<PathBuf>) -> Outcome {
    for path in repository::entries(folder)? {
        match path.is_dir() && !path.is_symlink() {
            true => files(&path, found)?,
            false => found.push(path),
        }
    }
    Ok(())
}

/// Each command of the help has a page, and `groff` formats all pages without a warning.
fn check_pages(prefix: &Path) -> Outcome {
    let pages = prefix.join("share/man/man1");
    let help = process::output(Command::new(prefix.join("bin/toolward")).arg("--help"))?;
    let help = String::from_utf8_lossy(&help).into_owned();
    let listed = help.split("\nCommands:\n").nth(1).unwrap_or_default();
    let listed = listed.split("\n\n").next().unwrap_or_default();
    let lines = listed.lines().filter_map(|line| line.strip_prefix("  "));
    let commands: Vec<&str> = lines
        .filter(|line| !line.starts_with(' '))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    if commands.is_empty() {
        return Err("the help lists no command".to_owned());
    }
    for command in commands {
        let page = pages.join(format!("toolward-{command}.1"));
        repository::read(&page)?;
    }
    for page in repository::entries(&pages)? {
        let mut groff = Command::new("groff");
        groff
            .args(["-man", "-ww", "-Tutf8", "-Kutf8", "-z"])
            .arg(&page);
        match groff.output() {
            Ok(output) if output.status.success() && output.stderr.is_empty() => {}
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                return Err(format!("{}: {said}", page.display()));
            }
            Err(_) => {
                println!("manual pages: not formatted, as there is no groff");
                break;
            }
        }
    }
    Ok(())
}

/// Whether the image has all that the command is linked with: nothing else is there
/// once its root is the process's own.
fn try_image(root: &Path) -> Outcome {
    let unshare = |root: &Path, words: &[&str]| {
        let mut command = Command::new("unshare");
        command
            .arg("--map-root-user")
            .arg("--root")
            .arg(root)
            .args(words);
        command
    };
    if process::run(&mut unshare(Path::new("/"), &["true"])).is_err() {
        println!("image: not tried, as there are no user namespaces");
        return Ok(());
    }
    process::output(&mut unshare(root, &["/usr/bin/toolward", "--version"])).map(|_| ())
}
