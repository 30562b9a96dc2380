//! Suggests the fewest policy lines that let tools run, and lists the remaining
//! choices.

use toolward_policy::{
    AskReason, Choices, Contract, Decision, Implementation, OpenChoice, Policy, Rejection, Route,
    ToolRoutes,
};

use super::{InternalAddress, PolicyReview};
use crate::error::{Code, Error};

/// Lines for the policy file, for the operator to review and add.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Suggestion {
    /// Tables to append; empty if nothing is missing.
    pub lines: String,
    /// What the lines leave for a person to decide, and the drivers of other publishers
    /// without lines. May contain untrusted text.
    pub remarks: Vec<String>,
    /// Fewer tables, as an example: they give some of the hosts and workspaces only.
    pub narrower: Option<String>,
    /// What the operator has to choose before the lines give anything.
    pub open: Vec<OpenChoice>,
}

impl PolicyReview {
    /// The fewest lines that let the tools run with drivers of each tool's own
    /// publisher, or with the named driver. `None` if there is no such tool.
    ///
    /// # Errors
    /// `driver-unknown`, and the errors of [`PolicyReview::routes`].
    pub fn suggest(
        &self,
        tool: Option<&str>,
        driver: Option<&str>,
    ) -> Result<Option<Suggestion>, Error> {
        let tools = self.routes(tool)?;
        if tools.is_empty() {
            return Ok(None);
        }
        if let Some(driver) = driver {
            known(&tools, driver)?;
        }
        let policy = &self.granted.policy;
        let none = &Choices::default();
        let suggested =
            toolward_policy::suggest_with(&tools, driver, false, policy, &self.machine, none);
        let (lines, open) = (suggested.lines, suggested.open);
        let narrower = suggested.narrower;
        let mut remarks = foreign(&tools, driver);
        remarks.extend(left_out(&tools));
        remarks.extend(self.valueless(&tools, driver));
        let more = Policy::from_toml(&lines);
        if let Ok(Ok(after)) = more.map(|more| policy.clone().layer(more)) {
            // Assumes that the operator made each choice that the lines leave open.
            let machine = self.machine.clone().with_all_directories();
            let then = self.routes_under(&after, &machine, tool)?;
            // Of all that is installed, only hosts that are granted are looked up.
            let granted = if tool.is_some() { &then } else { &tools };
            remarks.extend(unreachable(granted, driver));
            remarks.extend(asking(&then, driver));
        }
        Ok(Some(Suggestion {
            lines,
            remarks,
            narrower,
            open,
        }))
    }
}

impl PolicyReview {
    /// The secrets without a value, for which no line is missing.
    fn valueless(&self, tools: &[ToolRoutes<'_>], driver: Option<&str>) -> Vec<String> {
        let routes = tools.iter().flat_map(|tool| &tool.routes);
        let wanted = routes.filter(|route| is_meant(route, driver));
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
}

/// The granted hosts whose addresses no grant names.
pub(super) fn unreachable(tools: &[ToolRoutes<'_>], driver: Option<&str>) -> Vec<String> {
    let routes = tools.iter().flat_map(|tool| &tool.routes);
    let wanted = routes.filter(|route| is_meant(route, driver));
    let remarks = wanted.flat_map(|route| {
        let tool = route.contract.tool.major_id();
        let grant = route.decision.grant().into_iter();
        let internal = grant.flat_map(InternalAddress::of);
        internal.map(move |one| format!("{tool}: {one}"))
    });
    remarks.collect()
}

/// Refuses a driver that implements none of the tools.
pub(super) fn known(tools: &[ToolRoutes<'_>], driver: &str) -> Result<(), Error> {
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

/// The drivers of other publishers that got no lines.
pub(super) fn foreign(tools: &[ToolRoutes<'_>], named: Option<&str>) -> Vec<String> {
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

/// What tools are served without, because a rule says `partial`.
pub(super) fn left_out(tools: &[ToolRoutes<'_>]) -> Vec<String> {
    let routes = tools.iter().flat_map(|tool| &tool.routes);
    let remarks = routes.filter_map(|route| {
        let (Decision::Allow(allowed) | Decision::Ask(allowed, _)) = &route.decision else {
            return None;
        };
        let without = allowed.partial.as_ref()?.withheld.iter();
        let without: Vec<String> = without.map(ToString::to_string).collect();
        let (tool, driver) = (
            route.contract.tool.major_id(),
            &route.implementation.driver.id,
        );
        Some(format!(
            "{tool}: a grant says `partial`, and {driver} is used without {}",
            without.join(", ")
        ))
    });
    remarks.collect()
}

/// Whether lines are for this route: those of the named driver, or of drivers of the tool's own publisher.
pub(super) fn is_meant(route: &Route<'_>, driver: Option<&str>) -> bool {
    match driver {
        None => !route.is_foreign(),
        Some(id) => route.implementation.driver.id.as_str() == id,
    }
}

/// What the policy leaves for a person to approve at each call.
pub(super) fn asking(tools: &[ToolRoutes<'_>], driver: Option<&str>) -> Vec<String> {
    let routes = tools.iter().flat_map(|tool| &tool.routes);
    let wanted = routes.filter(|route| is_meant(route, driver));
    let remarks = wanted.filter_map(|route| {
        let Decision::Ask(_, reasons) = &route.decision else {
            return None;
        };
        let standing = if reasons.iter().all(AskReason::can_be_preapproved) {
            ", unless its grant says `preapproved = true`"
        } else {
            ""
        };
        let reasons: Vec<String> = reasons.iter().map(ToString::to_string).collect();
        Some(format!(
            "{}: a person is asked before each call{standing}: {}.",
            route.contract.tool.major_id(),
            reasons.join("; ")
        ))
    });
    remarks.collect()
}
