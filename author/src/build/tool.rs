//! A program that is started: how it is called, what it may reach, and what it prints.

use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::confine::Confinement;
use super::error::{BuildError, BuildReason};
use super::scratch::Scratch;
use super::{BuildProgress, Options, can_confine, lines};

/// How many lines of a tool's standard output are kept until its standard error ends.
const MAX_LINES: usize = 10_000;

/// A command, and its confinement unless there is to be none.
pub(super) struct Tool {
    command: Command,
    confinement: Option<Confinement>,
}

impl Tool {
    /// A tool with the environment of [`Tools::command`](super::Tools).
    pub(super) fn new(program: &Path, scratch: &Scratch, options: &Options) -> Self {
        let command = options
            .tools
            .command(program, scratch.bundle(), scratch.directory());
        Self::of(command, scratch, options)
    }

    /// A tool with an environment that is settled already.
    pub(super) fn of(command: Command, scratch: &Scratch, options: &Options) -> Self {
        let confinement = (options.confine && can_confine()).then(|| {
            let mut confinement =
                Confinement::new(&options.tools, scratch.bundle(), scratch.directory());
            confinement.run(Path::new(command.get_program()));
            confinement
        });
        Self {
            command,
            confinement,
        }
    }

    /// A tool that may reach all that the user can.
    pub(super) fn unconfined(command: Command) -> Self {
        Self {
            command,
            confinement: None,
        }
    }

    /// What it may reach; `None` if that is all that the user can.
    pub(super) fn confinement(&mut self) -> Option<&mut Confinement> {
        self.confinement.as_mut()
    }

    /// Lets it write to a directory, which is made if it is missing.
    pub(super) fn write(&mut self, directory: &Path) {
        if let Some(confinement) = &mut self.confinement {
            // Without it the tool reports what is missing.
            let _ = std::fs::create_dir_all(directory);
            confinement.write(directory);
        }
    }

    /// Starts it. `unusable` makes an error from the system's error about the program.
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

    /// Whether it can be started and ends well. What it prints is not looked at.
    pub(super) fn succeeds(&mut self) -> Result<bool, BuildError> {
        self.command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let unusable = |program, source| BuildError::Tool { program, source };
        match self.start(unusable) {
            Ok(mut child) => Ok(child.wait().is_ok_and(|status| status.success())),
            Err(BuildError::Tool { .. }) => Ok(false),
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

/// Runs a command; what it prints goes to `progress` line by line, standard error first.
pub(super) fn run(
    mut tool: Tool,
    from: &str,
    progress: &mut dyn FnMut(BuildProgress<'_>),
) -> Result<(), BuildError> {
    let program = PathBuf::from(tool.get_program());
    let unusable = |source| BuildError::Tool {
        program: program.clone(),
        source,
    };
    let confined = tool.confinement().is_some();
    tool.stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = tool.start(|program, source| BuildError::Tool { program, source })?;
    // Read in parallel to standard error, so that neither pipe fills.
    let stdout = child.stdout.take().map(|stdout| {
        std::thread::Builder::new().spawn(move || {
            let mut printed = Vec::new();
            // What can't be read is not shown; the tool's status is the result.
            let _ = lines::read(stdout, &mut |line| {
                if printed.len() < MAX_LINES {
                    printed.push(line.to_owned());
                }
            });
            printed
        })
    });
    let stdout = stdout.transpose().map_err(unusable)?;
    let mut denied = false;
    let mut show = |line: &str| {
        denied |= confined && tells_of_denial(line);
        progress(BuildProgress::Line(line));
    };
    if let Some(stderr) = child.stderr.take() {
        lines::read(stderr, &mut show).map_err(unusable)?;
    }
    let printed = stdout.and_then(|thread| thread.join().ok());
    for line in printed.unwrap_or_default() {
        show(&line);
    }
    let status = child.wait().map_err(unusable)?;
    match status.success() {
        true => Ok(()),
        false => Err(BuildError::Failed {
            from: from.to_owned(),
            status,
            reason: match denied {
                true => BuildReason::Denied,
                false => BuildReason::Tool,
            },
        }),
    }
}

/// Whether a line of a tool speaks of something that it may not do.
pub(super) fn tells_of_denial(line: &str) -> bool {
    let texts = [
        "ermission denied",
        "peration not permitted",
        "EACCES",
        "AccessDenied",
    ];
    texts.iter().any(|text| line.contains(text))
}
