//! The policy: all that an operator is ready to give, and to whom. An empty one
//! gives nothing.

pub(crate) mod builder;

use toolward_contract::tool::{McpResult, Tool};

use crate::approval_class::ApprovalClass;
use crate::approval_policy::{ApprovalPolicy, PolicyReference};
use crate::context::UnusedContext;
use crate::context::rule::ContextRule;
use crate::context::value::ContextSource;
use crate::document::DocumentRule;
use crate::exec::ExecRule;
use crate::implementation::Contract;
use crate::limits::LimitSettings;
use crate::resolve::Resolve;
use crate::rule::{Defaults, DenyRule, Rule, Secret, Service, Share, Workspace};
use crate::rule_id::{Placed, RuleId};

/// What an operator grants, denies and limits: read from a file
/// ([`Policy::from_toml`]) or put together in code ([`Policy::builder`]). The
/// default is [`Policy::empty`].
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
    pub(crate) workspaces: Vec<Workspace>,
    pub(crate) secrets: Vec<Secret>,
    pub(crate) contexts: Vec<ContextRule>,
    /// Where each of `contexts` is written.
    pub(crate) context_places: Vec<String>,
    pub(crate) execs: Vec<ExecRule>,
    pub(crate) services: Vec<Service>,
    pub(crate) shares: Vec<Share>,
    pub(crate) documents: Vec<DocumentRule>,
    pub(crate) approvals: Vec<ApprovalPolicy>,
    pub(crate) resolve: Resolve,
    pub(crate) ca_file: Option<String>,
    pub(crate) limits: LimitSettings,
    pub(crate) defaults: Defaults,
}

impl Policy {
    /// The policy that grants nothing: every tool with a declaration is denied.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// The grants with their names, in order.
    pub fn grants(&self) -> impl Iterator<Item = &Rule> {
        self.grants.iter().map(|placed| &placed.rule)
    }

    /// The grants that are about none of these contracts, in order.
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

    /// Whether a grant lets this tool be shown by a name that it asks for.
    #[must_use]
    pub fn names_tool(&self, publisher: &str, id: &str, major: u64, name: &str) -> bool {
        self.grants().any(|rule| {
            rule.publisher.as_str() == publisher
                && rule.tool.matches(id, major)
                && rule.names.iter().any(|own| own == name)
        })
    }

    /// Which half of a tool's results clients of MCP are sent, as the first grant for it that sets `result` states.
    #[must_use]
    pub fn mcp_result(&self, publisher: &str, id: &str, major: u64) -> Option<McpResult> {
        let mut grants = self
            .grants()
            .filter(|rule| rule.publisher.as_str() == publisher && rule.tool.matches(id, major));
        grants.find_map(|rule| rule.mcp_result)
    }

    /// The grants that are about an action, with their names, in order.
    pub fn action_grants(&self) -> impl Iterator<Item = (&RuleId, &Rule)> {
        let grants = self.grants.iter().map(|placed| (&placed.id, &placed.rule));
        grants.filter(|(_, rule)| rule.action.is_some())
    }

    /// The denies, in order.
    pub fn denies(&self) -> impl Iterator<Item = &DenyRule> {
        self.denies.iter().map(|placed| &placed.rule)
    }

    /// `[[workspace]]`: which host directories stand behind contracts' paths.
    #[must_use]
    pub fn workspaces(&self) -> &[Workspace] {
        &self.workspaces
    }

    /// `[[secret]]`: where values come from and where they go out.
    #[must_use]
    pub fn secrets(&self) -> &[Secret] {
        &self.secrets
    }

    /// `[[context]]`: the state that tools are given.
    #[must_use]
    pub fn contexts(&self) -> &[ContextRule] {
        &self.contexts
    }

    /// The `[[context]]`s that none of these contracts gets a value from, in order.
    pub fn unused_contexts<'p>(
        &'p self,
        contracts: &'p [Contract<'p>],
    ) -> impl Iterator<Item = UnusedContext<'p>> {
        let placed = self.contexts.iter().zip(&self.context_places);
        placed.filter_map(|(rule, place)| UnusedContext::of(rule, place, contracts))
    }

    /// Looks up the values of `[[context]]` that come from a variable or a file,
    /// once: `look` gives the text, or says what is wrong, and never the text in
    /// that. Without it a tool whose context needs one of them is blocked.
    #[must_use]
    pub fn with_contexts(
        mut self,
        look: &mut dyn FnMut(&ContextSource) -> Result<String, String>,
    ) -> Self {
        let rules = self.contexts.iter_mut();
        let values = rules.flat_map(|rule| rule.values.values_mut());
        values.for_each(|value| value.look_up(look));
        self
    }

    /// `[[exec]]`: the programs that may run outside the sandbox.
    #[must_use]
    pub fn execs(&self) -> &[ExecRule] {
        &self.execs
    }

    /// `[[service]]`: the hosts behind external services.
    #[must_use]
    pub fn services(&self) -> &[Service] {
        &self.services
    }

    /// `[[share]]`: buckets of one publisher for another.
    #[must_use]
    pub fn shares(&self) -> &[Share] {
        &self.shares
    }

    /// `[approval.NAME]`: what contracts' `approval: policy:NAME` stands for.
    #[must_use]
    pub fn approvals(&self) -> &[ApprovalPolicy] {
        &self.approvals
    }

    /// When a person is asked about a tool of a publisher, by the tool's own `approval` and
    /// what it refers to.
    #[must_use]
    pub fn approval_of(&self, tool: &Tool, publisher: &str) -> ApprovalClass {
        let reference = self.approval_reference(tool, publisher);
        reference.map_or_else(|| (&tool.approval).into(), |found| found.approval)
    }

    /// The approval policy that a tool of a publisher refers to.
    #[must_use]
    pub fn approval_reference(&self, tool: &Tool, publisher: &str) -> Option<PolicyReference> {
        PolicyReference::of(&self.approvals, tool, publisher)
    }

    /// `[resolve]`: which drivers are wanted at all.
    #[must_use]
    pub fn resolve(&self) -> &Resolve {
        &self.resolve
    }

    /// `[network] ca_file`, as written: certificates to trust in addition to
    /// the system's. Relative to the policy's file.
    #[must_use]
    pub fn ca_file(&self) -> Option<&str> {
        self.ca_file.as_deref()
    }

    /// `[limits]`.
    #[must_use]
    pub fn limits(&self) -> &LimitSettings {
        &self.limits
    }

    /// `[defaults]`.
    #[must_use]
    pub fn defaults(&self) -> Defaults {
        self.defaults
    }
}
