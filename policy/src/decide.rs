//! The decision: compares a declaration with a policy. A pure function without I/O.

pub(crate) mod grant;

use std::collections::{BTreeSet, HashSet};

use toolward_contract::capability::{Backing, Capability, Class};

use crate::approval::ApprovalClass;
use crate::decision::{Allowed, AskReason, Decision, DecisionContext, Effects};
use crate::denial::{Denial, Lack, MissingGrant};
use crate::evaluate::{Evaluated, PolicyView, parts};
use crate::exec;
use crate::implementation::{ASK_FROM_RISK, Contract, Declared, Implementation};
use crate::name::{Placed, RuleId};
use crate::partial::Partial;
use crate::policy::Policy;
use crate::rule::Rule;

/// Decides what `implementation` is granted for `contract`. The policy must grant everything that
/// contract and driver declare, or the tool is blocked. The exception: if a rule has `partial`,
/// hosts and workspaces may be left out. Nothing declared is dropped silently, and nothing
/// undeclared is granted.
pub fn decide(
    contract: &Contract<'_>,
    implementation: &Implementation<'_>,
    policy: &Policy,
    request: &DecisionContext<'_>,
) -> Decision {
    let view = PolicyView::new(*contract, *implementation, policy, request.machine);
    let evaluated = view.evaluate();
    of(&view, &evaluated, request)
}

/// The decision from the evaluated capabilities.
pub(crate) fn of(
    view: &PolicyView<'_>,
    evaluated: &[Evaluated<'_>],
    request: &DecisionContext<'_>,
) -> Decision {
    let denied_by = view.denied_by();
    // Two wide declarations may require the same part, which is reported once.
    let mut seen = HashSet::new();
    let missing = parts(evaluated).filter_map(|(declared, asked, found)| {
        Some(MissingGrant {
            capability: asked.clone(),
            mutates: declared.mutates,
            declared_by: declared.by,
            why: found.as_ref().err()?.clone(),
        })
    });
    let missing: Vec<MissingGrant> = missing.filter(|one| seen.insert(one.clone())).collect();
    let program = exec::find(view, evaluated);
    if !denied_by.is_empty() || !missing.is_empty() || program.is_err() {
        let workspaces = view.policy.tables.workspaces.iter();
        let placeholders = workspaces.filter(|workspace| workspace.is_placeholder());
        return Decision::Deny(Denial {
            tool: view.contract.tool.major_id(),
            publisher: view.contract.publisher.to_owned(),
            driver: view.implementation.driver.id.to_string(),
            driver_publisher: view.implementation.publisher.to_owned(),
            denied_by,
            lacks: lacks(view, &missing),
            missing,
            program: program.err(),
            placeholders: placeholders.map(|known| known.directory.clone()).collect(),
        });
    }
    let own = Effects::given(view, evaluated);
    let defaults = view.policy.tables.defaults;
    let raised = view.grants.iter().map(|placed| placed.rule.approval);
    let approval = raised
        .chain(defaults.approval)
        .chain([own.approval, request.reachable.approval])
        .max()
        .unwrap_or_default();
    let gave = parts(evaluated).flat_map(|(.., found)| found.iter().flatten());
    let mut allowed = Allowed {
        grant: match program {
            Ok(Some(rule)) => grant::of_program(grant::of(view, evaluated), rule),
            _ => grant::of(view, evaluated),
        },
        rules: view.in_order(&gave.map(|placed| &placed.id).collect()),
        preapproved: Vec::new(),
        confirmed: view.confirmed(),
        effects: own.join(request.reachable),
        own_effects: own,
        partial: Partial::of(evaluated),
        approval,
    };
    let reasons = reasons(view, own, request.reachable);
    if reasons.is_empty() {
        return Decision::Allow(allowed);
    }
    if reasons.iter().all(AskReason::can_be_preapproved)
        && let Some(rules) = preapproval(view, evaluated, own, request.reachable)
    {
        allowed.preapproved = rules;
        return Decision::Allow(allowed);
    }
    Decision::Ask(allowed, reasons)
}

fn reasons(view: &PolicyView<'_>, own: Effects, reachable: Effects) -> Vec<AskReason> {
    let mut reasons = Vec::new();
    let mut add = |holds: bool, reason: AskReason| {
        if holds {
            reasons.push(reason);
        }
    };
    let always = ApprovalClass::Always;
    let (tool, publisher) = (view.contract.tool, view.contract.publisher);
    let reference = view.policy.approval_reference(tool, publisher);
    let reason = reference.clone().map(AskReason::Policy);
    add(
        own.approval == always,
        reason.unwrap_or(AskReason::Contract),
    );
    add(own.writes, AskReason::Mutates);
    add(own.risk >= ASK_FROM_RISK, AskReason::Risk(own.risk));
    add(reachable.writes, AskReason::ReachesMutation);
    let risk = reachable.risk;
    add(risk >= ASK_FROM_RISK, AskReason::ReachesRisk(risk));
    add(reachable.approval == always, AskReason::ReachesApproval);
    let default = view.policy.tables.defaults.approval;
    add(default == Some(always), AskReason::Default);
    for placed in &view.grants {
        let raises = placed.rule.approval == always;
        add(raises, AskReason::Rule(placed.id.clone()));
    }
    // If a person is asked for other reasons, the referenced approval policy is named as a reason,
    // too.
    if let Some(reference) = reference.filter(|_| own.approval != always && !reasons.is_empty()) {
        reasons.push(AskReason::Policy(reference));
    }
    reasons
}

/// The rules with `preapproved` that replace the person's approval; `None` if a person must
/// approve. These rules must grant each capability that the tool changes. If tools that it reaches
/// change something or have risk 2 or more, the rules must also grant each tool that it calls. If
/// the tool itself has risk 2 or more, they must grant every required capability.
fn preapproval(
    view: &PolicyView<'_>,
    evaluated: &[Evaluated<'_>],
    own: Effects,
    reachable: Effects,
) -> Option<Vec<RuleId>> {
    let calls_matter = reachable.writes || reachable.risk >= ASK_FROM_RISK;
    let matters = |declared: &Declared| {
        own.risk >= ASK_FROM_RISK
            || declared.mutates
            || (calls_matter && *declared.capability.class() == Class::Tool)
    };
    let needed = parts(evaluated).filter(|(declared, ..)| matters(declared));
    let mut needed: Vec<_> = needed.map(|(.., rules)| rules).collect();
    if needed.is_empty() {
        needed = parts(evaluated).map(|(.., rules)| rules).collect();
    }
    let standing = |placed: &&&Placed<Rule>| placed.rule.preapproved;
    let rules: BTreeSet<&RuleId> = if needed.is_empty() {
        // The tool requires nothing that a rule could grant. A rule about all tools (`*`) does not
        // count then.
        let rules = view.grants.iter().filter(standing);
        let named = rules.filter(|placed| !placed.rule.tool.is_all());
        named.map(|placed| &placed.id).collect()
    } else {
        let mut gave = BTreeSet::new();
        for rules in needed {
            let mut standing = rules.iter().flatten().filter(standing).peekable();
            standing.peek()?;
            gave.extend(standing.map(|placed| &placed.id));
        }
        gave
    };
    let rules = view.in_order(&rules);
    (!rules.is_empty()).then_some(rules)
}

/// The tables, other than rules, that the policy lacks for the missing grants.
fn lacks(view: &PolicyView<'_>, missing: &[MissingGrant]) -> Vec<Lack> {
    let mut lacks = Vec::new();
    for one in missing.iter().filter(|one| one.why.lines_help()) {
        let asked = &one.capability;
        match asked.class().backing() {
            Some(Backing::Workspace) if view.workspace(asked).is_none() => {
                let directory = asked.path().map(|path| path.directory());
                let root = directory.and_then(|path| Capability::of(Class::Workspace, &path).ok());
                lacks.extend(root.map(Lack::Workspace));
            }
            Some(Backing::Secret)
                if !one.mutates && view.secret(asked, one.declared_by).is_none() =>
            {
                let sent = view.secret_use(&asked.scope());
                lacks.push(Lack::Secret {
                    slug: asked.scope(),
                    publisher: view.publisher_of(one.declared_by).to_owned(),
                    egress: egress(view),
                    method: sent.as_ref().map(|sent| sent.method.as_str()),
                    position: sent.and_then(|sent| sent.position),
                });
            }
            Some(Backing::Service) if !view.has_service(asked) => {
                let declared = view.contract.tool.declaration();
                let other = |scope: &String| {
                    Capability::of(Class::Network, scope)
                        .is_ok_and(|host| !declared.covers_one(&host))
                };
                // All services are required, but none exists.
                let name = match asked.is_wildcard() {
                    true => "choose".to_owned(),
                    false => asked.scope(),
                };
                let egress = egress(view).into_iter().filter(other).collect();
                lacks.push(Lack::Service { name, egress });
            }
            Some(Backing::Workspace | Backing::Secret | Backing::Service) | None => {}
        }
    }
    lacks
}

fn egress(view: &PolicyView<'_>) -> Vec<String> {
    let egress = view.implementation.driver.egress.iter();
    egress.map(Capability::scope).collect()
}
