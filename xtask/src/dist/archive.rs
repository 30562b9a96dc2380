//! Archives that depend only on their contents: sorted, owned by root, and with one time. The
//! system's `tar` and `gzip` write them; the package's outer archive is written here.

use std::path::Path;
use std::process::{Command, Stdio};

use super::write;
use crate::{Outcome, process, repository};

/// Writes archives whose files all have one time.
pub(super) struct Archiver {
    /// Seconds since 1970: `SOURCE_DATE_EPOCH`, or else the commit's time.
    time: u64,
}

impl Archiver {
    pub(super) fn new() -> Outcome<Self> {
        let text = match std::env::var("SOURCE_DATE_EPOCH") {
            Ok(text) if !text.is_empty() => text,
            _ => {
                let mut git = Command::new("git");
                git.args(["log", "-1", "--format=%ct"])
                    .current_dir(repository::root()?);
                String::from_utf8_lossy(&process::output(&mut git)?).into_owned()
            }
        };
        let time = text.trim().parse();
        let time = time.map_err(|_| format!("{text:?} is not a time in seconds since 1970"))?;
        Ok(Self { time })
    }

    /// Writes the contents of a folder as a compressed tarball.
    pub(super) fn tarball(&self, folder: &Path, to: &Path) -> Outcome {
        write(to, self.packed(folder)?)
    }

    fn packed(&self, folder: &Path) -> Outcome<Vec<u8>> {
        let mut tar = Command::new("tar");
        tar.args(["--create", "--format=ustar", "--sort=name"])
            .args(["--owner=0", "--group=0", "--numeric-owner"])
            .args(["--mode=u=rwX,go=rX"])
            .arg(format!("--mtime=@{}", self.time))
            .arg("--directory")
            .arg(folder)
            .arg(".")
            .stdout(Stdio::piped());
        let mut running = tar.spawn().map_err(|error| format!("tar: {error}"))?;
        let unpacked = running.stdout.take().ok_or("tar has no output")?;
        let packed = process::output(Command::new("gzip").args(["--no-name"]).stdin(unpacked));
        let ended = running.wait().map_err(|error| format!("tar: {error}"))?;
        match ended.success() {
            true => packed,
            false => Err(format!("tar failed ({ended})")),
        }
    }

    /// Writes a Debian package from the folders `control` and `package` (deb(5)).
    pub(super) fn package(&self, staged: &Path, to: &Path) -> Outcome {
        let control = self.packed(&staged.join("control"))?;
        let data = self.packed(&staged.join("package"))?;
        let mut bytes = b"!<arch>\n".to_vec();
        self.member(&mut bytes, "debian-binary", b"2.0\n");
        self.member(&mut bytes, "control.tar.gz", &control);
        self.member(&mut bytes, "data.tar.gz", &data);
        write(to, bytes)
    }

    /// Appends a member: name, time, owner, group, mode and size as text, then the
    /// bytes, padded to an even number.
    fn member(&self, archive: &mut Vec<u8>, name: &str, bytes: &[u8]) {
        let (time, size) = (self.time, bytes.len());
        let header = format!(
            "{name:<16}{time:<12}{:<6}{:<6}{:<8}{size:<10}`\n",
            0, 0, 100_644
        );
        archive.extend(header.as_bytes());
        archive.extend(bytes);
        if size % 2 == 1 {
            archive.push(b'\n');
        }
    }
}
