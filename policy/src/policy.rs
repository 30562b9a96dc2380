//! The policy: everything that an operator grants, and to whom. An empty policy grants nothing.

mod parts;

use toolward_contract::tool::{McpResult, Tool};

use crate::approval::{ApprovalClass, PolicyReference};
use crate::context::UnusedContext;
use crate::context::rule::ContextSource;
use crate::document::{DocumentAccess, DocumentRule};
use crate::error::PolicyError;
use crate::implementation::Contract;
use crate::name::{Placed, RuleId, ToolPattern};
use crate::rule::{DenyRule, Rule};

pub use parts::{PolicyParts, PolicyTables};

/// The grants, denies and limits of an operator, read from a file ([`Policy::from_toml`]) or built
/// in code ([`PolicyParts`]). The default is [`Policy::empty`].
///
/// ```
/// use toolward_policy::Policy;
///
/// # fn main() -> Result<(), toolward_policy::PolicyError> {
/// let policy = Policy::from_toml(
///     r#"
///     [[grant]]
///     publisher = "acme"
///     requires = ["network:api.example"]
///     "#,
/// )?;
/// assert_eq!(policy.grants().count(), 1);
///
/// let error = Policy::from_toml("[[grants]]").unwrap_err();
/// assert_eq!((error.code(), error.line()), ("policy-unknown-key", Some(1)));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    pub(crate) grants: Vec<Placed<Rule>>,
    pub(crate) denies: Vec<Placed<DenyRule>>,
    pub(crate) tables: PolicyTables,
    /// The place of each `[[context]]`.
    pub(crate) context_places: Vec<String>,
}

impl Policy {
    /// The policy that grants nothing: every tool with a declaration is denied.
    pub fn empty() -> Self {
        Self::default()
    }

    /// Everything except the rules.
    pub fn tables(&self) -> &PolicyTables {
        &self.tables
    }

    /// The grants, in order.
    pub fn grants(&self) -> impl Iterator<Item = &Rule> {
        self.grants.iter().map(|placed| &placed.rule)
    }

    /// The names of the grants that match none of these contracts, in order.
    pub fn unmatched_grants<'p>(
        &'p self,
        contracts: &'p [Contract<'p>],
    ) -> impl Iterator<Item = &'p RuleId> {
        let unmatched = |placed: &&Placed<Rule>| {
            !contracts
                .iter()
                .any(|contract| placed.rule.is_about(contract))
        };
        self.grants
            .iter()
            .filter(unmatched)
            .map(|placed| &placed.id)
    }

    /// Whether a grant allows this tool to have the name that it requests.
    pub fn names_tool(&self, publisher: &str, id: &str, major: u64, name: &str) -> bool {
        let mut grants = self.grants_about(publisher, id, major);
        grants.any(|rule| rule.names.iter().any(|own| own == name))
    }

    /// Which half of a tool's results MCP clients get, by the first grant for the tool that sets
    /// `result`.
    pub fn mcp_result(&self, publisher: &str, id: &str, major: u64) -> Option<McpResult> {
        let mut grants = self.grants_about(publisher, id, major);
        grants.find_map(|rule| rule.mcp_result)
    }

    fn grants_about(&self, publisher: &str, id: &str, major: u64) -> impl Iterator<Item = &Rule> {
        self.grants().filter(move |rule| {
            rule.publisher.as_str() == publisher && rule.tool.matches(id, major)
        })
    }

    /// The grants for an action, with their names, in order.
    pub fn action_grants(&self) -> impl Iterator<Item = (&RuleId, &Rule)> {
        let grants = self.grants.iter().map(|placed| (&placed.id, &placed.rule));
        grants.filter(|(_, rule)| rule.action.is_some())
    }

    /// The denies, in order.
    pub fn denies(&self) -> impl Iterator<Item = &DenyRule> {
        self.denies.iter().map(|placed| &placed.rule)
    }

    /// The `[[context]]` tables from which none of these contracts gets a value, in order.
    pub fn unused_contexts<'p>(
        &'p self,
        contracts: &'p [Contract<'p>],
    ) -> impl Iterator<Item = UnusedContext<'p>> {
        let placed = self.tables.contexts.iter().zip(&self.context_places);
        placed.filter_map(|(rule, place)| UnusedContext::of(rule, place, contracts))
    }

    /// Looks up, once, the values of `[[context]]` that come from a variable or a file. `look`
    /// returns the text, or a problem, which must not contain the text. If this is not called,
    /// tools whose contexts need such values are blocked.
    #[must_use]
    pub fn with_contexts(
        mut self,
        look: &mut dyn FnMut(&ContextSource) -> Result<String, String>,
    ) -> Self {
        let rules = self.tables.contexts.iter_mut();
        let values = rules.flat_map(|rule| rule.values.values_mut());
        values.for_each(|value| value.look_up(look));
        self
    }

    /// The approval class of a tool, from its own `approval` and the approval policy that it refers
    /// to.
    pub fn approval_of(&self, tool: &Tool, publisher: &str) -> ApprovalClass {
        let reference = self.approval_reference(tool, publisher);
        reference.map_or_else(|| (&tool.approval).into(), |found| found.approval)
    }

    /// The approval policy that a tool of a publisher refers to.
    pub fn approval_reference(&self, tool: &Tool, publisher: &str) -> Option<PolicyReference> {
        PolicyReference::of(&self.tables.approvals, tool, publisher)
    }

    /// The prompts and resources of a bundle that are shown. Nothing is shown if a `[[deny]]`
    /// covers all tools of its publisher and everything that they declare.
    pub fn documents_of(&self, publisher: &str, bundle: &str) -> DocumentAccess<'_> {
        let denied = self.denies().any(|deny| {
            let of = deny.publisher.as_ref();
            of.is_none_or(|of| of.as_str() == publisher)
                && deny.tool == ToolPattern::all()
                && deny.capabilities.is_none()
        });
        let of = |rule: &&DocumentRule| {
            !denied && rule.publisher.as_str() == publisher && rule.bundle.matches(bundle, 0)
        };
        DocumentAccess {
            rules: self.tables.documents.iter().filter(of).collect(),
            denied,
        }
    }

    /// This policy with another one on top. Rules and tables of both apply, and a deny of either
    /// overrides the grants of both. Driver tags that either denies are denied. For single values
    /// (defaults, limits, the CA file, the other keys of `[resolve]`), `later` wins.
    ///
    /// # Errors
    /// If both have a table for the same subject, overlapping workspaces, or too many rules
    /// together.
    pub fn layer(mut self, later: Self) -> Result<Self, PolicyError> {
        self.grants.extend(later.grants);
        self.denies.extend(later.denies);
        self.context_places.extend(later.context_places);
        self.tables = self.tables.layer(later.tables);
        self.checked(&|place, error| error.of(place))
    }
}
