//! `policy explain`: declaration, policy, grant and reasons of one tool, side by
//! side; or which documents are served, and why not.

use clap::Args;
use serde_json::json;
use toolward_bundle::text::{visible, visible_line};
use toolward_mcp::documents::suggest;
use toolward_operator::policy_review::InternalAddress;
use toolward_policy::{Contract, Explanation, Rejected, Rejection};

use super::{Subject, documents};
use crate::environment::Environment;
use crate::failure::Result;
use crate::output::Output;

/// Longest explanation of one driver, in characters: lines to add are of use
/// only whole.
const MAX_EXPLANATION_CHARS: usize = 256 * 1024;

/// Longest name of a publisher, in characters.
const MAX_PUBLISHER_CHARS: usize = 200;

/// Names that are offered where one is unknown.
const MAX_SUGGESTIONS: usize = 10;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A tool's id, or id@major; a prompt's id; a file's path below resources/; or
    /// a bundle's id, for all its prompts and resources
    name: String,

    #[command(flatten)]
    subject: Subject,
}

pub(crate) fn run(arguments: &Arguments, environment: &Environment, output: &mut Output) -> Result {
    let review = arguments.subject.review(environment, output)?;
    let (granted, name) = (&review.granted, arguments.name.as_str());
    let tools = review.routes(Some(name))?;
    let served = tools.iter().flat_map(|tool| &tool.routes);
    let found: Vec<Explanation> = served.map(|route| review.explain(route)).collect();
    let served = tools.iter().flat_map(|tool| &tool.routes);
    let internal: Vec<Vec<InternalAddress>> = served
        .map(|route| {
            let granted = route.decision.grant();
            granted.map(InternalAddress::of).unwrap_or_default()
        })
        .collect();
    let rejected: Vec<(&Contract<'_>, &Rejected<'_>)> = tools
        .iter()
        .flat_map(|tool| {
            let rejected = tool.rejected.iter();
            rejected.map(move |one| (&tool.contract, one))
        })
        .collect();
    let mut documents = documents::all(&review);
    let known: Vec<&str> = documents.iter().map(|document| document.id).collect();
    documents.retain(|document| document.is_meant(name));
    let mut contents = review.bundles.iter().map(|(content, _)| content);
    let is_bundle = contents.any(|content| content.manifest.id.as_str() == name);
    if tools.is_empty() && documents.is_empty() && !is_bundle {
        let subject = &arguments.subject;
        if let Some(failure) = subject.withheld(&review, name, environment, output)? {
            return Err(failure);
        }
        let failure = review.missing(Some(name));
        return Err(match known.get(..known.len().min(MAX_SUGGESTIONS)) {
            Some(known @ [_, ..]) => {
                failure.hint(format!("prompts and resources are: {}", known.join(", ")))
            }
            _ => failure,
        });
    }
    let missing = suggest(&documents);
    if output.json() {
        let documents: Vec<_> = documents.iter().map(documents::json).collect();
        return output.value(&json!({
            "ok": true,
            "policies": granted.files,
            "drivers": found,
            "not_serving": rejected.iter().map(|(contract, one)| json!({
                "tool": contract.tool.major_id(),
                "publisher": contract.publisher,
                "driver": one.implementation.driver.id.as_str(),
                "driver_publisher": one.implementation.publisher,
                "reasons": one.reasons,
            })).collect::<Vec<_>>(),
            "documents": documents,
            "lines_to_add": missing,
            "addresses_missing": internal.iter().flatten().map(|one| json!({
                "host": one.host, "addresses": one.addresses, "line": one.line(),
            })).collect::<Vec<_>>(),
        }));
    }
    for (number, (explanation, internal)) in found.iter().zip(&internal).enumerate() {
        if number > 0 {
            output.line("")?;
        }
        let shown = visible(&explanation.to_string(), MAX_EXPLANATION_CHARS);
        output.line(shown.trim_end())?;
        for one in internal {
            output.line(format!("  address {}", visible_line(&one.to_string(), 400)))?;
        }
    }
    for tool in tools.iter().filter(|tool| tool.routes.is_empty()) {
        let (id, publisher) = (tool.contract.tool.major_id(), tool.contract.publisher);
        let shown = visible_line(publisher, MAX_PUBLISHER_CHARS);
        output.line(format!("{id} of {shown}: blocked, no driver serves it"))?;
    }
    for (number, (contract, one)) in rejected.iter().enumerate() {
        if number == 0 && !tools.is_empty() {
            output.line("")?;
        }
        output.line(refused(contract, one))?;
    }
    if !tools.is_empty() && !documents.is_empty() {
        output.line("")?;
    }
    for document in &documents {
        output.line(documents::line(document))?;
    }
    if tools.is_empty() && documents.is_empty() {
        output.line(format!("{name} brings no prompts and no resources"))?;
    }
    if !missing.is_empty() {
        let missing = visible(&missing, MAX_EXPLANATION_CHARS);
        let missing = missing.trim_end();
        output.line(format!(
            "\nto have it served, add to the policy:\n\n{missing}"
        ))?;
    }
    if found.iter().any(|one| !one.lines_to_add.is_empty()) || !missing.is_empty() {
        output.note(format!("the policy's file is {}", granted.place.display()));
    }
    Ok(())
}

/// A driver that names the tool and does not serve it, on one line.
fn refused(contract: &Contract<'_>, one: &Rejected<'_>) -> String {
    let (id, publisher) = (&one.implementation.driver.id, one.implementation.publisher);
    let tool = contract.tool.major_id();
    let reasons: Vec<String> = one.reasons.iter().map(ToString::to_string).collect();
    let mut line = format!(
        "driver {id} of {} does not serve {tool}: {}",
        visible_line(publisher, MAX_PUBLISHER_CHARS),
        visible_line(&reasons.join("; "), MAX_EXPLANATION_CHARS)
    );
    if one.reasons == [Rejection::NotBound] {
        line.push_str(&format!(
            "; `toolward policy suggest {tool} --driver {id}` writes the lines that bind it"
        ));
    }
    line
}
