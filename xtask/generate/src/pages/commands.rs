//! The page of the command line: the help of each subcommand.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use super::GENERATED;
use crate::Outcome;

pub(super) fn page(program: &Path) -> Outcome<String> {
    let mut page = format!(
        "{GENERATED}# The command line\n\n\
         Results go to standard output, everything else to standard error. `--json` makes results machine-readable, \
         failures included.\n"
    );
    help(program, &[], &mut page)?;
    Ok(page)
}

fn help(program: &Path, command: &[&str], page: &mut String) -> Outcome {
    let text = printed(program, command)?;
    let name = [&["toolward"], command].concat().join(" ");
    let _ = write!(page, "\n## {name}\n\n```text\n{}\n```\n", text.trim_end());
    for subcommand in subcommands(&text) {
        if subcommand != "help" {
            help(program, &[command, &[subcommand]].concat(), page)?;
        }
    }
    Ok(())
}

/// Returns the output of `--help` without a terminal, whose width would matter, and without
/// environment variables.
fn printed(program: &Path, command: &[&str]) -> Outcome<String> {
    let output = Command::new(program)
        .args(command)
        .arg("--help")
        .env_clear()
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    if !output.status.success() {
        return Err(format!("`toolward {} --help` failed", command.join(" ")));
    }
    String::from_utf8(output.stdout).map_err(|error| error.to_string())
}

/// Returns the names in the list below `Commands:` in the help.
fn subcommands(help: &str) -> impl Iterator<Item = &str> {
    help.lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subcommands_are_those_of_the_list() {
        let help = "Does it\n\nCommands:\n  one  First\n       and more\n  two  Second\n\nOptions:\n  -h\n";
        assert_eq!(subcommands(help).collect::<Vec<_>>(), ["one", "two"]);
    }
}
