//! The lines that an operator would add to a policy: of one blocked tool, or
//! the fewest for a whole bundle. Only for people: an agent is never shown them.

mod choices;
mod lines;

use std::path::PathBuf;

use crate::context::{ContextLack, Contexts};
use crate::decision::{Decision, DecisionContext};
use crate::machine::Machine;
use crate::policy::Policy;
use crate::routing::{Rejection, ToolRoutes};
pub use choices::{Choices, ChosenLines, OpenChoice, SecretChoice};
use lines::Lines;

/// The fewest lines that let these tools run, when they are appended to the file
/// of `policy`; empty where nothing is missing. As narrow as the declarations: one
/// rule for each tool and major version. Approval stays what it is.
///
/// Without `driver` the lines are for drivers of each contract's own publisher,
/// and change nothing about others, whether the policy binds them or not. With it
/// they are for this one driver, and bind it where it is another publisher's. With
/// `preapproved` each `[[grant]]` of the lines says so.
/// `policy` and `machine` are those that the routes were made with.
#[must_use]
pub fn suggest<'r, 'a: 'r>(
    tools: impl IntoIterator<Item = &'r ToolRoutes<'a>>,
    driver: Option<&str>,
    preapproved: bool,
    policy: &Policy,
    machine: &Machine,
) -> String {
    let none = &Choices::default();
    suggest_with(tools, driver, preapproved, policy, machine, none).lines
}

/// [`suggest`], with what the operator has chosen already.
#[must_use]
pub fn suggest_with<'r, 'a: 'r>(
    tools: impl IntoIterator<Item = &'r ToolRoutes<'a>>,
    driver: Option<&str>,
    preapproved: bool,
    policy: &Policy,
    machine: &Machine,
    choices: &Choices,
) -> ChosenLines {
    let mut lines = Lines::new(directories(policy));
    lines.preapproved = preapproved;
    lines.choices = choices.clone();
    for tool in tools {
        for route in &tool.routes {
            let wanted = match driver {
                None => !route.is_foreign(),
                Some(id) => route.implementation.driver.id.as_str() == id,
            };
            if !wanted {
                continue;
            }
            if let Decision::Deny(denial) = &route.decision {
                lines.add(denial);
            }
            let contexts = Contexts::of(&route.contract, &route.implementation, policy);
            let lack = contexts.lack().map(ContextLack::lines_to_add);
            lines.contexts.extend(lack);
        }
        for rejected in &tool.rejected {
            let implementation = &rejected.implementation;
            if driver == Some(implementation.driver.id.as_str())
                && rejected.reasons == [Rejection::NotBound]
            {
                let request = DecisionContext::default().on(machine);
                let decision = crate::decide(&tool.contract, implementation, policy, &request);
                lines.bind(&tool.contract, implementation, &decision);
            }
        }
    }
    let mut narrower = lines.clone();
    let narrowed = narrower.narrow();
    ChosenLines {
        narrower: narrowed.then(|| narrower.write().lines),
        ..lines.write()
    }
}

/// The directories that a placeholder must not overlap.
fn directories(policy: &Policy) -> Vec<PathBuf> {
    let taken = policy.workspaces().iter();
    taken.map(|known| known.directory.clone()).collect()
}
