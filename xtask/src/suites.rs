//! Runs the test programs of `cargo test`, up to two at the same time.
//!
//! Cargo would run one after the other, and tests that wait leave processors idle. So Cargo gets
//! this command as the runner of its programs. The chore [`NOTE`] notes a program, with everything
//! that Cargo passes to it, and returns. [`run`] starts the noted programs, while Cargo continues
//! with the doc tests, which it runs itself.

use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::{Outcome, repository};

/// The chore that Cargo starts in place of a program.
pub(crate) const NOTE: &str = "note-suite";

/// The longest programs, which start first, in this order.
const FIRST: [&str; 3] = ["e2e", "hostile", "confining"];

/// Programs that measure times. Nothing else runs at the same time.
const ALONE: [&str; 1] = ["fair"];

/// The variable with the number of tests of a program that run at the same time. If it is set, it
/// applies to all programs.
pub(crate) const THREADS: &str = "RUST_TEST_THREADS";

/// The folder of the notes.
const NOTES: &str = "notes";

/// The pause between two checks of the running programs.
const PAUSE: Duration = Duration::from_millis(20);

/// Notes a program for [`run`]. The arguments are the folder of the notes, the program, and the
/// program's arguments. A doc test runs at once, since its program is deleted afterwards.
pub(crate) fn note(arguments: &[String]) -> Outcome {
    let [folder, program, arguments @ ..] = arguments else {
        return Err(format!("{NOTE} takes a folder and a program"));
    };
    let built_in = Path::new(program).parent();
    if !built_in.is_some_and(|folder| folder.ends_with("deps")) {
        let error = Command::new(program).args(arguments).exec();
        return Err(format!("{program}: {error}"));
    }
    // The others are those of this command: they may be secrets, which are in no note.
    let of_cargo = |name: &str| {
        let prefixes = [
            "CARGO_PKG_",
            "CARGO_MANIFEST_",
            "CARGO_BIN_EXE_",
            "LD_LIBRARY_PATH",
            "OUT_DIR",
        ];
        name == "CARGO" || prefixes.iter().any(|prefix| name.starts_with(prefix))
    };
    let mut environment = Map::new();
    for (name, value) in std::env::vars_os() {
        if let Some(name) = name.to_str().filter(|name| of_cargo(name)) {
            environment.insert(name.to_owned(), text(&value)?.into());
        }
    }
    let note = json!({
        "program": program,
        "arguments": arguments,
        "directory": text(&std::env::current_dir().map_err(|error| error.to_string())?)?,
        "environment": environment,
    });
    let folder = Path::new(folder);
    let number = repository::entries(folder)?.len();
    let new = folder.join("new");
    fs::write(&new, note.to_string())
        .and_then(|()| fs::rename(&new, folder.join(number.to_string())))
        .map_err(describe(folder))
}

/// A note is JSON, which has only text.
fn text(given: &(impl AsRef<OsStr> + ?Sized)) -> Outcome<&str> {
    let given = given.as_ref();
    let text = given.to_str();
    text.ok_or_else(|| format!("{} is not UTF-8", given.display()))
}

fn describe(path: &Path) -> impl Fn(io::Error) -> String {
    let path = path.display().to_string();
    move |error| format!("{path}: {error}")
}

/// A folder that only this user reads, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Outcome<Self> {
        let path = repository::target()?.join(format!("suites-{}", std::process::id()));
        // Of an earlier process with this number, which was killed.
        let _ = fs::remove_dir_all(&path);
        let mut private = fs::DirBuilder::new();
        private.mode(0o700).create(&path).map_err(describe(&path))?;
        let folder = Self(std::path::absolute(&path).map_err(describe(&path))?);
        fs::create_dir(folder.0.join(NOTES)).map_err(describe(&path))?;
        Ok(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A process that ends with its owner.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A program of tests.
struct Suite {
    target: String,
    /// Package and target.
    name: String,
    command: Command,
    /// The file for its output.
    output: PathBuf,
}

impl Suite {
    /// `tests` is the command of Cargo, whose variables the program gets, too.
    fn read(note: &Path, tests: &Command, output: PathBuf) -> Outcome<Self> {
        let text = repository::read(note)?;
        let read: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        let field = |name: &str| read.get(name).unwrap_or(&Value::Null);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let program = PathBuf::from(text(field("program")));
        let mut command = Command::new(&program);
        command.current_dir(text(field("directory")));
        for (name, value) in tests.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        for (name, value) in field("environment").as_object().into_iter().flatten() {
            command.env(name, text(value));
        }
        let arguments = field("arguments").as_array();
        command.args(arguments.into_iter().flatten().map(text));
        // TARGET-HASH
        let file = program.file_name().unwrap_or_default().to_string_lossy();
        let target = file.rsplit_once('-').map_or(&*file, |(target, _)| target);
        let package = field("environment").get("CARGO_PKG_NAME");
        let package = package.map(text).unwrap_or_default();
        Ok(Self {
            target: target.to_owned(),
            name: format!("{package} {target}"),
            command,
            output,
        })
    }

    fn is_alone(&self) -> bool {
        ALONE.contains(&&*self.target)
    }

    /// Its position in the order of starts.
    fn place(&self) -> usize {
        let first = FIRST.iter().position(|target| *target == self.target);
        first.unwrap_or(FIRST.len())
    }

    /// Starts the program. If it is the only one, its output is shown at once. With `most` it runs
    /// two tests at the same time for each processor, otherwise one: tests that start processes
    /// wait for a quarter of their time.
    fn start(mut self, only: bool, most: bool, out: &mut dyn Write) -> Outcome<Running> {
        if !only {
            let file = File::create(&self.output).map_err(describe(&self.output))?;
            let same = file.try_clone().map_err(describe(&self.output))?;
            self.command.stdout(file).stderr(same);
        }
        if std::env::var_os(THREADS).is_none() {
            let processors = std::thread::available_parallelism().map_or(1, usize::from);
            let threads = if most { 2 * processors } else { processors };
            self.command.env(THREADS, threads.to_string());
        }
        say(out, format_args!("{}: started", self.name))?;
        let spawned = self.command.spawn();
        let process = Process(spawned.map_err(describe(Path::new(&self.name)))?);
        Ok(Running {
            suite: self,
            process,
            started: Instant::now(),
        })
    }
}

/// A program that runs.
struct Running {
    suite: Suite,
    process: Process,
    started: Instant,
}

impl Running {
    /// Returns whether the program succeeded, once it has ended, and then shows its output.
    fn ended(&mut self, out: &mut dyn Write) -> Outcome<Option<bool>> {
        let name = &self.suite.name;
        let status = self.process.0.try_wait();
        let status = status.map_err(describe(Path::new(name)))?;
        let Some(status) = status else {
            return Ok(None);
        };
        let seconds = self.started.elapsed().as_secs_f64();
        let how = match status.success() {
            true => "ok".to_owned(),
            false => format!("FAILED ({status})"),
        };
        say(out, format_args!("\n{name}: {how} after {seconds:.1} s"))?;
        if self.suite.output.exists() {
            show(out, &self.suite.output)?;
        }
        Ok(Some(status.success()))
    }
}

/// Prints a line. A closed pipe is an error, not a panic, so that the programs end.
fn say(out: &mut dyn Write, line: fmt::Arguments<'_>) -> Outcome {
    writeln!(out, "{line}").map_err(|error| error.to_string())
}

fn show(out: &mut dyn Write, output: &Path) -> Outcome {
    File::open(output)
        .and_then(|mut file| io::copy(&mut file, out))
        .map_err(describe(output))?;
    Ok(())
}

/// Runs a `cargo test` with these arguments, and at most `lanes` of its programs at the same time.
pub(crate) fn run(tests: &mut Command, arguments: &[String], lanes: usize) -> Outcome {
    let folder = Folder::new()?;
    run_in(&folder.0, tests, arguments, lanes, &mut io::stdout())
}

fn run_in(
    folder: &Path,
    tests: &mut Command,
    arguments: &[String],
    lanes: usize,
    out: &mut dyn Write,
) -> Outcome {
    let notes = folder.join(NOTES);
    let doc_tests = folder.join("doc-tests");
    let program = std::env::current_exe().map_err(describe(folder))?;
    let runner = json!([text(&program)?, NOTE, text(&notes)?]);
    tests
        .args([
            "--config",
            &format!("target.'cfg(all())'.runner = {runner}"),
        ])
        .args(arguments)
        .stdout(File::create(&doc_tests).map_err(describe(&doc_tests))?);
    let spawned = tests.spawn();
    let mut cargo = Process(spawned.map_err(describe(Path::new("cargo test")))?);
    let mut options = arguments.iter().take_while(|argument| *argument != "--");
    let all = options.any(|option| option == "--no-fail-fast");

    let mut ended = false;
    let mut noted = 0;
    let (mut waiting, mut running, mut failed) = (Vec::new(), Vec::<Running>::new(), Vec::new());
    while !ended || !waiting.is_empty() || !running.is_empty() {
        std::thread::sleep(PAUSE);
        if !ended && let Some(status) = cargo.0.try_wait().map_err(describe(folder))? {
            ended = true;
            show(out, &doc_tests)?;
            if !status.success() {
                failed.push(format!("cargo test ({status})"));
            }
        }
        while notes.join(noted.to_string()).exists() {
            waiting.push(Suite::read(
                &notes.join(noted.to_string()),
                tests,
                folder.join(noted.to_string()),
            )?);
            noted += 1;
        }
        for mut suite in std::mem::take(&mut running) {
            match suite.ended(out)? {
                None => running.push(suite),
                Some(true) => {}
                Some(false) => failed.push(suite.suite.name),
            }
        }
        if !failed.is_empty() && !all {
            waiting.clear();
        }
        let only = ended && noted == 1;
        while (ended || noted > 1)
            && let Some(next) = next(&waiting, running.len(), lanes, ended)
        {
            let suite = waiting.remove(next);
            let most = lanes == 1 || only || suite.is_alone() || suite.place() == 0;
            running.push(suite.start(only, most, out)?);
        }
    }
    let found = repository::entries(&notes)?.len();
    match failed.as_slice() {
        [] if found != noted => Err(format!("{found} programs, and {noted} ran")),
        [] => Ok(()),
        failed => Err(format!("failed: {}", failed.join(", "))),
    }
}

/// Returns the index of the waiting program that starts next, if one may start.
fn next(waiting: &[Suite], running: usize, lanes: usize, all_noted: bool) -> Option<usize> {
    let together = waiting
        .iter()
        .enumerate()
        .filter(|(_, suite)| !suite.is_alone());
    match together.min_by_key(|(_, suite)| suite.place()) {
        Some((next, _)) => (running < lanes).then_some(next),
        None => (all_noted && running == 0 && !waiting.is_empty()).then_some(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suites(targets: &[&str]) -> Vec<Suite> {
        let suite = |target: &&str| Suite {
            target: (*target).to_owned(),
            name: (*target).to_owned(),
            command: Command::new("true"),
            output: PathBuf::new(),
        };
        targets.iter().map(suite).collect()
    }

    #[test]
    fn the_longest_start_first_and_what_measures_runs_alone() {
        let waiting = suites(&["fair", "suite", "confining", "e2e"]);
        assert_eq!(next(&waiting, 1, 2, false), Some(3));
        assert_eq!(next(&waiting, 2, 2, true), None);
        let waiting = suites(&["fair"]);
        assert_eq!(next(&waiting, 1, 2, true), None);
        assert_eq!(next(&waiting, 0, 2, false), None);
        assert_eq!(next(&waiting, 0, 2, true), Some(0));
        assert_eq!(next(&[], 0, 2, true), None);
    }

    #[test]
    fn a_program_that_fails_or_is_killed_makes_the_run_fail() {
        let run = |name: &str, script: &str| {
            let target = repository::target().unwrap();
            let folder = Folder(target.join(format!("suites-{name}-{}", std::process::id())));
            fs::create_dir_all(folder.0.join(NOTES)).unwrap();
            for (number, script) in [script, "exit 0"].iter().enumerate() {
                let note = json!({
                    "program": "/bin/sh",
                    "arguments": ["-c", script],
                    "directory": "/",
                    "environment": {"CARGO_PKG_NAME": "one"},
                });
                let file = folder.0.join(NOTES).join(number.to_string());
                fs::write(file, note.to_string()).unwrap();
            }
            let mut out = Vec::new();
            let outcome = run_in(&folder.0, &mut Command::new("true"), &[], 2, &mut out);
            (outcome, String::from_utf8(out).unwrap())
        };
        let failed = Err("failed: one sh".to_owned());
        for (name, script, outcome, shown) in [
            ("ends", "echo all", Ok(()), "one sh: ok"),
            (
                "fails",
                "exit 101",
                failed.clone(),
                "FAILED (exit status: 101)",
            ),
            (
                "is-killed",
                "kill -9 $$",
                failed,
                "FAILED (signal: 9 (SIGKILL))",
            ),
        ] {
            let (ended, out) = run(name, script);
            assert_eq!(ended, outcome, "{out}");
            assert!(out.contains(shown), "{out}");
        }
    }
}
