//! Developer chores, run as `cargo xtask CHORE`. Each has its own module. None is needed to use
//! Toolward, and no rule of the product is defined here.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a developer's command, not a library"
)]

mod bindings;
mod book;
mod dist;
mod embedding;
mod generate;
mod guests;
mod languages;
mod licences;
mod process;
mod program;
mod repository;
#[cfg(test)]
mod rings;
mod spelling;
mod suites;
mod test;

use std::process::{Command, ExitCode};

/// The error is a message for the developer.
type Outcome<T = ()> = Result<T, String>;

const USAGE: &str = "\
usage: cargo xtask CHORE

  guests               set up a compiler for wasm32-wasip2 and those of other languages,
                       build all drivers
  bindings [--check]   the guest SDK's bindings from wit/
  examples [--check]   examples/bundles from the examples, signed with their key
  docs [--check]       the book's reference pages, from the crates and the command, and the
                       code in its other pages, from the files that they name
  test [ARGUMENT...]   everything that tests need, then all tests, two programs at the same time;
                       arguments go to the `cargo test` of the workspace
  long [ARGUMENT...]   the same, with the tests that can run longer at full size
  embedding            the example application in embedding/, built and run; the drivers
                       have to be there (`guests`)
  licences             whether every dependency's licence is one we take
  spelling             misspelt words in the book, README, CHANGELOG and their neighbours
  dist [--binary FILE] [--key FILE] [--check]
                       a release in target/dist, of the release build or of FILE;
                       --check: of the debug build in target/dist-check, and tried
  pictures [--check]   docs/src/pictures from the golden screens of the tests, and the curves from
                       what `bench/growth.py` measured
  side-by-side [OPTION...]
                       the release build measured against ACT and servers made with the SDKs for
                       Node.js and Python, by `bench/side_by_side.py`, whose options it takes
  book [--check]       docs/ as HTML in target/book; --check: only its links

With --check nothing is written, and it fails where something would change.";

fn run(chore: &str, arguments: &[String]) -> Outcome {
    let check = match arguments {
        [] => Ok(false),
        [flag] if flag == "--check" => Ok(true),
        other => Err(format!("{chore} does not take {}", other.join(" "))),
    };
    match chore {
        "guests" => check.and_then(|check| match check {
            false => guests::build(),
            true => Err("guests has nothing to check".to_owned()),
        }),
        "bindings" => bindings::run(check?),
        "docs" => generate::docs(check?),
        "examples" => generate::examples(check?),
        "dist" => dist::run(arguments),
        "test" => test::run(test::Size::Short, arguments),
        "long" => test::run(test::Size::Long, arguments),
        suites::NOTE => suites::note(arguments),
        "embedding" => embedding::run(),
        "licences" => licences::check(),
        "spelling" => spelling::check(),
        "pictures" => {
            let script = repository::root()?.join("bench/pictures.py");
            process::run(Command::new(script).args(check?.then_some("--check")))
        }
        "side-by-side" => side_by_side(arguments),
        "book" => book::run(check?),
        other => Err(format!("no chore is called {other}\n\n{USAGE}")),
    }
}

/// Measures the release build next to other servers.
fn side_by_side(options: &[String]) -> Outcome {
    let root = repository::root()?;
    let build = ["build", "--locked", "--release", "-p", "toolward-cli"];
    process::run(repository::cargo().args(build).current_dir(&root))?;
    process::run(
        Command::new(root.join("xtask/side-by-side.sh"))
            .arg(repository::target()?.join("release/toolward"))
            .args(options),
    )
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(chore) = arguments.next() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    if ["help", "--help", "-h"].contains(&chore.as_str()) {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    match run(&chore, &arguments.collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}
