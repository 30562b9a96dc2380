//! One run of a program, with a time limit and separate streams.

use std::ffi::{OsStr, OsString};
use std::io::{Read, Write as _};
use std::process::{Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

/// A program that runs for this long counts as hung. No test takes nearly as long, even on a busy
/// machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// A program about to run.
pub(crate) struct Run {
    command: Command,
    stdin: Vec<u8>,
}

impl Run {
    pub(crate) fn new(command: Command) -> Self {
        Self {
            command,
            stdin: Vec::new(),
        }
    }

    pub(crate) fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    /// Returns the command, for options that this type lacks.
    pub(crate) fn into_command(self) -> Command {
        self.command
    }

    /// Runs the program to its end.
    pub(crate) fn end(mut self) -> Ended {
        let shown = shown(&self.command);
        let mut child = self
            .command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{shown}: {error}"));
        let mut input = child.stdin.take().unwrap();
        let bytes = std::mem::take(&mut self.stdin);
        // A program need not read its input.
        let writer = std::thread::spawn(move || drop(input.write_all(&bytes)));
        let stdout = collect(child.stdout.take().unwrap());
        let stderr = collect(child.stderr.take().unwrap());
        let started = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if started.elapsed() > PATIENCE {
                child.kill().unwrap();
                panic!("{shown}: still running after {PATIENCE:?}");
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        writer.join().unwrap();
        Ended {
            shown,
            code: status.code(),
            took: started.elapsed(),
            stdout: text(stdout),
            stderr: text(stderr),
        }
    }

    /// Runs the program to its end, and asserts its exit code.
    #[track_caller]
    pub(crate) fn ends(self, code: i32) -> Ended {
        let ended = self.end();
        assert_eq!(ended.code, Some(code), "exit code of {ended}");
        ended
    }
}

fn shown(command: &Command) -> String {
    let words: Vec<OsString> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(OsStr::to_owned)
        .collect();
    words.join(OsStr::new(" ")).to_string_lossy().into_owned()
}

fn collect(mut stream: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        bytes
    })
}

fn text(stream: JoinHandle<Vec<u8>>) -> String {
    String::from_utf8(stream.join().unwrap()).unwrap()
}

/// The result of a run.
#[derive(Debug)]
pub(crate) struct Ended {
    shown: String,
    pub(crate) code: Option<i32>,
    pub(crate) took: Duration,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            shown,
            code,
            stdout,
            stderr,
            ..
        } = self;
        write!(
            f,
            "`{shown}` ({code:?})\n--- stdout\n{stdout}\n--- stderr\n{stderr}"
        )
    }
}

impl Ended {
    /// Standard output as one JSON value.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self}"))
    }

    /// Standard output as one JSON value on each line.
    #[track_caller]
    pub(crate) fn json_lines(&self) -> Vec<Value> {
        self.stdout
            .lines()
            .map(|line| {
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {self}"))
            })
            .collect()
    }

    /// Asserts that standard output is empty, and that standard error has an error with this code
    /// and a next step.
    #[track_caller]
    pub(crate) fn says(&self, code: &str) -> &Self {
        assert_eq!(self.stdout, "", "{self}");
        assert!(
            self.stderr.contains(&format!("error[{code}]: ")),
            "no error[{code}] in {self}"
        );
        assert!(self.stderr.contains("\n  hint: "), "no hint in {self}");
        self
    }

    #[track_caller]
    pub(crate) fn warns(&self, words: &str) -> &Self {
        let warned = self
            .stderr
            .lines()
            .any(|line| line.starts_with("warning: ") && line.contains(words));
        assert!(warned, "no warning of {words:?} in {self}");
        self
    }
}
