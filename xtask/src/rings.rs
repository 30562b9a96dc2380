//! Finds files of a crate that import each other in a ring. No such ring may exist, since its files
//! can only be read, tested and moved together.
//!
//! An import is a `use` or a path (also in a macro's tokens). It is followed through re-exports to
//! the file that defines its last segment. A module and the modules below it may import each other.
//! Code under `#[cfg(test)]` does not count. Methods do not count either, since no path names their
//! file.

mod source;
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use source::{Crate, Path};

/// The files that one file imports, each with the paths that lead there.
type Imports = BTreeMap<Path, BTreeMap<Path, BTreeSet<String>>>;

/// Returns the rings of a crate. Each ring is a text with one import on each line.
fn rings(krate: &Crate<'_>) -> Vec<String> {
    let imports = imports(krate);
    let reached = imports.keys().map(|file| (file, reached(file, &imports)));
    let reached: BTreeMap<&Path, BTreeSet<&Path>> = reached.collect();
    let reaches = |from, to| reached.get(from).is_some_and(|files| files.contains(to));
    let mut rings = BTreeMap::<_, String>::new();
    for (from, files) in &imports {
        for (to, paths) in files.iter().filter(|(to, _)| reaches(*to, from)) {
            let first = imports
                .keys()
                .find(|file| reaches(*file, from) && reaches(from, *file));
            let paths = Vec::from_iter(paths.iter().map(String::as_str)).join(", ");
            let line = format!("  {} imports {}: {paths}\n", from.join("::"), to.join("::"));
            rings.entry(first).or_default().push_str(&line);
        }
    }
    rings.into_values().collect()
}

fn imports(krate: &Crate<'_>) -> Imports {
    let mut imports = Imports::new();
    for (path, module) in &krate.modules {
        for named in &module.paths {
            let from = &module.file;
            let to = krate
                .resolve(path, named, 0)
                .map(|found| &krate.modules[&found].file);
            if let Some(to) = to.filter(|to| !from.starts_with(to) && !to.starts_with(from)) {
                let files = imports.entry(from.clone()).or_default();
                files
                    .entry(to.clone())
                    .or_default()
                    .insert(named.join("::"));
            }
        }
    }
    imports
}

/// Returns the files that a file imports, directly or through others.
fn reached<'i>(file: &'i Path, imports: &'i Imports) -> BTreeSet<&'i Path> {
    let mut reached = BTreeSet::new();
    let mut next = vec![file];
    while let Some(file) = next.pop() {
        let files = imports.get(file).into_iter().flat_map(BTreeMap::keys);
        next.extend(files.filter(|file| reached.insert(*file)));
    }
    reached
}
