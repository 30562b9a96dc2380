//! `[[build]]`: how a component is made from its source.

use serde::Deserialize;
use toml::Spanned;
use toolward_support::words;

use super::Reader;
use crate::codes;

/// One `[[build]]` table: a source that becomes a component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildEntry {
    /// The kind of the source, which determines how it is built.
    pub kind: BuildKind,
    /// The source, below the bundle's directory: the crate's directory for Rust, the package's
    /// directory for Go, the directory of the sources for C, otherwise a file.
    pub source: String,
    /// The world of a driver in JavaScript or Python, which determines its imports. In compiled
    /// languages, a driver imports only the functions that it calls.
    pub world: World,
    /// Whether the program's start-up runs once at build time instead of in each call.
    pub snapshot: bool,
    /// The path of the component, below the bundle's directory.
    pub output: String,
}

words! {
    /// The kind of a component's source.
    BuildKind, word {
        /// A crate, compiled by Cargo.
        Rust = "rust",
        /// A JavaScript or TypeScript file with what it imports.
        Js = "js",
        /// A Python file with what it imports.
        Python = "python",
        /// A directory with a Go package.
        Go = "go",
        /// A directory with C sources.
        C = "c",
        /// A core WebAssembly module or a component that another tool made.
        Wasm = "wasm",
    }
}

words! {
    /// A world of `wit/`: what a driver may import. All export `handler`.
    World, word {
        /// Log, progress, secrets and other tools.
        Driver = "driver",
        /// [`World::Driver`] and randomness.
        Random = "driver-random",
        /// [`World::Random`] and buckets.
        KeyValue = "driver-keyvalue",
        /// [`World::Random`] and outgoing requests.
        Http = "driver-http",
        /// All of these.
        All = "driver-all",
    }
}

impl BuildKind {
    /// Whether the `[[build]]` table of this kind names a world.
    pub const fn has_world(self) -> bool {
        matches!(self, Self::Js | Self::Python)
    }

    /// Whether the source of this kind is a file, not a directory.
    pub const fn is_file(self) -> bool {
        matches!(self, Self::Js | Self::Python | Self::Wasm)
    }

    /// Whether the `[[build]]` table of this kind may request a snapshot. The tools for JavaScript
    /// and Python always take a snapshot, and drivers in Rust and C start too fast to need one.
    pub const fn may_snapshot(self) -> bool {
        matches!(self, Self::Go)
    }
}

impl World {
    /// Whether a driver of this world may make requests.
    pub const fn has_http(self) -> bool {
        matches!(self, Self::Http | Self::All)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawBuild {
    kind: Option<Spanned<String>>,
    #[serde(rename = "crate")]
    krate: Option<Spanned<String>>,
    source: Option<Spanned<String>>,
    world: Option<Spanned<String>>,
    snapshot: Option<Spanned<bool>>,
    output: Spanned<String>,
}

impl Reader<'_> {
    pub(super) fn builds(&mut self, raw: &[RawBuild]) -> Vec<BuildEntry> {
        let mut builds: Vec<BuildEntry> = Vec::with_capacity(raw.len());
        for entry in raw {
            let kind = self
                .word("kind", entry.kind.as_ref(), BuildKind::ALL, BuildKind::word)
                .unwrap_or(BuildKind::Rust);
            let world = self
                .word("world", entry.world.as_ref(), World::ALL, World::word)
                .unwrap_or(World::Driver);
            if let (false, Some(world)) = (kind.has_world(), &entry.world) {
                self.wrong(
                    world,
                    "`world` is for JavaScript and Python: a compiled driver imports what it calls",
                    "remove it",
                );
            }
            if let (false, Some(snapshot)) = (kind.may_snapshot(), &entry.snapshot) {
                self.wrong(
                    snapshot,
                    "`snapshot` is for Go: others have one in any case, or need none",
                    "remove it",
                );
            }
            let source = self.source(kind, entry).unwrap_or_default();
            self.output(&entry.output, &builds);
            builds.push(BuildEntry {
                kind,
                source,
                world,
                snapshot: entry.snapshot.as_ref().is_some_and(|set| *set.get_ref()),
                output: entry.output.get_ref().clone(),
            });
        }
        builds
    }

    /// The path from the key `crate` or `source`, depending on the kind.
    fn source(&mut self, kind: BuildKind, entry: &RawBuild) -> Option<String> {
        let (key, other, named, unused) = match kind {
            BuildKind::Rust => ("crate", "source", &entry.krate, &entry.source),
            _ => ("source", "crate", &entry.source, &entry.krate),
        };
        if let Some(unused) = unused {
            let message = format!("a [[build]] of kind {:?} has no `{other}`", kind.word());
            let hint = format!("name its source in `{key}`");
            let at = unused.span().start;
            self.error(at, &codes::BUNDLE_TOML_UNKNOWN_KEY, message, Some(&hint));
        }
        let Some(named) = named else {
            let message = format!("a [[build]] of kind {:?} needs `{key}`", kind.word());
            let hint = format!("add `{key}` with its path below the directory of bundle.toml");
            let at = entry.output.span().start;
            self.error(at, &codes::BUNDLE_TOML_MISSING_KEY, message, Some(&hint));
            return None;
        };
        let path = named.get_ref();
        if let Err(reason) = check_relative(path) {
            self.wrong(
                named,
                &format!("`{key}` {path:?}: {reason}"),
                "name a path below the directory of bundle.toml, with '/' between",
            );
        }
        Some(path.clone())
    }

    fn output(&mut self, output: &Spanned<String>, before: &[BuildEntry]) {
        let path = output.get_ref();
        let problem = match check_relative(path) {
            Err(reason) => reason,
            Ok(()) if !path.ends_with(".wasm") => "a component's name ends in .wasm".to_owned(),
            Ok(()) if before.iter().any(|other| other.output == *path) => {
                "another [[build]] writes it already".to_owned()
            }
            Ok(()) => return,
        };
        self.wrong(
            output,
            &format!("`output` {path:?}: {problem}"),
            "for instance \"drivers/my-driver/driver.wasm\", beside its DRIVER.md",
        );
    }

    /// Finds the value with the written name. Reports a name that no value has.
    fn word<T: Copy>(
        &mut self,
        key: &str,
        written: Option<&Spanned<String>>,
        all: &[T],
        word: fn(T) -> &'static str,
    ) -> Option<T> {
        let written = written?;
        let found = all
            .iter()
            .copied()
            .find(|one| word(*one) == written.get_ref());
        if found.is_none() {
            let words: Vec<&str> = all.iter().map(|one| word(*one)).collect();
            self.wrong(
                written,
                &format!("`{key}` has no value {:?}", written.get_ref()),
                &format!("write one of {}", words.join(", ")),
            );
        }
        found
    }
}

/// Checks a path below the bundle's directory. No segment is empty or starts with a dot, and each
/// has only ASCII letters, digits, `-`, `_` and `.`.
fn check_relative(path: &str) -> Result<(), String> {
    for segment in path.split('/') {
        if segment.is_empty() {
            return Err("it is empty, absolute, or has an empty segment".to_owned());
        }
        if segment.starts_with('.') {
            return Err(format!("the segment {segment:?} starts with a dot"));
        }
        if let Some(bad) = segment
            .chars()
            .find(|c| !matches!(c, 'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' | '.'))
        {
            return Err(format!("it contains {bad:?}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_below_the_bundle() {
        for good in ["driver", "drivers/x/driver.wasm"] {
            assert_eq!(check_relative(good), Ok(()), "{good}");
        }
        for bad in [
            "", "/etc", "../x", "a/../b", "a//b", "a/", ".", "C:x", "a\\b",
        ] {
            assert!(check_relative(bad).is_err(), "{bad}");
        }
    }
}
