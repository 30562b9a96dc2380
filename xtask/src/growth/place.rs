//! Where the command runs: a home directory of its own, which goes with it, and a publisher that it trusts.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Rig;
use super::bundle::Bundle;
use crate::Outcome;
use crate::process;
use crate::stdio::Server;

/// The publisher of all bundles, its key, what it may publish.
const CONFIGURATION: &str = "\
[[publisher]]
name = \"growth\"
key_files = [\"key.pub.pem\"]
prefixes = [\"growth\", \"json\"]
";

/// A home directory.
pub(super) struct Place {
    toolward: PathBuf,
    home: PathBuf,
}

impl Place {
    /// `policy` is what its configuration grants, beside whom it trusts.
    pub(super) fn new(rig: &Rig, policy: &str) -> Outcome<Self> {
        let home = std::env::temp_dir().join(format!("toolward-growth-{}", std::process::id()));
        let place = Self {
            toolward: rig.toolward.clone(),
            home,
        };
        let configuration = place.home.join(".config/toolward");
        std::fs::create_dir_all(&configuration)
            .map_err(|error| format!("{}: {error}", configuration.display()))?;
        write(
            &configuration.join("toolward.toml"),
            format!("{CONFIGURATION}{policy}"),
        )?;
        let key = configuration.join("key.pem");
        place.run(&["keys", "new", "--quiet", "--out"], &[&key])?;
        Ok(place)
    }

    /// A path inside it.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.home.join(name)
    }

    /// The command, which knows no other home directory, and no setting of the user's.
    fn command(&self) -> Command {
        let mut command = Command::new(&self.toolward);
        command.env_clear().env("HOME", &self.home);
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        command
    }

    fn run(&self, arguments: &[&str], paths: &[&Path]) -> Outcome {
        let mut command = self.command();
        command.args(arguments).args(paths);
        process::output(&mut command).map(drop)
    }

    /// Writes a bundle's directory, and returns where.
    pub(super) fn write(&self, bundle: &Bundle<'_>) -> Outcome<PathBuf> {
        let folder = self.path("work").join(&bundle.id);
        bundle.write(&folder)?;
        Ok(folder)
    }

    /// Packs and signs a bundle, and returns the archive.
    pub(super) fn pack(&self, bundle: &Bundle<'_>) -> Outcome<PathBuf> {
        let folder = self.write(bundle)?;
        let archive = self.path(&format!("{}-{}.toolbundle", bundle.id, bundle.sequence));
        let key = self.path(".config/toolward/key.pem");
        let mut command = self.command();
        command.args(["pack", "--quiet"]).arg(folder);
        command.arg("--output").arg(&archive).arg("--key").arg(key);
        process::output(&mut command)?;
        Ok(archive)
    }

    /// Installs an archive.
    pub(super) fn install(&self, archive: &Path) -> Outcome {
        self.run(&["install", "--quiet"], &[archive])
    }

    /// Starts a server of what is installed, with these flags.
    pub(super) fn serve(&self, flags: &[&str]) -> Outcome<Server> {
        self.serve_with(|command| command.args(flags))
    }

    /// Starts a server of a directory under work, which keeps compiled drivers in `cache`.
    pub(super) fn serve_work(&self, folder: &Path, cache: &Path) -> Outcome<Server> {
        self.serve_with(|command| {
            let command = command.arg("--dev").arg(folder);
            command.arg("--cache-dir").arg(cache)
        })
    }

    fn serve_with(&self, flags: impl Fn(&mut Command) -> &mut Command) -> Outcome<Server> {
        let mut command = self.command();
        command.args(["serve", "--stdio"]);
        Server::spawn("toolward serve", flags(&mut command))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // What is left lies in the folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.home);
    }
}

/// Writes a file, and the folders above it.
pub(super) fn write(path: &Path, contents: impl AsRef<[u8]>) -> Outcome {
    let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    let written = folder.and_then(|()| std::fs::write(path, contents));
    written.map_err(|error| format!("{}: {error}", path.display()))
}
