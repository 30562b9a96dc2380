//! The policy part of `toolward.toml`: text in, a checked [`Policy`] or the
//! first error with its place out.

mod rules;
mod tables;

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde::de::IntoDeserializer as _;
use serde::de::value::Error as WordError;
use toolward_support::fields::{Content, FieldProblem, Kind, Node, Span, nearest, parse_toml};
use toolward_support::report::Code;

use crate::check::TablePlace;
use crate::error::{self, PolicyError, Refuse as _, quoted};
use crate::policy::{Policy, PolicyParts};

/// Bytes of a policy's text. A parser's tree takes many times the text's
/// memory.
const MAX_TEXT_BYTES: usize = 1 << 20;

impl Policy {
    /// Reads the policy part of `toolward.toml`: `[defaults]`, `[limits]`,
    /// `[network]`, `[resolve]`, `[approval.NAME]`, `[[workspace]]`, `[[secret]]`, `[[exec]]`, `[[service]]`, `[[share]]`,
    /// `[[grant]]` and `[[deny]]`. `[[publisher]]` is the trust store's and is
    /// skipped. An unknown key is an error: a slip in it would otherwise deny
    /// nothing, in silence.
    ///
    /// ```
    /// use toolward_policy::Policy;
    ///
    /// let policy = Policy::from_toml(r#"
    ///     [[workspace]]
    ///     path = "/notes"
    ///     directory = "/srv/notes"
    ///
    ///     [[grant]]
    ///     publisher = "acme"
    ///     tool = "notes.*"
    ///     mutates = ["workspace:/notes"]
    /// "#)?;
    /// assert_eq!(policy.grants().count(), 1);
    /// # Ok::<(), toolward_policy::PolicyError>(())
    /// ```
    ///
    /// # Errors
    /// The first thing that is wrong, with line and column.
    pub fn from_toml(text: &str) -> Result<Self, PolicyError> {
        Self::from_toml_of(text, None, None)
    }

    /// [`Policy::from_toml`] of a file that people know as `source`, relative to the directory `base`:
    /// rules are shown with its name.
    ///
    /// # Errors
    /// The first thing that is wrong, with line and column.
    pub fn from_toml_in(text: &str, source: &str, base: &Path) -> Result<Self, PolicyError> {
        Self::from_toml_of(text, Some(source), Some(base))
    }

    fn from_toml_of(
        text: &str,
        source: Option<&str>,
        base: Option<&Path>,
    ) -> Result<Self, PolicyError> {
        if text.len() > MAX_TEXT_BYTES {
            return Err(error::TOO_LARGE.error(format!(
                "expected at most {MAX_TEXT_BYTES} bytes, found {}",
                text.len()
            )));
        }
        read(text, source, base).map_err(|error| error.placed(text))
    }
}

fn read(text: &str, source: Option<&str>, base: Option<&Path>) -> Result<Policy, PolicyError> {
    let document = parse_toml(text).map_err(|error| {
        let message: String = error.message().chars().take(200).collect();
        let message = message.lines().collect::<Vec<_>>().join(", ");
        let refused = error::SYNTAX.error(format!("expected TOML, found {message}"));
        match error.span() {
            Some(span) => refused.at(span),
            None => refused,
        }
    })?;
    let fields = Fields::of(&Field::new("the policy", &document))?.by_key();
    let mut lists = Lists {
        fields,
        spans: BTreeMap::new(),
    };
    let fields = &mut lists.fields;
    let mut parts = PolicyParts {
        source: source.map(str::to_owned),
        base: base.map(Path::to_owned),
        ..PolicyParts::default()
    };
    let tables = &mut parts.tables;
    // The code for trust, confinement, recording and registries reads these.
    for table in [
        "publisher",
        "trust",
        "channel",
        "confine",
        "clients",
        "ledger",
        "registry",
    ] {
        fields.take(table);
    }
    tables.defaults = single(fields, "defaults", tables::defaults)?.unwrap_or_default();
    if let Some(field) = fields.take("limits") {
        tables.limits = tables::limits(field)?;
    }
    tables.ca_file = single(fields, "network", tables::network)?.flatten();
    tables.resolve = single(fields, "resolve", tables::resolve)?.unwrap_or_default();
    if let Some(field) = fields.take("approval") {
        for (name, field) in field.named("[approval]").members()? {
            let at = field.at.clone();
            let read = |fields: &mut Fields<'_>| tables::approval_policy(name, fields);
            let approval = table(field, "[approval.NAME]", read);
            (tables.approvals).push(approval.map_err(|error| error.at(at))?);
        }
    }
    tables.workspaces = lists.read("workspace", tables::workspace)?;
    tables.secrets = lists.read("secret", tables::secret)?;
    tables.contexts = lists.read("context", rules::context)?;
    tables.execs = lists.read("exec", rules::exec)?;
    tables.services = lists.read("service", tables::service)?;
    tables.shares = lists.read("share", tables::share)?;
    tables.documents = lists.read("document", rules::document)?;
    parts.grants = lists.read("grant", rules::grant)?;
    parts.denies = lists.read("deny", rules::deny)?;
    let Lists { fields, spans } = lists;
    finish(&fields)?;
    // Counted once: a file has thousands of tables.
    let feeds: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
    let line = |span: &Span| feeds.partition_point(|feed| *feed < span.start) + 1;
    parts.build_with(
        &|place| spans.get(&place).map(line),
        &|place, error| match spans.get(&place) {
            Some(span) => error.at(span.clone()),
            None => error,
        },
    )
}

/// Reads `[key]`.
fn single<'t, T>(
    fields: &mut Fields<'t>,
    key: &'static str,
    read: impl FnOnce(&mut Fields<'t>) -> Result<T, PolicyError>,
) -> Result<Option<T>, PolicyError> {
    let field = fields.take(key);
    let read = field.map(|field| table(field, &format!("[{key}]"), read));
    read.transpose()
}

/// The lists of tables in a file, and where each table is.
struct Lists<'t> {
    fields: Fields<'t>,
    spans: BTreeMap<TablePlace, Span>,
}

impl<'t> Lists<'t> {
    /// Reads each `[[key]]`.
    fn read<T>(
        &mut self,
        key: &'static str,
        read: impl Fn(&mut Fields<'t>) -> Result<T, PolicyError>,
    ) -> Result<Vec<T>, PolicyError> {
        let Some(field) = self.fields.take(key) else {
            return Ok(Vec::new());
        };
        let items = field.items().map_err(|_| {
            wrong_type(key, "a list of tables", field.node)
                .hinted(format!("write `[[{key}]]`, with two brackets"))
        })?;
        let what = format!("[[{key}]]");
        let mut values = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            let span = item.at.clone();
            values.push(table(item, &what, &read).map_err(|error| error.at(span.clone()))?);
            self.spans.insert(TablePlace::new(key, index), span);
        }
        Ok(values)
    }
}

/// Entries of a list.
const MAX_ENTRIES: usize = 1024;

type Field<'t> = toolward_support::fields::Field<'t, Span>;
type Fields<'t> = toolward_support::fields::Fields<'t, Span>;

impl From<FieldProblem<'_, Span>> for PolicyError {
    fn from(problem: FieldProblem<'_, Span>) -> Self {
        match problem {
            FieldProblem::Missing { name, within, at } => error::MISSING_KEY
                .error(format!("expected `{name}` in {within}, found none"))
                .at(at),
            FieldProblem::Unknown {
                key,
                within,
                at,
                known,
                ..
            } => {
                let message = format!("expected a key of {within}, found {}", quoted(key));
                let error = error::UNKNOWN_KEY.error(message).at(at);
                let known: Vec<&str> = known.iter().map(String::as_str).collect();
                error.hinted(did_you_mean(key, &known, "keys"))
            }
            FieldProblem::Type {
                name,
                expected,
                found,
            } => {
                let expected = match expected {
                    Kind::List => "a list of texts",
                    other => other.in_toml(),
                };
                wrong_type(&name, expected, found)
            }
            // TOML's integers have 64 bits with a sign.
            FieldProblem::Integer { name, found, .. } if found.kind() == Kind::Integer => {
                let number = match &found.content {
                    Content::Other(_, number) => number.clone(),
                    _ => found.to_value().to_string(),
                };
                let message = format!("expected `{name}` to be from 0 to 2^63 - 1, found {number}");
                error::WRONG_VALUE.error(message).at(found.at.clone())
            }
            FieldProblem::Integer { name, found, .. } => {
                wrong_type(&name, Kind::Integer.in_toml(), found)
            }
        }
    }
}

/// The keys of a table that people call `what`, read by `read`; all others are refused.
fn table<'t, T>(
    field: Field<'t>,
    what: &str,
    read: impl FnOnce(&mut Fields<'t>) -> Result<T, PolicyError>,
) -> Result<T, PolicyError> {
    let mut fields = Fields::of(&field.named(what))?.by_key();
    let value = read(&mut fields)?;
    finish(&fields)?;
    Ok(value)
}

/// Refuses every key that was not taken.
fn finish(fields: &Fields<'_>) -> Result<(), PolicyError> {
    match fields.unknown().next() {
        Some(problem) => Err(problem.into()),
        None => Ok(()),
    }
}

fn flag(fields: &mut Fields<'_>, key: &'static str) -> Result<bool, PolicyError> {
    let field = fields.take(key);
    let read = field.map(|field| field.boolean()).transpose()?;
    Ok(read.unwrap_or_default())
}

fn number(fields: &mut Fields<'_>, key: &'static str) -> Result<Option<u64>, PolicyError> {
    fields.take(key).map(|field| integer(&field)).transpose()
}

fn integer(field: &Field<'_>) -> Result<u64, PolicyError> {
    Ok(field.integer(0..=u64::MAX)?)
}

/// A hint for a word that is not among the known ones.
fn did_you_mean(found: &str, known: &[&str], what: &str) -> String {
    let near = nearest(found, known.iter().copied());
    match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the {what} are: {}", known.join(", ")),
    }
}

fn wrong_type(name: &str, expected: &str, found: &Node<Span>) -> PolicyError {
    let message = format!(
        "expected `{name}` to be {expected}, found {}",
        found.kind().in_toml()
    );
    error::WRONG_TYPE.error(message).at(found.at.clone())
}

/// A text that is taken as it is written.
fn own(text: &str) -> Result<String, PolicyError> {
    Ok(text.to_owned())
}

fn required<'t, T>(
    fields: &mut Fields<'t>,
    key: &'static str,
    read: impl FnOnce(&'t str) -> Result<T, PolicyError>,
) -> Result<T, PolicyError> {
    value(&fields.required(key)?, read)
}

fn optional<'t, T>(
    fields: &mut Fields<'t>,
    key: &'static str,
    read: impl FnOnce(&'t str) -> Result<T, PolicyError>,
) -> Result<Option<T>, PolicyError> {
    let field = fields.take(key);
    field.map(|field| value(&field, read)).transpose()
}

/// Sets a value that has a default.
fn set<'t, T>(
    fields: &mut Fields<'t>,
    key: &'static str,
    read: impl FnOnce(&'t str) -> Result<T, PolicyError>,
    to: &mut T,
) -> Result<(), PolicyError> {
    if let Some(value) = optional(fields, key, read)? {
        *to = value;
    }
    Ok(())
}

fn value<'t, T>(
    field: &Field<'t>,
    read: impl FnOnce(&'t str) -> Result<T, PolicyError>,
) -> Result<T, PolicyError> {
    read(field.text()?).map_err(|error| error.at(field.at.clone()))
}

/// A text, or a list of them.
fn one_or_each<'t, T>(
    fields: &mut Fields<'t>,
    key: &'static str,
    read: impl Fn(&'t str) -> Result<T, PolicyError>,
) -> Result<Option<Vec<T>>, PolicyError> {
    let Some(field) = fields.take(key) else {
        return Ok(None);
    };
    match field.kind() {
        Kind::Text => value(&field, read).map(|one| Some(vec![one])),
        Kind::List => texts(&field, read).map(Some),
        _ => Err(wrong_type(key, "a text or a list of texts", field.node)),
    }
}

fn each<'t, T, C: FromIterator<T>>(
    fields: &mut Fields<'t>,
    key: &'static str,
    read: impl Fn(&'t str) -> Result<T, PolicyError>,
) -> Result<Option<C>, PolicyError> {
    let field = fields.take(key);
    field.map(|field| texts(&field, read)).transpose()
}

/// [`each`]; without the key there are none.
fn list<'t, T, C: FromIterator<T> + Default>(
    fields: &mut Fields<'t>,
    key: &'static str,
    read: impl Fn(&'t str) -> Result<T, PolicyError>,
) -> Result<C, PolicyError> {
    Ok(each(fields, key, read)?.unwrap_or_default())
}

fn texts<'t, T, C: FromIterator<T>>(
    field: &Field<'t>,
    read: impl Fn(&'t str) -> Result<T, PolicyError>,
) -> Result<C, PolicyError> {
    let items = field.items()?;
    if items.len() > MAX_ENTRIES {
        let (key, found) = (&field.name, items.len());
        let message = format!("expected at most {MAX_ENTRIES} entries in `{key}`, found {found}");
        return Err(error::TOO_LARGE.error(message).at(field.at.clone()));
    }
    let items = items.into_iter();
    let text = |item: Field<'t>| value(&item.named(&field.name), &read);
    items.map(text).collect()
}

/// One of the words of `T`; `expected` as the message names them.
fn word<'t, T: Deserialize<'t>>(
    code: &Code,
    expected: &str,
) -> impl Fn(&'t str) -> Result<T, PolicyError> {
    move |text| {
        let read: Result<T, WordError> = T::deserialize(text.into_deserializer());
        read.map_err(|_| code.expected(expected, text))
    }
}
