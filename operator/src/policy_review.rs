//! Evaluates the policy for the tools of bundles without running them: the routes that a host would
//! have (each a tool with a driver that may serve it), and the missing policy lines.

mod status;
mod suggest;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::iter::from_fn;
use std::net::{IpAddr, ToSocketAddrs as _};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use serde::Serialize;
use toolward_bundle::content::Content;
use toolward_bundle::text::tool_hint;
use toolward_host::secrets::SecretStore as _;
use toolward_host::{Host, LOCAL};
use toolward_policy::{
    Contract, DuplicateId, Explanation, Grant, HostGrant, Implementation, Machine, Policy, Route,
    ToolRoutes,
};

use crate::bundles::{BundleSource, is_named};
use crate::granted::{Granted, PolicyFiles};
use crate::host_setup;
use crate::trust::Trust;
use crate::{Code, Environment, Error, Result, joined};

pub use status::{
    DriverCandidate, RejectedDriver, RejectionReason, ToolCandidates, ToolRow, ToolStatus,
};
pub use suggest::Suggestion;

/// Bundles, and the policy that applies to them.
///
/// ```no_run
/// use toolward_operator::policy_review::PolicyReview;
/// use toolward_operator::Operator;
///
/// # fn main() -> Result<(), toolward_operator::Error> {
/// let Operator { source, setup, environment, .. } = Operator::of_process();
/// let review = PolicyReview::read(&source, &setup.policies, &environment)?;
/// for row in review.rows()? {
///     println!("{} {}: {}", row.state, row.tool, row.reasons.join("; "));
/// }
/// if let Some(suggestion) = review.suggest(Some("notes.append"), None)? {
///     println!("{}", suggestion.chosen.lines);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct PolicyReview {
    /// The bundles, with the names of their publishers.
    pub bundles: Vec<(Content, String)>,
    /// The operator's grants.
    pub granted: Granted,
    /// The host's support for drivers, including whether their directories are usable.
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
    ) -> Result<Self> {
        // A policy that can't be read is reported first, even if no bundle is found.
        Granted::read(&source.trust, policies, environment)?;
        let contents = source.contents(environment)?;
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
    ) -> Result<Self> {
        let granted = Granted::read(trust, policies, environment)?;
        let builder = Host::builder().policy(granted.policy.clone());
        let builder = host_setup::protect(builder, &granted, trust, environment)?;
        let bundles = contents.into_iter();
        let bundles = bundles.map(|content| {
            let publisher = content.origin.publisher();
            (content, publisher)
        });
        Ok(Self {
            bundles: bundles.collect(),
            machine: builder.machine()?,
            secrets_with_values: secrets_with_values(&granted.policy, environment),
            granted,
        })
    }

    /// Returns the routes of all tools, or of the named tool, as in a host.
    ///
    /// # Errors
    /// `duplicate-id` if two bundles contain the same tool or driver.
    pub fn routes(&self, tool: Option<&str>) -> Result<Vec<ToolRoutes<'_>>> {
        self.routes_under(&self.granted.policy, &self.machine, tool)
    }

    /// Returns the decision on a route with its reasons, and the granted secrets that have no value
    /// here.
    pub fn explain(&self, route: &Route<'_>) -> Explanation {
        let explanation = route.explain(&self.granted.policy, &self.machine);
        explanation.without_secrets(self.secrets_missing(route))
    }

    /// Describes the `[[grant]]`s that match no tool of the bundles.
    pub fn unmatched_grants(&self) -> Vec<String> {
        let contracts = self.contracts();
        let unmatched = self.granted.policy.unmatched_grants(&contracts);
        unmatched
            .map(|id| format!("{id}: it matches no installed tool"))
            .collect()
    }

    /// Describes the `[[context]]`s from which no tool of the bundles gets a value.
    pub fn unused_contexts(&self) -> Vec<String> {
        let contracts = self.contracts();
        let unused = self.granted.policy.unused_contexts(&contracts);
        unused.map(|context| context.to_string()).collect()
    }

    /// Describes all rules without effect on the bundles.
    pub fn unused_rules(&self) -> Vec<String> {
        let mut unused = self.unmatched_grants();
        unused.extend(self.unused_contexts());
        unused
    }

    /// Returns each `[[grant]]` with `action`, in order.
    pub fn action_rules(&self) -> Vec<ActionRule> {
        let contracts = self.contracts();
        let rules = self.granted.policy.action_grants();
        let rules = rules.filter_map(|(id, rule)| {
            let action = rule.action.as_ref()?;
            let covered = contracts.iter().filter(|contract| rule.is_about(contract));
            Some(ActionRule {
                rule: id.to_string(),
                action: action.id.clone(),
                library: action.library.to_string(),
                publisher: rule.publisher.to_string(),
                tools: covered.map(|contract| contract.tool.major_id()).collect(),
            })
        });
        rules.collect()
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
    ) -> Result<Vec<ToolRoutes<'_>>> {
        let contracts = self.contracts();
        let drivers = self.bundles.iter().flat_map(|(content, publisher)| {
            let served = content.drivers.iter().map(|entry| &entry.driver);
            let all = served.chain(&content.denied);
            all.map(move |driver| Implementation { driver, publisher })
        });
        let drivers: Vec<Implementation<'_>> = drivers.collect();
        let mut found = toolward_policy::routes(&contracts, &drivers, policy, machine)
            .map_err(|duplicate| duplicate_error(&duplicate, &contracts, &drivers))?;
        found.retain(|one| tool.is_none_or(|name| is_named(one.contract.tool, name)));
        Ok(found)
    }

    /// Returns the error for a missing tool, or for bundles without tools.
    pub fn missing(&self, tool: Option<&str>) -> Error {
        let tools = self.bundles.iter().flat_map(|(content, _)| &content.tools);
        let ids: Vec<String> = tools.map(|entry| entry.tool.major_id()).collect();
        let message = match tool {
            Some(tool) => format!("no bundle has a tool `{tool}`"),
            None => "no bundle has a tool".to_owned(),
        };
        let hint = tool_hint(tool.unwrap_or_default(), ids.iter().map(String::as_str));
        Error::failed(Code::ToolMissing, message).hint(hint.unwrap_or_else(|| {
            "`toolward list` shows the installed tools; `--bundle` names another bundle".to_owned()
        }))
    }
}

fn secrets_with_values(policy: &Policy, environment: &Environment) -> BTreeSet<(String, String)> {
    let sources = host_setup::sources(policy, environment.state_directory.as_deref(), environment);
    let all = policy.tables().secrets.iter();
    let keys = all.map(|one| (one.publisher.to_string(), one.slug.clone()));
    let has = |(publisher, slug): &(String, String)| {
        let value = sources.get(publisher, LOCAL, slug);
        value.is_ok_and(|value| value.is_some())
    };
    keys.filter(has).collect()
}

fn duplicate_error(
    duplicate: &DuplicateId,
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

/// A `[[grant]]` with `action`.
#[derive(Debug, Clone, Serialize)]
pub struct ActionRule {
    /// The rule, in words.
    pub rule: String,
    /// The action's id.
    pub action: String,
    /// The publisher of the action.
    pub library: String,
    /// The publisher of the tools.
    pub publisher: String,
    /// The tools that it covers, by id with the major version.
    pub tools: Vec<String>,
}

/// How long all host names of a grant are looked up in total. Names that take longer are not
/// reported.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(3);

/// The most hosts that are looked up, each on a thread.
const MAX_LOOKUPS: usize = 64;

/// Finds the addresses of a name.
type Lookup = fn(&str) -> io::Result<Vec<IpAddr>>;

/// A granted host with an address that is not globally reachable. Requests to the host are refused
/// until its grant names the address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InternalAddress {
    /// The host, as granted.
    pub host: String,
    /// Its addresses that are not granted, at least one. A request is allowed only if all addresses
    /// of the host are granted.
    pub addresses: Vec<IpAddr>,
    /// The kind of the first address, for example `private (RFC 1918)`.
    pub kind: &'static str,
}

impl InternalAddress {
    /// Returns the line to add to the tool's `[[grant]]`.
    pub fn line(&self) -> String {
        let addresses = self.addresses.iter().map(|one| format!("\"{one}\""));
        format!("addresses = [{}]", joined(addresses, ", "))
    }

    /// Returns the hosts of a grant that now have such an address, as looked up on this machine.
    /// Waits for the lookups for a few seconds at most.
    #[must_use]
    pub fn of(grant: &Grant) -> Vec<Self> {
        Self::of_hosts(grant.network().to_vec(), |name| {
            let all = (name, 0).to_socket_addrs()?;
            Ok(all.map(|socket| socket.ip()).collect())
        })
    }

    fn of_hosts(hosts: Vec<HostGrant>, look_up: Lookup) -> Vec<Self> {
        let (sender, found) = channel();
        // A wildcard has no address.
        let named = |granted: &HostGrant| !granted.host.host().contains('*');
        let named = hosts.into_iter().filter(named).take(MAX_LOOKUPS);
        for (n, granted) in named.enumerate() {
            let sender = sender.clone();
            // A lookup can't be cancelled, so its thread is abandoned at the timeout. If no thread
            // can be started, the name is not reported.
            let lookup = move || sender.send((n, Self::of_host(&granted, look_up)));
            let _ = std::thread::Builder::new().spawn(lookup);
        }
        drop(sender);
        let end = Instant::now() + LOOKUP_TIMEOUT;
        let rest = || end.saturating_duration_since(Instant::now());
        let internal: BTreeMap<_, _> = from_fn(|| found.recv_timeout(rest()).ok()).collect();
        internal.into_values().flatten().collect()
    }

    fn of_host(granted: &HostGrant, look_up: Lookup) -> Option<Self> {
        let name = granted.host.host();
        let (mut addresses, mut first) = (Vec::new(), None);
        for address in look_up(name.trim_matches(['[', ']'])).ok()? {
            let checked = toolward_egress::address::check(address, &granted.terms.addresses);
            if let (Err(kind), false) = (checked, addresses.contains(&address)) {
                addresses.push(address);
                first.get_or_insert(kind);
            }
        }
        first.map(|kind| Self {
            host: granted.host.to_string(),
            addresses,
            kind,
        })
    }
}

impl std::fmt::Display for InternalAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (host, kind, line) = (&self.host, self.kind, self.line());
        let addresses = joined(&self.addresses, " and ");
        write!(
            f,
            "{host} is at {addresses}, {kind}: requests are refused until its [[grant]] has `{line}`"
        )
    }
}

#[cfg(test)]
mod tests {
    use toolward_contract::capability::HostPattern;
    use toolward_policy::HostTerms;

    use super::*;

    #[test]
    fn a_name_that_is_never_found_hides_no_other() {
        let hosts = [
            "slow.example",
            "*.example",
            "lost.example",
            "b.example",
            "a.example",
        ];
        let hosts = hosts.map(|host| HostGrant {
            host: HostPattern::parse(host).unwrap(),
            unsafe_methods: false,
            terms: HostTerms::default(),
        });
        let found = InternalAddress::of_hosts(hosts.to_vec(), |name| match name {
            "slow.example" => loop {
                std::thread::park();
            },
            "lost.example" => Err(io::ErrorKind::NotFound.into()),
            _ => Ok(vec![[10, 0, 0, 1].into(), [10, 0, 0, 1].into()]),
        });
        let found: Vec<_> = found
            .iter()
            .map(|one| (&*one.host, &*one.addresses))
            .collect();
        let address: &[IpAddr] = &[[10, 0, 0, 1].into()];
        assert_eq!(found, [("b.example", address), ("a.example", address)]);
    }
}
