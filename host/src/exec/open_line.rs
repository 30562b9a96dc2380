//! A line of `[[exec]]` with its files open.

use std::fs::File;
use std::path::PathBuf;

use rustix::fs::{Mode, OFlags};
use toolward_policy::{ExecLimits, WorkspaceAccess};

use super::file::{ExecProblem, Program};
use super::line::{Line, Source};
use crate::secrets::read_file;

/// A line whose files are open.
pub(super) struct OpenLine {
    command: PathBuf,
    /// The program, or why it can't be run.
    pub(super) program: Result<Program, ExecProblem>,
    pub(super) args: Vec<String>,
    env: Vec<(String, Source)>,
    pub(super) network: bool,
    pub(super) processes: bool,
    pub(super) workspaces: Vec<(File, WorkspaceAccess)>,
    pub(super) limits: ExecLimits,
}

impl OpenLine {
    pub(super) fn open(line: Line) -> Self {
        let program = Program::open(&line.command, line.interpreter.as_ref());
        let mut workspaces = Vec::new();
        let mut problem = None;
        for (path, access) in line.workspaces {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            match rustix::fs::open(&path, flags, Mode::empty()) {
                Ok(open) => workspaces.push((File::from(open), access)),
                Err(error) => {
                    let problem_of = ExecProblem::Workspace {
                        path,
                        problem: error.to_string(),
                    };
                    problem = Some(problem_of);
                }
            }
        }
        Self {
            command: line.command.path,
            program: match problem {
                Some(problem) => Err(problem),
                None => program,
            },
            args: line.args,
            env: line.env,
            network: line.network,
            processes: line.processes,
            workspaces,
            limits: line.limits,
        }
    }

    /// The path of the program, which it gets as its own name.
    pub(super) fn name(&self) -> String {
        self.command.to_string_lossy().into_owned()
    }

    /// The variables, with their values as they are now.
    pub(super) fn environment(&self) -> Result<Vec<(String, String)>, ExecProblem> {
        let each = self.env.iter().map(|(name, source)| {
            let missing = |problem: &str| ExecProblem::Secret {
                name: name.clone(),
                problem: problem.to_owned(),
            };
            let value = match source {
                Source::Value(value) => value.clone(),
                Source::File(path) => {
                    let read = read_file(path).map_err(|error| missing(&error.to_string()))?;
                    let value = read.ok_or_else(|| missing("there is no such file"))?;
                    let text = String::from_utf8(value.bytes().to_vec());
                    text.map_err(|_| missing("it is no text"))?
                }
                Source::Missing => return Err(missing("it is not set")),
            };
            match value.contains('\0') {
                true => Err(missing("it holds a zero byte")),
                false => Ok((name.clone(), value)),
            }
        });
        each.collect()
    }
}
