//! What the tables of a policy have to be, each for itself and together.
//! Knows nothing of text: files and code are held to the same rules.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Component;

use serde::Serialize;
use toolward_contract::capability::{Capability, CapabilitySet, Class};
use toolward_support::report::Code;

use crate::context::rule::ContextRule;
use crate::document;
use crate::error::{self, PolicyError, quoted};
use crate::exec::ExecRule;
use crate::file_name;
use crate::partial;
use crate::policy::Policy;
use crate::rule::{DenyRule, Rule, Secret, SecretSource, Service, Share, Workspace};

/// Grants and denies of a policy together.
pub(crate) const MAX_RULES: usize = 4096;
/// Tables of each other kind.
pub(crate) const MAX_TABLES: usize = 1024;

/// A kind of table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Table {
    Workspace,
    Secret,
    Context,
    Exec,
    Service,
    Share,
    Document,
    Grant,
    Deny,
}

/// The `index`-th table of its kind, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    table: Table,
    index: usize,
}

impl Place {
    pub(crate) fn new(table: Table, index: usize) -> Self {
        Self { table, index }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = match self.table {
            Table::Workspace => "workspace",
            Table::Secret => "secret",
            Table::Context => "context",
            Table::Exec => "exec",
            Table::Service => "service",
            Table::Share => "share",
            Table::Document => "document",
            Table::Grant => "grant",
            Table::Deny => "deny",
        };
        write!(f, "[[{table}]] {}", self.index + 1)
    }
}

/// What is wrong, and where.
type Found = Result<(), (Place, PolicyError)>;

/// Checks a whole policy.
pub(crate) fn policy(policy: &Policy) -> Found {
    let tables = [
        (Table::Workspace, policy.workspaces.len(), MAX_TABLES),
        (Table::Secret, policy.secrets.len(), MAX_TABLES),
        (Table::Context, policy.contexts.len(), MAX_TABLES),
        (Table::Exec, policy.execs.len(), MAX_TABLES),
        (Table::Service, policy.services.len(), MAX_TABLES),
        (Table::Share, policy.shares.len(), MAX_TABLES),
        (Table::Document, policy.documents.len(), MAX_TABLES),
        (
            Table::Grant,
            policy.grants.len() + policy.denies.len(),
            MAX_RULES,
        ),
    ];
    for (table, found, most) in tables {
        if found > most {
            let error = PolicyError::new(
                &error::TOO_LARGE,
                format!("expected at most {most} of them, found {found}"),
            );
            return Err((Place::new(table, most), error));
        }
    }
    each(Table::Workspace, &policy.workspaces, workspace)?;
    each(Table::Secret, &policy.secrets, secret)?;
    each(Table::Context, &policy.contexts, ContextRule::check)?;
    each(Table::Exec, &policy.execs, ExecRule::check)?;
    each(Table::Service, &policy.services, service)?;
    each(Table::Share, &policy.shares, share)?;
    each(Table::Document, &policy.documents, document::check)?;
    each(Table::Grant, policy.grants(), grant)?;
    each(Table::Deny, policy.denies(), deny)?;
    unique(Table::Workspace, &policy.workspaces, |table| {
        table.path.to_string()
    })?;
    unique(Table::Secret, &policy.secrets, |table| {
        format!("{} of {}", table.slug, table.publisher)
    })?;
    unique(Table::Context, &policy.contexts, ContextRule::name)?;
    unique(Table::Exec, &policy.execs, ExecRule::name)?;
    unique(Table::Service, &policy.services, |table| table.name.clone())?;
    unique(Table::Share, &policy.shares, |table| {
        format!("{} for {}", table.database, table.to)
    })?;
    disjoint(&policy.workspaces)
}

fn each<'t, T: 't>(
    table: Table,
    values: impl IntoIterator<Item = &'t T>,
    check: impl Fn(&T) -> Result<(), PolicyError>,
) -> Found {
    values
        .into_iter()
        .enumerate()
        .try_for_each(|(index, value)| {
            check(value).map_err(|error| (Place::new(table, index), error))
        })
}

fn unique<T>(table: Table, values: &[T], name: impl Fn(&T) -> String) -> Found {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (index, value) in values.iter().enumerate() {
        let name = name(value);
        if let Some(first) = seen.insert(name.clone(), index) {
            let first = Place::new(table, first);
            let error = PolicyError::new(
                &error::DUPLICATE,
                format!("expected each once, found {name} again, after {first}"),
            )
            .hinted("remove one of them");
            return Err((Place::new(table, index), error));
        }
    }
    Ok(())
}

/// Two workspaces in one place make each of them wider than it says. Only the
/// names are looked at here; the host looks at what they lead to.
fn disjoint(workspaces: &[Workspace]) -> Found {
    let mut sorted: Vec<(usize, &Workspace)> = workspaces.iter().enumerate().collect();
    sorted.sort_by(|(_, a), (_, b)| a.directory.cmp(&b.directory));
    // Directories above the current one, outermost first.
    let mut above: Vec<(usize, &Workspace)> = Vec::new();
    for (index, workspace) in sorted {
        above.retain(|(_, outer)| workspace.directory.starts_with(&outer.directory));
        for (first, outer) in &above {
            if !(outer.shared && workspace.shared) {
                let error = PolicyError::new(
                    &error::WORKSPACE_OVERLAP,
                    format!(
                        "expected directories apart from each other, found {} in {} of {}",
                        workspace.directory.display(),
                        outer.directory.display(),
                        Place::new(Table::Workspace, *first),
                    ),
                )
                .hinted("write `shared = true` in both if that is meant");
                return Err((Place::new(Table::Workspace, index), error));
            }
        }
        above.push((index, workspace));
    }
    Ok(())
}

fn workspace(workspace: &Workspace) -> Result<(), PolicyError> {
    if !workspace.path.is_plain() {
        return Err(PolicyError::new(
            &error::WORKSPACE,
            format!(
                "expected a path without wildcards, found {}",
                quoted(&workspace.path.to_string())
            ),
        )
        .hinted("map the directory here, and write the wildcard in the grant"));
    }
    let directory = &workspace.directory;
    let plain = directory
        .components()
        .all(|part| !matches!(part, Component::ParentDir))
        && !directory.to_string_lossy().chars().any(char::is_control);
    if directory.is_absolute() && plain {
        return Ok(());
    }
    Err(PolicyError::new(
        &error::WORKSPACE,
        format!(
            "expected an absolute directory without `..`, found {}",
            quoted(&directory.to_string_lossy())
        ),
    )
    .hinted("write the whole path; `~` and variables stand for nothing here"))
}

fn secret(secret: &Secret) -> Result<(), PolicyError> {
    named(&Class::Secret, &secret.slug, &error::SECRET)?;
    match &secret.source {
        SecretSource::Env(name) => {
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if name.is_empty() || !name.chars().all(plain) {
                return Err(PolicyError::new(
                    &error::SECRET,
                    format!(
                        "expected `env` to name an environment variable, found {}",
                        quoted(name)
                    ),
                ));
            }
        }
        SecretSource::File(name) => file_name::check("file", name)?,
        SecretSource::Store => {}
    }
    secret
        .binding
        .as_ref()
        .map_or(Ok(()), |binding| binding.check())
}

fn service(service: &Service) -> Result<(), PolicyError> {
    named(&Class::External, &service.name, &error::WRONG_VALUE)
}

fn share(share: &Share) -> Result<(), PolicyError> {
    named(&Class::Database, &share.database, &error::WRONG_VALUE)?;
    if share.from == share.to {
        return Err(PolicyError::new(
            &error::WRONG_VALUE,
            format!("expected two publishers, found {} twice", share.from),
        )
        .hinted("a publisher's own buckets need no [[share]]"));
    }
    Ok(())
}

/// Checks a name of something of that class.
fn named(class: &Class, name: &str, code: &Code) -> Result<(), PolicyError> {
    let read = Capability::of(class.clone(), name)
        .map_err(|error| PolicyError::new(code, error.to_string()))?;
    if read.is_wildcard() {
        return Err(PolicyError::new(code, "expected a name, found `*`"));
    }
    Ok(())
}

fn grant(rule: &Rule) -> Result<(), PolicyError> {
    known(&rule.requires, "requires")?;
    known(&rule.mutates, "mutates")?;
    for capability in rule.requires.iter().chain(&rule.mutates) {
        if capability.is_wildcard() && !capability.class().allows_wildcard() {
            return Err(PolicyError::new(
                &error::NEVER_GRANTED,
                format!("expected a name, found `{capability}`"),
            )
            .hinted("tools and secrets are granted one by one"));
        }
    }
    let only_changed = |one: &&Capability| !one.class().can_be_required();
    if let Some(capability) = rule.requires.iter().find(only_changed) {
        return Err(PolicyError::new(
            &error::NEVER_GRANTED,
            format!("expected what can be read or called, found `{capability}`"),
        )
        .hinted(format!("write \"{capability}\" in `mutates`")));
    }
    for class in &rule.accepts {
        unknown_class(class)?;
    }
    for slug in &rule.reveal {
        // Leave to store a secret does not include leave to read it.
        let used = rule.requires.of_class(&Class::Secret);
        if !used
            .into_iter()
            .any(|capability| capability.scope() == *slug)
        {
            return Err(PolicyError::new(
                &error::REVEAL,
                format!(
                    "expected `reveal` to name secrets in `requires` of this grant, found {}",
                    quoted(slug)
                ),
            )
            .hinted(format!(
                "add \"secret:{slug}\" to `requires`, or mend the name"
            )));
        }
    }
    crate::action::check(rule)?;
    if let Some(driver) = &rule.driver
        && toolward_contract::tool::ToolId::relaxed(driver).is_err()
    {
        return Err(PolicyError::new(
            &error::TOOL,
            format!("expected the id of a driver, found {}", quoted(driver)),
        )
        .hinted("a driver is named whole: `*` stands for nothing here"));
    }
    for (key, said) in [("prefer", rule.prefer), ("fallback", rule.fallback)] {
        if said && !rule.binds() {
            return Err(PolicyError::new(
                &error::WRONG_VALUE,
                format!("expected `{key}` beside another publisher's driver, found it without"),
            )
            .hinted("name the driver by `driver` and `driver_publisher`"));
        }
    }
    if rule.repeats && (!rule.tool.is_one() || rule.driver.is_some()) {
        return Err(PolicyError::new(
            &error::WRONG_VALUE,
            "expected `fallback = \"repeat\"` in a rule about one tool and all of its drivers, found it in another",
        )
        .hinted("name one tool by `tool`, and leave out `driver`"));
    }
    partial::check(rule)?;
    for name in &rule.names {
        crate::document::check_name(name)?;
    }
    for header in &rule.guest_headers {
        if crate::binding::read_guest_header(header)? != *header {
            return Err(PolicyError::new(
                &error::HEADER,
                format!("expected lower case, found {}", quoted(header)),
            ));
        }
    }
    Ok(())
}

fn deny(rule: &DenyRule) -> Result<(), PolicyError> {
    match &rule.capabilities {
        Some(capabilities) => known(capabilities, "capabilities"),
        None => Ok(()),
    }
}

/// Refuses invalid classes, and known ones: those are granted by capability.
fn unknown_class(class: &str) -> Result<(), PolicyError> {
    let read = Capability::parse(&format!("{class}:*"));
    // A known class may have words that are no scopes of it.
    let words = Capability::of_no_scope(&format!("{class}:word"));
    let unknown = |one: Capability| matches!(one.class(), Class::Other(name) if name == class);
    if read.is_ok_and(unknown) || words.is_some() {
        return Ok(());
    }
    let error = PolicyError::new(
        &error::CAPABILITY,
        format!(
            "expected a class that this host does not know in `accepts`, found {}",
            quoted(class)
        ),
    );
    Err(error
        .hinted("write the word before the colon; known classes go to `requires` and `mutates`"))
}

/// A class that is not known is never granted, so naming it is a slip: in a
/// deny it would let pass what was meant.
fn known(capabilities: &CapabilitySet, key: &str) -> Result<(), PolicyError> {
    for capability in capabilities {
        if let Class::Other(class) = capability.class() {
            let known: Vec<&str> = Class::KNOWN.iter().map(Class::as_str).collect();
            return Err(PolicyError::new(
                &error::CAPABILITY,
                format!("expected a known class in `{key}`, found {}", quoted(class)),
            )
            .hinted(format!("the classes are: {}", known.join(", "))));
        }
    }
    Ok(())
}
