//! Where a program is installed: what it may read to run.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

/// The folders of programs in a directory that holds other things, too, such as
/// `~/.local`.
const OF_PROGRAMS: [&str; 6] = ["bin", "include", "lib", "lib32", "lib64", "libexec"];

/// How many interpreters of interpreters are looked at. The kernel stops at four.
const MAX_INTERPRETERS: usize = 4;

/// How much of a script is read for its first lines.
const MAX_SCRIPT_BYTES: u64 = 4096;

/// The places of a program, of the file that a link leads to, and of the interpreters of a
/// script.
pub(super) fn installed(program: &Path, home: Option<&Path>) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut next = Some(program.to_owned());
    for _ in 0..=MAX_INTERPRETERS {
        let Some(program) = next else { break };
        let real = program.canonicalize().ok();
        for program in [Some(&program), real.as_ref()].into_iter().flatten() {
            found.extend(places(program, home));
        }
        next = interpreter(&program);
    }
    found
}

/// The program itself, and its prefix (the directory with `bin`) or else its directory.
fn places(program: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let mut places = vec![program.to_owned()];
    let directory = program
        .parent()
        .and_then(|parent| parent.canonicalize().ok());
    let Some(directory) = directory else {
        return places;
    };
    let prefix = match (directory.file_name(), directory.parent()) {
        (Some(name), Some(prefix)) if name == "bin" => prefix,
        _ => &directory,
    };
    let holds_home = |place: &Path| home.is_some_and(|home| home.starts_with(place));
    if prefix.parent().is_none() || holds_home(prefix) {
        // Of `~/bin` no other folder of home.
        if directory.parent().is_some() && !holds_home(&directory) {
            places.push(directory);
        }
    } else if is_shared(prefix, home) {
        places.extend(OF_PROGRAMS.map(|folder| prefix.join(folder)));
    } else {
        places.push(prefix.to_owned());
    }
    places
}

/// Whether it is a hidden directory in home, or may be: programs share such with keys and
/// data.
fn is_shared(prefix: &Path, home: Option<&Path>) -> bool {
    let name = prefix.file_name().unwrap_or_default();
    let in_home = home.is_none() || prefix.parent() == home;
    in_home && name.as_encoded_bytes().starts_with(b".")
}

/// What runs a script.
fn interpreter(program: &Path) -> Option<PathBuf> {
    // A pipe in the program's place is not waited for.
    if !program.metadata().ok()?.is_file() {
        return None;
    }
    let script = File::open(program).ok()?.take(MAX_SCRIPT_BYTES);
    let mut lines = BufReader::new(script).lines().map_while(Result::ok);
    let first = lines.next()?;
    let named = first.strip_prefix("#!")?.split_whitespace().next()?;
    // For a path that does not fit into a first line pip writes this second one, which
    // Python takes for the start of a string.
    let long = lines.next().and_then(|line| {
        let rest = line.strip_prefix("'''exec' ")?;
        let path = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split('"').next(),
            None => rest.split_whitespace().next(),
        };
        path.map(PathBuf::from)
    });
    Some(long.unwrap_or_else(|| PathBuf::from(named))).filter(|path| path.is_absolute())
}
