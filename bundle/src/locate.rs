//! Makes diagnostics about whole files and about repeated names, and finds the position of a key in
//! a document.

use std::collections::BTreeMap;
use std::fmt::Display;

use toolward_contract::diagnostic::{Diagnostic, Position};
use toolward_support::fields::without_mark;
use toolward_support::report::{Code, Coded};

use crate::codes;

/// A diagnostic about a file as a whole: line 1, column 1.
pub fn about_file(
    file: &str,
    code: &Code,
    message: impl Into<String>,
    hint: impl Into<String>,
) -> Diagnostic {
    Diagnostic::new(code, file, Position::START, message).with_hint(hint)
}

/// The text of a file, or the diagnostic that it is not UTF-8.
pub fn text_of<'b>(file: &str, code: &Code, bytes: &'b [u8]) -> Result<&'b str, Diagnostic> {
    std::str::from_utf8(bytes).map_err(|error| {
        let message = format!("byte {} is not UTF-8", error.valid_up_to());
        about_file(file, code, message, "save the file as UTF-8")
    })
}

/// A diagnostic about a file as a whole, with the text and the hint of an error.
pub fn about_error(file: &str, code: &Code, error: &(impl Coded + Display)) -> Diagnostic {
    let hint = error.hint().map(Into::into);
    let found = Diagnostic::new(code, file, Position::START, error.to_string());
    Diagnostic { hint, ..found }
}

/// The position of a top-level key in a document's front matter, or the start of the document.
pub(crate) fn key_position(source: &str, key: &str) -> Position {
    let mut lines = without_mark(source).lines();
    if lines.next() != Some("---") {
        return Position::START;
    }
    lines
        .take_while(|line| *line != "---")
        .zip(2u32..)
        .find(|(line, _)| {
            line.strip_prefix(key)
                .is_some_and(|rest| rest.trim_start().starts_with(':'))
        })
        .map_or(Position::START, |(_, line)| Position { line, column: 1 })
}

/// Reports each document whose id an earlier document of the same kind has.
pub(crate) fn repeated<'a>(
    kind: &str,
    ids: impl Iterator<Item = (String, &'a str)>,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    for (id, path) in ids {
        if let Some(first) = seen.get(&id) {
            diagnostics.push(about_file(
                path,
                &codes::DUPLICATE_ID,
                format!("the {kind} {id:?} is taken by {first}"),
                "give one of them another, or put it into another bundle",
            ));
        } else {
            seen.insert(id, path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_in_the_front_matter_only() {
        let source = "---\nid: a\nkind: x\n---\nbody: y\n";
        assert_eq!(key_position(source, "kind").to_string(), "3:1");
        assert_eq!(key_position(source, "body"), Position::START);
    }
}
