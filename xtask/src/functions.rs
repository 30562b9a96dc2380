//! `functions`: which functions of the command calls and starts run, in `cli/functions.txt`, for the linker of a release
//! build to put side by side (`cli/build.rs`).
//!
//! Those of a call are a fortieth of the program's code. Where they are scattered in it, they are on more pages than the
//! processor keeps the addresses of, and it looks most of them up again in each call.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::stdio::{Called, Server};
use crate::{Outcome, dist, process, repository};

/// From the workspace's root.
const LIST: &str = "cli/functions.txt";

/// Samples a second, of each thread that runs.
const SAMPLES: &str = "15000";
const CALLS: usize = 30_000;
const AT_ONCE: usize = 1_000;
const ROUNDS: usize = 20;
const STARTS: usize = 60;

/// Below this share of names that a build has, in percent, the list is of little use to it.
const LEAST_KNOWN: usize = 80;
/// The most bytes over which functions extend that are side by side. A few may lie elsewhere.
const MOST_APART: u64 = 16 << 20;

const HEADER: &str = "# Functions that calls and starts run, the most frequent first. Written by `cargo xtask functions`.";

/// Says how many of the functions a build has, and whether they are side by side.
pub(crate) fn compare(binary: &Path) -> Outcome {
    let symbols = process::output(Command::new("nm").arg(binary))?;
    let symbols = String::from_utf8_lossy(&symbols);
    let list = repository::read(&repository::root()?.join(LIST))?;
    println!("{}", compared(&list, &symbols));
    Ok(())
}

fn compared(list: &str, symbols: &str) -> String {
    let symbols: HashMap<&str, u64> = symbols.lines().filter_map(symbol).collect();
    if symbols.is_empty() {
        return format!("the build has no symbols, so that {LIST} can't be compared with it");
    }
    let names = || list.lines().filter(|line| !line.starts_with('#'));
    let mut found: Vec<u64> = names()
        .filter_map(|name| symbols.get(name).copied())
        .collect();
    found.sort_unstable();
    let (known, all) = (found.len(), names().count());
    let mut said = format!("{known} of the {all} functions in {LIST} are in this build");
    let at = |percent: usize| {
        found
            .get(known * percent / 100)
            .copied()
            .unwrap_or_default()
    };
    let side_by_side = at(95).saturating_sub(at(5)) <= MOST_APART;
    said += match known * 100 >= all * LEAST_KNOWN {
        true if side_by_side => ", side by side",
        true => ", but not side by side: it was linked by another linker than rustup's lld",
        false => "; the others have new names: run `cargo xtask functions`",
    };
    said
}

/// A line of `nm`: address, kind and name.
fn symbol(line: &str) -> Option<(&str, u64)> {
    let mut words = line.split(' ');
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    Some((words.nth(1)?, address))
}

/// Has the release build, or another one, run under `perf`, and writes the list.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let binary = match arguments {
        [] => dist::release()?,
        [flag, file] if flag == "--binary" => {
            std::path::absolute(file).map_err(|error| format!("{file}: {error}"))?
        }
        other => return Err(format!("functions does not take {}", other.join(" "))),
    };
    let folder = repository::target()?.join("functions");
    let failed = |error| format!("{}: {error}", folder.display());
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(failed)?;
    }
    std::fs::create_dir_all(&folder).map_err(failed)?;
    // Without rights, it says so here.
    let tried = ["record", "--quiet", "--output"];
    process::run(
        Command::new("perf")
            .args(tried)
            .arg(folder.join("tried"))
            .args(["--", "true"]),
    )?;
    let sampled = Sampled { binary, folder };
    let called = Called::new("text_stats", r#"{"text":"two words"}"#)?;
    // Drivers are compiled before anything is looked at.
    let mut server = Server::spawn("toolward", &mut sampled.serve("env", &[])?)?;
    server.call(&called)?;
    server.end()?;

    let mut server = sampled.sampled_server("calls")?;
    for _ in 0..CALLS {
        server.call(&called)?;
    }
    server.end()?;
    let mut server = sampled.sampled_server("at-once")?;
    for _ in 0..ROUNDS {
        server.calls_at_once(&called, AT_ONCE)?;
    }
    server.end()?;
    let repeated = format!("for start in $(seq {STARTS}); do \"$@\" </dev/null; done");
    process::run(&mut sampled.under_perf("starts", &["sh", "-c", &repeated, "sh"])?)?;

    let mut names = Vec::new();
    let mut seen = HashSet::new();
    for what in ["calls", "at-once", "starts"] {
        let more = sampled.functions(what)?;
        names.extend(more.into_iter().filter(|name| seen.insert(name.clone())));
    }
    let list = repository::root()?.join(LIST);
    std::fs::write(&list, format!("{HEADER}\n{}\n", names.join("\n")))
        .map_err(|error| format!("{}: {error}", list.display()))?;
    println!("{LIST}: {} functions", names.len());
    Ok(())
}

/// A build that is sampled while it runs, and where the samples are.
struct Sampled {
    binary: PathBuf,
    folder: PathBuf,
}

impl Sampled {
    /// A server with a bundle of the examples, as a program with these arguments starts it. It has an environment and a
    /// home of its own.
    fn serve(&self, program: &str, arguments: &[&str]) -> Outcome<Command> {
        let root = repository::root()?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .arg(&self.binary)
            .args(["serve", "--stdio", "--bundle"])
            .arg(root.join("examples/bundles/text-stats.toolbundle"))
            .arg("--trust-key")
            .arg(root.join("examples/keys/example.pub.pem"))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.folder)
            .stderr(Stdio::null());
        Ok(command)
    }

    fn file(&self, what: &str) -> PathBuf {
        self.folder.join(format!("{what}.samples"))
    }

    /// The server under `perf`, which starts it by these words.
    fn under_perf(&self, what: &str, by: &[&str]) -> Outcome<Command> {
        let file = self.file(what);
        let file = file.to_str().ok_or("the workspace's path is not UTF-8")?;
        let perf = [
            "record",
            "--quiet",
            "--no-buildid-cache",
            "--event",
            "cpu-clock",
        ];
        let rest = ["--freq", SAMPLES, "--output", file, "--"];
        self.serve("perf", &[&perf[..], &rest, by].concat())
    }

    fn sampled_server(&self, what: &str) -> Outcome<Server> {
        Server::spawn("perf record", &mut self.under_perf(what, &[])?)
    }

    /// The functions that were seen, the most frequent first.
    fn functions(&self, what: &str) -> Outcome<Vec<String>> {
        let name = self.binary.file_name().unwrap_or_default();
        let report = process::output(
            Command::new("perf")
                .args([
                    "report",
                    "--quiet",
                    "--stdio",
                    "--no-children",
                    "--no-demangle",
                ])
                .args(["--sort", "symbol", "--dsos"])
                .arg(name)
                .arg("--input")
                .arg(self.file(what)),
        )?;
        let names = functions(&String::from_utf8_lossy(&report));
        match names.is_empty() {
            true => Err(format!("perf saw no function of {}", self.binary.display())),
            false => Ok(names),
        }
    }
}

/// The names in a report of `perf`. Functions whose names it does not know are addresses there.
fn functions(report: &str) -> Vec<String> {
    let lines = report.lines().filter_map(|line| line.split_once("[.]"));
    let names = lines.filter_map(|(_, rest)| rest.split_whitespace().next());
    let names = names.filter(|name| !name.starts_with("0x"));
    names.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_from_a_report() {
        let report = "\n     4.98%  [.] _ZN4core3fmt5write17h0123E     -      -\n     1.00%  [k] do_wp_page\n\
                      \x20    0.50%  [.] 0x00000000000012ab\n     0.10%  [.] _RNvNtCs1_4core3fmt5write\n\
                      \x20    0.01%  [.] sqlite3_step\n";
        assert_eq!(
            functions(report),
            [
                "_ZN4core3fmt5write17h0123E",
                "_RNvNtCs1_4core3fmt5write",
                "sqlite3_step"
            ]
        );
    }

    #[test]
    fn a_build_is_compared_with_the_list() {
        let list = "# a list\n_ZN1aE\n_ZN1bE\n";
        let near =
            "0000000000001000 t _ZN1aE\n0000000000002000 T _ZN1bE\n                 U free\n";
        assert!(compared(list, near).contains("2 of the 2"));
        assert!(compared(list, near).ends_with("side by side"));
        let far = near.replace("0000000000002000", "0000000009002000");
        assert!(compared(list, &far).contains("but not side by side"));
        let one = compared(list, "0000000000001000 t _ZN1aE\n0000000000002000 t main\n");
        assert!(
            one.contains("1 of the 2") && one.contains("new names"),
            "{one}"
        );
        assert!(compared(list, "").contains("no symbols"));
    }
}
