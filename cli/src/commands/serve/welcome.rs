//! What a server says when it starts, beside where it listens.

use toolward_mcp::ServerFeatures;

use super::replay::Replaying;
use crate::environment::Environment;
use crate::output::{Output, counted};
use toolward_operator::lasting_changes::LastingChanges;

/// Tells once of each lasting change that a command has made: whoever typed the yes may not be who reads this.
pub(super) fn warn_of_changes(environment: &Environment, output: &Output) {
    let Ok(changes) = LastingChanges::of(environment) else {
        return;
    };
    match changes.unserved() {
        Ok(changes) => changes.iter().for_each(|one| output.warning(one)),
        Err(failure) => output.warning(format!(
            "what commands have changed is not known: {failure} ({})",
            failure.code
        )),
    }
}

/// How many tools are served, and which are blocked.
pub(super) fn welcome(features: &ServerFeatures, replaying: Option<&Replaying>) -> String {
    let mut text = format!("serving {}", counted(features.tool_count(), "tool"));
    if let Some(replaying) = replaying {
        let calls = counted(replaying.left(), "recorded call");
        text.push_str(&format!(" from {calls}; nothing runs"));
    }
    let blocked: Vec<&str> = features.blocked().map(|(_, id)| id).collect();
    if !blocked.is_empty() {
        text.push_str("; blocked: ");
        text.push_str(&blocked.join(", "));
        text.push_str(" (see `toolward policy explain TOOL`)");
    }
    text
}
