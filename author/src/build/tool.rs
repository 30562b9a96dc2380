//! A program that a build starts: its command, its confinement, its output, and its name for the
//! provenance.

use std::io::{BufRead as _, BufReader, Read};
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

use serde_json::Value;
use toolward_bundle::text::visible_line;

use super::confine::BuildConfinement;
use super::error::{BuildError, BuildReason};
use super::program::Scratch;
use super::{BuildOptions, BuildProgress, can_confine};

/// The most lines of a tool's standard output that are stored until its standard error ends.
const MAX_LINES: usize = 10_000;

/// The most bytes of a line that are stored.
const MAX_LINE_BYTES: usize = 64 << 10;

/// The most characters of a name with its version.
const MAX_NAME_CHARS: usize = 200;

/// The most bytes of a tool's answer about its version that are read.
const MAX_ANSWER_BYTES: u64 = 4096;

/// The most bytes of a JSON file with a version.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// A command and its confinement; without a confinement, it has all rights of the user.
pub(super) struct Tool {
    command: Command,
    confinement: Option<BuildConfinement>,
}

impl Tool {
    /// A tool with the environment of [`BuildTools::command`](super::BuildTools).
    pub(super) fn new(program: &Path, scratch: &Scratch, options: &BuildOptions) -> Self {
        let (bundle, directory) = (&scratch.bundle, scratch.directory());
        let command = options.tools.command(program, bundle, directory);
        Self::of(command, scratch, options)
    }

    /// A tool with a given environment.
    pub(super) fn of(command: Command, scratch: &Scratch, options: &BuildOptions) -> Self {
        let confinement = (options.confine && can_confine()).then(|| {
            let mut confinement =
                BuildConfinement::new(&options.tools, &scratch.bundle, scratch.directory());
            confinement.run(Path::new(command.get_program()));
            confinement
        });
        Self {
            command,
            confinement,
        }
    }

    /// Returns the confinement; `None` if the tool has all rights of the user.
    pub(super) fn confinement(&mut self) -> Option<&mut BuildConfinement> {
        self.confinement.as_mut()
    }

    /// Lets the tool write to a directory, which is created if it is missing.
    pub(super) fn write(&mut self, directory: &Path) {
        if let Some(confinement) = &mut self.confinement {
            // If this fails, the tool reports that the directory is missing.
            let _ = std::fs::create_dir_all(directory);
            confinement.write(directory);
        }
    }

    /// Starts the tool. `unusable` converts the system's error about the program.
    pub(super) fn start(
        &mut self,
        unusable: impl Fn(PathBuf, std::io::Error) -> BuildError + Sync,
    ) -> Result<Child, BuildError> {
        let program = PathBuf::from(self.command.get_program());
        let unusable = |source| unusable(program.clone(), source);
        match &self.confinement {
            Some(confinement) => confinement.start(&mut self.command, &unusable),
            None => self.command.spawn().map_err(unusable),
        }
    }

    /// Whether the tool can be started and succeeds. Its output is ignored.
    pub(super) fn succeeds(&mut self) -> Result<bool, BuildError> {
        self.command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        match self.start(BuildError::Tool) {
            Ok(mut child) => Ok(child.wait().is_ok_and(|status| status.success())),
            Err(BuildError::Tool(..)) => Ok(false),
            Err(other) => Err(other),
        }
    }
}

impl Deref for Tool {
    type Target = Command;

    fn deref(&self) -> &Command {
        &self.command
    }
}

impl DerefMut for Tool {
    fn deref_mut(&mut self) -> &mut Command {
        &mut self.command
    }
}

/// Runs a tool. Passes its standard error to `show` line by line, and its standard output to
/// `read`. `unusable` converts the system's error about the program.
pub(super) fn watch<T: Default + Send + 'static>(
    tool: &mut Tool,
    unusable: fn(PathBuf, std::io::Error) -> BuildError,
    read: impl FnOnce(ChildStdout) -> T + Send + 'static,
    show: &mut dyn FnMut(&str),
) -> Result<(ExitStatus, T), BuildError> {
    tool.stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let program = PathBuf::from(tool.get_program());
    let failed = |source| unusable(program.clone(), source);
    let mut child = tool.start(unusable)?;
    // Read in parallel to standard error, so that neither pipe fills.
    let stdout = child.stdout.take();
    let stdout = stdout.map(|stdout| std::thread::Builder::new().spawn(move || read(stdout)));
    let stdout = stdout.transpose().map_err(failed)?;
    if let Some(stderr) = child.stderr.take() {
        read_lines(stderr, show).map_err(failed)?;
    }
    let printed = stdout.and_then(|thread| thread.join().ok());
    let status = child.wait().map_err(failed)?;
    Ok((status, printed.unwrap_or_default()))
}

/// Runs a tool. Passes its output to `progress` line by line, standard error first.
pub(super) fn run(
    mut tool: Tool,
    from: &str,
    progress: &mut dyn FnMut(BuildProgress<'_>),
) -> Result<(), BuildError> {
    let confined = tool.confinement().is_some();
    let mut denied = false;
    let mut show = |line: &str| {
        denied |= confined && tells_of_denial(line);
        progress(BuildProgress::Line(line));
    };
    let read = |stdout: ChildStdout| {
        let mut printed = Vec::new();
        // Output that can't be read is not shown. Only the tool's status decides whether the run
        // succeeds.
        let _ = read_lines(stdout, &mut |line| {
            if printed.len() < MAX_LINES {
                printed.push(line.to_owned());
            }
        });
        printed
    };
    let (status, printed) = watch(&mut tool, BuildError::Tool, read, &mut show)?;
    for line in printed {
        show(&line);
    }
    let reason = match denied {
        true => BuildReason::Denied,
        false => BuildReason::Tool,
    };
    match status.success() {
        true => Ok(()),
        false => Err(BuildError::Failed(from.to_owned(), status, reason)),
    }
}

/// Whether a line of a tool reports that an operation was denied.
pub(super) fn tells_of_denial(line: &str) -> bool {
    let texts = [
        "ermission denied",
        "peration not permitted",
        "EACCES",
        "AccessDenied",
    ];
    texts.iter().any(|text| line.contains(text))
}

/// Passes on the lines of a stream until it ends. Long lines are cut. Reads everything, since a
/// tool fails when the other end of its output is closed.
pub(super) fn read_lines(stream: impl Read, line: &mut dyn FnMut(&str)) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut kept = Vec::new();
    loop {
        let bytes = stream.fill_buf()?;
        let ended = bytes.is_empty();
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let part = end.and_then(|end| bytes.get(..end)).unwrap_or(bytes);
        let room = MAX_LINE_BYTES.saturating_sub(kept.len()).min(part.len());
        kept.extend_from_slice(part.get(..room).unwrap_or_default());
        let used = end.map_or(bytes.len(), |end| end + 1);
        stream.consume(used);
        if end.is_some() || (ended && !kept.is_empty()) {
            line(&String::from_utf8_lossy(&kept));
            kept.clear();
        }
        if ended {
            return Ok(());
        }
    }
}

/// Returns a tool's name with its version, or the name alone if the tool reports no version. The
/// component is built by then, so a missing version is not an error.
pub(super) fn version(name: &str, tool: Tool) -> String {
    named(name, &answer(tool).unwrap_or_default())
}

/// Joins a name and a version, and makes them safe to show.
pub(super) fn named(name: &str, version: &str) -> String {
    let line = version.lines().next().unwrap_or_default().trim();
    let whole = match line {
        "" => name.to_owned(),
        line if line.contains(name) => line.to_owned(),
        line => format!("{name} {line}"),
    };
    visible_line(&whole, MAX_NAME_CHARS)
}

fn answer(mut tool: Tool) -> Option<String> {
    tool.stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = tool.start(BuildError::Tool).ok()?;
    let mut bytes = Vec::new();
    // Dropping the pipe closes it. A tool with a longer answer then fails, and has no version.
    let stdout = child.stdout.take();
    let read = stdout.map(|stdout| stdout.take(MAX_ANSWER_BYTES).read_to_end(&mut bytes));
    let status = child.wait().ok()?;
    read?.ok()?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    status.success().then_some(text)
}

/// Reads a JSON file; `None` if it is too large or not valid.
pub(super) fn read_json(path: &Path) -> Option<Value> {
    let file = toolward_support::files::open_regular(path).ok()?;
    let bytes = toolward_support::files::read(file, path, MAX_FILE_BYTES).ok()?;
    serde_json::from_slice(&bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        read_lines(text, &mut |line| lines.push(line.to_owned())).unwrap();
        lines
    }

    #[test]
    fn lines_come_one_by_one_and_the_last_needs_no_end() {
        assert_eq!(lines(b"a\n\nb\xff\nc"), ["a", "", "b\u{fffd}", "c"]);
        assert_eq!(lines(b""), Vec::<String>::new());
        assert_eq!(lines(b"a\n"), ["a"]);
    }

    #[test]
    fn a_long_line_is_cut_and_what_follows_it_is_read() {
        let mut text = vec![b'x'; 10 * MAX_LINE_BYTES];
        text.extend_from_slice(b"\ny\n");
        let lines = lines(&text);
        assert_eq!((lines[0].len(), lines[1].as_str()), (MAX_LINE_BYTES, "y"));
    }

    fn tool(program: &str) -> Tool {
        Tool {
            command: Command::new(program),
            confinement: None,
        }
    }

    fn says(script: &str) -> String {
        let mut shell = tool("sh");
        shell.args(["-c", script]);
        version("tool", shell)
    }

    #[test]
    fn a_tool_is_named_by_the_first_line_of_its_answer() {
        assert_eq!(says("echo 1.2.3; echo more"), "tool 1.2.3");
        assert_eq!(
            says("echo 'ACME tool version 3 (x)'"),
            "ACME tool version 3 (x)"
        );
    }

    #[test]
    fn a_tool_that_says_nothing_useful_has_its_name_alone() {
        for script in [
            "true",
            "echo 1; false",
            "echo >&2 1",
            "while echo 1; do :; done",
        ] {
            assert_eq!(says(script), "tool", "{script}");
        }
        let empty = tempfile::tempdir().unwrap();
        let missing = empty.path().join("tool");
        assert_eq!(version("tool", tool(missing.to_str().unwrap())), "tool");
    }

    #[test]
    fn a_version_hides_nothing_and_has_an_end() {
        assert_eq!(named("tool", "1\u{202e}2"), "tool 1\\u{202e}2");
        assert!(named("tool", &"1".repeat(10_000)).chars().count() < 300);
    }
}
