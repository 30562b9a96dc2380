//! Budgets that nothing counts yet.

use toolward_bundle::codes;
use toolward_bundle::documents::Located;
use toolward_bundle::index::TOOLS_JSON;
use toolward_contract::diagnostic::{Diagnostic, Position};
use toolward_contract::index::IndexEntry;
use toolward_contract::tool::Tool;

/// That of an entry of tools.json.
pub(super) fn check_entry(entry: &IndexEntry, diagnostics: &mut Vec<Diagnostic>) {
    if !entry.budget.is_empty() {
        diagnostics.push(warning(TOOLS_JSON, entry.at, entry.id.as_str()));
    }
}

/// That of a contract.
pub(super) fn check_tool(tool: &Located<Tool>, diagnostics: &mut Vec<Diagnostic>) {
    let runloop = tool.value.metadata.get("runloop");
    let budget = runloop.and_then(|runloop| runloop.get("budget"));
    if budget.is_some_and(|budget| !budget.is_null()) {
        let id = tool.value.id.as_str();
        diagnostics.push(warning(&tool.path, Position::START, id));
    }
}

fn warning(file: &str, at: Position, id: &str) -> Diagnostic {
    let message = format!("the budget of {id} is shown, and nothing counts it yet");
    Diagnostic::new(&codes::BUDGET_NOT_COUNTED, file, at, message)
}
