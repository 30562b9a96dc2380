//! `test`: the examples of a bundle's contracts, against each of its drivers.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use toolward_bundle::content::Content;
use toolward_bundle::text::visible_line;
use toolward_contract::tool::Example;
use toolward_host::{Reply, Request};

use super::call::{CacheFlags, runtime};
use super::check::counted;
use crate::environment::Environment;
use crate::failure::{Exit, Failure};
use crate::output::Output;
use crate::trust::{Trust, dev_content, is_under_work};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A signed bundle: a directory or an archive
    #[arg(required_unless_present = "dev")]
    bundle: Option<PathBuf>,

    /// A bundle under work, unsigned: the directory with bundle.toml. Nothing
    /// is granted to it
    #[arg(long, value_name = "DIR", conflicts_with_all = ["bundle", "trust_key", "config"])]
    dev: Option<PathBuf>,

    #[command(flatten)]
    trust: Trust,

    #[command(flatten)]
    cache: CacheFlags,
}

/// One example, to be run with one driver.
struct Case {
    tool: String,
    driver: String,
    example: Example,
}

pub(crate) fn run(
    arguments: &Arguments,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let (path, content) = match (&arguments.bundle, &arguments.dev) {
        (Some(path), _) => (path, signed(path, &arguments.trust, environment, output)?),
        (None, Some(directory)) => (directory, dev_content(directory, output)?),
        (None, None) => {
            return Err(Failure::usage("bundle-missing", "no bundle was named")
                .hint("give a bundle with --trust-key PEM, or --dev DIR"));
        }
    };
    let cases = cases(&content);
    let host = arguments.cache.host(content, environment, output)?;
    let runtime = runtime()?;
    let mut failed = 0;
    for case in &cases {
        let request = Request::with_value(case.tool.as_str(), case.example.input.clone())
            .pinned_driver(case.driver.as_str());
        let reply = runtime.block_on(host.call(request));
        let problem = problem(&reply, case.example.output.as_ref());
        failed += usize::from(problem.is_some());
        report(case, &reply, problem.as_deref(), output)?;
    }
    runtime.shutdown_background();
    if cases.is_empty() {
        return Err(Failure::new(
            Exit::Failed,
            "nothing-to-test",
            format!("{}: no contract with examples has a driver here", path.display()),
        )
        .hint("add `examples` to a TOOL.md: each a name, an input, and an output if there is only one right one"));
    }
    output.note(format!(
        "{} run, {failed} failed",
        counted(cases.len(), "example")
    ));
    Ok(if failed > 0 { Exit::Failed } else { Exit::Fine })
}

fn signed(
    path: &Path,
    trust: &Trust,
    environment: &Environment,
    output: &Output,
) -> Result<Content, Failure> {
    if !trust.is_named() && is_under_work(path) {
        let message = format!("{}: nobody has signed this bundle", path.display());
        return Err(Failure::usage("bundle-unsigned", message).hint(format!(
            "to run what lies there, unsigned: toolward test --dev {}",
            path.display()
        )));
    }
    trust.content(path, environment, output)
}

fn cases(content: &Content) -> Vec<Case> {
    let mut cases = Vec::new();
    for entry in &content.tools {
        for driver in content.drivers_for(&entry.tool) {
            for example in &entry.tool.examples {
                cases.push(Case {
                    tool: entry.tool.major_id(),
                    driver: driver.driver.id.to_string(),
                    example: example.clone(),
                });
            }
        }
    }
    cases
}

/// What is wrong with a reply. Without an expected output the host's own check
/// against the schema is all.
fn problem(reply: &Reply, expected: Option<&Value>) -> Option<String> {
    match (&reply.result, expected) {
        (Err(error), _) => Some(format!("{}: {}", error.code, error.message)),
        (Ok(found), Some(expected)) if found.structured != *expected => {
            Some(format!("expected {expected}, found {}", found.structured))
        }
        (Ok(_), _) => None,
    }
}

fn report(
    case: &Case,
    reply: &Reply,
    problem: Option<&str>,
    output: &mut Output,
) -> Result<(), Failure> {
    if output.json() {
        return output.value(&json!({
            "ok": problem.is_none(),
            "tool": case.tool,
            "driver": case.driver,
            "example": case.example.name,
            "problem": problem,
            "milliseconds": reply.metadata.milliseconds,
        }));
    }
    let name = visible_line(&case.example.name, 200);
    let state = if problem.is_none() {
        "ok    "
    } else {
        "FAILED"
    };
    output.line(format!(
        "{state} {} with {}: {name}",
        case.tool, case.driver
    ))?;
    if let Some(problem) = problem {
        output.line(format!("       {}", visible_line(problem, 4000)))?;
    }
    Ok(())
}
