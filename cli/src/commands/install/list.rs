//! `list` and `remove`: the installed bundles, and whether each would be loaded now. `search`:
//! tools that are installed, or that a channel lists.

use serde::Serialize;
use toolward_operator::installed::{self, ExaminedBundle, next_step};
use toolward_operator::policy_review::{PolicyReview, ToolRow};
use toolward_operator::releases;
use toolward_store::search::{SearchEntry, rank};
use toolward_store::{HeldUpdate, InstalledTool};

use crate::prelude::*;

/// Longest reason why a bundle is not loaded, in characters.
const MAX_REASON_CHARS: usize = 400;

#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    trust: Flagged<Trust>,

    #[command(flatten)]
    store: Flagged<StoreLocation>,
}

impl List {
    pub(crate) fn run(&self, context: &Context) -> Result {
        // Everything that can be read is shown. A configuration that can't be read is an error
        // nevertheless.
        let broken = Granted::read(&self.trust, &PolicyFiles::default(), context).err();
        self.show(broken.is_some(), context)?;
        broken.map_or(Ok(()), Err)
    }

    fn show(&self, broken: bool, context: &Context) -> Result {
        let Some(store) = self.store.shown(context)? else {
            context.note("nothing is installed");
            return Ok(());
        };
        let pending = store.pending()?;
        let known = store.tools()?;
        let examined = installed::examined(&store, &self.trust, context)?;
        if examined.is_empty() && pending.is_empty() {
            context.note("nothing is installed");
        }
        let rows = match broken {
            true => Vec::new(),
            false => self.rows(&examined, context),
        };
        for one in &examined {
            let mut held = pending.iter().map(|(held, _)| held);
            let held = held.find(|held| held.id == one.installed.id);
            let tools = tools(one, &known, &rows);
            context.result(&as_json(one, held, &tools), lines(one, held, &tools))?;
        }
        // Held releases of bundles that are not installed.
        for (held, _) in &pending {
            if store.installed(&held.id)?.is_some() {
                continue;
            }
            let (id, version, surface) = (&held.id, held.version.to_string(), &held.surface);
            let value = json!({
                "id": id, "version": null, "sequence": null,
                "publisher": held.publisher, "digest": null, "surface": null,
                "source": held.source, "installed": null,
                "held": version, "held_surface": surface,
                "state": "held", "error": null, "tools": [],
            });
            let source = visible_line(&held.source, MAX_REASON_CHARS);
            let lines = format!(
                "{id} {version} is held\n  hint: `toolward install {source}` shows it, and `toolward update {id} \
                 --accept {surface}` accepts it"
            );
            context.result(&value, lines)?;
        }
        Ok(())
    }

    /// Returns the states of the loaded tools under the policy; empty if they can't be determined.
    fn rows(&self, examined: &[ExaminedBundle], context: &Context) -> Vec<ToolRow> {
        let contents = examined.iter().filter_map(ExaminedBundle::content).cloned();
        let policies = PolicyFiles::default();
        let review = PolicyReview::of(contents.collect(), &self.trust, &policies, context);
        let rows = review.and_then(|review| {
            // Only if all bundles are loaded, since a rule may be for a tool of a bundle that is
            // not loaded.
            if !examined.is_empty() && examined.iter().all(|one| one.content().is_some()) {
                let unused = review.unused_rules();
                unused.iter().for_each(|one| context.warning(one));
            }
            review.rows()
        });
        rows.unwrap_or_else(|failure| {
            let what = "what the policy makes of the tools is not known";
            context.report.warning_of(what, &failure);
            Vec::new()
        })
    }
}

/// A tool of an installed bundle, and whether it can be called.
#[derive(Debug, Serialize)]
struct ListedTool<'a> {
    /// `id@major`.
    tool: &'a str,
    /// `allowed`, `asks` or `blocked`; `refused` if the bundle is not loaded; otherwise `unknown`.
    state: &'static str,
    reasons: &'a [String],
}

/// The tools of one bundle.
fn tools<'a>(
    one: &'a ExaminedBundle,
    known: &'a [InstalledTool],
    rows: &'a [ToolRow],
) -> Vec<ListedTool<'a>> {
    let own = known.iter().filter(|tool| tool.bundle == one.installed.id);
    own.map(|tool| {
        let tool = tool.major_id.as_str();
        let row = ToolRow::of_tool(rows, tool).filter(|_| one.content().is_some());
        ListedTool {
            tool,
            state: match (row, one.refusal()) {
                (Some(row), _) => row.state,
                (None, Some(_)) => "refused",
                (None, None) => "unknown",
            },
            reasons: row.map(|row| row.reasons.as_slice()).unwrap_or_default(),
        }
    })
    .collect()
}

fn as_json(one: &ExaminedBundle, held: Option<&HeldUpdate>, tools: &[ListedTool<'_>]) -> Value {
    let installed = &one.installed;
    let error = one.refusal().map(|failure| {
        let mut hints = failure.hints.clone();
        hints.push(next_step(&installed.id));
        json!({ "code": failure.code, "message": failure.message, "hint": hints.join("\n") })
    });
    json!({
        "id": installed.id, "version": installed.version.to_string(),
        "sequence": installed.sequence, "publisher": installed.publisher,
        "digest": installed.digest, "surface": installed.surface,
        "source": installed.source, "installed": installed.at.to_string(),
        "held": held.map(|held| held.version.to_string()),
        "held_surface": held.map(|held| held.surface),
        "state": one.word(), "error": error, "tools": tools,
    })
}

fn lines(one: &ExaminedBundle, held: Option<&HeldUpdate>, tools: &[ListedTool<'_>]) -> String {
    let installed = &one.installed;
    let (id, version, publisher) = (&installed.id, &installed.version, &installed.publisher);
    let sequence = installed.sequence;
    let mut lines = format!("{id} {version} (sequence {sequence}) by {publisher}");
    if let Some(failure) = one.refusal() {
        let (message, code) = (&failure.message, &failure.code);
        let message = visible_line(message, MAX_REASON_CHARS);
        let hint = next_step(id);
        lines += &format!("\n  NOT LOADED: {message} ({code})\n  hint: {hint}");
    }
    if let Some(held) = held {
        let hint = format!("`toolward update {id}` shows what changes");
        lines += &format!("\n  {} is held\n  hint: {hint}", held.version);
    }
    let width = tools.iter().map(|tool| tool.tool.len()).max();
    let width = width.unwrap_or_default();
    for tool in tools {
        let (id, reasons) = (tool.tool, tool.reasons.join("; "));
        let state = state_word(tool.state);
        lines += &format!("\n  {id:<width$}  {state}");
        if !reasons.is_empty() {
            lines += &format!(": {}", visible_line(&reasons, MAX_REASON_CHARS));
        }
    }
    lines
}

#[derive(Debug, Args)]
pub(crate) struct Remove {
    /// The id of the bundle, or of a tool in it
    id: String,

    #[command(flatten)]
    store: Flagged<StoreLocation>,
}

impl Remove {
    pub(crate) fn run(&self, context: &Context) -> Result {
        let now = std::time::SystemTime::now();
        let (id, files) = self.store.remove(&self.id, now, context)?;
        let value = json!({ "ok": true, "removed": id, "files": files });
        context.result(&value, format_args!("{id}: removed"))
    }
}

#[derive(Debug, Args)]
pub(crate) struct Search {
    /// Words to find in names, descriptions, tags and publishers
    query: Vec<String>,

    /// Search the index of this channel instead of what is installed
    #[arg(long, value_name = "NAME")]
    channel: Option<String>,

    #[command(flatten)]
    trust: Flagged<Trust>,

    #[command(flatten)]
    store: Flagged<StoreLocation>,

    #[command(flatten)]
    network: Flagged<Network>,
}

/// The most matches that are shown.
const MAX_MATCHES: usize = 50;

impl Search {
    pub(crate) fn run(&self, context: &Context) -> Result {
        let query = self.query.join(" ");
        if let Some(name) = &self.channel {
            return self.channel(name, &query, context);
        }
        let Some(store) = self.store.shown(context)? else {
            context.note("nothing is installed");
            return Ok(());
        };
        let matches = store.search(&query, MAX_MATCHES)?;
        if matches.is_empty() {
            context.note("no installed tool matches");
            return Ok(());
        }
        let examined = installed::examined(&store, &self.trust, context)?;
        for tool in &matches {
            let of = |one: &&ExaminedBundle| one.installed.id == tool.bundle;
            let refusal = examined.iter().find(of).and_then(|one| one.refusal());
            let version = tool.version.to_string();
            found(&tool.entry, &tool.bundle, &version, refusal, context)?;
        }
        Ok(())
    }

    /// Shows the tools in the index of a channel.
    fn channel(&self, name: &str, query: &str, context: &Context) -> Result {
        let trust = &self.trust;
        let standing = trust.context_or_empty(context)?;
        let store = self.store.open(context)?;
        let channel = standing.channel(name)?;
        let network = self.network.clone().fetcher(trust, context)?;
        let index = releases::fetch_index(channel, &network, &store, &standing)?;
        let (mut entries, mut bundles) = (Vec::new(), Vec::new());
        for listed in &index.bundles {
            for tool in &listed.tools {
                entries.push(SearchEntry {
                    id: tool.id.clone(),
                    title: tool.title.clone().unwrap_or_default(),
                    description: tool.description.clone(),
                    tags: tool.tags.clone(),
                    publisher: listed.publisher.clone(),
                });
                bundles.push(listed);
            }
        }
        let ranked = rank(query, &entries);
        if ranked.is_empty() {
            context.note(format!("the channel {name} lists no tool that matches"));
        }
        for position in ranked.into_iter().take(MAX_MATCHES) {
            if let (Some(entry), Some(listed)) = (entries.get(position), bundles.get(position)) {
                let version = listed.version.to_string();
                found(entry, &listed.id, &version, None, context)?;
            }
        }
        Ok(())
    }
}

fn found(
    entry: &SearchEntry,
    bundle: &str,
    version: &str,
    refusal: Option<&Failure>,
    context: &Context,
) -> Result {
    let code = refusal.map(|failure| failure.code.as_str());
    let (id, publisher) = (&entry.id, &entry.publisher);
    let value = json!({
        "tool": id, "name": entry.title, "description": entry.description,
        "tags": entry.tags, "publisher": publisher, "bundle": bundle, "version": version,
        "refused": code,
    });
    let (id, publisher) = (visible_line(id, 200), visible_line(publisher, 200));
    let description = visible_line(&entry.description, 200);
    let refused = code.map(|code| format!(", NOT LOADED ({code})"));
    let refused = refused.unwrap_or_default();
    let from = format!("{bundle} {version} by {publisher}{refused}");
    context.result(&value, format_args!("{id}  {description}\n  {from}"))
}
