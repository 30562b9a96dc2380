//! Checks the tables of a policy, separately and together. The checks do not depend on the text of
//! a file, so a policy that is built in code must meet the same rules as a file.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Component;

use toolward_contract::action::Action;
use toolward_contract::capability::{Capability, CapabilitySet, Class};
use toolward_support::report::Code;

use crate::context::rule::ContextRule;
use crate::document;
use crate::error::{self, PolicyError, Refuse as _};
use crate::exec::ExecRule;
use crate::partial;
use crate::policy::Policy;
use crate::resources::{self, Secret, SecretSource, ServiceRule, Share, Workspace};
use crate::rule::{DenyRule, Rule, RuleFallback};

/// The most grants and denies of a policy together.
const MAX_RULES: usize = 4096;
/// The most tables of any other kind.
const MAX_TABLES: usize = 1024;

/// A table, by its kind and its number among the tables of this kind, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TablePlace(pub(crate) &'static str, pub(crate) usize);

impl fmt::Display for TablePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[[{}]] {}", self.0, self.1 + 1)
    }
}

/// The result of a check: the problem and its table.
type Checked = Result<(), (TablePlace, PolicyError)>;

/// Checks a whole policy.
pub(crate) fn policy(policy: &Policy) -> Checked {
    let tables = &policy.tables;
    all("workspace", &tables.workspaces, workspace, |one| {
        Some(one.path.to_string())
    })?;
    all("secret", &tables.secrets, secret, |one| {
        Some(format!("{} of {}", one.slug, one.publisher))
    })?;
    all("context", &tables.contexts, ContextRule::check, |one| {
        Some(one.name())
    })?;
    all("exec", &tables.execs, ExecRule::check, |one| {
        Some(one.name())
    })?;
    let service = |one: &ServiceRule| named(&Class::External, &one.name, &error::WRONG_VALUE);
    all("service", &tables.services, service, |one| {
        Some(one.name.clone())
    })?;
    all("share", &tables.shares, share, |one| {
        Some(format!("{} for {}", one.database, one.to))
    })?;
    all("document", &tables.documents, document::check, |_| None)?;
    at_most("deny", policy.denies.len(), MAX_RULES)?;
    at_most(
        "grant",
        policy.grants.len() + policy.denies.len(),
        MAX_RULES,
    )?;
    each("grant", policy.grants(), grant)?;
    each("deny", policy.denies(), deny)?;
    disjoint(&tables.workspaces)
}

/// Checks each table of a kind, and that no two tables have the same name.
fn all<T>(
    table: &'static str,
    values: &[T],
    check: impl Fn(&T) -> Result<(), PolicyError>,
    name: impl Fn(&T) -> Option<String>,
) -> Checked {
    at_most(table, values.len(), MAX_TABLES)?;
    each(table, values, check)?;
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (index, value) in values.iter().enumerate() {
        let Some(name) = name(value) else { continue };
        if let Some(first) = seen.insert(name.clone(), index) {
            let first = TablePlace(table, first);
            let message = format!("expected each once, found {name} again, after {first}");
            let error = error::DUPLICATE.error(message).hinted("remove one of them");
            return Err((TablePlace(table, index), error));
        }
    }
    Ok(())
}

fn at_most(table: &'static str, found: usize, most: usize) -> Checked {
    if found <= most {
        return Ok(());
    }
    let message = format!("expected at most {most} tables `{table}`, found {found}");
    Err((TablePlace(table, most), error::TOO_LARGE.error(message)))
}

fn each<'t, T: 't>(
    table: &'static str,
    values: impl IntoIterator<Item = &'t T>,
    check: impl Fn(&T) -> Result<(), PolicyError>,
) -> Checked {
    let mut values = values.into_iter().enumerate();
    values.try_for_each(|(index, value)| {
        check(value).map_err(|error| (TablePlace(table, index), error))
    })
}

/// Checks that no two workspaces overlap, unless both are `shared`. If they overlapped, a grant for
/// one of them would also cover files of the other. This compares paths as text; the host compares
/// the directories behind them.
fn disjoint(workspaces: &[Workspace]) -> Checked {
    let mut sorted: Vec<(usize, &Workspace)> = workspaces.iter().enumerate().collect();
    sorted.sort_by(|(_, a), (_, b)| a.directory.cmp(&b.directory));
    // The workspaces whose directories contain the current one, outermost first.
    let mut above: Vec<(usize, &Workspace)> = Vec::new();
    for (index, workspace) in sorted {
        above.retain(|(_, outer)| workspace.directory.starts_with(&outer.directory));
        for (first, outer) in &above {
            if !(outer.shared && workspace.shared) {
                let error = error::WORKSPACE_OVERLAP
                    .error(format!(
                        "expected directories apart from each other, found {} in {} of {}",
                        workspace.directory.display(),
                        outer.directory.display(),
                        TablePlace("workspace", *first),
                    ))
                    .hinted("write `shared = true` in both if that is meant");
                return Err((TablePlace("workspace", index), error));
            }
        }
        above.push((index, workspace));
    }
    Ok(())
}

fn workspace(workspace: &Workspace) -> Result<(), PolicyError> {
    if !workspace.path.is_plain() {
        return Err(error::WORKSPACE
            .expected("a path without wildcards", &workspace.path.to_string())
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
    Err(error::WORKSPACE
        .expected(
            "an absolute directory without `..`",
            &directory.to_string_lossy(),
        )
        .hinted("write the whole path; `~` and variables stand for nothing here"))
}

fn secret(secret: &Secret) -> Result<(), PolicyError> {
    named(&Class::Secret, &secret.slug, &error::SECRET)?;
    match &secret.source {
        SecretSource::Env(name) => {
            resources::check_variable(&error::SECRET, "an environment variable", name)?;
        }
        SecretSource::File(name) => resources::check_file_name("file", name)?,
        SecretSource::Store => {}
    }
    let binding = secret.binding.as_ref();
    binding.map_or(Ok(()), |binding| binding.check())
}

fn share(share: &Share) -> Result<(), PolicyError> {
    named(&Class::Database, &share.database, &error::WRONG_VALUE)?;
    if share.from == share.to {
        return Err(error::WRONG_VALUE
            .error(format!(
                "expected two publishers, found {} twice",
                share.from
            ))
            .hinted("a publisher's own buckets need no [[share]]"));
    }
    Ok(())
}

/// Checks a name of this class.
fn named(class: &Class, name: &str, code: &Code) -> Result<(), PolicyError> {
    let read =
        Capability::of(class.clone(), name).map_err(|error| code.error(error.to_string()))?;
    if read.is_wildcard() {
        return Err(code.error("expected a name, found `*`"));
    }
    Ok(())
}

fn grant(rule: &Rule) -> Result<(), PolicyError> {
    known(&rule.requires, "requires")?;
    known(&rule.mutates, "mutates")?;
    for capability in rule.requires.iter().chain(&rule.mutates) {
        if capability.is_wildcard() && !capability.class().allows_wildcard() {
            return Err(error::NEVER_GRANTED
                .error(format!("expected a name, found `{capability}`"))
                .hinted("tools and secrets are granted one by one"));
        }
    }
    let only_changed = |one: &&Capability| !one.class().can_be_required();
    if let Some(capability) = rule.requires.iter().find(only_changed) {
        return Err(error::NEVER_GRANTED
            .error(format!(
                "expected what can be read or called, found `{capability}`"
            ))
            .hinted(format!("write \"{capability}\" in `mutates`")));
    }
    for class in &rule.accepts {
        unknown_class(class)?;
    }
    for slug in &rule.reveal {
        // Only `requires` counts: permission to store a secret does not include permission to read
        // it.
        let used = rule.requires.of_class(&Class::Secret);
        if !used
            .into_iter()
            .any(|capability| capability.scope() == *slug)
        {
            return Err(error::REVEAL
                .expected("`reveal` to name secrets in `requires` of this grant", slug)
                .hinted(format!(
                    "add \"secret:{slug}\" to `requires`, or mend the name"
                )));
        }
    }
    action(rule)?;
    if let Some(driver) = &rule.driver
        && toolward_contract::tool::ToolId::relaxed(driver).is_err()
    {
        return Err(error::TOOL
            .expected("the id of a driver", driver)
            .hinted("a driver is named whole: `*` stands for nothing here"));
    }
    for (key, said) in [
        ("prefer", rule.prefer),
        ("fallback", rule.fallback == RuleFallback::Bound),
    ] {
        if said && !rule.binds() {
            return Err(error::WRONG_VALUE
                .error(format!(
                    "expected `{key}` beside another publisher's driver, found it without"
                ))
                .hinted("name the driver by `driver` and `driver_publisher`"));
        }
    }
    if rule.fallback == RuleFallback::Repeat && (rule.tool.has_wildcard() || rule.driver.is_some())
    {
        return Err(error::WRONG_VALUE.error("expected `fallback = \"repeat\"` in a rule about one tool and all of its drivers, found it in another",
        )
        .hinted("name one tool by `tool`, and leave out `driver`"));
    }
    partial::check(rule)?;
    for name in &rule.names {
        document::read_name(name)?;
    }
    rule.host_terms.check()
}

/// Checks a rule with an action. Such a rule covers tools without naming them, so capabilities are
/// the only thing that it may grant.
fn action(rule: &Rule) -> Result<(), PolicyError> {
    let Some(action) = &rule.action else {
        return Ok(());
    };
    if !Action::is_id(&action.id) {
        return Err(error::WRONG_VALUE
            .expected("`action` to be the id of an action", &action.id)
            .hinted("write it as ACTION.md does: `storage:commit`"));
    }
    match rule.key_of_tools() {
        None => Ok(()),
        Some(key) => Err(error::NEVER_GRANTED
            .error(format!("expected no `{key}` beside `action`, found one"))
            .hinted(format!("give `{key}` in a rule that names the tool"))),
    }
}

fn deny(rule: &DenyRule) -> Result<(), PolicyError> {
    let capabilities = rule.capabilities.as_ref();
    capabilities.map_or(Ok(()), |capabilities| known(capabilities, "capabilities"))
}

/// Checks a class in `accepts`: it must be unknown, since known classes are granted by capability.
/// A known class is also accepted if a plain word is not one of its scopes, since a declaration
/// such as `workspace:metadata` counts as a capability of an unknown class.
fn unknown_class(class: &str) -> Result<(), PolicyError> {
    let read = Capability::parse(&format!("{class}:*"));
    // `Some` if the class is known and `word` is not one of its scopes.
    let words = Capability::of_no_scope(&format!("{class}:word"));
    let unknown = |one: Capability| matches!(one.class(), Class::Other(name) if name == class);
    if read.is_ok_and(unknown) || words.is_some() {
        return Ok(());
    }
    let error =
        error::CAPABILITY.expected("a class that this host does not know in `accepts`", class);
    Err(error
        .hinted("write the word before the colon; known classes go to `requires` and `mutates`"))
}

/// Refuses unknown classes. They are never granted, so naming one is a mistake: a deny with a
/// misspelled class would not deny anything.
fn known(capabilities: &CapabilitySet, key: &str) -> Result<(), PolicyError> {
    for capability in capabilities {
        if let Class::Other(class) = capability.class() {
            let known: Vec<&str> = Class::KNOWN.iter().map(Class::as_str).collect();
            return Err(error::CAPABILITY
                .expected(format_args!("a known class in `{key}`"), class)
                .hinted(format!("the classes are: {}", known.join(", "))));
        }
    }
    Ok(())
}
