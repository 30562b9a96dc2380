//! `tool_permission_profile`: what a tool may do through one driver, from its grant.

use serde_json::Value;
use toolward_host::{DriverFacts, ToolFacts};
use toolward_policy::{Decision, Grant};

use crate::records::declaration::line;
use crate::records::interface::sandbox;
use crate::records::object::record;
use crate::records::references;

/// How much harm a call can do: AIP-14's levels 0 to 3.
const RISK_LEVELS: [&str; 4] = ["low", "medium", "high", "critical"];

/// What a tool may do through one driver. Of a blocked tool that is nothing.
pub(crate) fn permission_profile(info: &ToolFacts, driver: &DriverFacts) -> Value {
    let nothing = Grant::default();
    let granted = granted(driver.decision.grant().unwrap_or(&nothing));
    let mut writes = !granted.writes.is_empty() || !info.contract.mutates.is_empty();
    let mut risk = info.contract.risk_level;
    let missing: Vec<String> = match &driver.decision {
        Decision::Allow(allowed) | Decision::Ask(allowed, _) => {
            risk = allowed.effects.risk;
            writes |= allowed.effects.writes;
            let without = driver.without().iter();
            without.map(|one| line(&one.to_string())).collect()
        }
        Decision::Deny(denial) => {
            let missing = denial.missing.iter();
            let missing = missing.map(|one| line(&one.to_string()));
            let program = denial.program.iter().map(|lack| line(&lack.to_string()));
            missing.chain(program).collect()
        }
    };
    // At least medium if one of the tools that it may call changes something.
    let risk = if writes { risk.max(1) } else { risk };
    let reasons = match &driver.decision {
        Decision::Ask(_, reasons) => {
            let reasons = reasons.iter().map(|one| line(&one.to_string()));
            Some(reasons.collect::<Vec<_>>().join("; "))
        }
        Decision::Allow(_) | Decision::Deny(_) => None,
    };
    record! {
        permission_profile_id = references::permission_profile(info, driver);
        risk_level = RISK_LEVELS.get(usize::from(risk)).unwrap_or(&"critical");
        access_kinds = granted.access;
        write_effects = granted.writes;
        network_scope = match granted.hosts.as_slice() {
            [] => "none".to_owned(),
            hosts => hosts.join(", "),
        };
        credential_refs = granted.secrets;
        sandbox_profile = sandbox(driver);
        approval_required = reasons.is_some();
        approval_reason ? reasons;
        rule_matching_fields = ["publisher", "tool", "driver_publisher", "driver"];
        // Results are searched for secrets.
        redaction_required = !granted.secrets.is_empty();
        policy_refs = rules(&driver.decision);
        missing = missing;
    }
}

/// The rules that gave something, or that deny the tool.
pub(crate) fn rules(decision: &Decision) -> Vec<String> {
    let rules = match decision {
        Decision::Allow(allowed) | Decision::Ask(allowed, _) => &allowed.rules,
        Decision::Deny(denial) => &denial.denied_by,
    };
    rules.iter().map(|rule| line(&rule.to_string())).collect()
}

/// A grant as capabilities.
struct Granted {
    access: Vec<String>,
    writes: Vec<String>,
    hosts: Vec<String>,
    secrets: Vec<String>,
}

fn granted(grant: &Grant) -> Granted {
    let network = grant.network().iter();
    let network = network.map(|one| (format!("network:{}", one.host), one.unsafe_methods));
    let workspaces = grant.workspaces().iter();
    let workspaces = workspaces.map(|one| (format!("workspace:{}", one.path), one.write));
    let buckets = grant.buckets().iter();
    let buckets = buckets.map(|one| (format!("database:{}", one.name), one.write));
    let secrets = grant.secrets().iter();
    let secrets = secrets.map(|one| (format!("secret:{}", one.slug), one.store));
    let tools = grant.tools().iter().map(|id| (format!("tool:{id}"), false));
    let user = grant.user();
    let user = [
        ("form", user.form),
        ("sample", user.sample),
        ("roots", user.roots),
    ];
    let user = user.into_iter().filter(|(_, given)| *given);
    let user = user.map(|(kind, _)| (format!("user:{kind}"), false));
    let all: Vec<(String, bool)> = network
        .chain(workspaces)
        .chain(buckets)
        .chain(secrets)
        .chain(tools)
        .chain(user)
        .map(|(capability, writes)| (line(&capability), writes))
        .collect();
    let writes = all.iter().filter(|(_, writes)| *writes);
    Granted {
        writes: writes.map(|(capability, _)| capability.clone()).collect(),
        access: all.into_iter().map(|(capability, _)| capability).collect(),
        hosts: grant
            .network()
            .iter()
            .map(|one| line(&one.host.to_string()))
            .collect(),
        secrets: grant.secrets().iter().map(|one| line(&one.slug)).collect(),
    }
}
