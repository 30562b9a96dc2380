//! The index of a channel, made from bundles at hand.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use toolward_author::documents::{self, Document};
use toolward_operator::installed::StoreLocation;
use toolward_operator::trust::Trust;
use toolward_signing::channel::{self, ChannelIndex};
use toolward_signing::timestamp::Timestamp;

use super::signing::{Writing, created, read_earlier};
use crate::environment::Environment;
use crate::failure::{Failure, OperatorCode, Result, invalid};
use crate::flags::Flagged;
use crate::output::Output;

const SECONDS_PER_DAY: u64 = 24 * 60 * 60;

#[derive(Debug, Args)]
pub(crate) struct Index {
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
    pub(super) fn run(&self, environment: &Environment, output: &mut Output) -> Result {
        let created = created(environment)?;
        let validity = Duration::from_secs(self.days.saturating_mul(SECONDS_PER_DAY));
        if validity.is_zero() || validity > channel::MAX_VALIDITY {
            return Err(Failure::usage(
                OperatorCode::SettingInvalid,
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
            expires: Timestamp::from_unix(expires).map_err(invalid)?,
            bundles: Vec::new(),
        };
        if let Some(path) = &self.after {
            let pick = |document| match document {
                Document::Channel(index) if index.name == self.name => Some(index),
                _ => None,
            };
            let expected = format!("an index of {}", self.name);
            let hint = "name the index that `publisher channel` made last";
            let before = read_earlier(path, pick, &expected, hint)?;
            index.version = before.version.saturating_add(1);
            index.bundles = before.bundles;
        }
        for path in &self.bundle {
            let store = StoreLocation::default();
            let content = self.trust.content(path, &store, environment, output)?;
            documents::list(&mut index, &content);
        }
        let envelope = index.to_envelope().map_err(invalid)?;
        self.writing.write(envelope, output)
    }
}
