//! Fields of documents that people write: each value has its place, and each key is read once. This
//! module knows no specific document, code or wording: it returns a problem as a [`FieldProblem`],
//! and the code that reads a document puts the problem into words.
//!
//! * [`Position`]: line and column of a byte offset;
//! * [`Node`]: a value with places; [`parse_toml`] makes it from TOML, other readers from other
//!   formats;
//! * [`Fields`], [`Field`]: the keys of a mapping, and a value of one type;
//! * [`without_mark`]: a document without the byte order mark at its start;
//! * [`nearest`]: the key that a misspelt key may mean.
//!
//! ```
//! use toolward_support::fields::{Field, Fields, Position, FieldProblem};
//!
//! let text = "name = \"notes\"\nsized = 3\n";
//! let document = toolward_support::fields::parse_toml(text).unwrap();
//! let mut fields = Fields::of(&Field::new("", &document)).unwrap();
//! assert_eq!(fields.required("name").unwrap().text().unwrap(), "notes");
//! assert!(fields.take("size").is_none());
//! for problem in fields.unknown() {
//!     let FieldProblem::Unknown { name, at, .. } = problem else { unreachable!() };
//!     assert_eq!(name, "sized");
//!     assert_eq!(Position::of_offset(text, at.start).to_string(), "2:1");
//! }
//! ```

mod nearest;
mod node;

use std::ops::{Deref, RangeInclusive};

pub use nearest::{NearNames, did_you_mean, nearest};
pub use node::{
    Content, Kind, MappingEntry, Node, Position, Span, parse_toml, without_mark, without_mark_bytes,
};

/// How field names are written in a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spelling {
    /// `risk_level`, as in files.
    Snake,
    /// `riskLevel`, as in JavaScript.
    Camel,
}

impl Spelling {
    /// Converts a name of lower-case words and underscores to this spelling.
    pub fn of(self, name: &str) -> String {
        match self {
            Spelling::Snake => name.to_owned(),
            Spelling::Camel => {
                let mut parts = name.split('_');
                let mut camel = parts.next().unwrap_or_default().to_owned();
                for part in parts {
                    let mut letters = part.chars();
                    camel.extend(letters.next().map(|c| c.to_ascii_uppercase()));
                    camel.push_str(letters.as_str());
                }
                camel
            }
        }
    }
}

/// A value with the name that messages give it.
#[derive(Clone, Debug)]
pub struct Field<'n, P> {
    /// Its name: a dotted path, unless it was [named](Field::named) otherwise; empty for a whole
    /// document.
    pub name: String,
    /// The place of its key, or of the value if it has no key.
    pub key_at: P,
    /// The value.
    pub node: &'n Node<P>,
}

impl<P> Deref for Field<'_, P> {
    type Target = Node<P>;

    fn deref(&self) -> &Node<P> {
        self.node
    }
}

impl<'n, P: Clone> Field<'n, P> {
    /// A value without a key.
    pub fn new(name: impl Into<String>, node: &'n Node<P>) -> Self {
        Self {
            name: name.into(),
            key_at: node.at.clone(),
            node,
        }
    }

    /// The same field under another name.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..self
        }
    }

    fn not(&self, expected: Kind) -> FieldProblem<'n, P> {
        FieldProblem::Type {
            name: self.name.clone(),
            expected,
            found: self.node,
        }
    }

    /// The text.
    pub fn text(&self) -> Result<&'n str, FieldProblem<'n, P>> {
        match &self.node.content {
            Content::Text(text) => Ok(text),
            _ => Err(self.not(Kind::Text)),
        }
    }

    /// The value `true` or `false`.
    pub fn boolean(&self) -> Result<bool, FieldProblem<'n, P>> {
        match self.node.content {
            Content::Bool(value) => Ok(value),
            _ => Err(self.not(Kind::Bool)),
        }
    }

    /// An integer within a range.
    pub fn integer(&self, range: RangeInclusive<u64>) -> Result<u64, FieldProblem<'n, P>> {
        let found = match &self.node.content {
            Content::Number(number) => number.as_u64().filter(|value| range.contains(value)),
            _ => None,
        };
        found.ok_or_else(|| FieldProblem::Integer {
            name: self.name.clone(),
            range,
            found: self.node,
        })
    }

    /// The items of a list, named by their index.
    pub fn items(&self) -> Result<Vec<Field<'n, P>>, FieldProblem<'n, P>> {
        let Content::List(items) = &self.node.content else {
            return Err(self.not(Kind::List));
        };
        let items = items.iter().enumerate();
        let items = items.map(|(index, item)| Field::new(format!("{}[{index}]", self.name), item));
        Ok(items.collect())
    }

    /// The entries of a mapping whose keys the author chooses, each with its key.
    pub fn members(&self) -> Result<Vec<(&'n str, Field<'n, P>)>, FieldProblem<'n, P>> {
        let Content::Mapping(entries) = &self.node.content else {
            return Err(self.not(Kind::Mapping));
        };
        let member = |entry: &'n MappingEntry<P>| {
            let name = format!("{}.{}", self.name, entry.key);
            (entry.key.as_str(), Field::keyed(name, entry))
        };
        Ok(entries.iter().map(member).collect())
    }

    fn keyed(name: String, entry: &'n MappingEntry<P>) -> Self {
        Self {
            name,
            key_at: entry.key_at.clone(),
            node: &entry.value,
        }
    }
}

/// The fields of one mapping. A field that is never taken is unknown.
#[derive(Debug)]
pub struct Fields<'n, P> {
    entries: Vec<Option<&'n MappingEntry<P>>>,
    /// The place of the mapping.
    pub at: P,
    /// The name of the mapping.
    name: String,
    /// The prefix of its fields' names.
    prefix: String,
    spelling: Spelling,
    /// Whether a field that is `null` counts as absent.
    null_is_absent: bool,
    asked: Vec<&'static str>,
    /// The keys of `asked` that are absent.
    absent: Vec<&'static str>,
}

impl<'n, P: Clone> Fields<'n, P> {
    /// The fields of a mapping.
    pub fn of(field: &Field<'n, P>) -> Result<Self, FieldProblem<'n, P>> {
        let Content::Mapping(entries) = &field.node.content else {
            return Err(field.not(Kind::Mapping));
        };
        Ok(Self {
            entries: entries.iter().map(Some).collect(),
            at: field.at.clone(),
            name: field.name.clone(),
            prefix: match field.name.as_str() {
                "" => String::new(),
                name => format!("{name}."),
            },
            spelling: Spelling::Snake,
            null_is_absent: false,
            asked: Vec::new(),
            absent: Vec::new(),
        })
    }

    /// The same fields, for a document that writes its keys in another spelling.
    #[must_use]
    pub fn spelled(self, spelling: Spelling) -> Self {
        Self { spelling, ..self }
    }

    /// The same fields, for a format in which `null` means an absent field.
    #[must_use]
    pub fn null_is_absent(self) -> Self {
        Self {
            null_is_absent: true,
            ..self
        }
    }

    /// The same fields, named only by their keys.
    #[must_use]
    pub fn by_key(self) -> Self {
        Self {
            prefix: String::new(),
            ..self
        }
    }

    /// The spelling of the keys.
    pub fn spelling(&self) -> Spelling {
        self.spelling
    }

    /// The name of a field.
    pub fn name_of(&self, key: &str) -> String {
        format!("{}{}", self.prefix, self.spelling.of(key))
    }

    /// Takes the field, if it is present.
    pub fn take(&mut self, key: &'static str) -> Option<Field<'n, P>> {
        self.asked.push(key);
        let spelled = self.spelling.of(key);
        let found = self
            .entries
            .iter_mut()
            .find(|entry| entry.is_some_and(|entry| entry.key == spelled));
        let null_is_absent = self.null_is_absent;
        let found = found.and_then(Option::take);
        let found = found.filter(|entry| !(null_is_absent && entry.value.is_null()));
        let Some(entry) = found else {
            self.absent.push(key);
            return None;
        };
        Some(Field::keyed(self.name_of(key), entry))
    }

    /// Takes the field, which must be present.
    pub fn required(&mut self, key: &'static str) -> Result<Field<'n, P>, FieldProblem<'n, P>> {
        self.take(key).ok_or_else(|| FieldProblem::Missing {
            name: self.name_of(key),
            within: self.name.clone(),
            at: self.at.clone(),
        })
    }

    /// The fields that were not taken.
    pub fn rest(&mut self) -> impl Iterator<Item = &'n MappingEntry<P>> + use<'n, P> {
        std::mem::take(&mut self.entries).into_iter().flatten()
    }

    /// A problem for each field that was not taken.
    pub fn unknown(&self) -> impl Iterator<Item = FieldProblem<'n, P>> {
        let known: Vec<String> = self.asked.iter().map(|key| self.spelling.of(key)).collect();
        let absent: Vec<String> = self.absent.iter().map(|key| self.name_of(key)).collect();
        let entries = self.entries.iter().copied().flatten();
        entries.map(move |entry| FieldProblem::Unknown {
            key: &entry.key,
            name: format!("{}{}", self.prefix, entry.key),
            within: self.name.clone(),
            at: entry.key_at.clone(),
            known: known.clone(),
            absent: absent.clone(),
        })
    }
}

/// A problem with a field: its name, its place, the expected and the found value.
#[derive(Clone, Debug)]
pub enum FieldProblem<'n, P> {
    /// A required field is absent.
    Missing {
        /// Its name.
        name: String,
        /// The name of the mapping.
        within: String,
        /// The place of the mapping.
        at: P,
    },
    /// The field was never taken.
    Unknown {
        /// Its key.
        key: &'n str,
        /// Its name.
        name: String,
        /// The name of the mapping.
        within: String,
        /// The place of its key.
        at: P,
        /// The keys of all requested fields.
        known: Vec<String>,
        /// The names of the requested fields that are absent.
        absent: Vec<String>,
    },
    /// A value of another type.
    Type {
        /// Its name.
        name: String,
        /// The expected kind.
        expected: Kind,
        /// The found value.
        found: &'n Node<P>,
    },
    /// Another type than an integer, or an integer outside the range.
    Integer {
        /// Its name.
        name: String,
        /// The allowed range.
        range: RangeInclusive<u64>,
        /// The found value.
        found: &'n Node<P>,
    },
}
