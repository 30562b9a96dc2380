//! A tool as an operator sees it: its contract, what the policy makes of it, and the bundle that brings it.

use std::time::SystemTime;

use serde::Serialize;
use toolward_bundle::content::Content;
use toolward_bundle::inspect::ToolView;
use toolward_contract::tool::Tool;
use toolward_signing::Digest;
use toolward_signing::timestamp::Timestamp;
use toolward_store::InstalledBundle;

use super::{PolicyReview, Row, is_named};
use crate::error::Error;

/// One tool. All text in it is its publisher's.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ToolStatus {
    /// `id@major`.
    pub tool: String,
    /// Its contract.
    #[serde(flatten)]
    pub contract: ToolView,
    /// Its publisher, as verified; `dev:<dir>` for a bundle under work.
    pub publisher: String,
    /// `allowed`, `asks` or `blocked`.
    pub state: &'static str,
    /// Why a person is asked, or why it is blocked.
    pub reasons: Vec<String>,
    /// What the sandbox gets for its declaration; empty if it is blocked.
    pub grants: Vec<String>,
    /// The declared hosts and workspaces that it is served without, because a rule says `partial`.
    pub without: Vec<String>,
    /// The driver that serves it, or else the first that does not.
    pub driver: Option<String>,
    /// That driver's publisher.
    pub driver_publisher: Option<String>,
    /// The id of the bundle that brings it.
    pub bundle: String,
    /// The bundle's version.
    pub bundle_version: String,
    /// The bundle's sequence.
    pub sequence: u64,
    /// BLAKE3 of the bundle's manifest.
    pub digest: Digest,
    /// Where the bundle was installed from.
    pub source: Option<String>,
    /// When it was installed.
    pub installed: Option<String>,
    /// When its signatures and files were verified last: at this reading. `None` for a bundle under work.
    pub verified: Option<String>,
}

impl PolicyReview {
    /// The tools with this id, `id@major` or former name. `installed` is what the store knows of the bundles.
    ///
    /// # Errors
    /// The errors of [`PolicyReview::routes`].
    pub fn tools_named(
        &self,
        name: &str,
        installed: &[InstalledBundle],
    ) -> Result<Vec<ToolStatus>, Error> {
        let rows = self.rows()?;
        let routes = self.routes(Some(name))?;
        let mut found = Vec::new();
        for (content, publisher) in &self.bundles {
            for entry in &content.tools {
                if !is_named(&entry.tool, name) {
                    continue;
                }
                let major_id = entry.tool.major_id();
                let row = Row::of_tool(&rows, &major_id);
                let driver = row.and_then(|row| row.driver.clone());
                let served = routes.iter().flat_map(|tool| &tool.routes);
                let granted = served
                    .map(|route| route.explain(&self.granted.policy, &self.machine))
                    .filter(|one| one.tool == major_id && Some(&one.driver) == driver.as_ref())
                    .flat_map(|one| one.capabilities)
                    .flat_map(|capability| capability.granted);
                found.push(ToolStatus {
                    grants: granted.collect(),
                    publisher: publisher.clone(),
                    state: row.map_or("blocked", |row| row.state),
                    reasons: row.map(|row| row.reasons.clone()).unwrap_or_default(),
                    without: row.map(|row| row.without.clone()).unwrap_or_default(),
                    driver_publisher: row.and_then(|row| row.driver_publisher.clone()),
                    driver,
                    ..status(content, &entry.tool, installed)
                });
            }
        }
        Ok(found)
    }
}

/// What a bundle says of its tool, with nothing of the policy.
fn status(content: &Content, tool: &Tool, installed: &[InstalledBundle]) -> ToolStatus {
    let manifest = &content.manifest;
    let from = installed
        .iter()
        .find(|one| one.digest == content.manifest_digest);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = now.ok().and_then(|now| i64::try_from(now.as_secs()).ok());
    let now = now.and_then(|now| Timestamp::from_unix(now).ok());
    ToolStatus {
        tool: tool.major_id(),
        contract: ToolView::of(tool),
        publisher: String::new(),
        state: "blocked",
        reasons: Vec::new(),
        grants: Vec::new(),
        without: Vec::new(),
        driver: None,
        driver_publisher: None,
        bundle: manifest.id.clone(),
        bundle_version: manifest.version.to_string(),
        sequence: manifest.sequence,
        digest: content.manifest_digest,
        source: from.map(|one| one.source.clone()),
        installed: from.map(|one| one.at.to_string()),
        verified: now
            .filter(|_| !content.origin.is_dev())
            .map(|now| now.to_string()),
    }
}
