//! A decision with everything that led to it, side by side: what is declared,
//! which rules give it, what is granted, and why not. Values for programs, text
//! for people.

mod text;

use serde::Serialize;
use toolward_contract::capability::{Capability, Class};
use toolward_contract::driver::DriverKind;

use crate::approval::PolicyReference;
use crate::context::{ContextLack, Contexts};
use crate::decide;
use crate::decision::{AskReason, Decision, DecisionContext, Effects};
use crate::denial::Why;
use crate::evaluate::{Evaluated, Found, PolicyView};
use crate::exec::{ExecRule, ExecWhy};
use crate::grant::OnViolation;
use crate::implementation::{Contract, DeclaredBy, Implementation};
use crate::partial::{Partial, Withheld};
use crate::policy::Policy;
use crate::rule::RuleId;

/// What became of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ExplainedOutcome {
    /// Calls run.
    Allow,
    /// Calls run once a person has approved them.
    Ask,
    /// The tool is blocked.
    Deny,
}

/// Why a decision is what it is. Its [`Display`](std::fmt::Display) form has several
/// lines. Names come from bundles: show them as you show a bundle's text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    /// `id@major` of the contract.
    pub tool: String,
    /// The contract's publisher.
    pub publisher: String,
    /// The driver's id.
    pub driver: String,
    /// The driver's publisher.
    pub driver_publisher: String,
    /// What became of the tool.
    pub outcome: ExplainedOutcome,
    /// The rules that deny the whole tool.
    pub denied_by: Vec<RuleId>,
    /// One for each part of the declaration.
    pub capabilities: Vec<Explained>,
    /// What the tool is served without, if a rule has `partial`.
    #[serde(skip)]
    pub without: Vec<Withheld>,
    /// Why a person is asked.
    pub ask: Vec<AskReason>,
    /// The rules that stand for the person.
    pub preapproved: Vec<RuleId>,
    /// The approval policy that the contract refers to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_policy: Option<PolicyReference>,
    /// What a call can bring about, the tools that it reaches included.
    pub effects: Effects,
    /// What happens at the first attempt to go beyond the grant.
    pub on_violation: OnViolation,
    /// Why the tool has no context, where its contract requires one. It is blocked
    /// then, but for callers that give one themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextLack>,
    /// The secrets that it is granted and that have no value. It is blocked then. Whoever reads the values fills them in,
    /// with [`Explanation::without_secrets`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub secrets_missing: Vec<String>,
    /// The program that carries the tool out, outside the sandbox, and what it gets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<ExplainedProgram>,
    /// The lines to add to the policy, where the tool is blocked.
    pub lines_to_add: String,
    /// Fewer lines, as an example: they give some of the hosts and workspaces only. Empty if there are none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub narrower_lines: String,
}

/// One part of a declaration, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Explained {
    /// The capability as declared.
    pub declared: Capability,
    /// Whether it is declared in `mutates`.
    pub mutates: bool,
    /// Who declared it.
    pub declared_by: DeclaredBy,
    /// What of it is asked for: for a network capability the part that the
    /// driver's egress takes in; `None` where the driver uses nothing of it.
    pub asked: Option<Capability>,
    /// The rules that give it.
    pub rules: Vec<RuleId>,
    /// What the sandbox gets for it, for people. Empty where the tool is
    /// blocked.
    pub granted: Vec<String>,
    /// Why it is not given.
    pub missing: Option<Why>,
    /// Why it is not given, or not as a whole, to a tool that is served without it: a rule has `partial`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub withheld: Option<Why>,
}

/// A program that runs outside the sandbox, or may not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ExplainedProgram {
    /// Its path and arguments.
    pub command: Vec<String>,
    /// What its `[[exec]]` gives it, for people. Empty where the tool is blocked.
    pub granted: Vec<String>,
    /// Why it may not run.
    pub missing: Option<ExecWhy>,
}

impl ExplainedProgram {
    fn of(decision: &Decision) -> Option<Self> {
        let command = |command: &String, args: &[String]| {
            std::iter::once(command).chain(args).cloned().collect()
        };
        match decision {
            Decision::Deny(denial) => denial.program.as_ref().map(|lack| Self {
                command: command(&lack.command, &lack.args),
                granted: Vec::new(),
                missing: Some(lack.why.clone()),
            }),
            Decision::Allow(allowed) | Decision::Ask(allowed, _) => {
                allowed.grant.program().map(|rule| Self {
                    command: command(&rule.command, &rule.args),
                    granted: given(rule),
                    missing: None,
                })
            }
        }
    }
}

/// What a line gives a program.
fn given(rule: &ExecRule) -> Vec<String> {
    let network = rule
        .network
        .then(|| "the whole network, unfiltered".to_owned());
    let processes = rule.processes.then(|| "processes of its own".to_owned());
    let workspaces = rule.workspaces.iter();
    let workspaces = workspaces.map(|(path, access)| format!("{path} {}", access.as_str()));
    let env = rule.env.iter();
    let env = env.map(|(slug, name)| format!("the secret {slug} in ${name}"));
    let all = workspaces.chain(env);
    network.into_iter().chain(processes).chain(all).collect()
}

/// [`decide`](crate::decide()), with the reasons.
#[must_use]
pub fn explain(
    contract: &Contract<'_>,
    implementation: &Implementation<'_>,
    policy: &Policy,
    request: &DecisionContext<'_>,
) -> Explanation {
    let view = PolicyView::new(*contract, *implementation, policy, request.machine);
    let evaluated = view.evaluate();
    let decision = decide::of(&view, &evaluated, request);
    let approval = policy.approval_of(contract.tool, contract.publisher);
    let own = Effects {
        approval,
        ..Effects::given(contract.tool, implementation.driver, &evaluated)
    };
    let mut explanation = Explanation {
        tool: contract.tool.major_id(),
        publisher: contract.publisher.to_owned(),
        driver: implementation.driver.id.to_string(),
        driver_publisher: implementation.publisher.to_owned(),
        outcome: ExplainedOutcome::Deny,
        denied_by: Vec::new(),
        capabilities: Vec::new(),
        without: Vec::new(),
        ask: Vec::new(),
        preapproved: Vec::new(),
        approval_policy: policy.approval_reference(contract.tool, contract.publisher),
        effects: own.join(request.reachable),
        on_violation: view.on_violation(),
        context: Contexts::of(contract, implementation, policy)
            .lack()
            .cloned(),
        secrets_missing: Vec::new(),
        program: ExplainedProgram::of(&decision),
        lines_to_add: String::new(),
        narrower_lines: String::new(),
    };
    match decision {
        Decision::Allow(allowed) => {
            explanation.outcome = ExplainedOutcome::Allow;
            explanation.without = withheld(allowed.partial);
            explanation.preapproved = allowed.preapproved;
        }
        Decision::Ask(allowed, reasons) => {
            explanation.outcome = ExplainedOutcome::Ask;
            explanation.without = withheld(allowed.partial);
            explanation.ask = reasons;
        }
        Decision::Deny(denial) => {
            explanation.lines_to_add = denial.lines_to_add();
            explanation.narrower_lines = denial.narrower_lines();
            explanation.denied_by = denial.denied_by;
        }
    }
    if let Some(lack) = &explanation.context {
        explanation.outcome = ExplainedOutcome::Deny;
        let between = match explanation.lines_to_add.is_empty() {
            true => "",
            false => "\n",
        };
        let lines = lack.lines_to_add();
        explanation.lines_to_add.push_str(between);
        explanation.lines_to_add.push_str(&lines);
        if !explanation.narrower_lines.is_empty() {
            explanation.narrower_lines.push_str(between);
            explanation.narrower_lines.push_str(&lines);
        }
    }
    let blocked = explanation.outcome == ExplainedOutcome::Deny;
    explanation.capabilities = evaluated
        .iter()
        .flat_map(|one| rows(&view, one, blocked))
        .collect();
    explanation
}

fn withheld(partial: Option<Partial>) -> Vec<Withheld> {
    partial.map_or_else(Vec::new, |partial| partial.withheld)
}

fn rows(view: &PolicyView<'_>, one: &Evaluated<'_>, blocked: bool) -> Vec<Explained> {
    let row = |asked: Option<&Capability>| Explained {
        declared: one.declared.capability.clone(),
        mutates: one.declared.mutates,
        declared_by: one.declared.by,
        asked: asked.cloned(),
        rules: Vec::new(),
        granted: Vec::new(),
        missing: None,
        withheld: None,
    };
    if one.found.is_empty() && one.withheld.is_empty() {
        return vec![row(None)];
    }
    let fill = |row: &mut Explained, (asked, found): &(Capability, Found<'_>)| match found {
        Ok(rules) => {
            row.rules
                .extend(rules.iter().map(|placed| placed.id.clone()));
            // What a program gets is shown next to the program.
            let program = view.implementation.driver.kind == DriverKind::Exec;
            if !blocked && !program {
                let part = decide::grant::part(view, one, asked, rules);
                row.granted.extend(part.words());
            }
            if let Class::Other(_) = asked.class() {
                row.granted = vec!["nothing: this host does not know its class".to_owned()];
            }
        }
        Err(why) => row.missing = Some(why.clone()),
    };
    let is_part = |part: &Capability| one.withheld.iter().any(|(asked, _)| asked.covers(part));
    let whole = one.found.iter().filter(|(asked, _)| !is_part(asked));
    let whole = whole.map(|found| {
        let mut row = row(Some(&found.0));
        fill(&mut row, found);
        row
    });
    let withheld = one.withheld.iter().map(|(asked, why)| {
        let mut row = row(Some(asked));
        for found in one.found.iter().filter(|(part, _)| asked.covers(part)) {
            fill(&mut row, found);
        }
        row.rules.sort();
        row.rules.dedup();
        row.withheld = Some(why.clone());
        row
    });
    whole.chain(withheld).collect()
}

impl Explanation {
    /// The same of a tool whose secrets of these names have no value: calls fail.
    #[must_use]
    pub fn without_secrets(mut self, slugs: Vec<String>) -> Self {
        if !slugs.is_empty() {
            self.outcome = ExplainedOutcome::Deny;
            self.secrets_missing = slugs;
        }
        self
    }
}
