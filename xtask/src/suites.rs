//! Runs the test programs of `cargo test`, up to two at the same time.
//!
//! Cargo would run one after the other, and tests that wait leave processors idle. So Cargo gets
//! this command as the runner of its programs. The chore [`NOTE`] notes a program, with everything
//! that Cargo passes to it, and returns. [`run`] starts the noted programs, while Cargo continues
//! with the doc tests, which it runs itself.

use std::fs::{self, File};
use std::io;
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
    let variables = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let note = json!({
        "program": program,
        "arguments": arguments,
        "directory": std::env::current_dir().map_err(|error| error.to_string())?,
        "environment": variables.map(|(name, value)| (name, value.into())).collect::<Map<_, _>>(),
    });
    let folder = Path::new(folder);
    let number = repository::entries(folder)?.len();
    let new = folder.join("new");
    fs::write(&new, note.to_string())
        .and_then(|()| fs::rename(&new, folder.join(number.to_string())))
        .map_err(describe(folder))
}

fn describe(path: &Path) -> impl Fn(io::Error) -> String {
    let path = path.display().to_string();
    move |error| format!("{path}: {error}")
}

/// A program with tests.
struct Suite {
    target: String,
    /// Package and target.
    name: String,
    command: Command,
    /// The file for its output.
    output: PathBuf,
}

impl Suite {
    fn read(note: &Path, output: PathBuf) -> Outcome<Self> {
        let text = repository::read(note)?;
        let read: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        let field = |name: &str| read.get(name).unwrap_or(&Value::Null);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let program = PathBuf::from(text(field("program")));
        let mut command = Command::new(&program);
        command.current_dir(text(field("directory"))).env_clear();
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
    fn start(mut self, only: bool, most: bool) -> Outcome<Running> {
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
        let child = self
            .command
            .spawn()
            .map_err(describe(Path::new(&self.name)))?;
        Ok(Running {
            suite: self,
            child,
            started: Instant::now(),
        })
    }
}

/// A program that runs.
struct Running {
    suite: Suite,
    child: Child,
    started: Instant,
}

impl Running {
    /// Returns whether the program succeeded, once it has ended, and then shows its output.
    fn ended(&mut self) -> Outcome<Option<bool>> {
        let name = &self.suite.name;
        let status = self.child.try_wait().map_err(describe(Path::new(name)))?;
        let Some(status) = status else {
            return Ok(None);
        };
        let seconds = self.started.elapsed().as_secs_f64();
        let how = if status.success() { "ok" } else { "FAILED" };
        println!("\n{name}: {how} after {seconds:.1} s");
        if self.suite.output.exists() {
            show(&self.suite.output)?;
        }
        Ok(Some(status.success()))
    }
}

fn show(output: &Path) -> Outcome {
    File::open(output)
        .and_then(|mut file| io::copy(&mut file, &mut io::stdout()))
        .map_err(describe(output))?;
    Ok(())
}

/// Runs a `cargo test` with these arguments, with up to `lanes` of its programs at the same time.
pub(crate) fn run(tests: &mut Command, arguments: &[String], lanes: usize) -> Outcome {
    let folder = repository::target()?.join(format!("suites-{}", std::process::id()));
    // The notes contain all environment variables, so they are private.
    let mut private = fs::DirBuilder::new();
    private.recursive(true).mode(0o700);
    private
        .create(folder.join(NOTES))
        .map_err(describe(&folder))?;
    let outcome = run_in(&folder, tests, arguments, lanes);
    fs::remove_dir_all(&folder).map_err(describe(&folder))?;
    outcome
}

fn run_in(folder: &Path, tests: &mut Command, arguments: &[String], lanes: usize) -> Outcome {
    let notes = std::path::absolute(folder.join(NOTES)).map_err(describe(folder))?;
    let doc_tests = folder.join("doc-tests");
    let program = std::env::current_exe().map_err(describe(folder))?;
    let runner = json!([program, NOTE, notes]);
    tests
        .args([
            "--config",
            &format!("target.'cfg(all())'.runner = {runner}"),
        ])
        .args(arguments)
        .stdout(File::create(&doc_tests).map_err(describe(&doc_tests))?);
    let mut cargo = tests.spawn().map_err(describe(Path::new("cargo test")))?;
    let mut options = arguments.iter().take_while(|argument| *argument != "--");
    let all = options.any(|option| option == "--no-fail-fast");

    let mut ended = false;
    let mut noted = 0;
    let (mut waiting, mut running, mut failed) = (Vec::new(), Vec::<Running>::new(), Vec::new());
    while !ended || !waiting.is_empty() || !running.is_empty() {
        std::thread::sleep(PAUSE);
        if !ended && let Some(status) = cargo.try_wait().map_err(describe(folder))? {
            ended = true;
            show(&doc_tests)?;
            if !status.success() {
                failed.push("cargo test".to_owned());
            }
        }
        while notes.join(noted.to_string()).exists() {
            waiting.push(Suite::read(
                &notes.join(noted.to_string()),
                folder.join(noted.to_string()),
            )?);
            noted += 1;
        }
        for mut suite in std::mem::take(&mut running) {
            match suite.ended()? {
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
            running.push(suite.start(only, most)?);
        }
    }
    match failed.as_slice() {
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
}
