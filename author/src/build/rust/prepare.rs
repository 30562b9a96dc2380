//! The steps of Cargo before a confined build: Cargo names the directories to which the build
//! writes, and fetches crates. These steps have all rights of the user.
//!
//! Cargo runs in the root directory, so that settings of the checkout don't apply. Such settings
//! could name programs (a compiler, a toolchain, a source of tokens) and directories to write to.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::super::error::BuildError;
use super::super::language::BuildJob;
use super::super::program::checkout;
use super::super::tool::read_lines;
use super::super::{BuildProgress, TARGET};
use super::Cargo;

/// The directories to which a build writes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CargoWorkspace {
    /// The directory of the workspace's manifest.
    pub(super) root: PathBuf,
    /// The target directory.
    pub(super) target: PathBuf,
    /// The directory of intermediate files, if this Cargo can have a separate one.
    pub(super) intermediate: Option<PathBuf>,
}

impl CargoWorkspace {
    /// Asks Cargo for the directories. If Cargo does not answer, uses the crate's own directory;
    /// the build then reports the problem.
    pub(super) fn find(cargo: &Cargo, job: &BuildJob<'_>) -> Result<Self, BuildError> {
        let mut command = command(cargo, job);
        command
            .args(["metadata", "--no-deps", "--format-version", "1"])
            .args(["--offline", "--manifest-path"])
            .arg(&cargo.manifest);
        let printed = output(cargo, command)?;
        let printed: Value = serde_json::from_slice(&printed).unwrap_or_default();
        let own = cargo.manifest.parent().unwrap_or(&cargo.manifest);
        let checkout = checkout(&job.scratch.bundle, job.options.tools.home.as_deref());
        Ok(Self::of(&printed, own, &checkout, job.scratch.directory()))
    }

    /// Interprets the output of `cargo metadata` about the crate in `own`.
    fn of(said: &Value, own: &Path, checkout: &Path, scratch: &Path) -> Self {
        let path = |key| {
            let path = said.get(key).and_then(Value::as_str).map(PathBuf::from);
            path.filter(|path| path.is_absolute())
        };
        let named = path("workspace_root");
        let default = named.as_ref().map(|root| root.join("target"));
        // A directory other than the default is the user's choice.
        let chosen = |key| path(key).filter(|path| Some(path) != default.as_ref());
        // A manifest can name any directory as its workspace. So the root must be in the checkout,
        // or contain the crate.
        let root = named
            .and_then(|root| root.canonicalize().ok())
            .filter(|root| root.starts_with(checkout) || own.starts_with(root))
            .unwrap_or_else(|| own.to_owned());
        let target = chosen("target_directory").unwrap_or_else(|| {
            let target = root.join("target");
            // A link in the checkout could lead anywhere.
            match target.is_symlink() {
                true => scratch.join("target"),
                false => target,
            }
        });
        let intermediate = path("build_directory")
            .map(|_| chosen("build_directory").unwrap_or_else(|| target.clone()));
        Self {
            root,
            target,
            intermediate,
        }
    }

    /// Returns the lock file, if it exists and is not a link.
    pub(super) fn lock(&self) -> Option<PathBuf> {
        let lock = self.root.join("Cargo.lock");
        let found = lock.symlink_metadata().ok()?;
        found.is_file().then_some(lock)
    }
}

/// Fetches what the build needs, and updates `Cargo.lock`. If that fails, the build may still have
/// everything that it needs; otherwise the build reports what is missing.
pub(super) fn fetch(cargo: &Cargo, job: &mut BuildJob<'_>) -> Result<(), BuildError> {
    let mut command = command(cargo, job);
    command
        .args(["fetch", "--manifest-path"])
        .arg(&cargo.manifest)
        .stderr(Stdio::piped());
    // Build scripts and macros run on this machine, and need their own crates. Without a target
    // Cargo fetches for all machines.
    if let Some(host) = host(cargo, job)? {
        command.args(["--target", TARGET, "--target", &host]);
    }
    if job.options.locked {
        command.arg("--locked");
    }
    if job.options.offline {
        // This still unpacks crates that were fetched earlier. Errors are not shown, since a
        // missing crate may be one that the build doesn't need.
        command.arg("--offline").stderr(Stdio::null());
    }
    let unusable = |source| unusable(cargo, source);
    let mut child = command.spawn().map_err(unusable)?;
    if let Some(stderr) = child.stderr.take() {
        let mut report = |line: &str| (job.progress)(BuildProgress::Line(line));
        read_lines(stderr, &mut report).map_err(unusable)?;
    }
    child.wait().map(drop).map_err(unusable)
}

/// Returns the machine for which this Cargo was made, as a target such as
/// `x86_64-unknown-linux-gnu`.
fn host(cargo: &Cargo, job: &BuildJob<'_>) -> Result<Option<String>, BuildError> {
    let mut command = command(cargo, job);
    command.arg("-vV");
    let printed = output(cargo, command)?;
    let printed = String::from_utf8_lossy(&printed);
    let host = printed.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.map(str::to_owned))
}

/// Returns a command for Cargo to which no settings of the checkout apply.
fn command(cargo: &Cargo, job: &BuildJob<'_>) -> Command {
    let mut command = Command::new(&cargo.program);
    command
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if let Some(target) = &job.options.tools.rust.target {
        // The user's variable may be relative to the user's current directory, so it is set again.
        command.env("CARGO_TARGET_DIR", target);
    }
    command
}

/// Returns the standard output of the command.
fn output(cargo: &Cargo, mut command: Command) -> Result<Vec<u8>, BuildError> {
    let output = command.stdout(Stdio::piped()).output();
    let output = output.map_err(|source| unusable(cargo, source))?;
    Ok(output.stdout)
}

fn unusable(cargo: &Cargo, source: std::io::Error) -> BuildError {
    BuildError::Cargo(cargo.program.clone(), source)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Interprets an answer about the crate in `checkout/driver`.
    fn workspace(place: &Path, said: &Value) -> CargoWorkspace {
        let checkout = place.join("checkout");
        std::fs::create_dir_all(checkout.join("driver")).unwrap();
        CargoWorkspace::of(
            said,
            &checkout.join("driver"),
            &checkout,
            &place.join("scratch"),
        )
    }

    fn place() -> (tempfile::TempDir, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().canonicalize().unwrap();
        (place, path)
    }

    #[test]
    fn a_build_writes_to_what_the_user_chose_or_to_target_in_the_workspace() {
        let (_kept, place) = place();
        let driver = place.join("checkout/driver");
        let chosen = place.join("chosen");
        for (target, expected) in [
            (driver.join("target"), None),
            (chosen.clone(), Some(chosen)),
        ] {
            let said = serde_json::json!({ "workspace_root": driver, "target_directory": target });
            let found = workspace(&place, &said);
            let expected = expected.unwrap_or_else(|| driver.join("target"));
            assert_eq!((found.target, found.intermediate), (expected, None));
        }
        assert_eq!(workspace(&place, &Value::Null).root, driver);
    }

    #[test]
    fn a_directory_that_a_link_of_the_checkout_leads_to_is_not_written_to() {
        let (_kept, place) = place();
        let driver = place.join("checkout/driver");
        std::fs::create_dir_all(&driver).unwrap();
        std::os::unix::fs::symlink(&place, driver.join("target")).unwrap();
        std::os::unix::fs::symlink(place.join("profile"), driver.join("Cargo.lock")).unwrap();
        std::fs::write(place.join("profile"), "").unwrap();
        let target = driver.join("target");
        let said = serde_json::json!({
            "workspace_root": driver, "target_directory": target, "build_directory": target,
        });
        let found = workspace(&place, &said);
        let scratch = place.join("scratch/target");
        assert_eq!(
            (&found.target, &found.intermediate),
            (&scratch, &Some(scratch.clone()))
        );
        assert_eq!(found.lock(), None);
    }

    #[test]
    fn a_workspace_that_a_manifest_names_elsewhere_is_not_taken() {
        let (_kept, place) = place();
        let elsewhere = place.join("elsewhere");
        std::fs::create_dir(&elsewhere).unwrap();
        let target = elsewhere.join("target");
        let said = serde_json::json!({ "workspace_root": elsewhere, "target_directory": target });
        let driver = place.join("checkout/driver");
        let found = workspace(&place, &said);
        assert_eq!(
            (found.root, found.target),
            (driver.clone(), driver.join("target"))
        );
    }
}
