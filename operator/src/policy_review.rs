//! Evaluates the policy for the tools of bundles without running them: the routes that
//! a host would have, and the missing policy lines.

mod action_rules;
mod addresses;
mod candidates;
mod grant;
mod row;
mod suggest;
mod tool_status;

use std::collections::BTreeSet;

use toolward_bundle::content::Content;
use toolward_bundle::tool_names;
use toolward_contract::tool::Tool;
use toolward_host::secrets::SecretStore as _;
use toolward_host::{Host, LOCAL};
use toolward_policy::{
    Contract, DuplicateId, Explanation, Implementation, Machine, Policy, Route, ToolRoutes,
};

use crate::bundles::BundleSource;
use crate::environment::Environment;
use crate::error::{Code, Error};
use crate::granted::{Granted, PolicyFiles};
use crate::host_setup;
use crate::report::Report;
use crate::trust::Trust;

pub use action_rules::ActionRule;
pub use addresses::InternalAddress;
pub use candidates::{Candidate, Reason, RejectedDriver, ToolCandidates};
pub use row::Row;
pub use suggest::Suggestion;
pub use tool_status::ToolStatus;

/// Bundles, and the policy that applies to them.
///
/// ```no_run
/// use toolward_operator::policy_review::PolicyReview;
/// use toolward_operator::{Operator, Silent};
///
/// # fn main() -> Result<(), toolward_operator::Error> {
/// let Operator { source, setup, environment, .. } = Operator::of_process();
/// let review = PolicyReview::read(&source, &setup.policies, &environment, &Silent)?;
/// for row in review.rows()? {
///     println!("{} {}: {}", row.state, row.tool, row.reasons.join("; "));
/// }
/// if let Some(suggestion) = review.suggest(Some("notes.append"), None)? {
///     println!("{}", suggestion.lines);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct PolicyReview {
    /// The bundles, with the names of their publishers.
    pub bundles: Vec<(Content, String)>,
    /// What the operator grants.
    pub granted: Granted,
    /// What the host provides to drivers, including whether their directories are
    /// usable.
    pub machine: Machine,
    /// The secrets of the policy that have a value for local calls, by publisher and name.
    secrets_with_values: BTreeSet<(String, String)>,
}

impl PolicyReview {
    /// Reads bundles and policies.
    ///
    /// # Errors
    /// If a bundle is refused, or a file of the operator is invalid.
    pub fn read(
        source: &BundleSource,
        policies: &PolicyFiles,
        environment: &Environment,
        report: &dyn Report,
    ) -> Result<Self, Error> {
        // A policy that can't be read is the first thing to report, also if no bundle is found.
        Granted::read(&source.trust, policies, environment)?;
        let contents = source.contents(environment, report)?;
        Self::of(contents, &source.trust, policies, environment)
    }

    /// [`PolicyReview::read`], with bundles that were read before.
    ///
    /// # Errors
    /// If a file of the operator is invalid.
    pub fn of(
        contents: Vec<Content>,
        trust: &Trust,
        policies: &PolicyFiles,
        environment: &Environment,
    ) -> Result<Self, Error> {
        let granted = Granted::read(trust, policies, environment)?;
        let builder = Host::builder().policy(granted.policy.clone());
        let builder = host_setup::protect(builder, &granted, trust, environment)?;
        let named = contents.into_iter().map(|content| {
            let publisher = content.origin.publisher();
            (content, publisher)
        });
        Ok(Self {
            bundles: named.collect(),
            machine: builder.machine()?,
            secrets_with_values: with_values(&granted.policy, environment),
            granted,
        })
    }

    /// The routes of all tools, or of the named tool, as in a host.
    ///
    /// # Errors
    /// `duplicate-id` if two bundles contain the same tool or driver.
    pub fn routes(&self, tool: Option<&str>) -> Result<Vec<ToolRoutes<'_>>, Error> {
        self.routes_under(&self.granted.policy, &self.machine, tool)
    }

    /// What becomes of a route, and why, with the secrets that have no value here.
    #[must_use]
    pub fn explain(&self, route: &Route<'_>) -> Explanation {
        let explanation = route.explain(&self.granted.policy, &self.machine);
        explanation.without_secrets(self.secrets_missing(route))
    }

    /// The `[[grant]]`s that are about no tool of the bundles, in words.
    #[must_use]
    pub fn unmatched_grants(&self) -> Vec<String> {
        let contracts = self.contracts();
        let unmatched = self.granted.policy.unmatched_grants(&contracts);
        unmatched
            .map(|id| format!("{id}: it is about no tool that is installed"))
            .collect()
    }

    /// The `[[context]]`s that no tool of the bundles gets a value from, in words.
    #[must_use]
    pub fn unused_contexts(&self) -> Vec<String> {
        let contracts = self.contracts();
        let unused = self.granted.policy.unused_contexts(&contracts);
        unused.map(|context| context.to_string()).collect()
    }

    /// All rules without effect on the bundles, in words.
    #[must_use]
    pub fn unused_rules(&self) -> Vec<String> {
        let mut unused = self.unmatched_grants();
        unused.extend(self.unused_contexts());
        unused
    }

    fn contracts(&self) -> Vec<Contract<'_>> {
        let contracts = self.bundles.iter().flat_map(|(content, publisher)| {
            let tools = content.tools.iter();
            tools.map(move |entry| Contract {
                tool: &entry.tool,
                publisher,
            })
        });
        contracts.collect()
    }

    fn routes_under(
        &self,
        policy: &Policy,
        machine: &Machine,
        tool: Option<&str>,
    ) -> Result<Vec<ToolRoutes<'_>>, Error> {
        let mut contracts = Vec::new();
        let mut drivers = Vec::new();
        for (content, publisher) in &self.bundles {
            contracts.extend(content.tools.iter().map(|entry| Contract {
                tool: &entry.tool,
                publisher,
            }));
            let served = content.drivers.iter().map(|entry| &entry.driver);
            drivers.extend(
                served
                    .chain(&content.denied)
                    .map(|driver| Implementation { driver, publisher }),
            );
        }
        let mut found = toolward_policy::routes(&contracts, &drivers, policy, machine)
            .map_err(|duplicate| twice(duplicate, &contracts, &drivers))?;
        found.retain(|one| tool.is_none_or(|name| is_named(one.contract.tool, name)));
        Ok(found)
    }

    /// The error for a missing tool, or for bundles without tools.
    pub fn missing(&self, tool: Option<&str>) -> Error {
        let tools = self.bundles.iter().flat_map(|(content, _)| &content.tools);
        let ids: Vec<String> = tools.map(|entry| entry.tool.major_id()).collect();
        let message = match tool {
            Some(tool) => format!("no bundle has a tool `{tool}`"),
            None => "no bundle has a tool".to_owned(),
        };
        let hint = tool_names::hint(tool.unwrap_or_default(), ids.iter().map(String::as_str));
        Error::failed(Code::ToolMissing, message)
            .hint(hint.unwrap_or_else(|| "name a bundle with contracts and drivers".to_owned()))
    }
}

fn with_values(policy: &Policy, environment: &Environment) -> BTreeSet<(String, String)> {
    let sources = host_setup::sources(policy, environment);
    let all = policy.secrets().iter();
    let keys = all.map(|one| (one.publisher.to_string(), one.slug.clone()));
    let has = |(publisher, slug): &(String, String)| {
        let value = sources.get(publisher, LOCAL, slug);
        value.is_ok_and(|value| value.is_some())
    };
    keys.filter(has).collect()
}

fn twice(
    duplicate: DuplicateId,
    contracts: &[Contract<'_>],
    drivers: &[Implementation<'_>],
) -> Error {
    let contract = contracts.get(duplicate.first);
    let driver = drivers.get(duplicate.first);
    let id = match duplicate.kind {
        "tool" => contract.map(|one| one.tool.major_id()),
        _ => driver.map(|one| one.driver.id.to_string()),
    };
    let message = format!("{duplicate}: `{}`", id.unwrap_or_default());
    Error::failed(Code::DuplicateId, message)
        .hint("name one of the two bundles only, or remove one")
}

pub(crate) fn is_named(contract: &Tool, name: &str) -> bool {
    contract.id.as_str() == name
        || contract.major_id() == name
        || contract.aliases.iter().any(|alias| alias == name)
}
