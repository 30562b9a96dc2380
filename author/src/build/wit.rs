//! The worlds of `wit/`, for the tools of other languages and for wrapping.

use std::path::Path;

use wit_parser::{Resolve, WorldId};

use toolward_bundle::dev::World;

/// The files of `wit/`.
const FILES: [(&str, &str); 10] = [
    ("driver.wit", include_str!("../../wit/driver.wit")),
    ("worlds.wit", include_str!("../../wit/worlds.wit")),
    (
        "deps/clocks/clocks.wit",
        include_str!("../../wit/deps/clocks/clocks.wit"),
    ),
    (
        "deps/http/http.wit",
        include_str!("../../wit/deps/http/http.wit"),
    ),
    ("deps/io/io.wit", include_str!("../../wit/deps/io/io.wit")),
    (
        "deps/keyvalue/atomics.wit",
        include_str!("../../wit/deps/keyvalue/atomics.wit"),
    ),
    (
        "deps/keyvalue/batch.wit",
        include_str!("../../wit/deps/keyvalue/batch.wit"),
    ),
    (
        "deps/keyvalue/store.wit",
        include_str!("../../wit/deps/keyvalue/store.wit"),
    ),
    (
        "deps/keyvalue/world.wit",
        include_str!("../../wit/deps/keyvalue/world.wit"),
    ),
    (
        "deps/random/random.wit",
        include_str!("../../wit/deps/random/random.wit"),
    ),
];

/// Writes the files below a directory, as the tools of other languages take them.
pub(super) fn write(directory: &Path) -> std::io::Result<()> {
    for (name, text) in FILES {
        let path = directory.join(name);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(path, text)?;
    }
    Ok(())
}

/// A world, from a directory that [`write`] wrote.
pub(super) fn resolve(directory: &Path, world: World) -> anyhow::Result<(Resolve, WorldId)> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(directory)?;
    let id = resolve.select_world(&[package], Some(world.word()))?;
    Ok((resolve, id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_world_of_bundle_toml_is_in_the_files() {
        let directory = tempfile::tempdir().unwrap();
        write(directory.path()).unwrap();
        for world in World::ALL {
            let (resolve, id) = resolve(directory.path(), *world).unwrap();
            let imports = resolve.worlds[id].imports.len();
            assert!(imports >= 4, "{}: {imports}", world.word());
        }
    }
}
