//! Values with line and column, from YAML front matter or JSON. Reads values as the expected types,
//! and reports every problem of a document. Field names are defined elsewhere.

mod yaml;

use std::ops::{Deref, RangeInclusive};

use serde_json::{Map, Value};
use toolward_support::fields::{FieldProblem, Kind};

use crate::codes;
use crate::diagnostic::{Code, FileReport, Position, missing};

pub(crate) use toolward_schema::json::located;
pub(crate) use toolward_support::fields::{Spelling, nearest};
pub(crate) use yaml::{KeyForm, parse as parse_yaml};

pub(crate) type Node = toolward_support::fields::Node<Position>;
pub(crate) type Content = toolward_support::fields::Content<Position>;
pub(crate) type Entry = toolward_support::fields::MappingEntry<Position>;

/// A value that was read from a document, with its position.
#[derive(Clone, Debug)]
pub(crate) struct PlacedValue<T> {
    pub(crate) value: T,
    pub(crate) at: Position,
}

/// Reads one value, which has a name in messages. Its problems go to the report of the file.
#[derive(Clone)]
pub(crate) struct FieldReader<'n> {
    inner: toolward_support::fields::Field<'n, Position>,
    pub(crate) report: &'n FileReport<'n>,
}

impl<'n> Deref for FieldReader<'n> {
    type Target = toolward_support::fields::Field<'n, Position>;

    fn deref(&self) -> &Self::Target {
        &self.inner
    }
}

impl<'n> FieldReader<'n> {
    /// A value without a key.
    pub(crate) fn new(name: &str, node: &'n Node, report: &'n FileReport<'n>) -> Self {
        let inner = toolward_support::fields::Field::new(name, node);
        Self { inner, report }
    }

    pub(crate) fn named(self, name: &str) -> Self {
        let inner = self.inner.named(name);
        Self { inner, ..self }
    }

    fn read<T>(&self, read: Result<T, FieldProblem<'_, Position>>) -> Option<T> {
        read.map_err(|problem| self.report.refuse(&problem)).ok()
    }

    pub(crate) fn text(&self) -> Option<&'n str> {
        self.read(self.inner.text())
    }

    pub(crate) fn string(&self) -> Option<String> {
        self.text().map(str::to_owned)
    }

    pub(crate) fn boolean(&self) -> Option<bool> {
        self.read(self.inner.boolean())
    }

    pub(crate) fn integer(&self, range: RangeInclusive<u64>) -> Option<u64> {
        self.read(self.inner.integer(range))
    }

    /// The value below this one at a path, which is keys with dots between them, if it is present.
    pub(crate) fn below(&self, path: &str) -> Option<FieldReader<'n>> {
        let node: &'n Node = self.inner.node;
        let node = path.split('.').try_fold(node, |node, key| node.get(key))?;
        let name = format!("{}.{path}", self.name);
        Some(FieldReader::new(&name, node, self.report))
    }

    /// As [`MappingReader::whole`], for the fields of this value.
    pub(crate) fn whole<T>(
        &self,
        read: impl FnOnce(&mut MappingReader<'n>) -> Option<T>,
    ) -> Option<T> {
        self.fields()?.whole(read)
    }

    /// A finite number that is not negative.
    pub(crate) fn amount(&self) -> Option<f64> {
        let Content::Number(number) = &self.content else {
            self.report.wrong_type(&self.name, "a number", self, None);
            return None;
        };
        let found = number.as_f64();
        found
            .filter(|value| value.is_finite() && *value >= 0.0)
            .or_else(|| {
                let message = format!(
                    "expected `{}` to be zero or more, found {number}",
                    self.name
                );
                self.refuse(&codes::WRONG_VALUE, message)
            })
    }

    /// The items of a list; empty for another value.
    pub(crate) fn items(&self) -> Vec<FieldReader<'n>> {
        let items = self.read(self.inner.items()).into_iter().flatten();
        items.map(|inner| Self { inner, ..*self }).collect()
    }

    /// The texts of a list, each with the reader of its item, which has the list's name. Items that
    /// are not text are reported and left out.
    pub(crate) fn texts(&self) -> Vec<(&'n str, FieldReader<'n>)> {
        let items = self.items().into_iter();
        let read = items.filter_map(|item| Some((item.text()?, item.named(&self.name))));
        read.collect()
    }

    /// As [`FieldReader::texts`], without the readers.
    pub(crate) fn strings(&self) -> Vec<String> {
        let texts = self.texts().into_iter();
        texts.map(|(text, _)| text.to_owned()).collect()
    }

    /// The entries of a mapping with keys of the author's choice; `None` for another value.
    pub(crate) fn members(&self) -> Option<Vec<(&'n str, FieldReader<'n>)>> {
        let members = self.read(self.inner.members())?.into_iter();
        let members = members.map(|(key, inner)| (key, Self { inner, ..*self }));
        Some(members.collect())
    }

    /// A mapping with keys of the author's choice, as written; empty for another value.
    pub(crate) fn mapping(&self) -> Map<String, Value> {
        match self.members().map(|_| self.to_value()) {
            Some(Value::Object(mapping)) => mapping,
            _ => Map::new(),
        }
    }

    pub(crate) fn fields(&self) -> Option<MappingReader<'n>> {
        let inner = self.read(toolward_support::fields::Fields::of(&self.inner))?;
        let report = self.report;
        Some(MappingReader { inner, report })
    }

    /// As [`FieldReader::fields`], for a JSON format in which `null` means that a field is absent.
    pub(crate) fn foreign(&self) -> Option<MappingReader<'n>> {
        self.fields().map(MappingReader::null_is_absent)
    }

    /// Reads the text with `read`. A text for which `read` returns `None` is reported, with the
    /// expected form.
    pub(crate) fn text_as<T>(
        &self,
        code: &Code,
        expected: &str,
        read: impl FnOnce(&'n str) -> Option<T>,
    ) -> Option<T> {
        let found = self.text()?;
        read(found).or_else(|| {
            let message = format!("expected `{}` to be {expected}, found {found:?}", self.name);
            self.refuse(code, message)
        })
    }

    /// Reads one word of a closed set.
    pub(crate) fn word<T: Clone>(&self, words: &[(&str, T)], code: &Code) -> Option<T> {
        let found = self.text()?;
        let known = words.iter().find(|(word, _)| *word == found);
        known.map(|(_, value)| value.clone()).or_else(|| {
            let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            self.refuse_word(found, &words, code)
        })
    }

    pub(crate) fn refuse_word<T>(&self, found: &str, known: &[&str], code: &Code) -> Option<T> {
        let (name, words) = (&self.name, known.join(", "));
        let message = format!("expected `{name}` to be one of {words}, found {found:?}");
        let near = nearest(found, known.iter().copied());
        let hint = near.map(|near| format!("did you mean {near}?"));
        self.note_with_hint(code, message, hint);
        None
    }

    /// Adds the position of the value to the result of reading it.
    pub(crate) fn placed<T>(&self, value: T) -> PlacedValue<T> {
        let at = self.at;
        PlacedValue { value, at }
    }

    /// Reports a finding at the value.
    pub(crate) fn note(&self, code: &Code, message: impl Into<String>) {
        self.report.add(code, self.at, message);
    }

    /// Reports a finding at the key.
    pub(crate) fn note_at_key(&self, code: &Code, message: impl Into<String>) {
        self.report.add(code, self.key_at, message);
    }

    pub(crate) fn note_with_hint(
        &self,
        code: &Code,
        message: impl Into<String>,
        hint: impl Into<Option<String>>,
    ) {
        self.report.add_with_hint(code, self.at, message, hint);
    }

    /// Reports a finding at the value, and returns `None` in place of the value.
    pub(crate) fn refuse<T>(&self, code: &Code, message: impl Into<String>) -> Option<T> {
        self.note(code, message);
        None
    }
}

/// Reads the fields of one mapping. Their problems go to the report of the file.
pub(crate) struct MappingReader<'n> {
    inner: toolward_support::fields::Fields<'n, Position>,
    pub(crate) report: &'n FileReport<'n>,
}

impl<'n> Deref for MappingReader<'n> {
    type Target = toolward_support::fields::Fields<'n, Position>;

    fn deref(&self) -> &Self::Target {
        &self.inner
    }
}

impl<'n> MappingReader<'n> {
    pub(crate) fn spelled(self, spelling: Spelling) -> Self {
        let inner = self.inner.spelled(spelling);
        Self { inner, ..self }
    }

    pub(crate) fn null_is_absent(self) -> Self {
        let inner = self.inner.null_is_absent();
        Self { inner, ..self }
    }

    /// Takes the field, if it is present.
    pub(crate) fn take(&mut self, key: &'static str) -> Option<FieldReader<'n>> {
        let inner = self.inner.take(key)?;
        let report = self.report;
        Some(FieldReader { inner, report })
    }

    /// Takes the field, and reports its absence.
    pub(crate) fn required(&mut self, key: &'static str) -> Option<FieldReader<'n>> {
        let inner = self.inner.required(key);
        let inner = inner.map_err(|problem| self.report.refuse(&problem)).ok()?;
        let report = self.report;
        Some(FieldReader { inner, report })
    }

    /// Reads the mapping at `key`, in the same spelling, with `read`. Fields that `read` does not
    /// take are reported. Returns the default if the field is absent or not a mapping.
    pub(crate) fn within<T: Default>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&mut MappingReader<'n>) -> T,
    ) -> T {
        let fields = self.take(key).and_then(|field| field.fields());
        let fields = fields.map(|fields| fields.spelled(self.spelling()));
        fields.map(|fields| fields.whole(read)).unwrap_or_default()
    }

    /// Reads all fields with `read`, and reports the fields that it does not take. `read` must not
    /// return early: the fields that it did not reach would be reported, too.
    pub(crate) fn whole<T>(mut self, read: impl FnOnce(&mut Self) -> T) -> T {
        let value = read(&mut self);
        self.unknown();
        value
    }

    /// Reads the field with `read`; returns the default if the field is absent.
    pub(crate) fn or_default<T: Default>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&FieldReader<'n>) -> T,
    ) -> T {
        self.take(key).map(|field| read(&field)).unwrap_or_default()
    }

    /// The texts of a list; empty if the field is absent.
    pub(crate) fn strings(&mut self, key: &'static str) -> Vec<String> {
        self.or_default(key, FieldReader::strings)
    }

    /// A mapping with keys of the author's choice, as written; empty if the field is absent.
    pub(crate) fn mapping(&mut self, key: &'static str) -> Map<String, Value> {
        self.or_default(key, FieldReader::mapping)
    }

    /// Reads the field with `read`, if it is present.
    pub(crate) fn read<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&FieldReader<'n>) -> Option<T>,
    ) -> Option<T> {
        read(&self.take(key)?)
    }

    /// As [`MappingReader::read`], and reports the absence of the field.
    pub(crate) fn require<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&FieldReader<'n>) -> Option<T>,
    ) -> Option<T> {
        read(&self.required(key)?)
    }

    pub(crate) fn boolean(&mut self, key: &'static str) -> Option<bool> {
        self.take(key)?.boolean()
    }

    pub(crate) fn integer(&mut self, key: &'static str, range: RangeInclusive<u64>) -> Option<u64> {
        self.take(key)?.integer(range)
    }

    /// The items of a list; empty if the field is absent.
    pub(crate) fn items(&mut self, key: &'static str) -> Vec<FieldReader<'n>> {
        self.or_default(key, FieldReader::items)
    }

    /// The fields that were not taken, as written.
    pub(crate) fn rest(&mut self) -> Map<String, Value> {
        let rest = self.inner.rest();
        rest.map(|entry| (entry.key.clone(), entry.value.to_value()))
            .collect()
    }

    /// Reports every field that was not taken.
    pub(crate) fn unknown(self) {
        for problem in self.inner.unknown() {
            self.report.refuse(&problem);
        }
    }
}

impl FileReport<'_> {
    fn refuse(&self, problem: &FieldProblem<'_, Position>) {
        match problem {
            FieldProblem::Missing { name, at, .. } => {
                self.add(&codes::MISSING_FIELD, *at, missing(name));
            }
            FieldProblem::Unknown {
                key,
                name,
                at,
                known,
                absent,
                within,
            } => {
                let near = nearest(key, known.iter().map(String::as_str));
                if let Some(near) = near {
                    let meant = match within.as_str() {
                        "" => near.to_owned(),
                        within => format!("{within}.{near}"),
                    };
                    if absent.contains(&meant) {
                        self.misspelt(meant);
                    }
                }
                let message = format!("expected a field of the format, found `{name}`");
                let hint = near.map(|near| format!("did you mean `{near}`?"));
                self.add_with_hint(&codes::UNKNOWN_FIELD, *at, message, hint);
            }
            FieldProblem::Type {
                name,
                expected,
                found,
            } => {
                let hint = match (expected, &found.content) {
                    (Kind::Text, Content::Number(number)) => {
                        Some(format!("quote it: \"{number}\""))
                    }
                    (Kind::Bool, _) => Some("write true or false".to_owned()),
                    _ => None,
                };
                self.wrong_type(name, &expected.to_string(), found, hint);
            }
            FieldProblem::Integer { name, range, found } => match &found.content {
                Content::Number(number) => {
                    let (from, to) = (range.start(), range.end());
                    let message = format!(
                        "expected `{name}` to be an integer from {from} to {to}, found {number}"
                    );
                    self.add(&codes::WRONG_VALUE, found.at, message);
                }
                _ => self.wrong_type(name, "an integer", found, None),
            },
        }
    }

    fn wrong_type(&self, name: &str, expected: &str, found: &Node, hint: Option<String>) {
        let what = match name {
            "" => "the document".to_owned(),
            name => format!("`{name}`"),
        };
        let message = format!("expected {what} to be {expected}, found {}", found.kind());
        self.add_with_hint(&codes::WRONG_TYPE, found.at, message, hint);
    }
}
