//! `growth`: how times and memory of a built command grow with what it is given. The command is a black box, with
//! a home directory of its own: it is started, and called over MCP.

mod at_once;
mod bundle;
mod components;
mod data;
mod fit;
mod nested;
mod page;
mod place;
mod series;
mod sizes;
mod tools;
mod updates;
mod wasm;

use std::path::PathBuf;

use crate::{Outcome, repository};
use data::{Data, Point};
pub(crate) use page::pictures;

const USAGE: &str = "\
usage: cargo xtask growth [--quick] TOOLWARD [PART...]
       cargo xtask growth --page

TOOLWARD is a built command. Without PART everything is measured: sizes, at-once, tools,
updates, components, nested. --quick leaves out all but the three smallest sizes. What was
measured goes to docs/src/growth-data.json, in place of earlier figures of the same parts;
the table of docs/src/growth.md and its pictures are made from that file, with --page from
what it has.";

/// A driver that does what its input says, whatever its tool is called.
const HOSTILE: &str = "tests/guests/hostile/drivers/hostile/driver.wasm";

/// What all parts need.
struct Rig {
    /// The command that is measured.
    toolward: PathBuf,
    repository: PathBuf,
    quick: bool,
}

impl Rig {
    /// Those of a series' sizes that are measured.
    fn sizes<'a>(&self, all: &'a [usize]) -> &'a [usize] {
        match self.quick {
            true => all.get(..3).unwrap_or(all),
            false => all,
        }
    }

    /// A component that `cargo xtask guests` builds.
    fn component(&self, path: &str) -> Outcome<Vec<u8>> {
        let path = self.repository.join(path);
        std::fs::read(&path).map_err(|error| {
            let path = path.display();
            format!("{path}: {error}; `cargo xtask guests` builds the drivers")
        })
    }
}

/// What a part measured: points, each of the series with this id.
type Measured = Vec<(&'static str, Point)>;

type Part = fn(&Rig) -> Outcome<Measured>;

/// The parts, in the order in which they run.
const PARTS: [(&str, Part); 6] = [
    ("sizes", sizes::measure),
    ("at-once", at_once::measure),
    ("tools", tools::measure),
    ("updates", updates::measure),
    ("components", components::measure),
    ("nested", nested::measure),
];

/// Measures the named parts, or all, and writes the page.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let repository = repository::root()?;
    let mut data = Data::read(&repository)?;
    if arguments == ["--page"] {
        return page::write(&repository, &data);
    }
    let quick = arguments.iter().any(|argument| argument == "--quick");
    let mut plain = arguments.iter().filter(|argument| *argument != "--quick");
    let toolward = plain.next().ok_or(USAGE)?;
    let wanted: Vec<&str> = plain.map(String::as_str).collect();
    let known = |part: &&str| PARTS.iter().any(|(name, _)| name == part);
    if toolward.starts_with('-') || !wanted.iter().all(known) {
        return Err(USAGE.to_owned());
    }
    let toolward = std::path::absolute(toolward).map_err(|error| format!("{toolward}: {error}"))?;
    let rig = Rig {
        toolward,
        repository,
        quick,
    };
    for (name, measure) in PARTS {
        if !wanted.is_empty() && !wanted.contains(&name) {
            continue;
        }
        println!("{name}");
        let measured = measure(&rig).map_err(|error| format!("{name}: {error}"))?;
        data.replace(measured);
        // After each part, so that a failure of a later one loses nothing.
        data.write(&rig.repository)?;
        page::print(&data, name);
    }
    page::write(&rig.repository, &data)
}
