//! `test`: the examples of a bundle's contracts, against each of its drivers.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use serde_json::{Value, json};
use toolward_bundle::content::{Content, DriverEntry, ToolEntry};
use toolward_bundle::text::visible_line;
use toolward_contract::tool::Example;
use toolward_host::{Reply, Request};

use super::check::counted;
use super::compile_broker;
use super::reply::exit_of;
use crate::approve::Terminal;
use crate::environment::Environment;
use crate::failure::{Exit, Failure, Kind};
use crate::flags::ConfineFlags;
use crate::flags::Flagged;
use crate::output::Output;
use crate::progress::Bar;
use crate::test_sandbox::TestSandbox;
use toolward_operator::compile_cache::CompileCache;
use toolward_operator::config::Granted;
use toolward_operator::host_setup::{HostSetup, opens_buckets};
use toolward_operator::runtime;
use toolward_operator::trust::{Trust, dev_content, is_under_work};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A signed bundle: a directory or an archive
    #[arg(required_unless_present_any = ["dev", "named"])]
    bundle: Option<PathBuf>,

    /// The same, as `call` takes it
    #[arg(
        long = "bundle",
        id = "named",
        value_name = "PATH",
        conflicts_with = "bundle"
    )]
    named: Option<PathBuf>,

    /// A bundle under work, unsigned: the directory with bundle.toml
    #[arg(
        long,
        value_name = "DIR",
        conflicts_with_all = ["bundle", "named", "trust_key", "config"]
    )]
    dev: Option<PathBuf>,

    /// Run under the policy, with its workspaces, secrets and network. Without
    /// it the examples get a scratch workspace and scratch buckets, and those
    /// that need more are skipped
    #[arg(long)]
    with_grants: bool,

    #[command(flatten)]
    trust: Flagged<Trust>,

    #[command(flatten)]
    means: Flagged<HostSetup>,

    #[command(flatten)]
    cache: Flagged<CompileCache>,

    #[command(flatten)]
    confine: ConfineFlags,
}

/// One example, to be run with one driver.
struct Case {
    tool: String,
    driver: String,
    example: Example,
}

/// What became of an example.
enum Outcome {
    Passed,
    Failed(String),
    /// It was not run: it was not granted or approved.
    Skipped(String),
}

pub(crate) fn run(
    arguments: &Arguments,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let bundle = arguments.bundle.as_ref().or(arguments.named.as_ref());
    let (path, content) = match (bundle, &arguments.dev) {
        (Some(path), _) => (path, signed(path, &arguments.trust, environment, output)?),
        (None, Some(directory)) => (directory, dev_content(directory, output)?),
        (None, None) => {
            return Err(Failure::usage("bundle-missing", "no bundle was named")
                .hint("give a bundle with --trust-key PEM, or --dev DIR"));
        }
    };
    let cases = cases(&content);
    if cases.is_empty() {
        return Err(Failure::new(
            Kind::Failed,
            "nothing-to-test",
            format!("{}: no contract with examples has a driver here", path.display()),
        )
        .hint("add `examples` to a TOOL.md: each a name, an input, and an output if there is only one right one"));
    }
    // What is refused above leaves nothing behind, a cache neither.
    let broker = arguments
        .cache
        .broker(&compile_broker::command()?, environment, output)?;
    broker.start()?;
    let (sandbox, host, confinement) = if arguments.with_grants {
        let granted = Granted::read(&arguments.trust, &arguments.means.policies, environment)?;
        let bar = Arc::new(Bar::new("testing", output));
        let means = &arguments.means;
        let contents = vec![content];
        let buckets = opens_buckets(&contents, &granted.policy);
        let builder = means.host(contents, &granted, &arguments.trust, environment, buckets)?;
        let builder = builder.approver(Terminal::new(&bar));
        let host = arguments.cache.host(builder, &broker)?;
        let confinement = means.kept(&host, &granted, environment)?;
        (None, host, confinement)
    } else {
        let sandbox = TestSandbox::new(&content)?;
        let host = arguments.cache.host(sandbox.host(content)?, &broker)?;
        let confinement = sandbox.kept(&host);
        (Some(sandbox), host, confinement)
    };
    arguments
        .confine
        .apply(confinement, &broker, &arguments.trust, environment, output)?;
    let (mut failed, mut skipped) = (0, 0);
    let runtime = runtime()?;
    for (number, case) in cases.iter().enumerate() {
        let mut request = Request::with_value(case.tool.as_str(), case.example.input.clone())
            .pinned_driver(case.driver.as_str());
        if let Some(sandbox) = &sandbox {
            sandbox.clear()?;
            // Buckets of its own.
            request = request.principal(format!("example-{number}"));
        }
        let reply = runtime.block_on(host.call(request));
        let outcome = outcome(&reply, case.example.output.as_ref());
        match &outcome {
            Outcome::Passed => {}
            Outcome::Failed(_) => failed += 1,
            Outcome::Skipped(_) => skipped += 1,
        }
        report(case, &reply, &outcome, output)?;
    }
    runtime.shutdown_background();
    let run = cases.len().saturating_sub(skipped);
    let left_out = match skipped {
        0 => String::new(),
        _ => format!(", {skipped} skipped"),
    };
    output.note(format!(
        "{} run, {failed} failed{left_out}",
        counted(run, "example")
    ));
    if skipped > 0 && sandbox.is_some() {
        output.note("--with-grants runs what is skipped, as far as the policy grants it");
    }
    Ok(match (failed, skipped) {
        (0, 0) => Exit::Fine,
        // What the policy was asked for and does not give is a denial; a scratch
        // run is one only where there was nothing else.
        (0, _) if sandbox.is_none() || run == 0 => Exit::Denied,
        (0, _) => Exit::Fine,
        _ => Exit::Failed,
    })
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
                let mut example = example.clone();
                example.output = example
                    .output
                    .map(|output| without_dropped(output, driver, entry));
                cases.push(Case {
                    tool: entry.tool.major_id(),
                    driver: driver.driver.id.to_string(),
                    example,
                });
            }
        }
    }
    cases
}

/// The output that an example expects of a driver that drops some of it.
fn without_dropped(mut output: Value, driver: &DriverEntry, entry: &ToolEntry) -> Value {
    let tool = &entry.tool;
    let implements = (driver.driver).implements_tool(tool.id.as_str(), &tool.version);
    if let (Value::Object(members), Some(implements)) = (&mut output, implements) {
        members.retain(|name, _| !implements.drop_outputs.contains(name));
    }
    output
}

/// What became of an example. Without an expected output the host's own check
/// against the schema is all.
fn outcome(reply: &Reply, expected: Option<&Value>) -> Outcome {
    let denied = exit_of(reply) == Exit::Denied && reply.metadata.attempts == 0;
    match (&reply.result, expected) {
        (Err(error), _) if denied => Outcome::Skipped(error.message.clone()),
        (Err(error), _) => Outcome::Failed(format!("{}: {}", error.code, error.message)),
        (Ok(found), Some(expected)) if found.structured != *expected => {
            Outcome::Failed(format!("expected {expected}, found {}", found.structured))
        }
        (Ok(_), _) => Outcome::Passed,
    }
}

fn report(
    case: &Case,
    reply: &Reply,
    outcome: &Outcome,
    output: &mut Output,
) -> Result<(), Failure> {
    let (state, word, reason) = match outcome {
        Outcome::Passed => ("passed", "ok    ", None),
        Outcome::Failed(problem) => ("failed", "FAILED", Some(problem)),
        Outcome::Skipped(reason) => ("skipped", "skip  ", Some(reason)),
    };
    if output.json() {
        let failed = matches!(outcome, Outcome::Failed(_));
        return output.value(&json!({
            "ok": !failed,
            "state": state,
            "tool": case.tool,
            "driver": case.driver,
            "example": case.example.name,
            "problem": reason,
            "milliseconds": reply.metadata.milliseconds,
        }));
    }
    let name = visible_line(&case.example.name, 200);
    output.line(format!("{word} {} with {}: {name}", case.tool, case.driver))?;
    if let Some(reason) = reason {
        output.line(format!("       {}", visible_line(reason, 4000)))?;
    }
    Ok(())
}
