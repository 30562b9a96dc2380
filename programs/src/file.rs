//! The file of a program. It is opened once, without following links. All later steps use the open
//! descriptor: checking the type, the owner and the mode, hashing, and starting the program.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use serde::{Deserialize, Serialize};
use toolward_policy::ExecRule;
use toolward_support::files::{Problem, Protection};
use toolward_support::report::codes;

use crate::line::Named;

/// The most bytes of the first line of a `#!` file that the kernel reads.
const HEAD_BYTES: usize = 256;

/// The number of bytes that are hashed at a time.
const CHUNK_BYTES: usize = 64 << 10;

codes! {
    /// Why a program can't be run. The code is the error's `rule`.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub enum ExecProblem: Error {
        Unopened { path: PathBuf, problem: String } = "exec-unopened" ["4"],
            "the file of a program can't be opened, is not a file, or has a link in its path",
            ("{} can't be opened as a file, without links in its path: {problem}", path.display())
            => "name the file itself in `[[exec]]`, with no link in its path";
        Unsafe { path: PathBuf, problem: String } = "exec-unsafe" ["4"],
            "another user owns the file of a program or may write to it, or the file has set-user-id or set-group-id bits, or is not executable",
            ("{} {problem}", path.display())
            => "let it belong to you or root, take writing from everybody else, and drop set-user-id bits";
        /// `found` is the file's digest in hex.
        Digest { path: PathBuf, found: String } = "exec-digest" ["4"], "a program has another digest than its `[[exec]]`",
            ("{} has the digest {found}, and not that of the line", path.display())
            => "look at what changed; then write the new digest into `[[exec]]`, and start again";
        Interpreter { path: PathBuf, problem: String } = "exec-interpreter" ["4"],
            "a program is not run by the interpreter that its `[[exec]]` names",
            ("{}: {problem}", path.display())
            => "name in `interpreter` what the first line of the file names, and nothing for other files";
        Workspace { path: PathBuf, problem: String } = "exec-workspace" ["4"],
            "a directory that a program is given can't be opened",
            ("the directory {} can't be opened: {problem}", path.display())
            => "make the directory, and start again";
        /// `name` is the variable.
        Secret { name: String, problem: String } = "exec-secret" ["4"], "a secret of a program has no value",
            ("the variable {name} has no value: {problem}")
            => "give the secret a value, and start again";
        Unconfined(problem: String) = "exec-unconfined" ["4"], "this kernel can't confine a program; `doctor` has the reason",
            ("this kernel can't confine a program: {problem}")
            => "use a newer kernel";
        LineNew = "exec-line-new" ["4"], "the policy's `[[exec]]` for this program is newer than the host's start"
            => "start the host again";
        Unstarted(problem: String) = "exec-unstarted" ["4"], "a program could not be started",
            ("it could not be started: {problem}")
            => "try the program by hand";
    }
}

/// Checks the file of a table as the broker does before a run. Starts nothing.
///
/// # Errors
///
/// The problem of the file or of its interpreter.
pub fn check(rule: &ExecRule) -> Result<(), ExecProblem> {
    let (command, interpreter) = Named::of(rule);
    Program::open(&command, interpreter.as_ref())?.check()
}

/// A program whose files are open.
pub(crate) struct Program {
    pub(crate) command: OpenFile,
    pub(crate) interpreter: Option<Script>,
}

/// The interpreter of a `#!` file.
pub(crate) struct Script {
    pub(crate) file: OpenFile,
    /// The argument in the first line, which may have at most one.
    pub(crate) argument: Option<String>,
}

impl Program {
    pub(crate) fn open(command: &Named, interpreter: Option<&Named>) -> Result<Self, ExecProblem> {
        let command = OpenFile::open(command)?;
        let wrong = |problem: String| Err(command.named.misinterpreted(problem));
        let interpreter = match (command.first_line()?, interpreter) {
            (None, None) => None,
            (None, Some(_)) => return wrong("it needs no interpreter".to_owned()),
            (Some((path, _)), None) => {
                return wrong(format!(
                    "it is run by {path:?}, which the line does not name"
                ));
            }
            (Some((path, argument)), Some(named)) => {
                if Path::new(&path) != named.path {
                    return wrong(format!(
                        "it is run by {path:?}, and the line names {}",
                        named.path.display()
                    ));
                }
                let file = OpenFile::open(named)?;
                if file.first_line()?.is_some() {
                    return wrong("its interpreter is a script itself".to_owned());
                }
                Some(Script { file, argument })
            }
        };
        Ok(Self {
            command,
            interpreter,
        })
    }

    /// Checks the current modes and digests.
    pub(crate) fn check(&self) -> Result<(), ExecProblem> {
        self.command.check()?;
        let script = self.interpreter.as_ref();
        script.map_or(Ok(()), |script| script.file.check())
    }
}

impl Named {
    fn unopened(&self, error: &io::Error) -> ExecProblem {
        let (path, problem) = (self.path.clone(), error.to_string());
        ExecProblem::Unopened { path, problem }
    }

    fn insecure(&self, problem: impl Into<String>) -> ExecProblem {
        let (path, problem) = (self.path.clone(), problem.into());
        ExecProblem::Unsafe { path, problem }
    }

    fn misinterpreted(&self, problem: impl Into<String>) -> ExecProblem {
        let (path, problem) = (self.path.clone(), problem.into());
        ExecProblem::Interpreter { path, problem }
    }
}

/// A file that stays open.
pub(crate) struct OpenFile {
    pub(crate) named: Named,
    pub(crate) file: File,
}

impl OpenFile {
    fn open(named: &Named) -> Result<Self, ExecProblem> {
        let fail = |error: io::Error| named.unopened(&error);
        // Without these flags, opening a pipe would block, and a terminal could become the
        // controlling terminal.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let file = rustix::fs::openat2(CWD, &named.path, flags, Mode::empty(), resolve)
            .map_err(|error| fail(error.into()))?;
        let opened = Self {
            named: named.clone(),
            file: File::from(file),
        };
        let metadata = opened.file.metadata().map_err(fail)?;
        if !metadata.is_file() {
            return Err(fail(io::Error::other("it is not a regular file")));
        }
        // The owner is checked only here. In the user namespace, which the broker enters next,
        // other users' files appear to belong to `nobody`. Later, only root can change the owner.
        match Protection::OwnOrRoot.check(&metadata) {
            Err(problem @ Problem::Owner { .. }) => Err(named.insecure(problem.to_string())),
            _ => Ok(opened),
        }
    }

    /// Checks the current mode and digest.
    fn check(&self) -> Result<(), ExecProblem> {
        let unopened = |error: io::Error| self.named.unopened(&error);
        let metadata = self.file.metadata().map_err(unopened)?;
        if metadata.mode() & 0o022 != 0 {
            let mode = metadata.mode() & 0o777;
            let problem = format!("has mode {mode:03o}: others may write to it; use chmod go-w");
            return Err(self.named.insecure(problem));
        }
        if metadata.mode() & 0o6000 != 0 {
            let problem = "runs with the rights of its owner or group";
            return Err(self.named.insecure(problem));
        }
        if metadata.mode() & 0o111 == 0 {
            return Err(self.named.insecure("may not be executed"));
        }
        let found = self.digest().map_err(unopened)?;
        match self.named.digest == Some(*found.as_bytes()) {
            true => Ok(()),
            false => Err(ExecProblem::Digest {
                path: self.named.path.clone(),
                found: found.to_hex().to_string(),
            }),
        }
    }

    /// Hashes through the descriptor. Reads at explicit offsets, since several runs share the
    /// descriptor.
    fn digest(&self) -> io::Result<blake3::Hash> {
        let mut hasher = blake3::Hasher::new();
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut at: u64 = 0;
        loop {
            let count = match self.file.read_at(&mut chunk, at) {
                Ok(0) => return Ok(hasher.finalize()),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            hasher.update(chunk.get(..count).unwrap_or_default());
            at = at.saturating_add(count as u64);
        }
    }

    /// The interpreter and the argument in the first line of a `#!` file; `None` for a file that
    /// the kernel runs directly.
    fn first_line(&self) -> Result<Option<(String, Option<String>)>, ExecProblem> {
        let wrong = |problem: &str| self.named.misinterpreted(problem);
        let mut head = [0; HEAD_BYTES];
        let count = self
            .file
            .read_at(&mut head, 0)
            .map_err(|error| wrong(&error.to_string()))?;
        let head = head.get(..count).unwrap_or_default();
        if head.starts_with(b"\x7fELF") {
            return Ok(None);
        }
        let Some(line) = head.strip_prefix(b"#!") else {
            return Err(wrong(
                "it is neither a program of this machine nor begins with `#!`",
            ));
        };
        let end = line.iter().position(|byte| *byte == b'\n');
        let line = end.and_then(|end| str::from_utf8(line.get(..end)?).ok());
        let line = line.ok_or_else(|| wrong("its first line is too long, or no text"))?;
        let line = line.trim_matches([' ', '\t']);
        let (path, argument) = match line.split_once([' ', '\t']) {
            Some((path, argument)) => (path, Some(argument.trim_start_matches([' ', '\t']))),
            None => (line, None),
        };
        if path.is_empty() || line.chars().any(|c| c.is_control() && c != '\t') {
            return Err(wrong("its first line names no interpreter"));
        }
        Ok(Some((path.to_owned(), argument.map(str::to_owned))))
    }
}
