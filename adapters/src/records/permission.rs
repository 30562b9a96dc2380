//! `tool_permission_profile`: what a tool may do through one driver, from its grant.

use serde::Serialize;
use toolward_host::{DriverInfo, ToolInfo};
use toolward_policy::{Decision, Grant};

use crate::records::declaration::line;
use crate::records::interface::sandbox;
use crate::records::references;
use crate::records::version::SchemaVersion;

/// How much harm a call can do: AIP-14's levels 0 to 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RiskLevel {
    /// It only reads.
    Low,
    /// It writes within its scope.
    Medium,
    /// It has effects outside.
    High,
    /// What it does can't be undone.
    Critical,
}

impl RiskLevel {
    fn of(level: u8) -> Self {
        match level {
            0 => Self::Low,
            1 => Self::Medium,
            2 => Self::High,
            _ => Self::Critical,
        }
    }
}

/// What a tool may do through one driver. Of a blocked tool that is nothing.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PermissionProfile {
    /// The version of Agent Tool.
    pub schema_version: SchemaVersion,
    /// Its reference.
    pub permission_profile_id: String,
    /// The highest risk of the tool and of those that it may call; at least medium if one of them changes something.
    pub risk_level: RiskLevel,
    /// What it may use, as capabilities.
    pub access_kinds: Vec<String>,
    /// What of that it may change.
    pub write_effects: Vec<String>,
    /// The hosts that it may reach, with commas between; `none`.
    pub network_scope: String,
    /// The secrets that it may use or store.
    pub credential_refs: Vec<String>,
    /// What confines it.
    pub sandbox_profile: &'static str,
    /// Whether a person has to approve calls.
    pub approval_required: bool,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_reason: Option<String>,
    /// What rules match.
    pub rule_matching_fields: [&'static str; 4],
    /// Whether results are searched for secrets.
    pub redaction_required: bool,
    /// The rules that gave something, or that deny the tool.
    pub policy_refs: Vec<String>,
    /// What it declares and does not get.
    pub missing: Vec<String>,
}

impl PermissionProfile {
    /// That of a tool's driver.
    #[must_use]
    pub fn of(info: &ToolInfo, driver: &DriverInfo) -> Self {
        let nothing = Grant::default();
        let granted = granted(driver.decision.grant().unwrap_or(&nothing));
        let mut profile = Self {
            schema_version: SchemaVersion,
            permission_profile_id: references::permission_profile(info, driver),
            risk_level: RiskLevel::of(info.contract.risk_level),
            access_kinds: granted.access,
            write_effects: granted.writes,
            network_scope: match granted.hosts.as_slice() {
                [] => "none".to_owned(),
                hosts => hosts.join(", "),
            },
            redaction_required: !granted.secrets.is_empty(),
            credential_refs: granted.secrets,
            sandbox_profile: sandbox(driver),
            approval_required: false,
            approval_reason: None,
            rule_matching_fields: ["publisher", "tool", "driver_publisher", "driver"],
            policy_refs: rules(&driver.decision),
            missing: Vec::new(),
        };
        let mut writes = !profile.write_effects.is_empty() || !info.contract.mutates.is_empty();
        match &driver.decision {
            Decision::Allow(allowed) | Decision::Ask(allowed, _) => {
                profile.risk_level = RiskLevel::of(allowed.effects.risk);
                writes |= allowed.effects.writes;
                let without = driver.without().iter();
                profile.missing = without.map(|one| line(&one.to_string())).collect();
            }
            Decision::Deny(denial) => {
                let missing = denial.missing.iter();
                let missing = missing.map(|one| line(&one.to_string()));
                let program = denial.program.iter().map(|lack| line(&lack.to_string()));
                profile.missing = missing.chain(program).collect();
            }
        }
        if writes {
            profile.risk_level = profile.risk_level.max(RiskLevel::Medium);
        }
        if let Decision::Ask(_, reasons) = &driver.decision {
            let reasons: Vec<String> = reasons.iter().map(|one| line(&one.to_string())).collect();
            profile.approval_required = true;
            profile.approval_reason = Some(reasons.join("; "));
        }
        profile
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
