//! The index of a channel, made from bundles at hand.

use crate::flags::Flagged;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use toolward_bundle::content::Content;
use toolward_signing::channel::{self, ChannelIndex, Listed, ListedTool};
use toolward_signing::timestamp::Timestamp;

use super::signing::{Document, Writing, created, failed, parsed, read};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::output::Output;
use toolward_operator::trust::Trust;

const SECONDS_PER_DAY: u64 = 24 * 60 * 60;

#[derive(Debug, Args)]
pub(super) struct Index {
    /// The channel's name
    name: String,

    /// A signed bundle that is current (may be given again)
    #[arg(long, value_name = "PATH", required = true)]
    bundle: Vec<PathBuf>,

    /// The index before: bundles that are not named again stay as they are
    #[arg(long, value_name = "FILE")]
    after: Option<PathBuf>,

    /// For how many days it is valid, at most 90
    #[arg(long, default_value_t = 7)]
    days: u64,

    #[command(flatten)]
    trust: Flagged<Trust>,

    #[command(flatten)]
    writing: Writing,
}

impl Index {
    pub(super) fn run(
        &self,
        environment: &Environment,
        output: &mut Output,
    ) -> Result<(), Failure> {
        let created = created(environment)?;
        let validity = Duration::from_secs(self.days.saturating_mul(SECONDS_PER_DAY));
        if validity.is_zero() || validity > channel::MAX_VALIDITY {
            return Err(Failure::usage(
                "setting-invalid",
                format!("--days {}: expected 1 to 90", self.days),
            )
            .hint("sign a new index more often instead"));
        }
        let expires = i64::try_from(validity.as_secs())
            .ok()
            .and_then(|validity| created.unix().checked_add(validity))
            .unwrap_or(i64::MAX);
        let mut index = ChannelIndex {
            name: self.name.clone(),
            version: 1,
            created,
            expires: Timestamp::from_unix(expires).map_err(|refusal| failed(&refusal))?,
            bundles: Vec::new(),
        };
        if let Some(path) = &self.after {
            match parsed(&read(path)?)? {
                Document::Channel(before) if before.name == self.name => {
                    index.version = before.version.saturating_add(1);
                    index.bundles = before.bundles;
                }
                _ => {
                    return Err(Failure::usage(
                        "document-unknown",
                        format!("{}: expected an index of {}", path.display(), self.name),
                    )
                    .hint("name the index that `publisher channel` made last"));
                }
            }
        }
        for path in &self.bundle {
            let listed = listed(&self.trust.content(path, environment, output)?);
            index.bundles.retain(|other| other.id != listed.id);
            index.bundles.push(listed);
        }
        let envelope = index.to_envelope().map_err(|refusal| failed(&refusal))?;
        self.writing.write(envelope, output)
    }
}

fn listed(content: &Content) -> Listed {
    let manifest = &content.manifest;
    Listed {
        id: manifest.id.clone(),
        version: manifest.version.clone(),
        sequence: manifest.sequence,
        digest: content.manifest_digest,
        publisher: manifest.publisher.clone(),
        name: None,
        description: None,
        tags: Vec::new(),
        tools: content
            .tools
            .iter()
            .map(|entry| ListedTool {
                id: entry.tool.id.to_string(),
                title: Some(cut(&entry.tool.name, channel::MAX_TITLE)),
                description: cut(&entry.tool.description, channel::MAX_DESCRIPTION),
                tags: entry
                    .tool
                    .tags
                    .iter()
                    .take(channel::MAX_TAGS)
                    .map(|tag| cut(tag, channel::MAX_TITLE))
                    .collect(),
            })
            .collect(),
    }
}

fn cut(text: &str, characters: usize) -> String {
    text.chars().take(characters).collect()
}
