//! `policy suggest`: the fewest lines that let a bundle's tools run, and its
//! documents be seen, for the operator to read, and to add as far as they agree.

use std::fmt::Write as _;

use clap::Args;
use serde_json::json;
use toolward_bundle::text::{visible, visible_line};
use toolward_policy::{
    AskReason, Contract, Decision, Implementation, Policy, Rejection, ToolRoutes,
};

use super::{Subject, documents, nothing, routes};
use crate::environment::Environment;
use crate::failure::{Exit, Failure, Kind};
use crate::output::Output;

/// Longest suggestion, in characters: it is of use only whole.
const MAX_SUGGESTION_CHARS: usize = 1024 * 1024;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Only for this tool
    tool: Option<String>,

    /// Only for this driver. Lines that let a driver of another publisher carry a
    /// tool out are written for the one that is named here, and no other
    #[arg(long, value_name = "ID")]
    driver: Option<String>,

    #[command(flatten)]
    subject: Subject,
}

pub(crate) fn run(
    arguments: &Arguments,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let (bundles, granted) = arguments.subject.read(environment, output)?;
    let tool = arguments.tool.as_deref();
    let driver = arguments.driver.as_deref();
    let documents = match (tool, driver) {
        (None, None) => documents::all(&bundles, &granted.policy),
        _ => Vec::new(),
    };
    let machine = arguments.subject.machine(&granted, environment)?;
    let tools = routes(&bundles, &granted.policy, &machine, tool)?;
    if tools.is_empty() && documents.is_empty() {
        return Err(nothing(&bundles, tool));
    }
    if let Some(driver) = driver {
        known(&tools, driver)?;
    }
    let mut lines = toolward_policy::suggest(&tools, driver, &granted.policy, &machine);
    let shown = documents::suggest(documents.iter());
    if !lines.is_empty() && !shown.is_empty() {
        lines.push('\n');
    }
    lines.push_str(&shown);
    let mut remarks = foreign(&tools, driver);
    if let Ok(Ok(after)) = Policy::from_toml(&lines).map(|more| granted.policy.clone().layer(more))
    {
        // As if the operator had made each choice that the lines leave open.
        let machine = machine.with_all_directories();
        let tools = routes(&bundles, &after, &machine, tool)?;
        remarks.extend(asking(&tools, driver));
    }
    if output.json() {
        output.value(&json!({
            "ok": true, "file": granted.place, "lines": lines, "remarks": remarks,
        }))?;
        return Ok(Exit::Fine);
    }
    let mut text = String::new();
    for (content, publisher) in &bundles {
        let manifest = &content.manifest;
        let _ = writeln!(
            text,
            "# What {} {} by {} needs beyond the policy that there is.",
            visible_line(manifest.id.as_str(), 200),
            manifest.version,
            visible_line(publisher, 500)
        );
    }
    if lines.contains("# choose") {
        text.push_str(
            "# A line with `# choose` waits for your decision: until then it gives nothing.\n",
        );
    }
    for remark in &remarks {
        let _ = writeln!(text, "# {}", visible_line(remark, 1000));
    }
    if lines.is_empty() {
        text.push_str("# Nothing is missing.\n");
    } else {
        let _ = writeln!(
            text,
            "\n{}",
            visible(&lines, MAX_SUGGESTION_CHARS).trim_end()
        );
    }
    output.line(text.trim_end())?;
    output.note(format!("the policy's file is {}", granted.place.display()));
    Ok(Exit::Fine)
}

/// Refuses the name of a driver that none of the tools names.
fn known(tools: &[ToolRoutes<'_>], driver: &str) -> Result<(), Failure> {
    let serving = tools.iter().flat_map(|tool| &tool.routes);
    let serving = serving.map(|route| &route.implementation);
    let others = tools.iter().flat_map(|tool| &tool.rejected);
    let others = others.map(|rejected| &rejected.implementation);
    let mut ids: Vec<&str> = serving
        .chain(others)
        .map(|one| one.driver.id.as_str())
        .collect();
    if ids.contains(&driver) {
        return Ok(());
    }
    ids.sort_unstable();
    ids.dedup();
    let message = format!("no driver `{driver}` implements the tools that were named");
    let failure = Failure::new(Kind::Failed, "driver-unknown", message);
    Err(match ids.as_slice() {
        [] => failure.hint("name a bundle with drivers"),
        ids => failure.hint(format!("the drivers are: {}", ids.join(", "))),
    })
}

/// The drivers of other publishers for which no lines were written.
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

/// What a policy leaves to a person, call by call.
fn asking(tools: &[ToolRoutes<'_>], driver: Option<&str>) -> Vec<String> {
    let routes = tools.iter().flat_map(|tool| &tool.routes);
    let wanted = routes.filter(|route| match driver {
        None => !route.is_foreign(),
        Some(id) => route.implementation.driver.id.as_str() == id,
    });
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
