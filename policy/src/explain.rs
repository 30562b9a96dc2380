//! Explains a decision, as values for programs and as text for people. For each declaration, shows
//! the rules and the access that they grant, or why it is not granted.

use std::fmt;

use serde::Serialize;
use toolward_contract::capability::{Capability, Class};
use toolward_contract::driver::DriverKind;

use crate::approval::PolicyReference;
use crate::context::{ContextLack, Contexts};
use crate::decide;
use crate::decision::{AskReason, Decision, DecisionContext, Effects};
use crate::denial::{ExecWhy, Why};
use crate::evaluate::{Evaluated, Found, PolicyView};
use crate::exec::ExecRule;
use crate::grant::OnViolation;
use crate::implementation::{Contract, DeclaredBy, Implementation};
use crate::name::RuleId;
use crate::partial::{Partial, Withheld};
use crate::policy::Policy;

/// The outcome for a tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ExplainedOutcome {
    /// Calls run.
    Allow,
    /// Calls run once a person has approved them.
    Ask,
    /// The tool is blocked.
    #[default]
    Deny,
}

/// The explanation of a decision. Its [`Display`](std::fmt::Display) form has several lines. Names
/// in it come from bundles, so treat them like other text of a bundle.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// `id@major` of the contract.
    pub tool: String,
    /// The contract's publisher.
    pub publisher: String,
    /// The driver's id.
    pub driver: String,
    /// The driver's publisher.
    pub driver_publisher: String,
    /// The outcome for the tool.
    pub outcome: ExplainedOutcome,
    /// The rules that deny the whole tool.
    pub denied_by: Vec<RuleId>,
    /// One entry for each part of the declaration.
    pub capabilities: Vec<Explained>,
    /// The parts that the tool is served without, if a rule has `partial`.
    #[serde(skip)]
    pub without: Vec<Withheld>,
    /// Why a person is asked.
    pub ask: Vec<AskReason>,
    /// The rules that replace the person's approval.
    pub preapproved: Vec<RuleId>,
    /// The approval policy that the contract refers to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_policy: Option<PolicyReference>,
    /// The effects of a call, including the tools that it reaches.
    pub effects: Effects,
    /// What happens at the first attempt to go beyond the grant.
    pub on_violation: OnViolation,
    /// Why the tool has no context, if its contract requires one. The tool is then blocked, except
    /// for callers that give a context themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextLack>,
    /// The granted secrets that have no value, which blocks the tool. The code that reads the
    /// values sets this list, with [`Explanation::without_secrets`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub secrets_missing: Vec<String>,
    /// The program that runs the tool outside the sandbox, and its access.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<ExplainedProgram>,
    /// The lines to add to the policy, if the tool is blocked.
    pub lines_to_add: String,
    /// Fewer lines, as an example that grants only some of the hosts and workspaces. Empty if no
    /// such lines exist.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub narrower_lines: String,
}

/// One part of a declaration, and its outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explained {
    /// The capability as declared.
    pub declared: Capability,
    /// Whether it is declared in `mutates`.
    pub mutates: bool,
    /// Who declared it.
    pub declared_by: DeclaredBy,
    /// The required part. For a network capability, this is the part that the driver's egress
    /// covers; `None` if the driver uses nothing of it.
    pub asked: Option<Capability>,
    /// The rules that grant it.
    pub rules: Vec<RuleId>,
    /// The access that the sandbox gets for it, as text for people. Empty if the tool is blocked or
    /// runs a program. If this host does not know the class, the text states so.
    pub granted: Vec<String>,
    /// Why it is not granted.
    pub missing: Option<Why>,
    /// Why it is not granted in full, if a rule with `partial` lets the tool run nevertheless.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub withheld: Option<Why>,
}

/// The program of a tool, which runs outside the sandbox if it may run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExplainedProgram {
    /// Its path and arguments.
    pub command: Vec<String>,
    /// The access that its `[[exec]]` grants, as text for people. Empty if the tool is blocked.
    pub granted: Vec<String>,
    /// Why it may not run.
    pub missing: Option<ExecWhy>,
}

impl ExplainedProgram {
    fn of(decision: &Decision) -> Option<Self> {
        let command = |command: &String, args: &[String]| {
            std::iter::once(command).chain(args).cloned().collect()
        };
        if let Decision::Deny(denial) = decision {
            return denial.program.as_ref().map(|lack| Self {
                command: command(&lack.command, &lack.args),
                granted: Vec::new(),
                missing: Some(lack.why.clone()),
            });
        }
        decision.grant()?.program().map(|rule| Self {
            command: command(&rule.command, &rule.args),
            granted: given(rule),
            missing: None,
        })
    }
}

/// The access that a table grants to a program.
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

/// Decides like [`decide`](crate::decide()), and returns the reasons.
pub fn explain(
    contract: &Contract<'_>,
    implementation: &Implementation<'_>,
    policy: &Policy,
    request: &DecisionContext<'_>,
) -> Explanation {
    let view = PolicyView::new(*contract, *implementation, policy, request.machine);
    let evaluated = view.evaluate();
    let decision = decide::of(&view, &evaluated, request);
    let own = Effects::given(&view, &evaluated);
    let mut explanation = Explanation {
        tool: contract.tool.major_id(),
        publisher: contract.publisher.to_owned(),
        driver: implementation.driver.id.to_string(),
        driver_publisher: implementation.publisher.to_owned(),
        approval_policy: policy.approval_reference(contract.tool, contract.publisher),
        effects: own.join(request.reachable),
        on_violation: view.on_violation(),
        context: Contexts::of(contract, implementation, policy)
            .lack()
            .cloned(),
        program: ExplainedProgram::of(&decision),
        ..Explanation::default()
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
        let lines = lack.lines_to_add();
        for own in [
            &mut explanation.lines_to_add,
            &mut explanation.narrower_lines,
        ] {
            if !own.is_empty() {
                *own = format!("{own}\n{lines}");
            }
        }
        if explanation.lines_to_add.is_empty() {
            explanation.lines_to_add = lines;
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
            // The access of a program is shown next to the program.
            let program = view.implementation.driver.kind == DriverKind::Exec;
            if !blocked && !program {
                let part = decide::grant::part(view, &one.declared, asked, rules);
                row.granted
                    .extend(part.parts().into_iter().map(|(_, words, _)| words));
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
    /// The same explanation for a tool whose secrets of these names have no value, so that calls
    /// fail.
    #[must_use]
    pub fn without_secrets(mut self, slugs: Vec<String>) -> Self {
        if !slugs.is_empty() {
            self.outcome = ExplainedOutcome::Deny;
            self.secrets_missing = slugs;
        }
        self
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = match self.outcome {
            ExplainedOutcome::Allow => "allowed",
            ExplainedOutcome::Ask => "allowed once a person has said yes",
            ExplainedOutcome::Deny => "blocked",
        };
        writeln!(f, "{} of {}: {outcome}", self.tool, self.publisher)?;
        let another = match self.driver_publisher == self.publisher {
            true => "",
            false => ", ANOTHER publisher",
        };
        let (driver, publisher) = (&self.driver, &self.driver_publisher);
        writeln!(f, "  driver {driver} of {publisher}{another}")?;
        for rule in &self.denied_by {
            writeln!(f, "  denied by {rule}")?;
        }
        if let Some(lack) = &self.context {
            writeln!(f, "  context: the contract requires one")?;
            writeln!(f, "    missing {}", lack.why)?;
        }
        for slug in &self.secrets_missing {
            writeln!(f, "  secret {slug}: it is granted")?;
            writeln!(f, "    missing it has no value")?;
        }
        if let Some(program) = &self.program {
            write!(f, "{program}")?;
        } else if self.capabilities.is_empty() {
            writeln!(f, "  declares nothing, and gets nothing")?;
        }
        for capability in &self.capabilities {
            write!(f, "{capability}")?;
        }
        let refers = |reason: &AskReason| matches!(reason, AskReason::Policy(_));
        if let Some(reference) = &self.approval_policy
            && !self.ask.iter().any(refers)
        {
            writeln!(f, "  refers to {reference}")?;
        }
        for reason in &self.ask {
            writeln!(f, "  asks because {reason}")?;
        }
        for rule in &self.preapproved {
            writeln!(f, "  approved by {rule}")?;
        }
        if self.on_violation == OnViolation::End {
            writeln!(f, "  ends at the first attempt to go beyond this")?;
        }
        if !self.lines_to_add.is_empty() {
            let lines = self.lines_to_add.trim_end();
            writeln!(f, "\nto allow it, add to the policy:\n\n{lines}")?;
        }
        if !self.narrower_lines.is_empty() {
            let but = "or only this, with the hosts and workspaces that you choose";
            writeln!(f, "\n{but}:\n\n{}", self.narrower_lines.trim_end())?;
        }
        Ok(())
    }
}

impl fmt::Display for ExplainedProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let command = toolward_support::text::quoted(&self.command.join(" "), 200);
        writeln!(f, "  runs {command} OUTSIDE THE SANDBOX")?;
        for granted in &self.granted {
            writeln!(f, "    exec    {granted}")?;
        }
        match &self.missing {
            Some(why) => writeln!(f, "    missing {why}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = match (self.declared_by, self.mutates) {
            (DeclaredBy::Contract, false) => "the contract requires it",
            (DeclaredBy::Contract, true) => "the contract changes it",
            (DeclaredBy::Driver, _) => "the driver adds it",
        };
        writeln!(f, "  {}: {who}", self.declared)?;
        match &self.asked {
            None => return writeln!(f, "    unused  the driver's egress has nothing of it"),
            Some(asked) if *asked != self.declared => {
                writeln!(f, "    asked   {asked}, by the driver's egress")?;
            }
            Some(_) => {}
        }
        for rule in &self.rules {
            writeln!(f, "    policy  {rule}")?;
        }
        for granted in &self.granted {
            writeln!(f, "    grant   {granted}")?;
        }
        if let Some(why) = &self.withheld {
            let what = match self.granted.is_empty() {
                true => "left out",
                false => "the rest is left out",
            };
            writeln!(f, "    partial {what}: {why}")?;
        }
        match &self.missing {
            Some(why) => writeln!(f, "    missing {why}"),
            None => Ok(()),
        }
    }
}
