//! Bundles that were loaded, and the tools of those that were not.

use toolward_bundle::content::Content;
use toolward_bundle::surface::{BundleSurface, ToolSummary};
use toolward_host::{WithheldReason, WithheldTool};
use toolward_store::Store;

use crate::error::Error;
use crate::report::Report;

/// Bundles that were loaded, and the tools of those that were not.
#[derive(Debug, Default)]
pub struct LoadedBundles {
    /// What verifies.
    pub contents: Vec<Content>,
    /// The tools of bundles that do not verify now, or wait until they are accepted.
    pub withheld: Vec<WithheldTool>,
}

impl LoadedBundles {
    /// Without bundles that were left out.
    pub(crate) fn all_of(contents: Vec<Content>) -> Self {
        Self {
            contents,
            withheld: Vec::new(),
        }
    }
}

/// Why the tools of a bundle that was refused with this error are not served.
pub fn reason(failure: &Error) -> WithheldReason {
    let source = std::error::Error::source(failure);
    match source.and_then(|source| source.downcast_ref()) {
        Some(toolward_store::Error::ActionsChanged { .. }) => WithheldReason::Held,
        _ => WithheldReason::Withdrawn,
    }
}

/// The tools of installed bundles that were refused, and those that only updates would bring, which wait. Warns if they
/// are not known: the others are served all the same.
pub(crate) fn withheld_tools(
    store: &Store,
    refused: &[(String, WithheldReason)],
    report: &dyn Report,
) -> Vec<WithheldTool> {
    let ids: Vec<&str> = refused.iter().map(|(id, _)| id.as_str()).collect();
    let (installed, held) = match store.surfaces(&ids) {
        Ok(surfaces) => surfaces,
        Err(error) => {
            report.warning(&format!(
                "which tools are not loaded is not known: {error} ({})",
                error.code()
            ));
            return Vec::new();
        }
    };
    let mut withheld = Vec::new();
    for (one, surface) in &installed {
        let known = refused.iter().find(|(id, _)| *id == one.id);
        let reason = known.map_or(WithheldReason::Withdrawn, |(_, reason)| *reason);
        withheld.extend(tools(surface, &one.publisher, reason));
    }
    for (one, surface) in &held {
        for tool in tools(surface, &one.publisher, WithheldReason::Held) {
            if !withheld
                .iter()
                .any(|known| known.major_id() == tool.major_id())
            {
                withheld.push(tool);
            }
        }
    }
    withheld
}

fn tools(
    surface: &BundleSurface,
    publisher: &str,
    reason: WithheldReason,
) -> impl Iterator<Item = WithheldTool> {
    let tools = surface.tools().into_iter();
    tools.filter_map(move |tool| {
        let (_, major) = tool.major_id.rsplit_once('@')?;
        let major = major.parse().ok()?;
        let ToolSummary {
            id,
            aliases,
            mcp_name,
            ..
        } = tool;
        Some(WithheldTool {
            id,
            major,
            publisher: publisher.to_owned(),
            aliases,
            mcp_name,
            reason,
        })
    })
}
