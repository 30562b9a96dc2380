//! The tables of a policy as validated values. What a table means is written
//! at its fields; that the values of one table fit together is checked when a
//! [`crate::Policy`] is made of them.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use ipnet::IpNet;
use toolward_contract::capability::{CapabilitySet, HostPattern, PathPattern};
use toolward_contract::tool::McpResult;

use crate::approval_class::ApprovalClass;
use crate::grant::{OnViolation, SecretBinding};
use crate::name::{Publisher, ToolPattern};
use crate::operator_claims::Confirmed;
use crate::placeholder::{PLACEHOLDER_DIRECTORY, PLACEHOLDER_HOST, PLACEHOLDER_VARIABLE};
use crate::rule_action::RuleAction;

/// `[[grant]]`: what the operator is ready to give to the tools of one
/// publisher. It gives nothing to a tool that does not declare it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The publisher of the contract.
    pub publisher: Publisher,
    /// The tools; all of the publisher's where a file says nothing.
    pub tool: ToolPattern,
    /// The action that the tools implement; `None`: whichever they do, or none. A rule with one gives
    /// `requires` and `mutates`, and nothing else.
    pub action: Option<RuleAction>,
    /// The publisher of the driver; the contract's where a file says nothing.
    pub driver_publisher: Publisher,
    /// The one driver that the rule is about; `None`: all. Only a rule that
    /// names a driver covers what the driver's own `requires` adds.
    pub driver: Option<String>,
    /// What may be read or called.
    pub requires: CapabilitySet,
    /// What may be changed, and therefore read, too; a secret is stored by it, not
    /// used.
    pub mutates: CapabilitySet,
    /// Classes that this host does not know, and whose declaration in `mutates` is
    /// accepted all the same: it counts as a change, and gives nothing.
    pub accepts: BTreeSet<String>,
    /// Names of secrets in `requires` whose values the guest may read itself.
    pub reveal: Vec<String>,
    /// Whether `http://` passes, too, to the hosts of this rule.
    pub plain_http: bool,
    /// Addresses beyond global unicast that the hosts of this rule may have.
    pub addresses: Vec<IpNet>,
    /// Headers with credentials (`authorization`, `cookie`) that the guest may
    /// set itself, for the hosts of this rule.
    pub guest_headers: Vec<String>,
    /// Names that its tools may ask to be shown by over MCP, beyond those inside their
    /// publisher's own prefixes. It gives nothing else.
    pub names: Vec<String>,
    /// Which half of their results clients of MCP are sent; `None`: as the contract states. It gives nothing.
    pub mcp_result: Option<McpResult>,
    /// Raises the approval class of the tools that the rule matches.
    pub approval: ApprovalClass,
    /// The operator's yes in writing: it stands for the person's where
    /// something is changed and up to risk 2, never for `always` and risk 3.
    pub preapproved: bool,
    /// What the operator believes of what the tools say of themselves.
    pub confirms: Confirmed,
    /// What happens at the first attempt to go beyond the grant.
    pub on_violation: OnViolation,
    /// Whether the driver of another publisher that the rule binds stands before those of the
    /// contract's own.
    pub prefer: bool,
    /// Whether calls fall to that driver once another one has failed, where `[resolve]` says that
    /// they fall at all.
    pub fallback: bool,
    /// Whether a call that changes something falls to the next driver also where the one before may have done it. For one
    /// tool; it has no effect unless the contract is idempotent and its risk is below 2.
    pub repeats: bool,
    /// Whether a tool of which the rule gives a host or workspace is served without the declared ones that no rule
    /// gives. Everything else that is declared is given, or the tool is blocked.
    pub partial: bool,
}

impl Rule {
    /// A rule about all tools of a publisher that gives nothing.
    #[must_use]
    pub fn new(publisher: Publisher) -> Self {
        Self {
            driver_publisher: publisher.clone(),
            publisher,
            tool: ToolPattern::all(),
            action: None,
            driver: None,
            requires: CapabilitySet::new(),
            mutates: CapabilitySet::new(),
            accepts: BTreeSet::new(),
            reveal: Vec::new(),
            plain_http: false,
            addresses: Vec::new(),
            guest_headers: Vec::new(),
            names: Vec::new(),
            mcp_result: None,
            approval: ApprovalClass::Auto,
            preapproved: false,
            confirms: Confirmed::default(),
            on_violation: OnViolation::Record,
            prefer: false,
            fallback: false,
            repeats: false,
            partial: false,
        }
    }

    /// Whether it binds a driver of another publisher to contracts: it names both.
    pub(crate) fn binds(&self) -> bool {
        self.driver.is_some() && self.driver_publisher != self.publisher
    }
}

/// `[[deny]]`: overrides every grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DenyRule {
    /// The publisher of the contract or of the driver; `None`: all.
    pub publisher: Option<Publisher>,
    /// The tools.
    pub tool: ToolPattern,
    /// What is denied: each declared capability that has anything in common
    /// with one of these. `None`: the whole tool. An empty set denies nothing.
    pub capabilities: Option<CapabilitySet>,
}

impl DenyRule {
    /// A rule that denies all tools of all publishers.
    #[must_use]
    pub fn all() -> Self {
        Self {
            publisher: None,
            tool: ToolPattern::all(),
            capabilities: None,
        }
    }
}

/// `[[workspace]]`: the host directory behind a contract's path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspace {
    /// The virtual path, without wildcards.
    pub path: PathPattern,
    /// The host directory. Absolute.
    pub directory: PathBuf,
    /// Whether the directory may overlap that of another workspace, which must
    /// say so, too.
    pub shared: bool,
    /// Bytes that one call may add; `None`: the host's limit.
    pub max_bytes: Option<u64>,
    /// Files and directories that one call may create; `None`: the host's
    /// limit.
    pub max_files: Option<u64>,
}

impl Workspace {
    /// A workspace that is not shared and has the host's limits.
    #[must_use]
    pub fn new(path: PathPattern, directory: impl Into<PathBuf>) -> Self {
        Self {
            path,
            directory: directory.into(),
            shared: false,
            max_bytes: None,
            max_files: None,
        }
    }

    /// Whether the directory is one that [`crate::suggest`] wrote for the
    /// operator to replace.
    #[must_use]
    pub fn is_placeholder(&self) -> bool {
        self.directory.starts_with(PLACEHOLDER_DIRECTORY)
    }
}

/// Where the value of a secret comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum SecretSource {
    /// An environment variable of the host.
    Env(String),
    /// A file, as written: relative to the policy's file.
    File(String),
    /// The publisher's own space, where tools with `mutates: secret:…` store it.
    #[default]
    Store,
}

/// `[[secret]]`: a secret's value, whose tools may use it, and where it goes
/// out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secret {
    /// Its name, as contracts declare it.
    pub slug: String,
    /// The publisher whose tools may use it.
    pub publisher: Publisher,
    /// Where the value comes from.
    pub source: SecretSource,
    /// Where the placeholder is replaced; `None`: nowhere, the secret can only
    /// be revealed.
    pub binding: Option<Arc<SecretBinding>>,
}

impl Secret {
    /// A secret in the publisher's own space that goes out nowhere.
    #[must_use]
    pub fn new(slug: impl Into<String>, publisher: Publisher) -> Self {
        Self {
            slug: slug.into(),
            publisher,
            source: SecretSource::Store,
            binding: None,
        }
    }

    /// Whether the operator still has to choose where its value comes from or
    /// where it goes out. Until then it is not granted.
    #[must_use]
    pub fn is_placeholder(&self) -> bool {
        let variable =
            matches!(&self.source, SecretSource::Env(name) if name == PLACEHOLDER_VARIABLE);
        let host = |binding: &Arc<SecretBinding>| binding.host == PLACEHOLDER_HOST;
        variable || self.binding.as_ref().is_some_and(host)
    }
}

/// `[[service]]`: the hosts behind `mutates: external:…`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// Its name, as contracts declare it.
    pub name: String,
    /// The hosts. None: the service reaches nothing.
    pub hosts: Vec<HostPattern>,
}

impl Service {
    /// Whether the operator still has to choose its hosts. Until then it is
    /// not granted.
    #[must_use]
    pub fn is_placeholder(&self) -> bool {
        self.hosts
            .iter()
            .any(|host| host.host() == PLACEHOLDER_HOST)
    }
}

/// `[[share]]`: a bucket of one publisher that the tools of another open under
/// the same name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// The bucket's name.
    pub database: String,
    /// Whose bucket it is.
    pub from: Publisher,
    /// Whose tools may open it, as far as a grant gives them the bucket.
    pub to: Publisher,
}

/// `[defaults]`. `None`: not said; a later layer that says it wins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Defaults {
    /// The least approval class of every tool.
    pub approval: Option<ApprovalClass>,
    /// What happens at the first attempt to go beyond a grant.
    pub on_violation: Option<OnViolation>,
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
