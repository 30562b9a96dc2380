//! `completions`: a script that completes this command's arguments. Those for bash, zsh and fish also
//! complete ids and names, which they ask `internal-names` for.

mod bash;
mod fish;
mod zsh;

use clap::{Args, ValueEnum as _};
use clap_complete::Shell;

use super::names::Kind;
use crate::failure::Result;

/// The commands whose first argument is an id or a name that only the installation knows.
const COMPLETED: [(&str, Kind); 12] = [
    ("call", Kind::Tools),
    ("show", Kind::Tools),
    ("describe", Kind::Tools),
    ("why", Kind::Tools),
    ("policy explain", Kind::Tools),
    ("policy suggest", Kind::Tools),
    ("policy grant", Kind::Tools),
    ("remove", Kind::Installed),
    ("update", Kind::Bundles),
    ("trust show", Kind::Publishers),
    ("trust update", Kind::Publishers),
    ("trust remove", Kind::Publishers),
];

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments, mut command: clap::Command) -> Result {
    // Into memory first: the generator panics when its output is gone.
    let mut script = Vec::new();
    if arguments.shell == Shell::Zsh {
        command = zsh::marked(command);
    }
    clap_complete::generate(arguments.shell, &mut command, "toolward", &mut script);
    match arguments.shell {
        Shell::Bash => script.extend(bash::names(&command).into_bytes()),
        Shell::Fish => script.extend(fish::names().into_bytes()),
        Shell::Zsh => script = zsh::with_names(&String::from_utf8_lossy(&script)).into_bytes(),
        _ => {}
    }
    crate::output::raw(&script)
}

/// The completed commands, each with the word that `internal-names` takes.
fn completed() -> impl Iterator<Item = (&'static str, String)> {
    COMPLETED.iter().filter_map(|(words, kind)| {
        let kind = kind.to_possible_value()?;
        Some((*words, kind.get_name().to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::arguments::Cli;

    #[test]
    fn each_completed_command_takes_an_argument() {
        let cli = Cli::command();
        for (words, _) in COMPLETED {
            let command = words.split(' ').try_fold(&cli, |command, word| {
                command.get_subcommands().find(|one| one.get_name() == word)
            });
            let command = command.unwrap_or_else(|| panic!("no command {words}"));
            assert!(command.get_positionals().next().is_some(), "{words}");
        }
    }
}
