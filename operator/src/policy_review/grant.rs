//! The lines that `policy grant` adds: those of `policy suggest` for some tools, with the operator's standing approval
//! where that is asked for and can be given.

use toolward_policy::{AskReason, Decision, Policy, ToolRoutes};

use super::suggest::{asking, foreign};
use super::{PolicyReview, Suggestion, is_named};
use crate::error::{Code, Error, Kind};

impl PolicyReview {
    /// The fewest lines that let these tools run with drivers of each tool's own publisher; with `preapprove` their
    /// calls then run without a person. Empty if nothing is missing.
    ///
    /// # Errors
    /// `tool-missing`; `grant-impossible` if something denies a tool, or if it asks a person whatever a line says; the
    /// errors of [`PolicyReview::routes`].
    pub fn grant(&self, tools: &[String], preapprove: bool) -> Result<Suggestion, Error> {
        let all = self.routes(None)?;
        let named = |name: &str, one: &ToolRoutes<'_>| is_named(one.contract.tool, name);
        for tool in tools {
            if !all.iter().any(|one| named(tool, one)) {
                return Err(self.missing(Some(tool)));
            }
        }
        let wanted = |one: &ToolRoutes<'_>| tools.iter().any(|tool| named(tool, one));
        let chosen = all.iter().filter(|one| wanted(one));
        let policy = &self.granted.policy;
        let mut lines = toolward_policy::suggest(chosen.clone(), None, policy, &self.machine);
        if preapprove {
            lines = with_approval(&lines);
        }
        let more = Policy::from_toml(&lines);
        let after = more.and_then(|more| policy.clone().layer(more));
        let after = after.map_err(|error| impossible(error.to_string()))?;
        // Assumes that the operator makes each choice that the lines leave open.
        let machine = self.machine.clone().with_all_directories();
        let mut then = self.routes_under(&after, &machine, None)?;
        then.retain(wanted);
        for tool in &then {
            runs(tool, preapprove)?;
        }
        let mut remarks = foreign(&chosen.cloned().collect::<Vec<_>>(), None);
        remarks.extend(asking(&then, None));
        Ok(Suggestion { lines, remarks })
    }
}

/// Refuses a tool that the lines do not let run, or not as it was asked for.
fn runs(tool: &ToolRoutes<'_>, preapprove: bool) -> Result<(), Error> {
    let id = tool.contract.tool.major_id();
    for route in tool.routes.iter().filter(|route| !route.is_foreign()) {
        match &route.decision {
            Decision::Deny(denial) if !denial.denied_by.is_empty() => {
                let rules: Vec<String> = denial.denied_by.iter().map(ToString::to_string).collect();
                return Err(
                    impossible(format!("{id} is denied by {}", rules.join(", ")))
                        .hint("a rule that denies wins: change that rule yourself"),
                );
            }
            Decision::Ask(_, reasons) if preapprove => {
                let lasting = reasons.iter().filter(|reason| !reason.can_be_preapproved());
                let lasting: Vec<String> = lasting.map(AskReason::to_string).collect();
                let error = match lasting.is_empty() {
                    false => impossible(format!(
                        "{id} asks a person before each call: {}",
                        lasting.join("; ")
                    ))
                    .hint("give the command without --preapprove"),
                    true => impossible(format!(
                        "{id} is granted by a rule that is there already, without `preapproved`"
                    ))
                    .hint("add `preapproved = true` to that [[grant]] yourself"),
                };
                return Err(error);
            }
            _ => {}
        }
    }
    Ok(())
}

/// The same lines, with `preapproved` in each `[[grant]]`.
fn with_approval(lines: &str) -> String {
    let mut text = String::new();
    let mut in_grant = false;
    // No string or comment of these lines has a line break.
    for line in lines.lines().chain([""]) {
        if line.is_empty() && std::mem::take(&mut in_grant) {
            text.push_str("preapproved = true\n");
        }
        in_grant = in_grant || line == "[[grant]]";
        text.push_str(line);
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

fn impossible(message: String) -> Error {
    Error::new(Kind::Denied, Code::GrantImpossible, message)
}
