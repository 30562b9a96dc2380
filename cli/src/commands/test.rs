//! `test`: runs the examples of a bundle's contracts with each of its drivers.

use std::collections::BTreeSet;
use std::sync::Arc;

use toolward_host::Reply;
use toolward_operator::bundles::{dev_content, is_under_work};
use toolward_operator::examples::{ExampleCase, ExampleOutcome, MissingTool, Sandbox};

use super::build;
use crate::approve::Terminal;
use crate::helper;
use crate::prelude::*;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A signed bundle: a directory or an archive
    #[arg(required_unless_present_any = ["dev", "named"])]
    bundle: Option<PathBuf>,

    /// The same as the argument BUNDLE; `call` has this flag, too
    #[arg(long = "bundle", value_name = "PATH")]
    #[arg(id = "named", conflicts_with = "bundle")]
    named: Option<PathBuf>,

    /// A bundle under work, unsigned: the directory with bundle.toml
    #[arg(long, value_name = "DIR")]
    #[arg(conflicts_with_all = ["bundle", "named", "trust_key", "config"])]
    dev: Option<PathBuf>,

    /// Run under the policy, with its workspaces, secrets and network
    ///
    /// Without this flag, the examples get a scratch workspace and scratch buckets, and examples
    /// that need more are skipped.
    #[arg(long)]
    with_grants: bool,

    #[command(flatten)]
    trust: Flagged<Trust>,

    #[command(flatten)]
    store: Flagged<StoreLocation>,

    #[command(flatten)]
    means: Flagged<HostSetup>,

    #[command(flatten)]
    cache: Flagged<CompileCache>,

    #[command(flatten)]
    confine: ConfineFlags,
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context) -> Result<Exit> {
        let (trust, cache, means) = (&self.trust, &self.cache, &self.means);
        let (path, content) = self.content(context)?;
        let cases = ExampleCase::of(&content);
        if cases.is_empty() {
            let path = path.display();
            let message = format!("{path}: no contract with examples has a driver here");
            return Err(Failure::failed(Code::NothingToTest, message)
                .hint("add `examples` to a TOOL.md: each a name, an input, and an output if there is only one right one"));
        }
        // A bundle that is refused above leaves nothing behind, not even a cache.
        let broker = cache.broker(&helper::compiler()?, context)?;
        broker.start()?;
        let probe = build::probe(&content, cache, &broker)?;
        let (sandbox, host, confinement) = if self.with_grants {
            let granted = Granted::read(trust, &means.policies, context)?;
            let bar = Arc::new(Bar::new("testing", context.tells()));
            let contents = vec![content];
            let buckets = opens_buckets(&contents, &granted.policy);
            let setup = means.configured(trust, context);
            let builder = setup.host(contents, &granted, buckets)?;
            let host = cache.host(builder.approver(Terminal::new(&bar)), &broker)?;
            let confinement = setup.kept(&host, &granted)?;
            (None, host, confinement)
        } else {
            let unwritable = |error| Failure::unwritable(&std::env::temp_dir(), error);
            // The folder is removed at the end.
            let folder = tempfile::Builder::new().prefix("toolward-").tempdir();
            let folder = folder.map_err(unwritable)?;
            let sandbox = Sandbox::new(folder.path(), &content)?;
            let host = cache.host(sandbox.host(content)?, &broker)?;
            let confinement = sandbox.kept(&host);
            (Some((sandbox, folder)), host, confinement)
        };
        (self.confine).apply(confinement, &broker, trust, context)?;
        let runtime = runtime()?;
        let mut run = Run::default();
        for (number, case) in cases.iter().enumerate() {
            let mut request = case.request();
            if let Some((sandbox, _)) = &sandbox {
                sandbox.clear()?;
                // Each example runs for a separate principal, and so has separate buckets.
                request = request.principal(format!("example-{number}"));
            }
            let reply = runtime.block_on(host.call(request));
            run.add(case, &reply, context)?;
        }
        let missing = probe.map(|(probe, host)| runtime.block_on(probe.ask(&host)));
        let missing = missing.unwrap_or_default();
        runtime.shutdown_background();
        // A tool whose example passes is served, regardless of what the probe found.
        let served =
            |one: &&MissingTool| run.passed.contains(&(one.tool.clone(), one.driver.clone()));
        let missing: Vec<_> = missing.iter().filter(|one| !served(one)).collect();
        for one in &missing {
            context.diagnostic(&one.diagnostic)?;
        }
        Ok(run.end(cases.len(), missing.len(), sandbox.is_some(), context))
    }

    /// Returns the bundle to test, and its path.
    fn content(&self, context: &Context) -> Result<(&Path, Content)> {
        let (trust, store) = (&self.trust, &self.store);
        if let Some(directory) = &self.dev {
            toolward_author::current(directory).map_err(authored)?;
            let content = dev_content(directory, trust, store, context)?;
            return Ok((directory, content));
        }
        let Some(path) = self.bundle.as_ref().or(self.named.as_ref()) else {
            let failure = Failure::usage(OperatorCode::BundleMissing, "no bundle was named");
            return Err(failure.hint("give a bundle with --trust-key PEM, or --dev DIR"));
        };
        if !trust.is_named() && is_under_work(path) {
            let path = path.display();
            let message = format!("{path}: nobody has signed this bundle");
            return Err(Failure::usage(Code::BundleUnsigned, message).hint(format!(
                "to run what lies there, unsigned: toolward test --dev {path}"
            )));
        }
        let content = trust.content(path, store, context)?;
        Ok((path, content))
    }
}

/// The results of the examples.
#[derive(Default)]
struct Run {
    failed: usize,
    skipped: usize,
    unfit: usize,
    /// The tools that passed an example, each with the driver.
    passed: BTreeSet<(String, String)>,
}

impl Run {
    fn add(&mut self, case: &ExampleCase, reply: &Reply, context: &Context) -> Result {
        let outcome = case.outcome(reply);
        match &outcome {
            ExampleOutcome::Passed => {
                let id = case.tool.split('@').next().unwrap_or_default();
                self.passed.insert((id.to_owned(), case.driver.clone()));
            }
            ExampleOutcome::Failed(_) => self.failed += 1,
            ExampleOutcome::Skipped(_) if case.unfit.is_some() => self.unfit += 1,
            ExampleOutcome::Skipped(_) => self.skipped += 1,
        }
        report(case, reply, &outcome, context)
    }

    fn end(&self, of: usize, missing: usize, scratch: bool, context: &Context) -> Exit {
        let (failed, skipped) = (self.failed, self.skipped);
        let run = of.saturating_sub(skipped + self.unfit);
        let left_out = match skipped + self.unfit {
            0 => String::new(),
            all => format!(", {all} skipped"),
        };
        let unserved = match missing {
            0 => String::new(),
            missing => format!(", {} not served", counted(missing, "tool")),
        };
        context.note(format!(
            "{} run, {failed} failed{left_out}{unserved}",
            counted(run, "example")
        ));
        if skipped > 0 && scratch {
            context.note("--with-grants runs what is skipped, as far as the policy grants it");
        }
        match (failed + missing, skipped) {
            (0, 0) => Exit::Fine,
            // With the policy, a skipped example is a denial. In a scratch run it is a denial only
            // if no example ran.
            (0, _) if !scratch || run == 0 => Exit::Denied,
            (0, _) => Exit::Fine,
            _ => Exit::Failed,
        }
    }
}

fn report(
    case: &ExampleCase,
    reply: &Reply,
    outcome: &ExampleOutcome,
    context: &Context,
) -> Result {
    let (state, word, reason) = match outcome {
        ExampleOutcome::Passed => ("passed", "ok    ", None),
        ExampleOutcome::Failed(problem) => ("failed", "FAILED", Some(problem)),
        ExampleOutcome::Skipped(reason) => ("skipped", "skip  ", Some(reason)),
    };
    let (tool, driver, name) = (&case.tool, &case.driver, &case.example.name);
    let value = json!({
        "ok": !matches!(outcome, ExampleOutcome::Failed(_)),
        "state": state,
        "tool": tool,
        "driver": driver,
        "example": name,
        "problem": reason,
        "milliseconds": reply.metadata.milliseconds,
    });
    let mut lines = format!("{word} {tool} with {driver}: {}", visible_line(name, 200));
    if let Some(reason) = reason {
        lines += &format!("\n       {}", visible_line(reason, 4000));
    }
    context.result(&value, lines)
}
