//! For zsh: the generated script, with a function in the place of a file's name where an argument is a name.

use super::COMPLETED;
use crate::commands::names::Kind;

/// What stands in the generated script for names, until it is replaced; and what `internal-names` takes.
fn mark(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Tools => ("toolward-internal-tools", "tools"),
        Kind::Bundles => ("toolward-internal-bundles", "bundles"),
        Kind::Installed => ("toolward-internal-installed", "installed"),
        Kind::Publishers => ("toolward-internal-publishers", "publishers"),
    }
}

/// The commands with their names marked, in the form of the only value that an argument has.
pub(super) fn marked(mut command: clap::Command) -> clap::Command {
    for (words, kind) in COMPLETED {
        let words: Vec<&str> = words.split(' ').collect();
        command = at(command, &words, kind);
    }
    command
}

fn at(command: clap::Command, words: &[&str], kind: Kind) -> clap::Command {
    if let Some((first, rest)) = words.split_first() {
        return command.mut_subcommand(*first, |below| at(below, rest, kind));
    }
    let all = command.get_positionals();
    let all: Vec<_> = all.map(|argument| argument.get_id().clone()).collect();
    // What is changed comes behind the others, so that all are, in their order.
    let changed = all.into_iter().enumerate();
    changed.fold(command, |command, (number, id)| {
        command.mut_arg(id, |argument| match number {
            0 => argument.value_parser([mark(kind).0]),
            _ => argument,
        })
    })
}

pub(super) fn with_names(script: &str) -> String {
    let named = COMPLETED
        .into_iter()
        .fold(script.to_owned(), |script, (_, kind)| {
            let (mark, asked) = mark(kind);
            script.replace(&format!(":({mark})"), &format!(":_toolward_names {asked}"))
        });
    // In front of what calls the function for the first time, where the script is a file of `fpath`.
    match named.rsplit_once(LAST) {
        Some((before, last)) => format!("{before}{NAMES}\n{LAST}{last}"),
        None => named,
    }
}

const LAST: &str = "if [ \"$funcstack[1]\" = \"_toolward\" ]; then";

const NAMES: &str = r#"_toolward_names() {
    local -a names
    names=("${(@f)$(command toolward internal-names "$1" 2>/dev/null </dev/null)}")
    compadd -a names
}
"#;

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;
    use clap_complete::Shell;

    use super::*;
    use crate::arguments::Cli;

    #[test]
    fn each_completed_command_asks_for_its_names() {
        let mut script = Vec::new();
        let mut command = marked(Cli::command());
        clap_complete::generate(Shell::Zsh, &mut command, "toolward", &mut script);
        let script = with_names(std::str::from_utf8(&script).unwrap());
        assert!(!script.contains("toolward-internal-"));
        let asked = script.matches(":_toolward_names ").count();
        assert_eq!(asked, COMPLETED.len());
        let (function, first) = (script.find(NAMES).unwrap(), script.find(LAST).unwrap());
        assert!(function < first);
    }
}
