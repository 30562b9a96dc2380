//! The policy part of `toolward.toml`: text in, a checked [`Policy`] or the
//! first error with its place out.

mod context;
mod exec;
mod fields;
mod tables;

use std::collections::BTreeMap;
use std::path::Path;

use toolward_support::fields::{Span, parse_toml};

use crate::check::{MAX_RULES, MAX_TABLES, Place, Table};
use crate::error::{self, PolicyError};
use crate::policy::Policy;
use crate::policy::builder::PolicyBuilder;
use fields::{Field, finish};

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
    let document = parse_toml(text).map_err(|error| {
        let message: String = error.message().chars().take(200).collect();
        let message = message.lines().collect::<Vec<_>>().join(", ");
        let refused = PolicyError::new(&error::SYNTAX, format!("expected TOML, found {message}"));
        match error.span() {
            Some(span) => refused.at(span),
            None => refused,
        }
    })?;
    let mut fields = fields::table(Field::new("", &document), "the policy")?;
    let mut builder = PolicyBuilder::default();
    if let Some(source) = source {
        builder = builder.source(source);
    }
    if let Some(base) = base {
        builder = builder.base(base);
    }
    // Those that read whom to trust, how a process is confined, what is recorded and how registries are reached, read
    // them.
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
    if let Some(field) = fields.take("defaults") {
        builder = builder.defaults(tables::defaults(fields::table(field, "[defaults]")?)?);
    }
    if let Some(field) = fields.take("limits") {
        builder = builder.limits(tables::limits(field)?);
    }
    if let Some(field) = fields.take("network")
        && let Some(file) = tables::network(fields::table(field, "[network]")?)?
    {
        builder = builder.ca_file(file);
    }
    if let Some(field) = fields.take("resolve") {
        builder = builder.resolve(tables::resolve(fields::table(field, "[resolve]")?)?);
    }
    if let Some(field) = fields.take("approval") {
        for (name, table) in field.named("[approval]").members()? {
            let table = fields::table(table, "[approval.NAME]")?;
            let at = table.at.clone();
            let approval = tables::approval_policy(name, table);
            builder = builder.approval(approval.map_err(|error| error.at(at))?);
        }
    }
    let mut spans: BTreeMap<Place, Span> = BTreeMap::new();
    macro_rules! each {
        ($key:ident, $table:ident, $most:expr, $read:path) => {
            let (key, what) = (stringify!($key), concat!("[[", stringify!($key), "]]"));
            for (index, table) in fields::tables(&mut fields, key, what, $most)?
                .into_iter()
                .enumerate()
            {
                let span = table.at.clone();
                let value = $read(table).map_err(|error| error.at(span.clone()))?;
                builder = builder.$key(value);
                spans.insert(Place::new(Table::$table, index), span);
            }
        };
    }
    each!(workspace, Workspace, MAX_TABLES, tables::workspace);
    each!(secret, Secret, MAX_TABLES, tables::secret);
    each!(context, Context, MAX_TABLES, context::context);
    each!(exec, Exec, MAX_TABLES, exec::exec);
    each!(service, Service, MAX_TABLES, tables::service);
    each!(share, Share, MAX_TABLES, tables::share);
    each!(document, Document, MAX_TABLES, tables::document);
    each!(grant, Grant, MAX_RULES, tables::grant);
    each!(deny, Deny, MAX_RULES, tables::deny);
    finish(fields)?;
    // Counted once: a file has thousands of tables.
    let feeds: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
    let line = |span: &Span| feeds.partition_point(|feed| *feed < span.start) + 1;
    builder.build_with(
        &|place| spans.get(&place).map(line),
        &|place, error| match spans.get(&place) {
            Some(span) => error.at(span.clone()),
            None => error,
        },
    )
}
