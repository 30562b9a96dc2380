//! The example drivers in other languages, built by `toolward build`. The folder of such a driver
//! has links to its guest library. A build follows no link out of the bundle, so it gets a copy of
//! the bundle with files instead of links.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Instant, SystemTime};

use crate::{Outcome, process, program, repository};

/// Builds each driver that is older than its sources or than the command. Other drivers stay, since
/// a second build does not always give the same bytes.
pub(crate) fn build(root: &Path) -> Outcome {
    let toolchain = toolchain(root)?;
    let mut command = None;
    for bundle in repository::entries(&root.join("examples"))? {
        let Some(output) = output(&bundle)? else {
            continue;
        };
        let component = bundle.join(&output);
        let made_of = [
            bundle.join("bundle.toml"),
            bundle.join("driver"),
            root.join("guest-sdk"),
            root.join("wit"),
            root.join("tests/languages"),
            root.join("author/src/build"),
        ];
        let changed = newest(&made_of)?;
        if modified(&component).is_ok_and(|built| built > changed) {
            continue;
        }
        let toolward = match &command {
            Some(toolward) => toolward,
            None => command.insert(program::build("toolward")?),
        };
        let started = Instant::now();
        let copy = copied(&bundle)?;
        process::run(
            Command::new(toolward)
                .args(["build", "--allow-build", "--toolchain"])
                .arg(&toolchain)
                .arg(&copy),
        )?;
        move_file(&copy.join(&output), &component)?;
        println!(
            "{}: built in {:.1} s",
            bundle.display(),
            started.elapsed().as_secs_f64()
        );
    }
    Ok(())
}

/// Downloads the toolchains. Returns their folder.
pub(crate) fn toolchain(root: &Path) -> Outcome<PathBuf> {
    let printed = process::output(
        Command::new(root.join("xtask/languages.sh"))
            .env("LANGUAGES_DIR", repository::target()?.join("languages"))
            .stdin(Stdio::null()),
    )?;
    let folder = String::from_utf8(printed).map_err(|error| error.to_string())?;
    Ok(PathBuf::from(folder.trim()))
}

/// Returns the path of a bundle's component, if the driver is not in Rust.
fn output(bundle: &Path) -> Outcome<Option<String>> {
    let manifest = bundle.join("bundle.toml");
    if !manifest.is_file() {
        return Ok(None);
    }
    let text = repository::read(&manifest)?;
    let value = |key: &str| {
        let line = text.lines().find(|line| line.starts_with(key))?;
        line.split('"').nth(1).map(str::to_owned)
    };
    Ok(value("kind = ").and_then(|_| value("output = ")))
}

/// Copies the bundle with files instead of links, and returns the copy's folder.
fn copied(bundle: &Path) -> Outcome<PathBuf> {
    let name = bundle.file_name().ok_or("a bundle without a name")?;
    let place = repository::target()?.join("example-drivers").join(name);
    if place.exists() {
        std::fs::remove_dir_all(&place).map_err(|error| describe(&place, &error))?;
    }
    copy(bundle, &place)?;
    Ok(place)
}

fn copy(from: &Path, to: &Path) -> Outcome {
    if from.is_dir() {
        std::fs::create_dir_all(to).map_err(|error| describe(to, &error))?;
        for entry in repository::entries(from)? {
            if let Some(name) = entry.file_name() {
                copy(&entry, &to.join(name))?;
            }
        }
    } else {
        std::fs::copy(from, to).map_err(|error| describe(from, &error))?;
    }
    Ok(())
}

/// Moves a file between two folders that may be on different disks.
fn move_file(from: &Path, to: &Path) -> Outcome {
    std::fs::copy(from, to).map_err(|error| describe(from, &error))?;
    std::fs::remove_file(from).map_err(|error| describe(from, &error))
}

/// Returns the time of the latest change of any file below these paths.
fn newest(paths: &[PathBuf]) -> Outcome<SystemTime> {
    let mut last = SystemTime::UNIX_EPOCH;
    for path in paths {
        last = last.max(match path.is_dir() {
            true => newest(&repository::entries(path)?)?,
            false => modified(path)?,
        });
    }
    Ok(last)
}

fn modified(path: &Path) -> Outcome<SystemTime> {
    let metadata = std::fs::metadata(path).map_err(|error| describe(path, &error))?;
    metadata.modified().map_err(|error| describe(path, &error))
}

pub(crate) fn describe(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}
