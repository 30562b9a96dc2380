//! Writing a verified bundle to a fresh directory: complete, or not at all.

use std::collections::BTreeSet;
use std::path::Path;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};
use std::io::Write as _;

use crate::bundle::Bundle;
use crate::digest::write_hex;
use crate::error::{ErrorKind, Refusal, io_failed, unplaced_io};
use crate::verified::Verified;

/// Writes a bundle to the directory `target`, which must not exist; its parent must. The files are written
/// to a directory beside it, which is then renamed, so that the write is atomic, and a failure leaves
/// nothing. What is written are the verified bytes, but a later reader must verify them again.
///
/// # Errors
/// [`ErrorKind::Io`], also if `target` exists.
pub fn unpack(bundle: &Verified<Bundle>, target: &Path) -> Result<(), Refusal> {
    let (parent, name) = split_target(target)?;
    let io = |error: std::io::Error| io_failed(target.display().to_string(), error);
    let parent = Dir::open_ambient_dir(parent, ambient_authority()).map_err(io)?;
    if parent.symlink_metadata(name).is_ok() {
        return Err(Refusal::new(ErrorKind::Io)
            .at(target.display().to_string())
            .expected("a name that is not taken")
            .found("something of this name")
            .hinted("name a directory that does not exist yet"));
    }
    let temporary = fresh_name(name)?;
    parent.create_dir(&temporary).map_err(io)?;
    let written = parent
        .open_dir(&temporary)
        .and_then(|fresh| write_files(bundle, &fresh))
        .and_then(|()| parent.rename(&temporary, &parent, name));
    written.map_err(|error| {
        // What can't be removed can't be helped; the error told is the first one.
        let _ = parent.remove_dir_all(&temporary);
        io(error)
    })
}

fn write_files(bundle: &Bundle, root: &Dir) -> std::io::Result<()> {
    let folders: BTreeSet<_> = bundle
        .files
        .keys()
        .flat_map(|path| path.folders())
        .collect();
    // Sorted, so that outer folders come first.
    for folder in folders {
        root.create_dir(folder)?;
    }
    for (path, bytes) in bundle.contents().entries() {
        let mut file = root.open_with(path, OpenOptions::new().write(true).create_new(true))?;
        file.write_all(bytes)?;
    }
    Ok(())
}

/// The directory that `target` is in, and its name there.
pub(super) fn split_target(target: &Path) -> Result<(&Path, &str), Refusal> {
    let name = target.file_name().and_then(|name| name.to_str());
    match (target.parent(), name) {
        (Some(parent), Some(name)) if parent.as_os_str().is_empty() => Ok((Path::new("."), name)),
        (Some(parent), Some(name)) => Ok((parent, name)),
        _ => Err(Refusal::new(ErrorKind::Io)
            .at(target.display().to_string())
            .expected("a path that ends in a name")),
    }
}

/// An unpredictable name, for what is not finished yet.
pub(super) fn fresh_name(name: &str) -> Result<String, Refusal> {
    struct Hex([u8; 32]);
    impl std::fmt::Display for Hex {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write_hex(&self.0, f)
        }
    }
    let mut random = [0; 32];
    getrandom::fill(&mut random).map_err(|error| unplaced_io(std::io::Error::other(error)))?;
    let random: String = Hex(random).to_string().chars().take(16).collect();
    Ok(format!(".{name}.{random}.tmp"))
}
