//! The policy part of `toolward.toml`: text in, a checked [`Policy`] or the
//! first error with its place out.

mod context;
mod fields;
mod tables;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use toml::de::DeTable;

use crate::check::{MAX_RULES, MAX_TABLES, Place, Table};
use crate::error::{self, PolicyError};
use crate::policy::Policy;
use crate::policy::builder::PolicyBuilder;
use fields::Fields;

/// Bytes of a policy's text. A parser's tree takes many times the text's
/// memory.
const MAX_TEXT_BYTES: usize = 1 << 20;

impl Policy {
    /// Reads the policy part of `toolward.toml`: `[defaults]`, `[limits]`,
    /// `[network]`, `[[workspace]]`, `[[secret]]`, `[[service]]`, `[[share]]`,
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

    /// [`Policy::from_toml`] of a text that people know as `source`, a file's
    /// name for example: rules are shown with it.
    ///
    /// # Errors
    /// The first thing that is wrong, with line and column.
    pub fn from_toml_named(text: &str, source: &str) -> Result<Self, PolicyError> {
        Self::from_toml_of(text, Some(source), None)
    }

    /// [`Policy::from_toml_named`] of a file in the directory `base`: relative
    /// directories and files in it lie there.
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
            return Err(PolicyError::new(
                &error::TOO_LARGE,
                format!(
                    "expected at most {MAX_TEXT_BYTES} bytes, found {}",
                    text.len()
                ),
            ));
        }
        read(text, source, base).map_err(|error| error.placed(text))
    }
}

fn read(text: &str, source: Option<&str>, base: Option<&Path>) -> Result<Policy, PolicyError> {
    let document = DeTable::parse(text).map_err(|error| {
        let message: String = error.message().chars().take(200).collect();
        let message = message.lines().collect::<Vec<_>>().join(", ");
        let refused = PolicyError::new(&error::SYNTAX, format!("expected TOML, found {message}"));
        match error.span() {
            Some(span) => refused.at(span),
            None => refused,
        }
    })?;
    let mut fields = Fields::new(document.get_ref(), 0..0, "the policy");
    let mut builder = PolicyBuilder::default();
    if let Some(source) = source {
        builder = builder.source(source);
    }
    if let Some(base) = base {
        builder = builder.base(base);
    }
    // Those that read whom to trust, and how a process is confined, read them.
    for table in ["publisher", "trust", "channel", "confine"] {
        fields.take(table);
    }
    if let Some(value) = fields.take("defaults") {
        builder = builder.defaults(tables::defaults(Fields::of(value, "[defaults]")?)?);
    }
    if let Some(value) = fields.take("limits") {
        builder = builder.limits(tables::limits(value)?);
    }
    if let Some(value) = fields.take("network")
        && let Some(file) = tables::network(Fields::of(value, "[network]")?)?
    {
        builder = builder.ca_file(file);
    }
    let mut spans: BTreeMap<Place, Range<usize>> = BTreeMap::new();
    macro_rules! each {
        ($key:literal, $table:expr, $most:expr, $read:path, $add:ident) => {
            let tables = fields.tables($key, concat!("[[", $key, "]]"), $most)?;
            for (index, table) in tables.into_iter().enumerate() {
                let span = table.span.clone();
                let value = $read(table).map_err(|error| error.at(span.clone()))?;
                builder = builder.$add(value);
                spans.insert(Place::new($table, index), span);
            }
        };
    }
    each!(
        "workspace",
        Table::Workspace,
        MAX_TABLES,
        tables::workspace,
        workspace
    );
    each!("secret", Table::Secret, MAX_TABLES, tables::secret, secret);
    each!(
        "context",
        Table::Context,
        MAX_TABLES,
        context::context,
        context
    );
    each!(
        "service",
        Table::Service,
        MAX_TABLES,
        tables::service,
        service
    );
    each!("share", Table::Share, MAX_TABLES, tables::share, share);
    each!(
        "document",
        Table::Document,
        MAX_TABLES,
        tables::document,
        document
    );
    each!("grant", Table::Grant, MAX_RULES, tables::grant, grant);
    each!("deny", Table::Deny, MAX_RULES, tables::deny, deny);
    fields.finish()?;
    // Counted on from table to table: a file has thousands of them.
    let lines = lines(text, &spans);
    builder.build_with(
        &|place| lines.get(&place).copied(),
        &|place, error| match spans.get(&place) {
            Some(span) => error.at(span.clone()),
            None => error,
        },
    )
}

/// The line of each table.
fn lines(text: &str, spans: &BTreeMap<Place, Range<usize>>) -> BTreeMap<Place, usize> {
    let mut starts: Vec<(usize, Place)> =
        spans.iter().map(|(at, span)| (span.start, *at)).collect();
    starts.sort_unstable();
    let (mut line, mut offset) = (1, 0);
    let count = |(start, place)| {
        let passed = text.as_bytes().get(offset..start).unwrap_or_default();
        line += passed.iter().filter(|byte| **byte == b'\n').count();
        offset = start;
        (place, line)
    };
    starts.into_iter().map(count).collect()
}
