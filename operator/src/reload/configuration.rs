//! The configuration of a running server, reloaded on request.

use std::sync::Arc;

use crate::config::ConfigFile;
use crate::error::{Code, Error};
use crate::granted::Granted;
use crate::operator::Operator;

/// The configuration and its sources.
pub(super) struct Configuration {
    operator: Arc<Operator>,
    beside_policy: toml::Table,
    /// What the operator grants.
    pub(super) granted: Arc<Granted>,
}

impl Configuration {
    /// The text read at the start.
    pub(super) fn new(operator: Arc<Operator>, granted: Arc<Granted>) -> Result<Self, Error> {
        let file = operator.source.trust.file(&operator.environment)?;
        let beside_policy = file.map(ConfigFile::beside_policy).unwrap_or_default();
        Ok(Self {
            operator,
            beside_policy,
            granted,
        })
    }

    /// Reads it again. Returns `None` if nothing has changed.
    ///
    /// # Errors
    /// If it can't be read, is invalid, or may grant more than before. The current
    /// configuration then stays.
    pub(super) fn again(&self) -> Result<Option<Granted>, Error> {
        let trust = self.operator.source.trust.unread();
        let granted = Granted::read(
            &trust,
            &self.operator.setup.policies,
            &self.operator.environment,
        )?;
        let file = trust.file(&self.operator.environment)?;
        if file.map(ConfigFile::beside_policy).unwrap_or_default() != self.beside_policy {
            return Err(Error::usage(
                Code::ReloadTrust,
                "whom the configuration trusts, its channels, clients or the ledger have changed",
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
                Error::usage(
                    Code::ReloadWider,
                    format!("the policy may give more than before: {wider}"),
                )
                .hint("start the server again for a policy that gives more")
            })?;
        Ok(Some(granted))
    }
}
