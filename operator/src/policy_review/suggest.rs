//! Suggests the fewest policy lines that let tools run, and lists the remaining choices.
//! `policy suggest` shows the lines. `policy grant` adds them, and can add the operator's standing
//! approval.

use toolward_policy::{
    AskReason, Choices, ChosenLines, Contract, Decision, Implementation, MissingGrant, Policy,
    Rejected, Rejection, Route, ToolRoutes, Why,
};

use super::{InternalAddress, PolicyReview};
use crate::bundles::is_named;
use crate::{Code, Error, Kind, Result, joined};

/// Lines for the policy file, for the operator to review and add.
#[derive(Debug, Clone, Default)]
pub struct Suggestion {
    /// Tables to append, empty if nothing is missing; and the choices that the operator must make
    /// before the tables take effect.
    pub chosen: ChosenLines,
    /// Decisions that a person must make, and drivers of other publishers for which no lines are
    /// suggested. May contain untrusted text.
    pub remarks: Vec<String>,
}

impl PolicyReview {
    /// Returns the fewest lines that let the tools run with drivers of each tool's own publisher,
    /// or with the named driver. Returns `None` if no tool has the name.
    ///
    /// # Errors
    /// `driver-unknown`, and the errors of [`PolicyReview::routes`].
    pub fn suggest(&self, tool: Option<&str>, driver: Option<&str>) -> Result<Option<Suggestion>> {
        let tools = self.routes(tool)?;
        if tools.is_empty() {
            return Ok(None);
        }
        if let Some(driver) = driver {
            known(&tools, driver)?;
        }
        let policy = &self.granted.policy;
        let none = &Choices::default();
        let chosen = toolward_policy::suggest(&tools, driver, false, policy, &self.machine, none);
        let mut remarks = foreign(&tools, driver);
        remarks.extend(left_out(&tools));
        remarks.extend(self.valueless(&tools, driver));
        let more = Policy::from_toml(&chosen.lines);
        if let Ok(Ok(after)) = more.map(|more| policy.clone().layer(more)) {
            // Assumes that the operator has made each choice that the lines leave open.
            let machine = self.machine.clone().with_all_directories();
            let then = self.routes_under(&after, &machine, tool)?;
            // Without a named tool, only hosts that are granted already are looked up.
            let granted = if tool.is_some() { &then } else { &tools };
            remarks.extend(unreachable(granted, driver));
            remarks.extend(asking(&then, driver));
        }
        Ok(Some(Suggestion { chosen, remarks }))
    }

    /// Returns remarks on secrets without a value. No policy line provides a value.
    fn valueless(&self, tools: &[ToolRoutes<'_>], driver: Option<&str>) -> Vec<String> {
        let wanted = meant_routes(tools, driver);
        let remarks = wanted.flat_map(|route| {
            let tool = route.contract.tool.major_id();
            let slugs = self.secrets_missing(route).into_iter();
            slugs.map(move |slug| {
                format!(
                    "{tool}: blocked, the secret `{slug}` has no value: `toolward doctor` shows where it comes from"
                )
            })
        });
        remarks.collect()
    }

    /// Returns the fewest lines that let these tools run with drivers of each tool's own publisher,
    /// or with the named driver. If the named driver is another publisher's, the lines bind it. The
    /// lines contain the operator's choices. With `preapprove`, calls then run without asking a
    /// person. The result is empty if nothing is missing.
    ///
    /// # Errors
    /// `tool-missing`; `driver-unknown`; `grant-impossible` if something denies a tool, or if a
    /// person is asked regardless of the lines; the errors of [`PolicyReview::routes`].
    pub fn grant(
        &self,
        tools: &[String],
        driver: Option<&str>,
        preapprove: bool,
        choices: &Choices,
    ) -> Result<Suggestion> {
        let all = self.routes(None)?;
        let named = |name: &str, one: &ToolRoutes<'_>| is_named(one.contract.tool, name);
        for tool in tools {
            if !all.iter().any(|one| named(tool, one)) {
                return Err(self.missing(Some(tool)));
            }
        }
        let wanted = |one: &ToolRoutes<'_>| tools.iter().any(|tool| named(tool, one));
        let meant: Vec<ToolRoutes<'_>> = all.iter().filter(|one| wanted(one)).cloned().collect();
        if let Some(driver) = driver {
            // Checked for each tool separately, since a driver of another tool does not help this
            // tool.
            for tool in meant.chunks(1) {
                known(tool, driver)?;
            }
        }
        let policy = &self.granted.policy;
        let machine = &self.machine;
        let chosen = toolward_policy::suggest(&meant, driver, preapprove, policy, machine, choices);
        if let Some(message) = chosen.ambiguous.first() {
            let hint = "name the publisher of the secret, or the service of the host";
            return Err(Error::usage(Code::SettingInvalid, message.clone()).hint(hint));
        }
        if let Some(unused) = chosen.unused.first() {
            let message = format!("{unused} was chosen, and no line needs it");
            let hint = "`toolward policy suggest` prints the lines that are missing";
            return Err(Error::usage(Code::SettingInvalid, message).hint(hint));
        }
        let more = Policy::from_toml(&chosen.lines);
        let after = more.and_then(|more| policy.clone().layer(more));
        let after = after.map_err(|error| impossible(error.to_string()))?;
        // Assumes that the operator makes each choice that the lines leave open.
        let machine = self.machine.clone().with_all_directories();
        let mut then = self.routes_under(&after, &machine, None)?;
        then.retain(wanted);
        for tool in &then {
            runs(tool, driver, preapprove)?;
        }
        let mut remarks = foreign(&meant, driver);
        remarks.extend(left_out(&meant));
        remarks.extend(unreachable(&then, driver));
        remarks.extend(asking(&then, driver));
        remarks.extend(self.also_runs(&all, &after, tools)?);
        Ok(Suggestion { chosen, remarks })
    }

    /// Returns remarks on other tools that the lines let run, since such a tool may have lacked
    /// only a directory or a service.
    fn also_runs(
        &self,
        before: &[ToolRoutes<'_>],
        after: &Policy,
        tools: &[String],
    ) -> Result<Vec<String>> {
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

/// Returns remarks on the granted hosts with an internal address that the grant does not name.
fn unreachable(tools: &[ToolRoutes<'_>], driver: Option<&str>) -> Vec<String> {
    let wanted = meant_routes(tools, driver);
    let remarks = wanted.flat_map(|route| {
        let tool = route.contract.tool.major_id();
        let grant = route.decision.grant().into_iter();
        let internal = grant.flat_map(InternalAddress::of);
        internal.map(move |one| format!("{tool}: {one}"))
    });
    remarks.collect()
}

/// Refuses a driver that implements none of the tools.
fn known(tools: &[ToolRoutes<'_>], driver: &str) -> Result<()> {
    let serving = tools.iter().flat_map(|tool| &tool.routes);
    let serving = serving.map(|route| &route.implementation);
    let others = tools.iter().flat_map(|tool| &tool.rejected);
    let others = others.map(|rejected| &rejected.implementation);
    let ids = serving.chain(others).map(|one| one.driver.id.as_str());
    let mut ids: Vec<&str> = ids.collect();
    if ids.contains(&driver) {
        return Ok(());
    }
    ids.sort_unstable();
    ids.dedup();
    let message = format!("no driver `{driver}` implements the tools that were named");
    let hint = match ids.as_slice() {
        [] => "name a bundle with drivers".to_owned(),
        ids => format!("the drivers are: {}", ids.join(", ")),
    };
    Err(Error::failed(Code::DriverUnknown, message).hint(hint))
}

/// Returns remarks on the drivers of other publishers for which no lines are suggested.
fn foreign(tools: &[ToolRoutes<'_>], named: Option<&str>) -> Vec<String> {
    let remark = |contract: &Contract<'_>, one: &Implementation<'_>, state: &str| {
        let (tool, id) = (contract.tool.major_id(), &one.driver.id);
        format!(
            "{tool}: the driver {id} by ANOTHER publisher, {}, {state}; for its lines: toolward \
             policy suggest {tool} --driver {id}",
            one.publisher
        )
    };
    let is_named = |one: &Implementation<'_>| named == Some(one.driver.id.as_str());
    let mut remarks = Vec::new();
    for tool in tools {
        for route in &tool.routes {
            if route.is_foreign() && !route.is_open() && !is_named(&route.implementation) {
                let state = "is bound to it and blocked";
                remarks.push(remark(&tool.contract, &route.implementation, state));
            }
        }
        for rejected in &tool.rejected {
            if rejected.reasons == [Rejection::NotBound] && !is_named(&rejected.implementation) {
                let state = "says that it implements it, and nothing binds it";
                remarks.push(remark(&tool.contract, &rejected.implementation, state));
            }
        }
    }
    remarks
}

/// Returns remarks on the capabilities that tools do not get, because of a rule with `partial`.
fn left_out(tools: &[ToolRoutes<'_>]) -> Vec<String> {
    let routes = tools.iter().flat_map(|tool| &tool.routes);
    let remarks = routes.filter_map(|route| {
        let (Decision::Allow(allowed) | Decision::Ask(allowed, _)) = &route.decision else {
            return None;
        };
        let without = joined(&allowed.partial.as_ref()?.withheld, ", ");
        let (tool, driver) = (
            route.contract.tool.major_id(),
            &route.implementation.driver.id,
        );
        Some(format!(
            "{tool}: a grant says `partial`, and {driver} is used without {without}"
        ))
    });
    remarks.collect()
}

/// Whether the lines are for this route: a route of the named driver, or of a driver of the tool's
/// own publisher.
fn is_meant(route: &Route<'_>, driver: Option<&str>) -> bool {
    match driver {
        None => !route.is_foreign(),
        Some(id) => route.implementation.driver.id.as_str() == id,
    }
}

/// Returns the routes of these tools for which lines are meant.
fn meant_routes<'t>(
    tools: &'t [ToolRoutes<'t>],
    driver: Option<&str>,
) -> impl Iterator<Item = &'t Route<'t>> {
    let routes = tools.iter().flat_map(|tool| &tool.routes);
    routes.filter(move |route| is_meant(route, driver))
}

/// Returns remarks on the tools whose calls a person must approve each time.
fn asking(tools: &[ToolRoutes<'_>], driver: Option<&str>) -> Vec<String> {
    let wanted = meant_routes(tools, driver);
    let remarks = wanted.filter_map(|route| {
        let Decision::Ask(_, reasons) = &route.decision else {
            return None;
        };
        let standing = if reasons.iter().all(AskReason::can_be_preapproved) {
            ", unless its grant says `preapproved = true`"
        } else {
            ""
        };
        let reasons = joined(reasons, "; ");
        Some(format!(
            "{}: a person is asked before each call{standing}: {reasons}.",
            route.contract.tool.major_id()
        ))
    });
    remarks.collect()
}

/// Refuses a tool that the lines do not let run as requested.
fn runs(tool: &ToolRoutes<'_>, driver: Option<&str>, preapprove: bool) -> Result<()> {
    let id = tool.contract.tool.major_id();
    let named = |one: &&Rejected<'_>| driver == Some(one.implementation.driver.id.as_str());
    if let Some(rejected) = tool.rejected.iter().find(named) {
        let driver = &rejected.implementation.driver.id;
        let reasons = joined(&rejected.reasons, "; ");
        let message = format!("{driver} can't serve {id}: {reasons}");
        return Err(impossible(message).hint(
            "no added grant changes that: `toolward show TOOL --drivers` shows the tool's drivers",
        ));
    }
    for route in tool.routes.iter().filter(|route| is_meant(route, driver)) {
        match &route.decision {
            Decision::Deny(denial) if !denial.denied_by.is_empty() => {
                let rules = joined(&denial.denied_by, ", ");
                return Err(impossible(format!("{id} is denied by {rules}"))
                    .hint("a rule that denies wins: change that rule yourself"));
            }
            Decision::Deny(denial) if denial.missing.iter().any(is_final) => {
                let missing = denial.missing.iter().filter(|missing| is_final(missing));
                let missing = joined(missing, "; ");
                return Err(impossible(format!("{id}: {missing}"))
                    .hint("no added line helps: change what is there yourself"));
            }
            Decision::Ask(_, reasons) if preapprove => {
                let lasting = reasons.iter().filter(|reason| !reason.can_be_preapproved());
                let (message, hint) = match joined(lasting, "; ") {
                    none if none.is_empty() => (
                        format!(
                            "{id} is granted by a rule that is there already, without `preapproved`"
                        ),
                        "add `preapproved = true` to that [[grant]] yourself",
                    ),
                    reasons => (
                        format!("{id} asks a person before each call: {reasons}"),
                        "give the command without --preapprove",
                    ),
                };
                return Err(impossible(message).hint(hint));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether no choice of the operator in the added lines can provide the missing capability.
fn is_final(missing: &MissingGrant) -> bool {
    matches!(
        missing.why,
        Why::DeniedBy(_) | Why::NeverGranted | Why::SecretNotUsable | Why::SecretMisfit(_)
    )
}

fn impossible(message: String) -> Error {
    Error::new(Kind::Denied, Code::GrantImpossible, message)
}
