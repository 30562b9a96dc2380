//! The lines that `policy grant` adds: those of `policy suggest` for some tools, with the operator's standing approval
//! where that is asked for and can be given.

use toolward_policy::{
    AskReason, Choices, Decision, Missing, Policy, Rejected, Route, ToolRoutes, Why,
};

use super::suggest::{asking, foreign, is_meant, known, left_out};
use super::{PolicyReview, Suggestion, is_named};
use crate::error::{Code, Error, Kind};

impl PolicyReview {
    /// The fewest lines that let these tools run with drivers of each tool's own publisher, or with the named driver,
    /// which they bind where it is another publisher's. They have the operator's choices; with `preapprove` their calls
    /// then run without a person. Empty if nothing is missing.
    ///
    /// # Errors
    /// `tool-missing`; `driver-unknown`; `grant-impossible` if something denies a tool, or if it asks a person whatever a line says; the
    /// errors of [`PolicyReview::routes`].
    pub fn grant(
        &self,
        tools: &[String],
        driver: Option<&str>,
        preapprove: bool,
        choices: &Choices,
    ) -> Result<Suggestion, Error> {
        let all = self.routes(None)?;
        let named = |name: &str, one: &ToolRoutes<'_>| is_named(one.contract.tool, name);
        for tool in tools {
            if !all.iter().any(|one| named(tool, one)) {
                return Err(self.missing(Some(tool)));
            }
        }
        let wanted = |one: &ToolRoutes<'_>| tools.iter().any(|tool| named(tool, one));
        let chosen: Vec<ToolRoutes<'_>> = all.iter().filter(|one| wanted(one)).cloned().collect();
        if let Some(driver) = driver {
            // Each tool: a driver of another one gives it nothing.
            for tool in chosen.chunks(1) {
                known(tool, driver)?;
            }
        }
        let policy = &self.granted.policy;
        let machine = &self.machine;
        let suggested =
            toolward_policy::suggest_with(&chosen, driver, preapprove, policy, machine, choices);
        if let Some(message) = suggested.ambiguous.first() {
            let hint = "name the publisher of the secret, or the service of the host";
            return Err(Error::usage(Code::SettingInvalid, message.clone()).hint(hint));
        }
        let (lines, open) = (suggested.lines, suggested.open);
        if let Some(unused) = suggested.unused.first() {
            let message = format!("{unused} was chosen, and no line needs it");
            let hint = "`toolward policy suggest` prints the lines that are missing";
            return Err(Error::usage(Code::SettingInvalid, message).hint(hint));
        }
        let more = Policy::from_toml(&lines);
        let after = more.and_then(|more| policy.clone().layer(more));
        let after = after.map_err(|error| impossible(error.to_string()))?;
        // Assumes that the operator makes each choice that the lines leave open.
        let machine = self.machine.clone().with_all_directories();
        let mut then = self.routes_under(&after, &machine, None)?;
        then.retain(wanted);
        for tool in &then {
            runs(tool, driver, preapprove)?;
        }
        let mut remarks = foreign(&chosen, driver);
        remarks.extend(left_out(&chosen));
        remarks.extend(asking(&then, driver));
        remarks.extend(self.also_runs(&all, &after, tools)?);
        Ok(Suggestion {
            lines,
            remarks,
            narrower: suggested.narrower,
            open,
        })
    }
}

impl PolicyReview {
    /// Remarks on the other tools that run with the lines: a directory or a service may be all that they lacked.
    fn also_runs(
        &self,
        before: &[ToolRoutes<'_>],
        after: &Policy,
        tools: &[String],
    ) -> Result<Vec<String>, Error> {
        let runs = |one: &ToolRoutes<'_>| one.routes.iter().any(Route::is_open);
        let after = self.routes_under(after, &self.machine, None)?;
        let others = after.iter().zip(before).filter(|(then, now)| {
            let asked = tools.iter().any(|tool| is_named(then.contract.tool, tool));
            !asked && runs(then) && !runs(now)
        });
        let others = others.map(|(then, _)| {
            format!(
                "with these lines {} runs, too: another rule grants the rest that it declares",
                then.contract.tool.major_id()
            )
        });
        Ok(others.collect())
    }
}

/// Refuses a tool that the lines do not let run, or not as it was asked for.
fn runs(tool: &ToolRoutes<'_>, driver: Option<&str>, preapprove: bool) -> Result<(), Error> {
    let id = tool.contract.tool.major_id();
    let named = |one: &&Rejected<'_>| driver == Some(one.implementation.driver.id.as_str());
    if let Some(rejected) = tool.rejected.iter().find(named) {
        let (driver, reasons) = (&rejected.implementation.driver.id, &rejected.reasons);
        let reasons: Vec<String> = reasons.iter().map(ToString::to_string).collect();
        let message = format!("{driver} can't serve {id}: {}", reasons.join("; "));
        return Err(impossible(message)
            .hint("no added grant changes that: `toolward why` shows the tool's drivers"));
    }
    for route in tool.routes.iter().filter(|route| is_meant(route, driver)) {
        match &route.decision {
            Decision::Deny(denial) if !denial.denied_by.is_empty() => {
                let rules: Vec<String> = denial.denied_by.iter().map(ToString::to_string).collect();
                return Err(
                    impossible(format!("{id} is denied by {}", rules.join(", ")))
                        .hint("a rule that denies wins: change that rule yourself"),
                );
            }
            Decision::Deny(denial) if denial.missing.iter().any(is_final) => {
                let missing = denial.missing.iter().filter(|missing| is_final(missing));
                let missing: Vec<String> = missing.map(ToString::to_string).collect();
                return Err(impossible(format!("{id}: {}", missing.join("; ")))
                    .hint("no added line helps: change what is there yourself"));
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

/// Whether no choice of the operator in the added lines gives what is missing.
fn is_final(missing: &Missing) -> bool {
    matches!(
        missing.why,
        Why::DeniedBy(_) | Why::NeverGranted | Why::SecretNotUsable | Why::SecretMisfit(_)
    )
}

fn impossible(message: String) -> Error {
    Error::new(Kind::Denied, Code::GrantImpossible, message)
}
