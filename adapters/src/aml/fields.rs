//! Reads the fields of a definition, and adds a finding for each problem.

use toolward_contract::diagnostic::{Diagnostic, Position};
use toolward_support::fields::{Content, FieldProblem, Kind, nearest};
use toolward_support::report::Code;

use super::codes;

pub(super) type Node = toolward_support::fields::Node<Position>;
pub(super) type Field<'n> = toolward_support::fields::Field<'n, Position>;
pub(super) type Fields<'n> = toolward_support::fields::Fields<'n, Position>;

/// The findings in one file.
pub(super) struct Findings<'f> {
    pub(super) file: &'f str,
    pub(super) found: Vec<Diagnostic>,
}

impl Findings<'_> {
    pub(super) fn add(&mut self, code: &Code, at: Position, message: impl Into<String>) {
        let found = Diagnostic::new(code, self.file, at, message);
        self.found.push(found);
    }

    pub(super) fn add_hinted(
        &mut self,
        code: &Code,
        at: Position,
        message: impl Into<String>,
        hint: Option<String>,
    ) {
        let found = Diagnostic::new(code, self.file, at, message);
        self.found.push(Diagnostic { hint, ..found });
    }

    /// Returns the fields of a mapping; adds a finding if the field is not a mapping.
    pub(super) fn mapping<'n>(&mut self, field: &Field<'n>) -> Option<Fields<'n>> {
        self.valid(Fields::of(field))
    }

    /// Returns the value; adds a finding if it was refused.
    fn valid<T>(&mut self, read: Result<T, FieldProblem<'_, Position>>) -> Option<T> {
        read.map_err(|problem| self.refuse(&problem)).ok()
    }

    /// Returns a required field. Null counts as missing.
    pub(super) fn required<'n>(
        &mut self,
        fields: &mut Fields<'n>,
        key: &'static str,
    ) -> Option<Field<'n>> {
        let field = self.valid(fields.required(key))?;
        if field.is_null() {
            self.missing(&codes::FIELD_MISSING, &field.name, field.key_at);
            return None;
        }
        Some(field)
    }

    /// Returns a required text. Empty text counts as missing.
    pub(super) fn required_text<'n>(
        &mut self,
        fields: &mut Fields<'n>,
        key: &'static str,
    ) -> Option<(&'n str, Position)> {
        let field = self.required(fields, key)?;
        let text = self.valid(field.text())?.trim();
        if text.is_empty() {
            self.missing(&codes::FIELD_MISSING, &field.name, field.at);
            return None;
        }
        Some((text, field.at))
    }

    /// Returns the field's text. Any other value is a finding with `code`.
    pub(super) fn text<'n>(
        &mut self,
        field: &Field<'n>,
        code: &Code,
        expected: &str,
    ) -> Option<&'n str> {
        if let Content::Text(text) = &field.node.content {
            return Some(text);
        }
        let message = format!(
            "expected `{}` to be {expected}, found {}",
            field.name,
            field.kind()
        );
        self.add_hinted(code, field.at, message, quoted(field));
        None
    }

    /// Returns the field's text if it is one of these words; otherwise adds a finding.
    pub(super) fn one_of<'n>(
        &mut self,
        field: &Field<'n>,
        code: &Code,
        words: &[&str],
    ) -> Option<&'n str> {
        let expected = format!("one of {}", words.join(", "));
        let found = self.text(field, code, &expected)?;
        if words.contains(&found) {
            return Some(found);
        }
        let message = format!(
            "expected `{}` to be {expected}, found {found:?}",
            field.name
        );
        let near = nearest(found, words.iter().copied());
        let hint = near.map(|near| format!("did you mean `{near}`?"));
        self.add_hinted(code, field.at, message, hint);
        None
    }

    /// Returns the value whose word is the field's text.
    pub(super) fn choice<T: Copy>(
        &mut self,
        field: &Field<'_>,
        code: &Code,
        all: &[T],
        word: fn(T) -> &'static str,
    ) -> Option<T> {
        let words: Vec<&str> = all.iter().map(|value| word(*value)).collect();
        meaning(all, word, self.one_of(field, code, &words)?)
    }

    /// Returns a required mapping, with the position of its key.
    pub(super) fn required_mapping<'n>(
        &mut self,
        fields: &mut Fields<'n>,
        key: &'static str,
    ) -> Option<(Fields<'n>, Position)> {
        let field = self.required(fields, key)?;
        Some((self.mapping(&field)?, field.key_at))
    }

    /// Checks that a required field is a text for which `is_formed` holds.
    pub(super) fn formed(
        &mut self,
        fields: &mut Fields<'_>,
        key: &'static str,
        code: &Code,
        expected: &str,
        is_formed: impl Fn(&str) -> bool,
    ) {
        if let Some(field) = self.required(fields, key)
            && let Some(found) = self.text(&field, code, expected)
            && !is_formed(found)
        {
            let message = format!("expected `{key}` to be {expected}, found {found:?}");
            self.add(code, field.at, message);
        }
    }

    /// Returns a field that is not empty; otherwise adds the finding that the field is missing.
    pub(super) fn filled<'n>(
        &mut self,
        fields: &mut Fields<'n>,
        key: &'static str,
        code: &Code,
        at: Position,
    ) -> Option<Field<'n>> {
        let found = present(fields, key).filter(|field| !is_empty(field));
        if found.is_none() {
            self.missing(code, &fields.name_of(key), at);
        }
        found
    }

    pub(super) fn missing(&mut self, code: &Code, name: &str, at: Position) {
        self.add(
            code,
            at,
            format!("expected the field `{name}`, found nothing"),
        );
    }

    fn refuse(&mut self, problem: &FieldProblem<'_, Position>) {
        match problem {
            FieldProblem::Missing { name, at, .. } => {
                self.missing(&codes::FIELD_MISSING, name, *at)
            }
            FieldProblem::Type {
                name,
                expected,
                found,
            } => {
                let what = match name.as_str() {
                    "" => "the front matter".to_owned(),
                    name => format!("`{name}`"),
                };
                let message = format!("expected {what} to be {expected}, found {}", found.kind());
                let hint = quoted(found).filter(|_| *expected == Kind::Text);
                self.add_hinted(&codes::FIELD_TYPE, found.at, message, hint);
            }
            // Neither occurs: no field is read as an integer, and unknown fields are not refused.
            FieldProblem::Integer { .. } | FieldProblem::Unknown { .. } => {}
        }
    }
}

/// Returns the value with this word.
pub(super) fn meaning<T: Copy>(all: &[T], word: fn(T) -> &'static str, text: &str) -> Option<T> {
    all.iter().copied().find(|value| word(*value) == text)
}

/// The hint for a number in place of a text.
fn quoted(found: &Node) -> Option<String> {
    match &found.content {
        Content::Number(number) => Some(format!("quote it: \"{number}\"")),
        _ => None,
    }
}

/// Returns an optional field. Null counts as missing.
pub(super) fn present<'n>(fields: &mut Fields<'n>, key: &'static str) -> Option<Field<'n>> {
    fields.take(key).filter(|field| !field.is_null())
}

/// Returns the value at a path: keys, separated by dots.
pub(super) fn find<'n>(document: &'n Node, way: &str) -> Option<&'n Node> {
    let mut keys = way.split('.').filter(|key| !key.is_empty());
    keys.try_fold(document, |node, key| node.get(key))
}

/// Whether a value is null, blank text, an empty mapping, or a list of only such values.
pub(super) fn is_empty(node: &Node) -> bool {
    match &node.content {
        Content::Null => true,
        Content::Text(text) => text.trim().is_empty(),
        Content::List(items) => items.iter().all(is_empty),
        Content::Mapping(entries) => entries.is_empty(),
        _ => false,
    }
}
