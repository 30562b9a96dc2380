//! One `[[context]]` table, and the report of a table that gives no tool a value.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;
use toolward_contract::tool::CONTEXT_PIN;
use toolward_support::fields::{Content, Kind, Node, Span};

use crate::error::{self, PolicyError, Refuse as _, quoted};
use crate::fields::{Fields, flag, optional, own, required, value};
use crate::implementation::{Contract, Implementation};
use crate::name::{Publisher, ToolPattern};
use crate::resources;
use crate::toml_text::PLACEHOLDER_VARIABLE;

/// The most levels of a value that is written in a policy.
const MAX_DEPTH: usize = 16;
/// The word for all principals.
const EVERYBODY: &str = "*";
/// The most values of one table.
const MAX_VALUES: usize = 64;
/// The most bytes of a principal's name, and of the name of a value.
const MAX_NAME_BYTES: usize = 256;

/// `[[context]]`: values for the calls of one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextRule {
    /// The publisher of the contract.
    pub publisher: Publisher,
    /// The tool, without wildcards.
    pub tool: ToolPattern,
    /// The principal whose calls get the values; `None` for all principals.
    pub principal: Option<String>,
    /// The publisher of the driver that sees the values; in a file, by default the contract's
    /// publisher.
    pub driver_publisher: Publisher,
    /// The driver that sees the values; `None` for all drivers of the contract's own publisher.
    pub driver: Option<String>,
    /// The values, by their names in the contract's `contextSchema`.
    pub values: BTreeMap<String, ContextValue>,
    /// Whether values that come from a variable or a file may be shown. Otherwise they are removed
    /// from everything that a call shows, like a revealed secret.
    pub public: bool,
}

/// Refuses the name `pinnedProvider`. A caller pins a driver by it, and the host removes it from
/// the caller's context (AIP-30). In a `[[context]]`, it would have no effect.
pub(crate) fn check_value_name(name: &str) -> Result<(), PolicyError> {
    if name != CONTEXT_PIN {
        return Ok(());
    }
    let message = format!("expected the name of a value for a driver, found `{CONTEXT_PIN}`");
    Err(error::CONTEXT.error(message).hinted(
        "only a caller pins a driver; a [[grant]] that binds one of another publisher has `prefer`",
    ))
}

impl ContextRule {
    /// Whether the operator must still replace a placeholder. Until then the table gives nothing.
    pub fn is_placeholder(&self) -> bool {
        let chosen = |value: &ContextValue| !matches!(value.source(), ContextSource::Env(name) if name == PLACEHOLDER_VARIABLE);
        self.principal.as_deref() == Some(PLACEHOLDER_VARIABLE) || !self.values.values().all(chosen)
    }

    /// The files that values come from.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.values
            .values()
            .filter_map(|value| match value.source() {
                ContextSource::File(name) => Some(name.as_str()),
                _ => None,
            })
    }

    /// The values that could not be looked up, each with the problem.
    pub fn problems(&self) -> impl Iterator<Item = (&str, &str)> {
        let values = self.values.iter();
        values.filter_map(|(name, value)| Some((name.as_str(), value.problem()?)))
    }

    pub(super) fn is_for(
        &self,
        contract: &Contract<'_>,
        implementation: &Implementation<'_>,
    ) -> bool {
        let driver = implementation.driver.id.as_str();
        self.is_about(contract)
            && self.driver_publisher.as_str() == implementation.publisher
            && self.driver.as_deref().is_none_or(|own| own == driver)
    }

    pub(super) fn is_about(&self, contract: &Contract<'_>) -> bool {
        let (id, major) = (contract.tool.id.as_str(), contract.tool.version.major);
        self.publisher.as_str() == contract.publisher && self.tool.matches(id, major)
    }

    /// How specific the rule is; a more specific rule comes first.
    pub(super) fn closeness(&self) -> (bool, bool, bool) {
        (
            self.principal.is_some(),
            self.driver.is_some(),
            self.tool.major().is_some(),
        )
    }

    /// Checks one table.
    pub(crate) fn check(&self) -> Result<(), PolicyError> {
        let name = |text: &str, what: &str| {
            if (1..=MAX_NAME_BYTES).contains(&text.len()) && !text.chars().any(char::is_control) {
                return Ok(());
            }
            Err(error::CONTEXT.expected(format_args!("{what}"), text))
        };
        if self.tool.has_wildcard() {
            return Err(error::CONTEXT
                .error(format!("expected one tool, found \"{}\"", self.tool))
                .hinted("write one [[context]] for each tool"));
        }
        if let Some(principal) = &self.principal {
            name(principal, "the name of a principal, or `*`")?;
        }
        if self.driver_publisher != self.publisher && self.driver.is_none() {
            return Err(error::CONTEXT
                .error(
                    "expected `driver` beside the `driver_publisher` of somebody else, found none",
                )
                .hinted("name the one driver that is to see the values"));
        }
        if self.values.is_empty() || self.values.len() > MAX_VALUES {
            return Err(error::CONTEXT
                .error(format!(
                    "expected 1 to {MAX_VALUES} values, found {}",
                    self.values.len()
                ))
                .hinted("give them as `values`, or name where they come from in `env` or `file`"));
        }
        for (key, value) in &self.values {
            name(key, "the name of a value")?;
            check_value_name(key)?;
            value.source().check()?;
        }
        Ok(())
    }

    /// The name of the table, which must be unique in a policy.
    pub(crate) fn name(&self) -> String {
        let principal = self.principal.as_deref().unwrap_or(EVERYBODY);
        let driver = self.driver.as_deref().unwrap_or(EVERYBODY);
        format!(
            "the context of {} of {} for {principal} by {driver} of {}",
            self.tool, self.publisher, self.driver_publisher
        )
    }

    pub(crate) fn read(fields: &mut Fields<'_>) -> Result<Self, PolicyError> {
        let publisher = required(fields, "publisher", Publisher::parse)?;
        let principal = |text: &str| Ok((text != EVERYBODY).then(|| text.to_owned()));
        let mut rule = Self {
            tool: required(fields, "tool", ToolPattern::parse)?,
            // `principal` has no default, so that the table shows whose calls get the values.
            principal: required(fields, "principal", principal)?,
            driver_publisher: optional(fields, "driver_publisher", Publisher::parse)?
                .unwrap_or_else(|| publisher.clone()),
            driver: optional(fields, "driver", own)?,
            public: flag(fields, "public")?,
            values: BTreeMap::new(),
            publisher,
        };
        for key in ["values", "env", "file"] {
            let Some(table) = fields.take(key) else {
                continue;
            };
            for (name, field) in table.members()? {
                let field = field.named(key);
                let source = match key {
                    "values" => {
                        check_json(field.node, MAX_DEPTH)?;
                        ContextSource::Written(field.to_value())
                    }
                    "env" => ContextSource::Env(value(&field, own)?),
                    _ => ContextSource::File(value(&field, own)?),
                };
                add(&mut rule.values, name, source).map_err(|error| error.at(field.key_at))?;
            }
        }
        Ok(rule)
    }
}

fn add(
    values: &mut BTreeMap<String, ContextValue>,
    name: &str,
    source: ContextSource,
) -> Result<(), PolicyError> {
    check_value_name(name)?;
    let known = values.insert(
        name.to_owned(),
        ContextValue {
            source,
            found: None,
        },
    );
    if known.is_none() {
        return Ok(());
    }
    let message = format!("expected each value once, found {} again", quoted(name));
    Err(error::CONTEXT
        .error(message)
        .hinted("say in one of `values`, `env` and `file` where it comes from"))
}

/// Refuses a TOML value that JSON does not have, and one with too many levels.
fn check_json(value: &Node<Span>, depth: usize) -> Result<(), PolicyError> {
    let wrong = |expected: &str| {
        error::CONTEXT
            .error(format!(
                "expected {expected} in `values`, found another kind of value"
            ))
            .at(value.at.clone())
    };
    let inner = depth
        .checked_sub(1)
        .ok_or_else(|| wrong("at most 16 levels"))?;
    match &value.content {
        Content::Other(Kind::Integer, _) => Err(wrong("a whole number below 2^63")),
        Content::Other(Kind::Float, _) => Err(wrong("a finite number")),
        Content::Other(..) => Err(wrong("what JSON has, no date")),
        Content::List(items) => items.iter().try_for_each(|item| check_json(item, inner)),
        Content::Mapping(entries) => {
            let mut values = entries.iter().map(|entry| &entry.value);
            values.try_for_each(|value| check_json(value, inner))
        }
        _ => Ok(()),
    }
}

/// The source of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContextSource {
    /// A value that is written in the policy.
    Written(Value),
    /// An environment variable of the host.
    Env(String),
    /// A file. A relative path starts at the directory of the policy's file.
    File(String),
}

impl ContextSource {
    pub(super) fn check(&self) -> Result<(), PolicyError> {
        match self {
            Self::Written(_) => Ok(()),
            Self::File(name) => resources::check_file_name("file", name),
            Self::Env(name) => {
                resources::check_variable(&error::CONTEXT, "environment variables", name)
            }
        }
    }
}

/// A text that must not be shown. Its `Debug` form hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct ContextText(pub(super) String);

impl ContextText {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ContextText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ContextText(..)")
    }
}

/// One value of a `[[context]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextValue {
    source: ContextSource,
    /// The text that was looked up, or why none was found.
    found: Option<Result<ContextText, String>>,
}

impl ContextValue {
    /// The source of the value.
    pub fn source(&self) -> &ContextSource {
        &self.source
    }

    /// The text of the value, if the value comes from a variable or a file.
    pub(super) fn text(&self) -> Result<&ContextText, &str> {
        match &self.found {
            Some(Ok(text)) => Ok(text),
            Some(Err(problem)) => Err(problem),
            None => Err("it was not looked up"),
        }
    }

    /// Why the lookup failed, if the value needed one.
    pub(super) fn problem(&self) -> Option<&str> {
        match &self.source {
            ContextSource::Written(_) => None,
            _ => self.text().err(),
        }
    }

    /// Looks the value up, unless it is written in the policy.
    pub(crate) fn look_up(
        &mut self,
        look: &mut dyn FnMut(&ContextSource) -> Result<String, String>,
    ) {
        if !matches!(self.source, ContextSource::Written(_)) {
            self.found = Some(look(&self.source).map(ContextText));
        }
    }

    /// The path of the value's file, which may be relative.
    pub(crate) fn file(&mut self) -> Option<&mut String> {
        match &mut self.source {
            ContextSource::File(name) => Some(name),
            _ => None,
        }
    }
}

/// A `[[context]]` from which no tool gets a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnusedContext<'p> {
    rule: &'p ContextRule,
    place: &'p str,
    is_installed: bool,
}

impl<'p> UnusedContext<'p> {
    pub(crate) fn of(
        rule: &'p ContextRule,
        place: &'p str,
        contracts: &[Contract<'_>],
    ) -> Option<Self> {
        let mut about = contracts
            .iter()
            .filter(|contract| rule.is_about(contract))
            .peekable();
        let is_installed = about.peek().is_some();
        let used = about.any(|contract| contract.tool.context_schema.is_some());
        (!used).then_some(Self {
            rule,
            place,
            is_installed,
        })
    }

    /// Its stable code.
    pub fn code(&self) -> &'static str {
        match self.is_installed {
            true => "context-without-schema",
            false => "context-without-tool",
        }
    }
}

impl fmt::Display for UnusedContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match self.is_installed {
            true => "the tool's contract has no contextSchema, so that its calls have no context",
            false => "it matches no installed tool",
        };
        let (tool, publisher) = (&self.rule.tool, &self.rule.publisher);
        write!(
            f,
            "{}: {tool} of {publisher}: {why} [{}]",
            self.place,
            self.code()
        )
    }
}
