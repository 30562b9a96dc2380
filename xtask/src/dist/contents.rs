//! The contents of the tarball, the package and the image, as folders to archive.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{copy, create, write};
use crate::{Outcome, process, repository};

/// Shells, with the place of their completions below `share`.
const SHELLS: [(&str, &str); 3] = [
    ("bash", "bash-completion/completions/toolward"),
    ("zsh", "zsh/site-functions/_toolward"),
    ("fish", "fish/vendor_completions.d/toolward.fish"),
];

/// The user and group that the image runs as.
const IMAGE_USER: &str = "toolward:x:65532:65532::/home/toolward:/nonexistent\n";
const IMAGE_GROUP: &str = "toolward:x:65532:\n";

/// The script runs after the package's files are installed, and makes systemd read its units again.
const RELOAD: &str = "\
#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
";

/// A release whose files are staged.
pub(super) struct Release {
    pub(super) version: String,
}

impl Release {
    /// Copies the files to the folders `tarball`, `package`, `control` and `image`.
    pub(super) fn stage(binary: &Path, staged: &Path) -> Outcome<Self> {
        let release = Self {
            version: version(binary)?,
        };
        let stripped = staged.join("toolward");
        create(staged)?;
        process::run(Command::new("strip").arg("-o").arg(&stripped).arg(binary))?;
        let root = repository::root()?;
        let units = root.join("xtask/dist");

        let top = format!("tarball/toolward-{}-x86_64-linux", release.version);
        let top = staged.join(top);
        copy(&stripped, &top.join("bin/toolward"))?;
        shared(binary, &top.join("share"))?;
        for name in ["LICENSE", "README.md", "CHANGELOG.md"] {
            copy(&root.join(name), &top.join(name))?;
        }

        let package = staged.join("package");
        copy(&stripped, &package.join("usr/bin/toolward"))?;
        shared(binary, &package.join("usr/share"))?;
        let documents = package.join("usr/share/doc/toolward");
        for (name, to) in [
            ("LICENSE", "copyright"),
            ("README.md", "README.md"),
            ("CHANGELOG.md", "CHANGELOG.md"),
        ] {
            copy(&root.join(name), &documents.join(to))?;
        }
        for unit in ["toolward.service", "toolward.socket"] {
            copy(
                &units.join(unit),
                &top.join("lib/systemd/system").join(unit),
            )?;
            let to = package.join("usr/lib/systemd/system").join(unit);
            copy(&units.join(unit), &to)?;
        }
        release.control(&stripped, &staged.join("control"))?;

        let image = staged.join("image");
        copy(&units.join("Dockerfile"), &image.join("Dockerfile"))?;
        stage_image(&stripped, &image.join("root"))?;
        Ok(release)
    }

    /// Writes the package's description, and the scripts that make systemd read its units again.
    fn control(&self, binary: &Path, control: &Path) -> Outcome {
        let text = format!(
            "Package: toolward\nVersion: {}\nArchitecture: amd64\nMaintainer: The Toolward maintainers\n\
             Depends: libc6 (>= {}), libgcc-s1\nSection: utils\nPriority: optional\n\
             Description: Runs agent tools that somebody else wrote\n \
             Signed bundles of WebAssembly components, verified, each call in a sandbox of its own.\n",
            self.version,
            libc(binary)?
        );
        write(&control.join("control"), text)?;
        for script in ["postinst", "postrm"] {
            let path = control.join(script);
            write(&path, RELOAD)?;
            process::run(Command::new("chmod").arg("755").arg(&path))?;
        }
        Ok(())
    }
}

/// Writes manual pages and completions, which the command makes itself.
fn shared(binary: &Path, share: &Path) -> Outcome {
    let pages = share.join("man/man1");
    create(&pages)?;
    process::run(Command::new(binary).arg("internal-man-pages").arg(&pages))?;
    for (shell, place) in SHELLS {
        let script = process::output(Command::new(binary).args(["completions", shell]))?;
        write(&share.join(place), script)?;
    }
    Ok(())
}

/// Copies the command, its libraries, and its user.
fn stage_image(binary: &Path, image: &Path) -> Outcome {
    copy(binary, &image.join("usr/bin/toolward"))?;
    for library in libraries(binary)? {
        let below = library.strip_prefix("/").unwrap_or(&library);
        copy(&library, &image.join(below))?;
    }
    write(&image.join("etc/passwd"), IMAGE_USER)?;
    write(&image.join("etc/group"), IMAGE_GROUP)?;
    for folder in ["etc/ssl/certs", "proc", "dev"] {
        create(&image.join(folder))?;
    }
    Ok(())
}

/// Returns the libraries with which the command is linked, and their loader, at the paths where it
/// looks for them.
fn libraries(binary: &Path) -> Outcome<Vec<PathBuf>> {
    let listed = process::output(Command::new("ldd").arg(binary))?;
    let listed = String::from_utf8_lossy(&listed).into_owned();
    if listed.contains("not found") {
        return Err(format!("a library is missing:\n{listed}"));
    }
    let words = listed.split_whitespace();
    let paths = words.filter(|word| word.starts_with('/'));
    Ok(paths.map(PathBuf::from).collect())
}

/// Returns the oldest version of the GNU C library with everything that the command uses.
fn libc(binary: &Path) -> Outcome<String> {
    let needed = process::output(Command::new("readelf").arg("--version-info").arg(binary))?;
    let needed = String::from_utf8_lossy(&needed).into_owned();
    let versions = needed.split("GLIBC_").skip(1).filter_map(|rest| {
        let version = rest.split_whitespace().next()?;
        let numbers = version.split('.').map(str::parse::<u32>);
        Some((numbers.collect::<Result<Vec<_>, _>>().ok()?, version))
    });
    let newest = versions.max().ok_or("the command needs no C library?")?;
    Ok(newest.1.to_owned())
}

fn version(binary: &Path) -> Outcome<String> {
    let said = process::output(Command::new(binary).arg("--version"))?;
    let said = String::from_utf8_lossy(&said).into_owned();
    let version = said.trim().strip_prefix("toolward ");
    let version = version.ok_or(format!("--version says {said:?}"))?;
    Ok(version.to_owned())
}
