//! The configuration that a server runs under, read again when somebody asks for it.

use std::sync::Arc;

use crate::commands::call::Source;
use crate::config::{ConfigFile, Granted};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::hosting::Means;
use crate::trust::Trust;

/// What is configured, and where that was read.
pub(crate) struct Configuration<'a> {
    source: &'a Source,
    means: &'a Means,
    environment: &'a Environment,
    beside_policy: toml::Table,
    /// What the operator grants.
    pub(super) granted: Arc<Granted>,
}

impl<'a> Configuration<'a> {
    /// What was read at the start.
    pub(crate) fn new(
        source: &'a Source,
        means: &'a Means,
        environment: &'a Environment,
        granted: Arc<Granted>,
    ) -> Result<Self, Failure> {
        let file = source.trust.file(environment)?;
        Ok(Self {
            source,
            means,
            environment,
            beside_policy: file.map(ConfigFile::beside_policy).unwrap_or_default(),
            granted,
        })
    }

    /// Reads all of it again. Nothing if nothing has changed.
    ///
    /// # Errors
    ///
    /// When it can't be read, is wrong, or may give more than before: then what was read
    /// before holds.
    pub(super) fn again(&self) -> Result<Option<Granted>, Failure> {
        let trust = Trust::of_config(self.source.trust.config.clone());
        let granted = Granted::read(&trust, &self.means.policies, self.environment)?;
        let file = trust.file(self.environment)?;
        if file.map(ConfigFile::beside_policy).unwrap_or_default() != self.beside_policy {
            return Err(Failure::usage(
                "reload-trust",
                "whom the configuration trusts, or its channels, have changed",
            )
            .hint("start the server again, or change whom it trusts with `toolward trust`"));
        }
        if granted.policy == self.granted.policy {
            return Ok(None);
        }
        granted
            .policy
            .narrows(&self.granted.policy)
            .map_err(|wider| {
                Failure::usage(
                    "reload-wider",
                    format!("the policy may give more than before: {wider}"),
                )
                .hint("start the server again for a policy that gives more")
            })?;
        Ok(Some(granted))
    }
}
