//! `show --policy`: declaration, policy, grant and reasons of one tool, side by side; or which prompts and resources are
//! served, and why the others are not.

use toolward_mcp::documents::suggest;
use toolward_operator::policy_review::{InternalAddress, PolicyReview};
use toolward_policy::{Contract, Explanation, Rejected, Rejection};

use super::Shown;
use crate::commands::policy::list::{document_json, document_line, documents};
use crate::prelude::*;

/// Longest explanation of one driver, in characters: lines to add are of use
/// only whole.
const MAX_EXPLANATION_CHARS: usize = 256 * 1024;

/// Longest name of a publisher, in characters.
const MAX_PUBLISHER_CHARS: usize = 200;

/// Names that are offered where one is unknown.
const MAX_SUGGESTIONS: usize = 10;

pub(super) fn of(review: &PolicyReview, name: &str) -> Result<Option<Shown>> {
    let granted = &review.granted;
    let tools = review.routes(Some(name))?;
    let served = tools.iter().flat_map(|tool| &tool.routes);
    let found: Vec<(Explanation, Vec<InternalAddress>)> = served
        .map(|route| {
            let granted = route.decision.grant();
            let internal = granted.map(InternalAddress::of).unwrap_or_default();
            (review.explain(route), internal)
        })
        .collect();
    let rejected = tools.iter().flat_map(|tool| {
        let rejected = tool.rejected.iter();
        rejected.map(move |one| (&tool.contract, one))
    });
    let rejected: Vec<(&Contract<'_>, &Rejected<'_>)> = rejected.collect();
    let mut documents = documents(review);
    documents.retain(|document| document.is_meant(name));
    let mut contents = review.bundles.iter().map(|(content, _)| content);
    let is_bundle = contents.any(|content| content.manifest.id.as_str() == name);
    if tools.is_empty() && documents.is_empty() && !is_bundle {
        return Ok(None);
    }
    let missing = suggest(&documents);
    let value = json!({
        "ok": true,
        "policies": granted.files,
        "drivers": found.iter().map(|(explanation, _)| explanation).collect::<Vec<_>>(),
        "not_serving": rejected.iter().map(|(contract, one)| json!({
            "tool": contract.tool.major_id(),
            "publisher": contract.publisher,
            "driver": one.implementation.driver.id.as_str(),
            "driver_publisher": one.implementation.publisher,
            "reasons": one.reasons,
        })).collect::<Vec<_>>(),
        "documents": documents.iter().map(document_json).collect::<Vec<_>>(),
        "lines_to_add": missing,
        "addresses_missing": found.iter().flat_map(|(_, internal)| internal).map(|one| json!({
            "host": one.host, "addresses": one.addresses, "line": one.line(),
        })).collect::<Vec<_>>(),
    });
    let mut parts = Vec::new();
    if !found.is_empty() {
        let explained: Vec<String> = found.iter().map(explained).collect();
        parts.push(explained.join("\n\n"));
    }
    let unserved = tools.iter().filter(|tool| tool.routes.is_empty());
    parts.extend(unserved.map(|tool| blocked(&tool.contract)));
    if !rejected.is_empty() {
        parts.push(String::new());
        let refused = rejected
            .iter()
            .map(|(contract, one)| refused(contract, one));
        parts.extend(refused);
    }
    if !tools.is_empty() && !documents.is_empty() {
        parts.push(String::new());
    }
    parts.extend(documents.iter().map(document_line));
    if tools.is_empty() && documents.is_empty() {
        parts.push(format!("{name} brings no prompts and no resources"));
    }
    if !missing.is_empty() {
        let missing = visible(&missing, MAX_EXPLANATION_CHARS);
        let missing = missing.trim_end();
        parts.push(format!(
            "\nto have it served, add to the policy:\n\n{missing}"
        ));
    }
    let mut lines = found.iter().map(|(one, _)| &one.lines_to_add);
    let lacks_lines = lines.any(|lines| !lines.is_empty()) || !missing.is_empty();
    let place = lacks_lines.then(|| format!("the policy's file is {}", granted.place.display()));
    Ok(Some(Shown {
        note: place,
        ..Shown::new(value, parts.join("\n"))
    }))
}

/// The prompts and resources of the bundles, for a name that is unknown.
pub(super) fn known_documents(review: &PolicyReview) -> Option<String> {
    let documents = documents(review);
    let known = documents.iter().map(|document| document.id);
    let known: Vec<&str> = known.take(MAX_SUGGESTIONS).collect();
    (!known.is_empty()).then(|| format!("prompts and resources are: {}", known.join(", ")))
}

fn explained((explanation, internal): &(Explanation, Vec<InternalAddress>)) -> String {
    let shown = visible(&explanation.to_string(), MAX_EXPLANATION_CHARS);
    let mut text = shown.trim_end().to_owned();
    for one in internal {
        let one = visible_line(&one.to_string(), 400);
        text.push_str(&format!("\n  address {one}"));
    }
    text
}

fn blocked(contract: &Contract<'_>) -> String {
    let (id, publisher) = (contract.tool.major_id(), contract.publisher);
    let shown = visible_line(publisher, MAX_PUBLISHER_CHARS);
    format!("{id} of {shown}: blocked, no driver serves it")
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
