//! For bash: a function in front of the generated one. A name is compared as text and never expanded; what is
//! run is the `toolward` of PATH, not the word before the cursor.

use std::collections::BTreeSet;

use super::completed;

pub(super) fn names(command: &clap::Command) -> String {
    let cases: String = completed()
        .map(|(words, kind)| format!("        \" {words}\") kind={kind} ;;\n"))
        .collect();
    let switches = Vec::from_iter(switches(command)).join("|");
    NAMES
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

/// Where the line says which store or configuration it means, names are those of there.
const NAMES: &str = r#"
_toolward_names() {
    local cur="$2" word line path="" kind="" value="" place=()
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        case "$word" in
            =) value="${value:-=}" ;;
            SWITCHES) value="" ;;
            --store-dir=* | --config=*) place+=("$word") value="" ;;
            -*=*) value="" ;;
            -*) value="$word" ;;
            *)
                case "$value" in
                    "") path+=" $word" ;;
                    --store-dir | --config) place+=("$value" "${word/#\~\//$HOME/}") ;;
                esac
                value=""
                ;;
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
    done < <(command toolward internal-names "$kind" "${place[@]}" 2>/dev/null </dev/null)
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
}
