//! Command lines that are not understood, as JSON for those who asked for that.

use std::ffi::OsString;

use serde_json::Value;

use crate::failure::{Code, Failure};

/// Whether a command line that may not be understood asks for JSON.
pub(crate) fn wants_json(arguments: &[OsString]) -> bool {
    let own = arguments.iter().take_while(|word| *word != "--");
    own.into_iter().any(|word| word == "--json")
}

/// Where colours were asked for on a command line that may not be understood.
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

/// The error as `--json` shows failures.
pub(crate) fn as_json(error: &clap::Error) -> Value {
    failure(error).to_json()
}

/// The error as people see it: what the parser calls a tip is a hint, as everywhere else.
pub(crate) fn for_people(error: &clap::Error, colours: bool) -> String {
    let text = error.render();
    let text = match colours {
        true => text.ansi().to_string(),
        false => text.to_string(),
    };
    let lines = text.split_inclusive('\n').map(|line| {
        let tip = ["  tip:", "  \u{1b}[32mtip:"];
        match tip.iter().any(|tip| line.starts_with(tip)) {
            true => line.replacen("tip:", "hint:", 1),
            false => line.to_owned(),
        }
    });
    lines.collect()
}

/// The error as a failure: what is wrong, and as hints what the parser advises.
pub(crate) fn failure(error: &clap::Error) -> Failure {
    let text = error.render().to_string();
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
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
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
