//! `completions`: a script that completes this command's arguments. The one for bash also
//! completes ids and names, which it asks `internal-names` for.

use std::collections::BTreeSet;

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
    clap_complete::generate(arguments.shell, &mut command, "toolward", &mut script);
    if arguments.shell == Shell::Bash {
        script.extend(bash_names(&command).into_bytes());
    }
    crate::output::raw(&script)
}

/// A function in front of the generated one. A name is compared as text and never expanded; what is
/// run is the `toolward` of PATH, not the word before the cursor.
fn bash_names(command: &clap::Command) -> String {
    let cases: String = COMPLETED
        .iter()
        .filter_map(|(words, kind)| {
            let kind = kind.to_possible_value()?;
            Some(format!(
                "        \" {words}\") kind={} ;;\n",
                kind.get_name()
            ))
        })
        .collect();
    let switches = Vec::from_iter(switches(command)).join("|");
    BASH_NAMES
        .replace("CASES\n", &cases)
        .replace("SWITCHES", &switches)
}

/// The flags that take no value with any command.
fn switches(command: &clap::Command) -> BTreeSet<String> {
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

const BASH_NAMES: &str = r#"
_toolward_names() {
    local cur="$2" word line path="" kind="" value=""
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        case "$word" in
            =) value=1 ;;
            SWITCHES) value="" ;;
            -*=*) value="" ;;
            -*) value=1 ;;
            *) [[ -n "$value" ]] && value="" || path+=" $word" ;;
        esac
    done
    case "$path" in
CASES
    esac
    if [[ -z "$kind" || -n "$value" || "$cur" == [-=]* ]]; then
        _toolward "$@"
        return
    fi
    COMPREPLY=()
    while IFS= read -r line; do
        [[ "$line" == "$cur"* ]] && COMPREPLY+=("$line")
    done < <(command toolward internal-names "$kind" 2>/dev/null </dev/null)
}
complete -F _toolward_names -o bashdefault -o default toolward
"#;

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::arguments::Cli;

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
