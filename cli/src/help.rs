//! The parts of `--help` besides the flags: the groups of commands, and an example of each command.

use clap::Command;

/// The groups of commands, in the order in which they are shown.
const GROUPS: [(&str, &str); 4] = [
    ("use", "call show serve demo mcp list search"),
    ("trust", "trust install update remove verify policy"),
    ("publish", "new import check build test pack publisher"),
    ("look", "inspect ledger doctor completions"),
];

/// An example of each command.
const EXAMPLES: &[&str] = &[
    "toolward call text.stats --set text='to be or not to be'",
    "toolward show text.stats --drivers",
    "toolward serve --http localhost:8000",
    "toolward demo --client cursor",
    "toolward mcp config claude-code --write",
    "toolward mcp token alice --tools text.stats",
    "toolward list",
    "toolward search word count",
    "toolward trust add acme.publisher.json --prefix acme --max-age-days 90",
    "toolward trust list",
    "toolward trust show acme",
    "toolward trust update acme",
    "toolward trust remove acme",
    "toolward install oci://registry.example/acme/notes:1.2.0",
    "toolward update",
    "toolward remove text.stats",
    "toolward verify notes.toolbundle --trust-key acme.pub.pem",
    "toolward policy list",
    "toolward policy suggest notes.append",
    "toolward policy grant notes.append",
    "toolward policy check policy.toml",
    "toolward new greeter --id acme.greet",
    #[cfg(feature = "adapters")]
    "toolward import component functions.wasm --id acme.text -o text",
    "toolward check greeter",
    "toolward build greeter",
    "toolward test --dev greeter",
    "toolward pack greeter --key acme.pem",
    "toolward publisher keys new --out acme.pem",
    "toolward publisher keys show acme.pub.pem",
    "toolward publisher keys export acme.pem",
    "toolward publisher keys encrypt acme.pem --out safe.pem",
    "toolward publisher sign packed --key acme.pem",
    "toolward publisher push greeter.toolbundle oci://registry.example/acme/greeter:1.0.0",
    "toolward publisher pull oci://registry.example/acme/greeter:1.0.0 -o greeter.toolbundle",
    "toolward inspect notes.toolbundle",
    "toolward ledger list",
    "toolward ledger verify",
    "toolward ledger replay 0..100",
    "toolward doctor --language rust python",
    "toolward completions bash",
];

/// Adds groups and examples to the help of the command line.
pub(crate) fn complete(mut command: Command) -> Command {
    let groups = groups(&command);
    for example in EXAMPLES {
        let words: Vec<&str> = example.split(' ').skip(1).collect();
        command = with_example(command, &words, example);
    }
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\nCommands:\n{groups}\n\
         Global options:\n{{options}}{{after-help}}"
    ))
}

/// Adds the example to the command that its words lead to.
fn with_example(command: Command, words: &[&str], example: &str) -> Command {
    match words.split_first() {
        Some((word, rest)) if command.find_subcommand(word).is_some() => {
            command.mut_subcommand(word, |inner| with_example(inner, rest, example))
        }
        _ => command.after_help(format!("Example:\n  {example}")),
    }
}

/// Lists the commands with their descriptions, below the names of their groups. Commands without a
/// group come last.
fn groups(command: &Command) -> String {
    let commands = command.get_subcommands();
    let shown: Vec<&Command> = commands.filter(|one| !one.is_hide_set()).collect();
    let width = shown.iter().map(|one| one.get_name().len()).max();
    let width = width.unwrap_or_default();
    let mut text = String::new();
    let line = |one: &&Command| {
        let about = one.get_about().map(ToString::to_string);
        let (name, about) = (one.get_name(), about.unwrap_or_default());
        format!("  {name:<width$}  {about}\n")
    };
    for (name, commands) in GROUPS {
        text.push_str(&format!(" {name}\n"));
        let named = commands.split(' ');
        let named = named.filter_map(|name| shown.iter().find(|one| one.get_name() == name));
        text.extend(named.map(line));
    }
    let grouped = |one: &&&Command| {
        let mut all = GROUPS.iter().flat_map(|(_, commands)| commands.split(' '));
        all.any(|name| name == one.get_name())
    };
    text.extend(shown.iter().filter(|one| !grouped(one)).map(line));
    text
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::commands::Cli;

    #[test]
    fn each_command_is_in_one_group() {
        let command = Cli::command();
        let shown = command.get_subcommands().filter(|one| !one.is_hide_set());
        for one in shown {
            let all = GROUPS.iter().flat_map(|(_, commands)| commands.split(' '));
            let found = all.filter(|name| *name == one.get_name()).count();
            assert_eq!(found, 1, "{}", one.get_name());
        }
    }

    #[test]
    fn each_example_is_a_command_line_that_is_understood() {
        for example in EXAMPLES {
            let line = example.replace("'to be or not to be'", "a");
            let found = Cli::command().try_get_matches_from(line.split(' '));
            assert!(found.is_ok(), "{example}: {found:?}");
        }
        assert!(complete(Cli::command()).get_after_help().is_none());
    }

    #[test]
    fn each_command_that_is_no_group_itself_has_an_example() {
        let command = complete(Cli::command());
        for one in command.get_subcommands().filter(|one| !one.is_hide_set()) {
            let own = one.get_after_help().is_some();
            let inner = one
                .get_subcommands()
                .any(|inner| inner.get_after_help().is_some());
            assert!(own || inner, "{}", one.get_name());
        }
    }

    /// Lines of a screen.
    const SCREEN: usize = 40;

    #[test]
    fn the_short_help_of_each_command_fits_on_a_screen() {
        let mut command = complete(Cli::command()).term_width(100);
        command.build();
        let mut commands = vec![&mut command];
        while let Some(command) = commands.pop() {
            let (short, long) = (command.render_help(), command.render_long_help());
            let (short, long) = (short.to_string(), long.to_string());
            let name = command.get_name().to_owned();
            assert!(short.lines().count() <= SCREEN, "{name}: {short}");
            let last = short.rsplit_once("Global options:\n").expect(&name).1;
            assert!(
                last.contains("--json") && !last.contains("--color"),
                "{name}: {short}"
            );
            assert!(long.contains("--color"), "{name}: {long}");
            // The command `help` is not ours.
            let below = command.get_subcommands_mut();
            commands.extend(below.filter(|one| one.get_name() != "help"));
        }
    }
}
