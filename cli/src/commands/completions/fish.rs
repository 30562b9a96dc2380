//! For fish: a line for each command whose argument is a name, behind the generated ones.

use super::completed;

pub(super) fn names() -> String {
    let lines = completed().map(|(words, kind)| {
        let (command, below) = words.split_once(' ').unwrap_or((words, ""));
        let below = match below {
            "" => String::new(),
            below => format!("; and __fish_seen_subcommand_from {below}"),
        };
        format!(
            "complete -c toolward -n \"__fish_toolward_using_subcommand {command}{below}\" -f \
             -a \"(command toolward internal-names {kind} 2>/dev/null </dev/null)\"\n"
        )
    });
    lines.collect()
}
