//! Runs other commands, and describes their failures.

use std::process::{Command, Stdio};

use crate::Outcome;

/// Runs a command with the standard streams of this process.
pub(crate) fn run(command: &mut Command) -> Outcome {
    let status = command
        .status()
        .map_err(|error| describe(command, &error))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{} failed ({status})", shown(command)))
    }
}

/// Runs a command and returns what it prints to standard output.
pub(crate) fn output(command: &mut Command) -> Outcome<Vec<u8>> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| describe(command, &error))?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(format!("{} failed ({})", shown(command), output.status))
    }
}

fn describe(command: &Command, error: &std::io::Error) -> String {
    format!("{} could not be started: {error}", shown(command))
}

/// Returns the command as a person would type it, simplified for a message.
fn shown(command: &Command) -> String {
    let name = std::path::Path::new(command.get_program())
        .file_name()
        .unwrap_or(command.get_program());
    let mut line = name.to_string_lossy().into_owned();
    for argument in command.get_args() {
        line.push(' ');
        line.push_str(&argument.to_string_lossy());
    }
    line
}
