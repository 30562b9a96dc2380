//! `completions`: a script that completes this command's arguments. The scripts for bash, zsh and
//! fish also complete ids and names, which they get from `internal-names`. `internal-man-pages`
//! writes manual pages for packages.

use std::collections::BTreeSet;

use clap::{Command, ValueEnum};
use clap_complete::Shell;

use crate::prelude::*;

/// The commands whose first argument is an id or a name that depends on the installation.
const COMPLETED: [(&str, Completed); 9] = [
    ("call", Completed::Tools),
    ("show", Completed::Tools),
    ("policy suggest", Completed::Tools),
    ("policy grant", Completed::Tools),
    ("remove", Completed::Installed),
    ("update", Completed::Bundles),
    ("trust show", Completed::Publishers),
    ("trust update", Completed::Publishers),
    ("trust remove", Completed::Publishers),
];

/// What a script completes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Completed {
    /// Ids of installed tools.
    Tools,
    /// Ids of installed bundles.
    Bundles,
    /// Ids of installed bundles, and of their tools.
    Installed,
    /// Names of trusted publishers.
    Publishers,
}

impl Completed {
    /// The word in the generated script for zsh that is replaced by the completion of names.
    fn mark(self) -> &'static str {
        match self {
            Self::Tools => "toolward-internal-tools",
            Self::Bundles => "toolward-internal-bundles",
            Self::Installed => "toolward-internal-installed",
            Self::Publishers => "toolward-internal-publishers",
        }
    }

    /// The argument of `internal-names`.
    fn word(self) -> &'static str {
        self.mark().trim_start_matches("toolward-internal-")
    }
}

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

impl Arguments {
    pub(crate) fn run(&self, command: &Command) -> Result {
        raw(script(self.shell, command).as_bytes())
    }
}

fn script(shell: Shell, command: &Command) -> String {
    let mut command = shown(command);
    // Written to memory first, since the generator panics when its output is closed.
    let mut script = Vec::new();
    if shell == Shell::Zsh {
        command = zsh_marked(command);
    }
    clap_complete::generate(shell, &mut command, "toolward", &mut script);
    let script = String::from_utf8_lossy(&script);
    match shell {
        Shell::Bash => script.into_owned() + &bash_names(&command),
        Shell::Fish => script.into_owned() + &fish_names(),
        Shell::Zsh => zsh_names(&script),
        _ => script.into_owned(),
    }
}

/// Returns the command line without hidden commands, which the generators would offer otherwise.
fn shown(command: &Command) -> Command {
    let commands = command.get_subcommands();
    Command::new("toolward")
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_flag(true)
        .disable_version_flag(true)
        .args(command.get_arguments())
        .subcommands(commands.filter(|one| !one.is_hide_set()))
}

#[derive(Debug, Args)]
pub(crate) struct Names {
    /// What is completed
    #[arg(value_enum)]
    kind: Completed,

    #[command(flatten)]
    trust: Flagged<Trust>,

    #[command(flatten)]
    store: Flagged<StoreLocation>,
}

impl Names {
    /// Writes one name on each line. Errors are not reported: a person who completes a word sees
    /// the names that could be read.
    pub(crate) fn run(&self, context: &Context) -> Result {
        let installed = |which| self.store.names(which, context);
        let names = match self.kind {
            Completed::Tools => installed((true, false)),
            Completed::Bundles => installed((false, true)),
            Completed::Installed => installed((true, true)),
            Completed::Publishers => self.trust.publisher_names(context),
        };
        let lines: String = names.iter().map(|name| format!("{name}\n")).collect();
        raw(lines.as_bytes())
    }
}

#[derive(Debug, Args)]
pub(crate) struct ManPages {
    /// An existing directory
    directory: PathBuf,
}

impl ManPages {
    pub(crate) fn run(&self, command: Command) -> Result {
        clap_mangen::generate_to(command, &self.directory).map_err(|error| {
            let directory = self.directory.display();
            unwritable(format!(
                "the manual pages can't be written to {directory}: {error}"
            ))
        })
    }
}

/// For bash: a function that wraps the generated function. It compares names as text and never
/// expands them. It always gets the names from the `toolward` of PATH, even if the typed line
/// starts another `toolward`, such as `./toolward`.
fn bash_names(command: &Command) -> String {
    let cases: String = COMPLETED
        .iter()
        .map(|(words, kind)| format!("        \" {words}\") kind={} ;;\n", kind.word()))
        .collect();
    let switches = Vec::from_iter(switches(command)).join("|");
    BASH.replace("CASES\n", &cases)
        .replace("SWITCHES", &switches)
}

/// The flags that take no value with any command.
fn switches(command: &Command) -> BTreeSet<String> {
    let (mut alone, mut with_value) = (BTreeSet::new(), BTreeSet::new());
    let mut commands = vec![command];
    while let Some(command) = commands.pop() {
        commands.extend(command.get_subcommands());
        for flag in command.get_arguments() {
            let short = flag.get_short().map(|short| format!("-{short}"));
            let long = flag.get_long().map(|long| format!("--{long}"));
            match flag.get_action().takes_values() {
                true => with_value.extend(short.into_iter().chain(long)),
                false => alone.extend(short.into_iter().chain(long)),
            }
        }
    }
    &alone - &with_value
}

/// The wrapper for bash. If the typed line names a store or a configuration, the names come from
/// there.
const BASH: &str = include_str!("completions/names.bash");

/// For fish: one line for each command whose argument is a name, after the generated lines.
fn fish_names() -> String {
    let lines = COMPLETED.iter().map(|(words, kind)| {
        let (command, below) = words.split_once(' ').unwrap_or((words, ""));
        let below = match below {
            "" => String::new(),
            below => format!("; and __fish_seen_subcommand_from {below}"),
        };
        format!(
            "complete -c toolward -n \"__fish_toolward_using_subcommand {command}{below}\" -f \
             -a \"(command toolward internal-names {} 2>/dev/null </dev/null)\"\n",
            kind.word()
        )
    });
    lines.collect()
}

/// For zsh: marks arguments that are names, each with a mark as its only possible value. In the
/// generated script a function takes the place of each mark.
fn zsh_marked(command: Command) -> Command {
    COMPLETED.iter().fold(command, |command, (words, kind)| {
        let words: Vec<&str> = words.split(' ').collect();
        zsh_marked_at(command, &words, kind.mark())
    })
}

fn zsh_marked_at(command: Command, words: &[&str], mark: &'static str) -> Command {
    if let Some((first, rest)) = words.split_first() {
        return command.mut_subcommand(*first, |below| zsh_marked_at(below, rest, mark));
    }
    let all = command.get_positionals();
    let all: Vec<_> = all.map(|argument| argument.get_id().clone()).collect();
    // A changed argument moves to the end. All of them are changed, which keeps their order.
    let changed = all.into_iter().enumerate();
    changed.fold(command, |command, (number, id)| {
        command.mut_arg(id, |argument| match number {
            0 => argument.value_parser([mark]),
            _ => argument,
        })
    })
}

fn zsh_names(script: &str) -> String {
    let named = COMPLETED.iter();
    let named = named.fold(script.to_owned(), |script, (_, kind)| {
        let names = format!(":_toolward_names {}", kind.word());
        script.replace(&format!(":({})", kind.mark()), &names)
    });
    // The function is inserted before the line that first calls it, so that the script also works
    // as a file of `fpath`.
    match named.rsplit_once(ZSH_LAST) {
        Some((before, last)) => format!("{before}{ZSH}\n{ZSH_LAST}{last}"),
        None => named,
    }
}

const ZSH_LAST: &str = "if [ \"$funcstack[1]\" = \"_toolward\" ]; then";

const ZSH: &str = include_str!("completions/names.zsh");

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::commands::Cli;

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

    #[test]
    fn a_flag_without_a_value_is_told_from_one_with() {
        let mut cli = Cli::command();
        cli.build();
        let switches = switches(&cli);
        for alone in ["-v", "-q", "--json", "--help"] {
            assert!(switches.contains(alone), "{alone} in {switches:?}");
        }
        for with_value in ["--set", "--config", "--color", "-o"] {
            assert!(!switches.contains(with_value), "{with_value}");
        }
    }

    #[test]
    fn each_completed_command_asks_for_its_names() {
        let script = script(Shell::Zsh, &Cli::command());
        assert!(!script.contains("toolward-internal-"));
        let asked = script.matches(":_toolward_names ").count();
        assert_eq!(asked, COMPLETED.len());
        let (function, first) = (script.find(ZSH).unwrap(), script.find(ZSH_LAST).unwrap());
        assert!(function < first);
    }

    #[test]
    fn hidden_commands_are_offered_in_no_shell() {
        for shell in Shell::value_variants() {
            let script = script(*shell, &Cli::command());
            assert!(script.contains("trust-key"), "{shell}");
            assert!(!script.contains("internal-man-pages"), "{shell}");
        }
    }
}
