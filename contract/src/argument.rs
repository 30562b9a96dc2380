//! Arguments of prompts and of templates of resources. Not of tools: those have schemas.

use std::collections::BTreeSet;

use crate::codes;
use crate::diagnostic::{Position, Report};
use crate::placeholder::is_name;
use crate::source::{Field, Fields, nearest};
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
    /// Whether nothing goes without it.
    pub required: bool,
    /// Suggestions for completion, in the author's order.
    pub values: Vec<String>,
    /// Where it stands.
    pub(crate) at: Position,
}

/// `arguments`: a list; none if it isn't there.
pub(crate) fn arguments(fields: &mut Fields<'_>, report: &mut Report<'_>) -> Vec<Argument> {
    let Some(field) = fields.take("arguments") else {
        return Vec::new();
    };
    let items = report.read(field.items()).unwrap_or_default();
    if items.len() > MAX_ARGUMENTS {
        let message = format!(
            "expected at most {MAX_ARGUMENTS} arguments, found {}",
            items.len()
        );
        report.add(&codes::WRONG_VALUE, field.at, message);
        return Vec::new();
    }
    let mut names = BTreeSet::new();
    let mut arguments = Vec::with_capacity(items.len());
    for item in &items {
        let Some(argument) = argument(item, report) else {
            continue;
        };
        if names.insert(argument.name.clone()) {
            arguments.push(argument);
        } else {
            let message = format!(
                "expected each argument once, found `{}` again",
                argument.name
            );
            report.add(&codes::ARGUMENT_NAME, item.at, message);
        }
    }
    arguments
}

fn argument(item: &Field<'_>, report: &mut Report<'_>) -> Option<Argument> {
    let mut fields = report.read(Fields::of(item))?;
    let name = report.read(fields.required("name")).and_then(|field| {
        let found = report.read(field.text())?;
        if !is_name(found) {
            let message = format!(
                "expected `{}` to be a letter and up to 63 letters, digits and `_`, found {:?}",
                field.name,
                found.chars().take(80).collect::<String>()
            );
            report.add(&codes::ARGUMENT_NAME, field.at, message);
            return None;
        }
        if asks_for_credential(found) {
            let message = format!("expected no name of a credential, found `{found}`");
            report.add(&codes::ARGUMENT_CREDENTIAL, field.at, message);
            return None;
        }
        Some(found.to_owned())
    });
    let title = fields.take("title");
    let title = title.and_then(|field| prose(&field, 1..=80, false, report));
    let description = fields.take("description");
    let description = description.and_then(|field| prose(&field, 1..=2000, true, report));
    let required = fields.take("required");
    let required = required.and_then(|field| report.read(field.boolean()));
    let mut values = Vec::new();
    if let Some(field) = fields.take("values") {
        let found = report.texts(&field);
        if found.len() > MAX_VALUES {
            let message = format!(
                "expected at most {MAX_VALUES} values, found {}",
                found.len()
            );
            report.add(&codes::WRONG_VALUE, field.at, message);
        }
        for (value, at) in found.into_iter().take(MAX_VALUES) {
            if !(1..=256).contains(&value.len()) {
                let message = format!(
                    "expected values in `{}` of 1 to 256 bytes, found {}",
                    field.name,
                    value.len()
                );
                report.add(&codes::WRONG_VALUE, at, message);
            } else if check_characters(value, &field.name, at, false, report) {
                values.push(value.to_owned());
            }
        }
    }
    report.unknown(fields);
    Some(Argument {
        name: name?,
        title,
        description,
        required: required.unwrap_or_default(),
        values,
        at: item.at,
    })
}

/// Whether the names that a text uses, each with its line, are arguments, and arguments are used.
pub(crate) fn check(used: &BTreeSet<(&str, u32)>, arguments: &[Argument], report: &mut Report<'_>) {
    let known = |name: &str| arguments.iter().any(|argument| argument.name == name);
    let mut told = BTreeSet::new();
    for &(name, line) in used {
        if !known(name) && told.insert(name) {
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
            if told.len() == MAX_SHOWN {
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
