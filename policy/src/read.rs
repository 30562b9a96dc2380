//! The policy part of `toolward.toml`: text in, a checked [`Policy`] or the
//! first error with its place out.

mod fields;
mod rules;
mod tables;

use std::collections::BTreeMap;
use std::path::Path;

use toolward_support::fields::{Span, parse_toml};

use crate::check::{MAX_RULES, MAX_TABLES, TablePlace};
use crate::error::{self, PolicyError, Refuse as _};
use crate::policy::{Policy, PolicyParts};
use fields::{Field, Fields, finish, wrong_type};

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
    let fields = fields::table(Field::new("", &document), "the policy")?;
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
    if let Some(field) = fields.take("defaults") {
        tables.defaults = tables::defaults(fields::table(field, "[defaults]")?)?;
    }
    if let Some(field) = fields.take("limits") {
        tables.limits = tables::limits(field)?;
    }
    if let Some(field) = fields.take("network") {
        tables.ca_file = tables::network(fields::table(field, "[network]")?)?;
    }
    if let Some(field) = fields.take("resolve") {
        tables.resolve = tables::resolve(fields::table(field, "[resolve]")?)?;
    }
    if let Some(field) = fields.take("approval") {
        for (name, table) in field.named("[approval]").members()? {
            let table = fields::table(table, "[approval.NAME]")?;
            let at = table.at.clone();
            let approval = tables::approval_policy(name, table);
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
    finish(fields)?;
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
        read: impl Fn(Fields<'t>) -> Result<T, PolicyError>,
    ) -> Result<Vec<T>, PolicyError> {
        let Some(field) = self.fields.take(key) else {
            return Ok(Vec::new());
        };
        let items = field.items().map_err(|_| {
            wrong_type(key, "a list of tables", field.node)
                .hinted(format!("write `[[{key}]]`, with two brackets"))
        })?;
        let most = match key {
            "grant" | "deny" => MAX_RULES,
            _ => MAX_TABLES,
        };
        if items.len() > most {
            let found = items.len();
            let message = format!("expected at most {most} tables `{key}`, found {found}");
            return Err(error::TOO_LARGE.error(message).at(field.at.clone()));
        }
        let what = format!("[[{key}]]");
        let tables = items.into_iter().map(|item| fields::table(item, &what));
        let tables: Vec<Fields<'t>> = tables.collect::<Result<_, _>>()?;
        let mut values = Vec::with_capacity(tables.len());
        for (index, table) in tables.into_iter().enumerate() {
            let span = table.at.clone();
            values.push(read(table).map_err(|error| error.at(span.clone()))?);
            self.spans.insert(TablePlace::new(key, index), span);
        }
        Ok(values)
    }
}
