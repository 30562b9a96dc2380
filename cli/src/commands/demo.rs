//! `demo`: stops a hostile tool, and gives an agent tools to try.

use toolward_operator::demo::{self, Demo, TheftAttempt, TheftOutcome};

use super::mcp::{McpClient, started};
use crate::helper;
use crate::prelude::*;

/// The name that clients give the server of the demo.
const SERVER: &str = "toolward-demo";

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Remove the demo, and everything that it made in its directory
    #[arg(long, conflicts_with_all = ["client", "no_confine"])]
    remove: bool,

    /// Print the configuration block for this client
    #[arg(long, value_enum, default_value = "claude-code")]
    client: McpClient,

    #[command(flatten)]
    confine: ConfineFlags,
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context) -> Result<Exit> {
        match self.remove {
            true => remove(context).map(|()| Exit::Fine),
            false => make(self, context),
        }
    }
}

fn make(arguments: &Arguments, context: &Context) -> Result<Exit> {
    let demo = Demo::make(context, &helper::compiler()?)?;
    let (place, block) = arguments.client.block(SERVER, &started(demo.flags())?)?;
    let directory = demo.directory().display();
    context.note(format!(
        "Made a publisher, whose private key signed two bundles and was deleted, in\n  {directory}\ntrusted it \
         until {}, and granted what the bundles declare:\n",
        demo.expires
    ));
    context.note(indented(demo.policy_lines.trim()));
    let thief = demo.thief()?;
    arguments.confine.apply(
        thief.confinement.clone(),
        &demo.broker,
        &demo.operator.source.trust,
        context,
    )?;
    context.note(
        "\nThe tool demo.thief may read the folder /inbox and ask the host weather.example.\nIt tries to:\n",
    );
    let runtime = runtime()?;
    let mut tried = Vec::new();
    for attempt in &thief.attempts {
        let outcome = runtime.block_on(thief.run(attempt))?;
        if !context.json() {
            context.line(shown(attempt, &outcome))?;
        }
        tried.push((attempt, outcome));
    }
    runtime.shutdown_background();
    let stopped = tried
        .iter()
        .all(|(_, outcome)| outcome.stopped_by.is_some());
    if context.json() {
        let attempts = tried.iter();
        let attempts = attempts.map(|(attempt, outcome)| {
            json!({
                "title": attempt.title,
                "stopped": outcome.stopped_by.is_some(),
                "stopped_by": outcome.stopped_by,
                "reply": outcome.reply,
                "milliseconds": outcome.milliseconds,
            })
        });
        context.value(&json!({
            "ok": stopped,
            "directory": demo.directory().display().to_string(),
            "expires": demo.expires.to_string(),
            "attempts": attempts.collect::<Vec<_>>(),
            "flags": demo.flags(),
            "block": block,
        }))?;
    } else {
        context.note(
            "\nTo give an agent demo.words, demo.note (which asks you each time) and the thief,\nput this \
             block into",
        );
        context.note(format!("  {place}\n"));
        context.line(block)?;
        context.note("\nTo remove all of it: toolward demo --remove");
    }
    Ok(if stopped { Exit::Fine } else { Exit::Failed })
}

fn shown(attempt: &TheftAttempt, outcome: &TheftOutcome) -> String {
    let title = visible_line(&attempt.title, 300);
    match &outcome.stopped_by {
        Some(by) => {
            let by = wrapped(&visible_line(by, 300), &format!("\n{:11}", ""));
            format!("{title}\n  stopped: {by}")
        }
        None => {
            let reply = visible_line(outcome.reply.as_deref().unwrap_or_default(), 300);
            format!("{title}\n  NOT STOPPED: {reply}")
        }
    }
}

fn indented(text: &str) -> String {
    let lines = text.lines().map(|line| match line.is_empty() {
        true => String::new(),
        false => format!("  {line}"),
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn remove(context: &Context) -> Result {
    let Some((path, kept)) = demo::remove(context)? else {
        return context.result(&json!({"ok": true, "state": "absent"}), "there is no demo");
    };
    let directory = path.display();
    for name in &kept {
        context.warning(format!(
            "{directory}: {name} stays: the demo did not make it"
        ));
    }
    let project = std::env::current_dir().unwrap_or_default();
    let files = McpClient::files(context.home.as_deref(), &project);
    let clients = demo::mentioning(&path, &files);
    for file in &clients {
        context.warning(format!(
            "{} still has the demo's entry, `{SERVER}`: remove it there",
            file.display()
        ));
    }
    let clients = clients.iter().map(|file| file.display().to_string());
    context.result(
        &json!({
            "ok": true,
            "state": "removed",
            "directory": directory.to_string(),
            "kept": kept,
            "clients": clients.collect::<Vec<_>>(),
        }),
        format_args!("removed the demo in {directory}"),
    )
}
