//! Revocation lists.

use std::path::PathBuf;

use clap::Args;
use toolward_author::documents::{self, Document};
use toolward_signing::revocation::{RevocationList, RevokedBundle};

use super::document::time;
use super::signing::{Writing, created, is_name, pair, parsed, read_earlier};
use crate::environment::Environment;
use crate::failure::{Result, invalid};
use crate::output::Output;

#[derive(Debug, Args)]
pub(crate) struct Revoke {
    /// The publisher's name
    name: String,

    /// The list before: all that it revokes stays revoked
    #[arg(long, value_name = "FILE")]
    after: Option<PathBuf>,

    /// Revoke the bundle with this manifest digest (may be given again)
    #[arg(long, value_name = "DIGEST=WHY")]
    bundle: Vec<String>,

    /// Revoke the key with this id (may be given again)
    #[arg(long, value_name = "KEYID=WHY")]
    revoke_key: Vec<String>,

    /// When there will be a newer list, such as 2027-06-30T00:00:00Z
    #[arg(long, value_name = "TIME")]
    expires: Option<String>,

    #[command(flatten)]
    writing: Writing,
}

impl Revoke {
    pub(super) fn run(&self, environment: &Environment, output: &mut Output) -> Result {
        is_name(&self.name)?;
        let mut list = RevocationList {
            publisher: self.name.clone(),
            version: 1,
            created: created(environment)?,
            expires: time(self.expires.as_deref())?,
            keys: Vec::new(),
            bundles: Vec::new(),
        };
        if let Some(path) = &self.after {
            let pick = |document| match document {
                Document::Revocations(list) if list.publisher == self.name => Some(list),
                _ => None,
            };
            let expected = format!("a list of {}", self.name);
            let hint = "name the list that `publisher revoke` made last";
            let before = read_earlier(path, pick, &expected, hint)?;
            list.version = before.version.saturating_add(1);
            list.keys = before.keys;
            list.bundles = before.bundles;
        }
        for text in &self.bundle {
            let (digest, reason) = pair("--bundle", text)?;
            list.bundles.push(RevokedBundle {
                digest: parsed(digest)?,
                id: None,
                reason: reason.to_owned(),
            });
        }
        for text in &self.revoke_key {
            let (key, reason) = pair("--revoke-key", text)?;
            list.keys.push(documents::revoked(parsed(key)?, reason));
        }
        let envelope = list.to_envelope().map_err(invalid)?;
        self.writing.write(envelope, output)
    }
}
