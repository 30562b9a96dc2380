//! `[[exec]]`: the programs that an operator allows outside the sandbox, each for one tool. Without
//! a table that matches the tool's document exactly, the tool is blocked.

pub(crate) mod rule;

use toolward_contract::capability::Class;
use toolward_contract::driver::{DriverKind, Program};

use crate::denial::{ExecLack, ExecWanted, ExecWhy};
use crate::evaluate::{Evaluated, PolicyView, parts, reveals};
use crate::resources::SecretSource;

pub use rule::{ExecDigest, ExecLimits, ExecRule, Interpreter, WorkspaceAccess};

/// Finds the table that allows the program of a driver; `None` for drivers that run no program.
pub(crate) fn find<'a>(
    view: &PolicyView<'a>,
    evaluated: &[Evaluated<'_>],
) -> Result<Option<&'a ExecRule>, Box<ExecLack>> {
    let (contract, driver) = (view.contract.tool, view.implementation.driver);
    if driver.kind != DriverKind::Exec {
        return Ok(None);
    }
    let entry = driver.implements_tool(contract.id.as_str(), &contract.version);
    let program = entry.and_then(|entry| entry.program.as_ref());
    let wanted = wanted(evaluated);
    let fits = match program {
        Some(program) => fitting(view, evaluated, program, &wanted),
        None => Err(ExecWhy::Command),
    };
    fits.map(Some).map_err(|why| {
        Box::new(ExecLack {
            why,
            command: program.map_or_else(String::new, |program| program.command.clone()),
            args: program.map_or_else(Vec::new, |program| program.args.clone()),
            wanted,
        })
    })
}

fn wanted(evaluated: &[Evaluated<'_>]) -> ExecWanted {
    let mut wanted = ExecWanted::default();
    for (declared, asked, _) in parts(evaluated) {
        match asked.class() {
            class if class.is_on_the_network() => wanted.network = true,
            Class::Secret if !declared.mutates => {
                wanted.secrets.insert(asked.scope());
            }
            Class::Workspace => {
                let access = WorkspaceAccess::of(declared.mutates);
                wanted.workspaces.insert(asked.scope(), access);
            }
            _ => {}
        }
    }
    wanted
}

fn fitting<'a>(
    view: &PolicyView<'a>,
    evaluated: &[Evaluated<'_>],
    program: &Program,
    wanted: &ExecWanted,
) -> Result<&'a ExecRule, ExecWhy> {
    let (publisher, tool) = (view.contract.publisher, view.contract.tool);
    if view.implementation.publisher != publisher {
        return Err(ExecWhy::Foreign);
    }
    let rule = view.policy.tables.execs.iter().find(|rule| {
        rule.publisher.as_str() == publisher
            && rule.tool.matches(tool.id.as_str(), tool.version.major)
    });
    let rule = rule.ok_or(ExecWhy::NoLine)?;
    if rule.is_placeholder() {
        return Err(ExecWhy::NotChosen);
    }
    if rule.command != program.command {
        return Err(ExecWhy::Command);
    }
    if rule.args != program.args {
        return Err(ExecWhy::Args);
    }
    match (rule.network, wanted.network) {
        (false, true) => return Err(ExecWhy::NetworkNotGiven),
        (true, false) => return Err(ExecWhy::NetworkNotDeclared),
        _ => {}
    }
    if let Some(slug) = rule.env.keys().find(|slug| !wanted.secrets.contains(*slug)) {
        return Err(ExecWhy::SecretNotDeclared(slug.clone()));
    }
    let mut given = rule.workspaces.iter();
    if let Some((path, _)) =
        given.find(|(path, access)| wanted.workspaces.get(*path) != Some(access))
    {
        return Err(ExecWhy::WorkspaceNotDeclared(path.clone()));
    }
    capabilities(view, evaluated, rule)?;
    Ok(rule)
}

/// Checks that the table grants each declared capability. A rule must grant the capability, too.
fn capabilities(
    view: &PolicyView<'_>,
    evaluated: &[Evaluated<'_>],
    rule: &ExecRule,
) -> Result<(), ExecWhy> {
    for (declared, asked, found) in parts(evaluated) {
        match asked.class() {
            class if class.is_on_the_network() => {}
            // A class that `accepts` names grants nothing, so the table need not name it.
            Class::Other(_) => {}
            Class::Secret if !declared.mutates => {
                let slug = asked.scope();
                if !rule.env.contains_key(&slug) {
                    return Err(ExecWhy::SecretWithoutVariable(slug));
                }
                let revealed = found.as_ref().is_ok_and(|rules| reveals(rules, asked));
                if !revealed {
                    return Err(ExecWhy::SecretNotRevealed(slug));
                }
                let secret = view.secret(asked, declared.by);
                if secret.is_none_or(|secret| secret.source == SecretSource::Store) {
                    return Err(ExecWhy::SecretStored(slug));
                }
            }
            Class::Workspace => {
                let path = asked.scope();
                if !rule.workspaces.contains_key(&path) {
                    return Err(ExecWhy::WorkspaceNotGiven(asked.clone()));
                }
                let root = view.workspace(asked).map(|known| known.path.to_string());
                if root.is_none_or(|root| root != path) {
                    return Err(ExecWhy::WorkspacePart(asked.clone()));
                }
            }
            _ => return Err(ExecWhy::NotForPrograms(asked.clone())),
        }
    }
    Ok(())
}
