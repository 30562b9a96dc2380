//! Arguments of prompts and of templates of resources. Not of tools: those have schemas.

use std::collections::BTreeSet;

use crate::codes;
use crate::diagnostic::{FileReport, Position};
use crate::placeholder::is_name;
use crate::source::{FieldReader, MappingReader, nearest};
use crate::wording::{check_characters, prose};

/// How many arguments a document may have: a person is asked for them in one form.
const MAX_ARGUMENTS: usize = 32;

/// How many values an argument may suggest.
const MAX_VALUES: usize = 256;

/// Unknown names that a message lists.
const MAX_SHOWN: usize = 20;

/// One argument.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Argument {
    /// Its name: a letter, then letters, digits and `_`.
    pub name: String,
    /// Its name for people.
    pub title: Option<String>,
    /// What it is.
    pub description: Option<String>,
    /// Whether a value must be given.
    pub required: bool,
    /// Suggestions for completion, in the author's order.
    pub values: Vec<String>,
    /// Its place in the document.
    pub(crate) at: Position,
}

/// `arguments`: a list; none if it is absent.
pub(crate) fn arguments(fields: &mut MappingReader<'_>) -> Vec<Argument> {
    let Some(field) = fields.take("arguments") else {
        return Vec::new();
    };
    let items = field.items();
    if items.len() > MAX_ARGUMENTS {
        let count = items.len();
        let message = format!("expected at most {MAX_ARGUMENTS} arguments, found {count}");
        field.note(&codes::WRONG_VALUE, message);
        return Vec::new();
    }
    let mut names = BTreeSet::new();
    let read = items.iter().filter_map(|item| {
        let argument = argument(item)?;
        if !names.insert(argument.name.clone()) {
            let message = format!(
                "expected each argument once, found `{}` again",
                argument.name
            );
            return item.refuse(&codes::ARGUMENT_NAME, message);
        }
        Some(argument)
    });
    read.collect()
}

fn argument(item: &FieldReader<'_>) -> Option<Argument> {
    let mut fields = item.fields()?;
    let name = fields.require("name", |field| {
        let found = field.text()?;
        if !is_name(found) {
            let message = format!(
                "expected `{}` to be a letter and up to 63 letters, digits and `_`, found {:?}",
                field.name,
                found.chars().take(80).collect::<String>()
            );
            return field.refuse(&codes::ARGUMENT_NAME, message);
        }
        if asks_for_credential(found) {
            let message = format!("expected no name of a credential, found `{found}`");
            return field.refuse(&codes::ARGUMENT_CREDENTIAL, message);
        }
        Some(found.to_owned())
    });
    let title = fields.read("title", |field| prose(field, 1..=80, false));
    let description = fields.read("description", |field| prose(field, 1..=2000, true));
    let required = fields.boolean("required");
    let values = fields.take("values").map(|field| values(&field));
    fields.unknown();
    Some(Argument {
        name: name?,
        title,
        description,
        required: required.unwrap_or_default(),
        values: values.unwrap_or_default(),
        at: item.at,
    })
}

fn values(field: &FieldReader<'_>) -> Vec<String> {
    let mut values = field.texts();
    if values.len() > MAX_VALUES {
        let count = values.len();
        let message = format!("expected at most {MAX_VALUES} values, found {count}");
        field.note(&codes::WRONG_VALUE, message);
        values.truncate(MAX_VALUES);
    }
    values.retain(|(value, at)| {
        let length = value.len();
        if !(1..=256).contains(&length) {
            let name = &field.name;
            let message = format!("expected values in `{name}` of 1 to 256 bytes, found {length}");
            field.report.add(&codes::WRONG_VALUE, *at, message);
            return false;
        }
        check_characters(value, &field.name, *at, false, field.report)
    });
    values
        .into_iter()
        .map(|(value, _)| value.to_owned())
        .collect()
}

/// Whether the names that a text uses, each with its line, are arguments, and arguments are used.
pub(crate) fn check(used: &BTreeSet<(&str, u32)>, arguments: &[Argument], report: &FileReport<'_>) {
    let known = |name: &str| arguments.iter().any(|argument| argument.name == name);
    let mut reported = BTreeSet::new();
    for &(name, line) in used {
        if !known(name) && reported.insert(name) {
            let at = Position { line, column: 1 };
            let message = format!("expected the name of an argument, found `{{{{{name}}}}}`");
            let names = arguments.iter().map(|argument| argument.name.as_str());
            let hint = match nearest(name, names) {
                Some(near) => format!("did you mean `{{{{{near}}}}}`?"),
                None => {
                    format!("add it to `arguments`, or write `\\{{{{{name}}}}}` for the braces")
                }
            };
            report.add_with_hint(&codes::PLACEHOLDER_UNKNOWN, at, message, hint);
            if reported.len() == MAX_SHOWN {
                return;
            }
        }
    }
    for argument in arguments {
        if !used.iter().any(|(name, _)| *name == argument.name) {
            let message = format!(
                "expected `{{{{{}}}}}` in the text, found it nowhere",
                argument.name
            );
            report.add(&codes::ARGUMENT_UNUSED, argument.at, message);
        }
    }
}

/// Whether a name asks for a credential, which a person should not type into an untrusted form.
#[must_use]
pub fn asks_for_credential(name: &str) -> bool {
    let plain: String = name
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect();
    let parts = [
        "password",
        "passwd",
        "passphrase",
        "passcode",
        "secret",
        "credential",
        "apikey",
        "accesskey",
        "privatekey",
        "signingkey",
        "authtoken",
        "accesstoken",
        "bearer",
    ];
    let whole = ["pin", "otp", "cvv", "cvc", "ssn", "pwd", "auth", "jwt"];
    parts.iter().any(|part| plain.contains(part))
        || whole.contains(&plain.as_str())
        || plain.ends_with("token")
}

#[cfg(test)]
mod tests {
    use super::asks_for_credential;

    #[test]
    fn names_of_credentials_are_seen_however_they_are_spelt() {
        for name in [
            "password",
            "userPassword",
            "api_key",
            "API-KEY",
            "token",
            "github_token",
        ] {
            assert!(asks_for_credential(name), "{name}");
        }
        for name in ["topic", "max_tokens", "author", "key", "pinned"] {
            assert!(!asks_for_credential(name), "{name}");
        }
    }
}
