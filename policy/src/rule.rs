//! `[[grant]]`, `[[deny]]` and `[defaults]` as validated values. Whether the values of one table
//! fit together is checked later, when a [`crate::Policy`] is made.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;
use toolward_contract::capability::{Capability, CapabilitySet, Class};
use toolward_contract::tool::McpResult;

use crate::approval::ApprovalClass;
use crate::document;
use crate::error::{self, PolicyError, Refuse as _};
use crate::fields::{Fields, each, flag, list, optional, own, required};
use crate::grant::OnViolation;
use crate::host_terms::HostTerms;
use crate::implementation::{Contract, IRREVERSIBLE_RISK};
use crate::name::{Publisher, ToolPattern};

/// Declares [`Rule`]. A row describes a key that gives or decides something: its meaning, its field
/// and type, its name, and how it is read. It also states whether a rule with `action` may have the
/// key, whether its value can make the rule stricter, and when a value gives no more than an
/// earlier value. The keys about hosts are in [`HostTerms`]; a rule with `action` has none of them.
macro_rules! grant_keys {
    ($(
        $(#[$doc:meta])+
        $field:ident: $type:ty = $key:literal, $read:expr, $rules:ident, $effect:ident, $gives_no_more:expr;
    )+) => {
        /// `[[grant]]`: what the operator is ready to give to the tools of one publisher. A tool
        /// gets only what it also declares.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct Rule {
            /// The publisher of the contract.
            pub publisher: Publisher,
            /// The tools. The default in a file is all tools of the publisher.
            pub tool: ToolPattern,
            /// The action that the tools implement; `None` if they may implement any action or
            /// none. A rule with an action gives only `requires` and `mutates`.
            pub action: Option<RuleAction>,
            /// The publisher of the driver. The default in a file is the contract's publisher.
            pub driver_publisher: Publisher,
            /// The one driver that the rule is about; `None` for all drivers. Only a rule that
            /// names a driver covers what the driver's own `requires` adds.
            pub driver: Option<String>,
            /// The terms on which the hosts of its network may be reached.
            pub host_terms: HostTerms,
            $($(#[$doc])+ pub $field: $type,)+
        }

        impl Rule {
            /// A rule about all tools of a publisher that gives nothing.
            pub fn new(publisher: Publisher) -> Self {
                Self {
                    driver_publisher: publisher.clone(),
                    publisher,
                    tool: ToolPattern::all(),
                    action: None,
                    driver: None,
                    host_terms: HostTerms::default(),
                    $($field: Default::default(),)+
                }
            }

            pub(crate) fn read(fields: &mut Fields<'_>) -> Result<Self, PolicyError> {
                let mut rule = Self::of_table(fields)?;
                $(rule.$field = read_key(fields, $key, $read)?;)+
                Ok(rule)
            }

            /// The first key of this rule that a rule with `action` must not have.
            pub(crate) fn key_of_tools(&self) -> Option<&'static str> {
                let plain = Self::new(self.publisher.clone());
                let keys = [
                    ("driver", self.driver.is_some()),
                    ("driver_publisher", self.driver_publisher != self.publisher),
                    $(($key, $rules == OF_TOOLS && self.$field != plain.$field),)+
                ];
                let key = keys.into_iter().find_map(|(key, is_given)| is_given.then_some(key));
                key.or_else(|| self.host_terms.key())
            }

            /// Whether it is about the same tools as an earlier rule, and gives no more.
            pub(crate) fn narrows(&self, earlier: &Self) -> bool {
                self.is_about_the_same(earlier)
                    && self.host_terms.narrow(&earlier.host_terms)
                    && (!self.host_terms.plain_http || self.has_hosts_as_written_in(earlier))
                    $(&& holds(&self.$field, &earlier.$field, $gives_no_more))+
            }

            /// Whether any key makes it stricter than a rule without that key.
            pub(crate) fn is_strict(&self) -> bool {
                let plain = Self::new(self.publisher.clone());
                $($effect == TIGHTENS && self.$field != plain.$field)||+
            }

            /// Whether it is about the same tools as an earlier rule, and at least as strict.
            pub(crate) fn is_as_strict(&self, earlier: &Self) -> bool {
                self.is_about_the_same(earlier)
                    $(&& ($effect == GIVES || holds(&self.$field, &earlier.$field, $gives_no_more)))+
            }
        }
    };
}

fn read_key<T>(
    fields: &mut Fields<'_>,
    key: &'static str,
    read: fn(&mut Fields<'_>, &'static str) -> Result<T, PolicyError>,
) -> Result<T, PolicyError> {
    read(fields, key)
}

fn holds<T>(now: &T, earlier: &T, gives_no_more: fn(&T, &T) -> bool) -> bool {
    gives_no_more(now, earlier)
}

/// Any rule may have the key.
const OF_ANY: bool = true;

/// A rule with `action` covers tools without their names, and must not have the key.
const OF_TOOLS: bool = false;

/// The key can make a rule stricter.
const TIGHTENS: bool = true;

/// The key only gives or decides something. It never makes a rule stricter.
const GIVES: bool = false;

grant_keys! {
    /// What may be read or called.
    requires: CapabilitySet = "requires", |f, k| list(f, k, capability), OF_ANY, GIVES, |now, of| of.covers(now);
    /// What may be changed. It may also be read, but a secret may only be stored.
    mutates: CapabilitySet = "mutates", |f, k| list(f, k, capability), OF_ANY, GIVES, |now, of| of.covers(now);
    /// Classes that this host does not know. A tool that declares them in `mutates` is not blocked
    /// for this. The declaration counts as a change, and gives nothing.
    accepts: BTreeSet<String> = "accepts", |f, k| list(f, k, own), OF_ANY, GIVES, BTreeSet::is_subset;
    /// Names of secrets in `requires` whose values the guest may read itself.
    reveal: Vec<String> = "reveal", |f, k| list(f, k, own), OF_TOOLS, GIVES,
        |now, of| now.iter().all(|slug| of.contains(slug));
    /// Names that the tools may have over MCP although the names are not below their publisher's
    /// prefixes. The key gives nothing else.
    names: Vec<String> = "names", |f, k| list(f, k, document::read_name), OF_TOOLS, GIVES, |_, _| true;
    /// Which half of the tools' results MCP clients get; `None` means as the contract states. The
    /// key gives nothing.
    mcp_result: Option<McpResult> = "result", |f, k| optional(f, k, result), OF_TOOLS, GIVES, |_, _| true;
    /// Raises the approval class of the tools that the rule matches.
    approval: ApprovalClass = "approval",
        |f, k| Ok(optional(f, k, ApprovalClass::parse)?.unwrap_or_default()), OF_ANY, TIGHTENS, ApprovalClass::ge;
    /// Whether the rule replaces a person's approval of changes, up to risk level 2. It never does
    /// for `always` or risk level 3.
    preapproved: bool = "preapproved", flag, OF_TOOLS, GIVES, bool::le;
    /// The claims of the tools about themselves that the operator confirms.
    confirms: Confirmed = "confirms", |f, k| list(f, k, claim), OF_TOOLS, GIVES, |now, of| now.and(*of) == *now;
    /// What happens at the first attempt to go beyond the grant.
    on_violation: OnViolation = "on_violation",
        |f, k| Ok(optional(f, k, OnViolation::parse)?.unwrap_or_default()), OF_ANY, TIGHTENS, OnViolation::ge;
    /// Whether the rule's driver, which must be another publisher's, comes before the drivers of
    /// the contract's own publisher.
    prefer: bool = "prefer", flag, OF_TOOLS, GIVES, bool::le;
    /// Which calls move to the next driver after a driver failed, if `[resolve]` allows fallback.
    fallback: RuleFallback = "fallback", fallback, OF_TOOLS, GIVES, |now, of| *now == RuleFallback::Never || now == of;
    /// Whether a tool is served without the hosts and workspaces that no rule gives, if this rule
    /// gives at least one of them. Everything else that is declared must be given, or the tool is
    /// blocked.
    partial: bool = "partial", flag, OF_TOOLS, GIVES, bool::le;
}

/// Which calls of a rule's tools go to another driver after one has failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RuleFallback {
    /// The rule lets no call move. Drivers of the contract's own publisher may still take over.
    #[default]
    Never,
    /// Calls for which the failed driver has done nothing. They move to the rule's driver, which
    /// must be another publisher's.
    Bound,
    /// Also calls that the failed driver may have carried out. The rule must name one tool and no
    /// driver. It has no effect unless the contract is idempotent and its risk is below 2.
    Repeat,
}

impl Rule {
    /// Reads the keys that are not in the table of `grant_keys!`.
    fn of_table(fields: &mut Fields<'_>) -> Result<Self, PolicyError> {
        let publisher = required(fields, "publisher", Publisher::parse)?;
        let tool = optional(fields, "tool", ToolPattern::parse)?;
        let action = action(fields, &publisher)?;
        let driver_publisher = optional(fields, "driver_publisher", Publisher::parse)?;
        Ok(Self {
            tool: tool.unwrap_or_else(ToolPattern::all),
            action,
            driver_publisher: driver_publisher.unwrap_or_else(|| publisher.clone()),
            driver: optional(fields, "driver", own)?,
            host_terms: HostTerms::read(fields)?,
            ..Self::new(publisher)
        })
    }

    /// Whether two rules are about the same tools, action, publishers and driver. `false` for a
    /// rule about fewer tools, since `preapproved` means more in a rule that names its tool.
    pub(crate) fn is_about_the_same(&self, other: &Self) -> bool {
        self.publisher == other.publisher
            && self.tool == other.tool
            && self.action == other.action
            && self.driver_publisher == other.driver_publisher
            && self.driver == other.driver
    }

    /// Whether an earlier rule has each network host of this rule, with the port written in the
    /// same way. The spelling matters: plain http may go to `host`, but never to `host:443`.
    fn has_hosts_as_written_in(&self, earlier: &Self) -> bool {
        let sets = [
            (&self.requires, &earlier.requires),
            (&self.mutates, &earlier.mutates),
        ];
        sets.into_iter().all(|(now, of)| {
            now.of_class(&Class::Network).all(|one| {
                let written = one.as_written();
                of.iter()
                    .any(|known| known == one && known.as_written() == written)
            })
        })
    }

    /// Whether the rule is about a contract, with any driver.
    pub fn is_about(&self, contract: &Contract<'_>) -> bool {
        let tool = contract.tool;
        self.publisher.as_str() == contract.publisher
            && self.tool.matches(tool.id.as_str(), tool.version.major)
            && (self.action.as_ref()).is_none_or(|action| action.is_implemented_by(contract))
    }

    /// Whether the rule may accept a class of the contract. If the rule has an action, the action
    /// itself must declare the class, so that the operator has read what the rule accepts.
    pub(crate) fn is_declared_by_action(
        &self,
        contract: &Contract<'_>,
        asked: &Capability,
    ) -> bool {
        let implements = contract.tool.implements.as_ref();
        let declared = || {
            implements.is_some_and(|one| {
                let mut mutates = one.action.mutates.iter();
                mutates.any(|capability| capability.class() == asked.class())
            })
        };
        self.action.is_none() || declared()
    }

    /// Whether it binds a driver of another publisher to contracts. Such a rule names the driver
    /// and its publisher.
    pub(crate) fn binds(&self) -> bool {
        self.driver.is_some() && self.driver_publisher != self.publisher
    }
}

/// Reads the action that a rule is about. By default, `library` is the rule's publisher.
fn action(
    fields: &mut Fields<'_>,
    publisher: &Publisher,
) -> Result<Option<RuleAction>, PolicyError> {
    let id = optional(fields, "action", own)?;
    let library = optional(fields, "library", Publisher::parse)?;
    if id.is_none() && library.is_some() {
        return Err(error::MISSING_KEY.error("expected `action` beside `library`, found none"));
    }
    let library = library.unwrap_or_else(|| publisher.clone());
    Ok(id.map(|id| RuleAction { id, library }))
}

fn claim(text: &str) -> Result<Confirmed, PolicyError> {
    let (idempotent, additive) = (text == "idempotent", text == "additive");
    if idempotent || additive {
        return Ok(Confirmed {
            idempotent,
            additive,
        });
    }
    Err(error::WRONG_VALUE.expected("`confirms` to have idempotent or additive", text))
}
fn capability(text: &str) -> Result<Capability, PolicyError> {
    Capability::parse(text).map_err(|error| {
        error::CAPABILITY
            .error(error.to_string())
            .hinted("write it as contracts do: `network:api.example.com`, `workspace:/notes`")
    })
}

fn result(text: &str) -> Result<McpResult, PolicyError> {
    match text {
        "structured" => Ok(McpResult::Structured),
        "content" => Ok(McpResult::Content),
        _ => Err(error::WRONG_VALUE.expected("`result` to be structured or content", text)),
    }
}

fn fallback(fields: &mut Fields<'_>, key: &'static str) -> Result<RuleFallback, PolicyError> {
    let Some(field) = fields.take(key) else {
        return Ok(RuleFallback::Never);
    };
    Ok(match field.text() {
        Ok("repeat") => RuleFallback::Repeat,
        _ if field.boolean()? => RuleFallback::Bound,
        _ => RuleFallback::Never,
    })
}

/// `[[deny]]`: overrides every grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DenyRule {
    /// The publisher of the contract or of the driver; `None` for all publishers.
    pub publisher: Option<Publisher>,
    /// The tools.
    pub tool: ToolPattern,
    /// A declared capability is denied if it overlaps one of these. `None` denies the whole tool;
    /// an empty set denies nothing.
    pub capabilities: Option<CapabilitySet>,
}

impl DenyRule {
    /// A rule that denies all tools of all publishers.
    pub fn all() -> Self {
        Self {
            publisher: None,
            tool: ToolPattern::all(),
            capabilities: None,
        }
    }

    pub(crate) fn read(fields: &mut Fields<'_>) -> Result<Self, PolicyError> {
        let publisher = |text: &str| match text {
            "*" => Ok(None),
            name => Publisher::parse(name).map(Some),
        };
        let publisher = optional(fields, "publisher", publisher)?;
        let tool = optional(fields, "tool", ToolPattern::parse)?;
        Ok(Self {
            publisher: publisher.flatten(),
            tool: tool.unwrap_or_else(ToolPattern::all),
            capabilities: each(fields, "capabilities", capability)?,
        })
    }
}

/// `[defaults]`. `None` means not set. A later layer that sets a value replaces it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Defaults {
    /// The minimum approval class of every tool.
    pub approval: Option<ApprovalClass>,
    /// What happens at the first attempt to go beyond a grant.
    pub on_violation: Option<OnViolation>,
}

impl Defaults {
    pub(crate) fn read(fields: &mut Fields<'_>) -> Result<Self, PolicyError> {
        Ok(Self {
            approval: optional(fields, "approval", ApprovalClass::parse)?,
            on_violation: optional(fields, "on_violation", OnViolation::parse)?,
        })
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tools {} of {}", self.tool, self.publisher)?;
        if let Some(action) = &self.action {
            write!(f, " that implement {action}")?;
        }
        match &self.driver {
            Some(driver) => write!(f, ", by driver {driver} of {}", self.driver_publisher),
            None if self.driver_publisher != self.publisher => {
                write!(f, ", by drivers of {}", self.driver_publisher)
            }
            None => Ok(()),
        }
    }
}

impl fmt::Display for DenyRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.capabilities {
            None => f.write_str("everything")?,
            Some(capabilities) => {
                const MAX_SHOWN: usize = 5;
                let shown: Vec<String> = capabilities
                    .iter()
                    .take(MAX_SHOWN)
                    .map(ToString::to_string)
                    .collect();
                f.write_str(&shown.join(", "))?;
                if capabilities.len() > MAX_SHOWN {
                    f.write_str(", …")?;
                }
            }
        }
        write!(f, " for tools {}", self.tool)?;
        match &self.publisher {
            Some(publisher) => write!(f, " of {publisher}"),
            None => f.write_str(" of everybody"),
        }
    }
}

/// An action of one publisher, as a rule names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleAction {
    /// The action's id, such as `storage:commit`.
    pub id: String,
    /// The publisher of the action: the publisher of the tools, or of the library with the action.
    pub library: Publisher,
}

impl RuleAction {
    /// Whether a contract implements the action by an id that other contracts share. Inline actions
    /// and actions at a path don't count, since they belong to the contract alone. Always false for
    /// risk level 3, effects that can't be undone: a rule for such a tool must name the tool.
    pub(crate) fn is_implemented_by(&self, contract: &Contract<'_>) -> bool {
        let implements = contract.tool.implements.as_ref();
        let shared = implements.and_then(|one| one.shared(contract.publisher));
        contract.tool.risk_level < IRREVERSIBLE_RISK
            && shared == Some((self.id.as_str(), self.library.as_str()))
    }
}

impl fmt::Display for RuleAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "action {} of {}", self.id, self.library)
    }
}

/// The claims of a contract that the operator confirms, although the tool changes something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
pub struct Confirmed {
    /// `idempotent: true` in the contract: calling twice has the effect of calling once.
    pub idempotent: bool,
    /// `metadata.mcp.annotations.destructiveHint: false`: the tool adds, and neither overwrites nor
    /// deletes.
    pub additive: bool,
}

impl Confirmed {
    /// The claims that at least one of the two confirms.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            idempotent: self.idempotent || other.idempotent,
            additive: self.additive || other.additive,
        }
    }

    /// The claims that both confirm.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            idempotent: self.idempotent && other.idempotent,
            additive: self.additive && other.additive,
        }
    }
}

impl FromIterator<Self> for Confirmed {
    fn from_iter<I: IntoIterator<Item = Self>>(all: I) -> Self {
        all.into_iter().fold(Self::default(), Self::or)
    }
}
