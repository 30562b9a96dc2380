//! Actions on a terminal.

use toolward_bundle::inspect::ActionView;

use super::{line, list};
use crate::failure::Result;
use crate::output::Output;

pub(super) fn show(action: &ActionView, output: &mut Output) -> Result {
    output.line(format!("\naction {} {}", line(&action.id), action.version))?;
    if !action.description.is_empty() {
        output.line(format!("  {}", line(&action.description)))?;
    }
    output.line(format!("  mutates    {}", list(&action.mutates)))?;
    output.line(format!(
        "  at least   approval {}, risk {}",
        line(&action.approval),
        action.risk_level
    ))?;
    if !action.fires_events.is_empty() {
        output.line(format!(
            "  no effect  fires_events: {}",
            list(&action.fires_events)
        ))?;
    }
    for (kind, reference) in &action.implementations {
        let hint = format!("implementations: {kind} {reference}");
        output.line(format!("  no effect  {}", line(&hint)))?;
    }
    Ok(())
}
