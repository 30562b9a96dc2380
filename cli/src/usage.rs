//! Errors of command lines that can't be parsed: as JSON if requested, and with the command that
//! was probably meant.

use std::ffi::OsString;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::codes::Code;
use crate::failure::Failure;

/// Whether a command line that may not parse asks for JSON.
pub(crate) fn wants_json(arguments: &[OsString]) -> bool {
    let own = arguments.iter().take_while(|word| *word != "--");
    own.into_iter().any(|word| word == "--json")
}

/// Returns the colour choice of a command line that may not parse.
pub(crate) fn colour(arguments: &[OsString]) -> clap::ColorChoice {
    let mut words = arguments.iter().take_while(|word| *word != "--");
    let mut found = None;
    while let Some(word) = words.next() {
        let Some(word) = word.to_str() else { continue };
        found = match word.strip_prefix("--color") {
            Some("") => words.next().and_then(|word| word.to_str()).or(found),
            Some(value) => value.strip_prefix('=').or(found),
            None => found,
        };
    }
    match found {
        Some("always") => clap::ColorChoice::Always,
        Some("never") => clap::ColorChoice::Never,
        _ => clap::ColorChoice::Auto,
    }
}

/// Words of other tools, and former names, each with the words to type here.
const OTHER_WORDS: &[(&[&str], &str)] = &[
    (&["run", "exec", "invoke"], "call TOOL"),
    (&["info", "view"], "show TOOL"),
    (&["why", "which"], "show TOOL --drivers"),
    (&["explain", "policy explain"], "show TOOL --policy"),
    (&["describe", "export", "schema"], "show TOOL --as FORM"),
    (&["logs", "log", "history"], "ledger list"),
    (&["replay"], "ledger replay ROWS"),
    (&["audit"], "ledger verify"),
    (&["add", "get"], "install SOURCE"),
    (&["uninstall", "delete", "rm"], "remove BUNDLE"),
    (&["upgrade"], "update"),
    (&["ls"], "list"),
    (&["find"], "search WORDS"),
    (&["start", "server"], "serve"),
    (&["allow", "grant"], "policy grant TOOL"),
    (&["init", "create", "scaffold"], "new DIRECTORY"),
    (&["lint", "validate"], "check"),
    (&["compile"], "build"),
    (&["bundle", "package"], "pack"),
    (&["toolchain"], "doctor --language all"),
    (&["key", "keys"], "publisher keys"),
    (&["sign"], "publisher sign FILE"),
    (
        &["publish", "push", "upload"],
        "publisher push BUNDLE REFERENCE",
    ),
    (&["pull", "fetch", "download"], "publisher pull SOURCE"),
    (&["login"], "publisher push --docker-config FILE"),
    (&["revoke"], "publisher revoke"),
    (&["config", "setup"], "mcp config"),
    (&["token"], "mcp token"),
    (&["status"], "doctor"),
    (&["version"], "--version"),
];

/// If the unknown command is a word of another tool, adds the command that was probably meant to
/// the error. Otherwise keeps clap's suggestions, except hidden commands.
pub(crate) fn hinted(
    mut error: clap::Error,
    words: &[OsString],
    command: &clap::Command,
) -> clap::Error {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return error;
    };
    let (word, mut path, mut group) = (word.clone(), String::new(), command);
    for known in words.iter().skip(1).take_while(|one| **one != *word) {
        if let Some(below) = group.find_subcommand(known) {
            path.push_str(below.get_name());
            path.push(' ');
            group = below;
        }
    }
    path.push_str(&word);
    let mut others = OTHER_WORDS.iter();
    if let Some((_, meant)) = others.find(|(words, _)| words.contains(&path.as_str())) {
        error.remove(ContextKind::SuggestedSubcommand);
        let hint = StyledStr::from(format!("use `toolward {meant}`"));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![hint]));
    } else if let Some(ContextValue::Strings(mut near)) =
        error.remove(ContextKind::SuggestedSubcommand)
    {
        let is_shown = |one: &clap::Command| !one.is_hide_set();
        near.retain(|name| group.find_subcommand(name).is_some_and(is_shown));
        if !near.is_empty() {
            let near = ContextValue::Strings(near);
            error.insert(ContextKind::SuggestedSubcommand, near);
        }
    }
    error
}

/// Returns the text of an error in this command's words.
fn rendered(error: &clap::Error, colours: bool) -> String {
    let text = error.render();
    let text = match colours {
        true => text.ansi().to_string(),
        false => text.to_string(),
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand => text
            .replacen("unrecognized subcommand", "unknown command", 1)
            .replacen("similar subcommand", "similar command", 1),
        _ => text,
    }
}

/// Formats the error for people. The parser's tip becomes a hint, as everywhere else.
pub(crate) fn for_people(error: &clap::Error, colours: bool) -> String {
    let text = rendered(error, colours);
    let lines = text.split_inclusive('\n').map(|line| {
        let tip = ["  tip:", "  \u{1b}[32mtip:"];
        match tip.iter().any(|tip| line.starts_with(tip)) {
            true => line.replacen("tip:", "hint:", 1),
            false => line.to_owned(),
        }
    });
    lines.collect()
}

/// Converts the error to a failure: the problem, with the parser's advice as hints.
pub(crate) fn failure(error: &clap::Error) -> Failure {
    let text = rendered(error, false);
    let mut lines = text.lines();
    let message: Vec<&str> = lines
        .by_ref()
        .take_while(|line| !line.is_empty())
        .map(str::trim)
        .collect();
    let message = message.join(" ");
    let message = message.strip_prefix("error: ").unwrap_or(&message);
    let mut failure = Failure::usage(Code::UsageInvalid, message);
    for line in lines.map(str::trim).filter(|line| !line.is_empty()) {
        let hint = line.strip_prefix("tip: ").unwrap_or(line);
        failure = failure.hint(hint);
    }
    failure
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::commands::Cli;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    /// Returns the hints for a line with an unknown command.
    fn hints(line: &str) -> Vec<String> {
        let (mut command, words) = (Cli::command(), words(line));
        let error = command.try_get_matches_from_mut(&words).unwrap_err();
        let failure = failure(&hinted(error, &words, &command));
        assert!(failure.message.starts_with("unknown command"), "{line}");
        failure.hints
    }

    #[test]
    fn words_of_other_tools_lead_to_a_command() {
        for (others, meant) in OTHER_WORDS {
            let mut command = &Cli::command();
            for word in meant
                .split(' ')
                .take_while(|word| word.starts_with(char::is_lowercase))
            {
                command = command.find_subcommand(word).expect(meant);
                assert!(!command.is_hide_set(), "{meant}");
            }
            for word in *others {
                let hint = format!("use `toolward {meant}`");
                assert_eq!(hints(&format!("toolward --color never {word}"))[0], hint);
            }
        }
    }

    #[test]
    fn only_commands_that_the_help_shows_are_suggested() {
        let near = "a similar command exists: 'verify'";
        assert_eq!(hints("toolward verfy")[0], near);
        for line in ["toolward internal-name", "toolward trust bogus"] {
            assert!(hints(line)[0].starts_with("Usage:"), "{line}");
        }
    }

    #[test]
    fn what_follows_two_dashes_asks_for_nothing() {
        assert!(wants_json(&words("toolward bogus --json")));
        assert!(!wants_json(&words("toolward call -- --json")));
    }

    #[test]
    fn the_last_colour_counts() {
        for (line, expected) in [
            ("toolward --color never", clap::ColorChoice::Never),
            (
                "toolward --color=never --color=always",
                clap::ColorChoice::Always,
            ),
            ("toolward --color", clap::ColorChoice::Auto),
            ("toolward -- --color=never", clap::ColorChoice::Auto),
        ] {
            assert_eq!(colour(&words(line)), expected, "{line}");
        }
    }
}
