//! `search`: tools that are installed, or that a channel lists.

use clap::Args;
use serde_json::json;
use toolward_bundle::text::visible_line;
use toolward_operator::installed::{self, StoreLocation};
use toolward_operator::network::Network;
use toolward_operator::releases;
use toolward_operator::trust::Trust;
use toolward_store::search::{SearchEntry, rank};

use crate::environment::Environment;
use crate::failure::{Failure, Result};
use crate::flags::Flagged;
use crate::output::Output;

#[derive(Debug, Args)]
pub(crate) struct Search {
    /// Words of names, descriptions, tags or publishers
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

/// How many matches are shown.
const MAX_MATCHES: usize = 50;

impl Search {
    pub(crate) fn run(&self, environment: &Environment, output: &mut Output) -> Result {
        let query = self.query.join(" ");
        if let Some(name) = &self.channel {
            let standing = self.trust.context_or_empty(environment, output)?;
            let store = self.store.open(environment)?;
            let channel = standing.channel(name)?;
            let network = self.network.clone().fetcher(&self.trust, environment)?;
            let index = releases::fetch_index(channel, &network, &store, &standing)?;
            let mut entries = Vec::new();
            let mut bundles = Vec::new();
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
            let ranked = rank(&query, &entries);
            if ranked.is_empty() {
                output.note(format!("the channel {name} lists no tool that matches"));
            }
            for position in ranked.into_iter().take(MAX_MATCHES) {
                if let (Some(entry), Some(listed)) = (entries.get(position), bundles.get(position))
                {
                    found(entry, &listed.id, &listed.version.to_string(), None, output)?;
                }
            }
            return Ok(());
        }
        let Some(store) = self.store.shown(environment, output)? else {
            output.note("nothing is installed");
            return Ok(());
        };
        let matches = store.search(&query, MAX_MATCHES)?;
        if matches.is_empty() {
            output.note("no installed tool matches");
        }
        let examined = match matches.is_empty() {
            true => Vec::new(),
            false => installed::examined(&store, &self.trust, environment, output)?,
        };
        for tool in &matches {
            let of = |one: &&installed::ExaminedBundle| one.installed.id == tool.bundle;
            let refusal = examined.iter().find(of).and_then(|one| one.refusal());
            let version = tool.version.to_string();
            found(&tool.entry, &tool.bundle, &version, refusal, output)?;
        }
        Ok(())
    }
}

fn found(
    entry: &SearchEntry,
    bundle: &str,
    version: &str,
    refusal: Option<&Failure>,
    output: &mut Output,
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
    output.result(
        &value,
        format_args!("{id}  {description}\n  {bundle} {version} by {publisher}{refused}"),
    )
}
