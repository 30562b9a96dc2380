//! Reads the policy part of `toolward.toml`. Returns a checked [`Policy`], or the first error with
//! its position.

use std::collections::BTreeMap;
use std::path::Path;

use toolward_support::fields::{Span, parse_toml};

use crate::approval::ApprovalPolicy;
use crate::check::TablePlace;
use crate::context::ContextRule;
use crate::document::DocumentRule;
use crate::error::{self, PolicyError, Refuse as _};
use crate::exec::ExecRule;
use crate::fields::{Field, Fields, finish, optional, table, wrong_type};
use crate::limits::LimitSettings;
use crate::policy::{Policy, PolicyParts};
use crate::resolve::ResolveTable;
use crate::resources::{self, Secret, ServiceRule, Share, Workspace};
use crate::rule::{Defaults, DenyRule, Rule};

/// The longest text of a policy, in bytes. A parser's tree takes many times the text's memory.
const MAX_TEXT_BYTES: usize = 1 << 20;

/// The tables of `toolward.toml` that do not belong to the policy, as written there. Other code
/// reads them, such as the code for trust, confinement, recording and registries. The flag states
/// whether a running server refuses a change of the table.
pub const OTHER_TABLES: &[(&str, bool)] = &[
    ("[[publisher]]", true),
    ("[trust]", true),
    ("[[channel]]", true),
    ("[confine]", false),
    ("[clients]", true),
    ("[ledger]", true),
    ("[[registry]]", false),
];

/// Returns the key of a table of [`OTHER_TABLES`], without its brackets.
pub fn table_key(table: &str) -> &str {
    table.trim_matches(['[', ']'])
}

impl Policy {
    /// Reads the policy part of `toolward.toml`: `[defaults]`, `[limits]`, `[network]`,
    /// `[resolve]`, `[approval.NAME]`, `[[workspace]]`, `[[secret]]`, `[[context]]`, `[[exec]]`,
    /// `[[service]]`, `[[share]]`, `[[document]]`, `[[grant]]` and `[[deny]]`. The tables in
    /// [`OTHER_TABLES`] are skipped. An unknown key is an error: otherwise a misspelt key could
    /// silently deny nothing.
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

    /// Reads the policy of a file as [`Policy::from_toml`] does. `source` is the name of the file,
    /// which is shown with its rules. `base` is the directory that relative paths start from.
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
    for (table, _) in OTHER_TABLES {
        fields.take(table_key(table));
    }
    tables.defaults = single(fields, "defaults", Defaults::read)?.unwrap_or_default();
    if let Some(field) = fields.take("limits") {
        tables.limits = LimitSettings::read(field)?;
    }
    tables.ca_file = single(fields, "network", network)?.flatten();
    tables.resolve = single(fields, "resolve", ResolveTable::read)?.unwrap_or_default();
    if let Some(field) = fields.take("approval") {
        for (name, field) in field.named("[approval]").members()? {
            let at = field.at.clone();
            let read = |fields: &mut Fields<'_>| ApprovalPolicy::read(name, fields);
            let approval = table(field, "[approval.NAME]", read);
            (tables.approvals).push(approval.map_err(|error| error.at(at))?);
        }
    }
    tables.workspaces = lists.read("workspace", Workspace::read)?;
    tables.secrets = lists.read("secret", Secret::read)?;
    tables.contexts = lists.read("context", ContextRule::read)?;
    tables.execs = lists.read("exec", ExecRule::read)?;
    tables.services = lists.read("service", ServiceRule::read)?;
    tables.shares = lists.read("share", Share::read)?;
    tables.documents = lists.read("document", DocumentRule::read)?;
    parts.grants = lists.read("grant", Rule::read)?;
    parts.denies = lists.read("deny", DenyRule::read)?;
    let Lists { fields, spans } = lists;
    finish(&fields)?;
    // Line feeds are found once, since a file may have thousands of tables.
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

/// The lists of tables in a file, and the position of each table.
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
            self.spans.insert(TablePlace(key, index), span);
        }
        Ok(values)
    }
}

fn network(fields: &mut Fields<'_>) -> Result<Option<String>, PolicyError> {
    optional(fields, "ca_file", |text| {
        resources::check_file_name("ca_file", text).map(|()| text.to_owned())
    })
}
