//! What must hold whatever bytes come: one function for each reader of outside input, which panics
//! where a law is broken. `cargo fuzz` looks for such bytes (`nightly.sh`); the tests run the
//! functions over the committed corpus ([`replay`]), so that what was found once stays found.
//!
//! A law is more than "no panic" where there is a cheap one: what is read and written is read back
//! equal, a normal form stays as it is, a request keeps its structure, what is accepted satisfies
//! what the next stage relies on.

mod archive;
mod capabilities;
mod cassette;
mod documents;
mod recorder;
mod requests;
mod signed;
mod wire;

use std::fs;
use std::panic;
use std::path::{Path, PathBuf};

pub use archive::archive_walk;
pub use capabilities::{capability_patterns, policy};
pub use cassette::cassette;
pub use documents::{component, front_matter, tools_json};
pub use recorder::recorder_frames;
pub use requests::http_render;
pub use signed::{envelope, manifest, signed_document};
pub use wire::authority_and_headers;

/// A reader, its law, and what it is started from.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name of the function, of the binary, and of its folder below `corpus`.
    pub name: &'static str,
    /// The law. Panics where it is broken; says whether the bytes were accepted as what they are
    /// for.
    pub law: fn(&[u8]) -> bool,
    /// Further folders of seeds, from the repository's root: the cases of other suites.
    pub also: &'static [&'static str],
}

/// The cases of the formats, good and bad.
const CASES: &[&str] = &[
    "contract/tests/corpus/valid",
    "contract/tests/corpus/invalid",
    "contract/tests/corpus/aip-39/valid",
    "contract/tests/corpus/aip-39/invalid",
];

/// All targets, by name.
pub const TARGETS: &[Target] = &[
    target("archive_walk", archive_walk, &[]),
    target("authority_and_headers", authority_and_headers, &[]),
    target("capability_patterns", capability_patterns, &[]),
    target("cassette", cassette, &[]),
    target("component", component, &[]),
    target("envelope", envelope, &[]),
    target("front_matter", front_matter, CASES),
    target("http_render", http_render, &[]),
    target("manifest", manifest, &[]),
    target("policy", policy, &[]),
    target("recorder_frames", recorder_frames, &[]),
    target("signed_document", signed_document, &[]),
    target("tools_json", tools_json, CASES),
];

const fn target(
    name: &'static str,
    law: fn(&[u8]) -> bool,
    also: &'static [&'static str],
) -> Target {
    Target { name, law, also }
}

impl Target {
    /// Its folders of seeds: its own, then those of other suites.
    #[must_use]
    pub fn seeds(&self) -> Vec<PathBuf> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let also = self.also.iter().map(|folder| here.join("..").join(folder));
        std::iter::once(here.join("corpus").join(self.name))
            .chain(also)
            .collect()
    }
}

/// Runs every law over all its seeds; gives for each target how many were accepted, and how many
/// there were.
///
/// # Errors
/// The files that break a law or can't be read, one line each.
pub fn replay() -> Result<Vec<(&'static str, usize, usize)>, String> {
    let mut counts = Vec::new();
    let mut broken = String::new();
    for target in TARGETS {
        let (mut accepted, mut count) = (0_usize, 0_usize);
        for folder in target.seeds() {
            let entries =
                fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
            for entry in entries {
                let path = entry.map_err(|error| error.to_string())?.path();
                let bytes =
                    fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
                count += 1;
                match panic::catch_unwind(|| (target.law)(&bytes)) {
                    Ok(taken) => accepted += usize::from(taken),
                    Err(_) => {
                        broken +=
                            &format!("{} breaks the law of {}\n", path.display(), target.name);
                    }
                }
            }
        }
        counts.push((target.name, accepted, count));
    }
    if broken.is_empty() {
        Ok(counts)
    } else {
        Err(broken)
    }
}
