//! The configuration of a running server, reloaded on request.

use std::sync::Arc;

use crate::config::{ConfigFile, Granted};
use crate::error::{Code, Error};
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
        )
        .map_err(may_be_replaced)?;
        let file = trust.file(&self.operator.environment);
        let file = file.map_err(may_be_replaced)?;
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

/// A confined server reaches the very file that was there when it started, and many editors replace a file.
fn may_be_replaced(mut failure: Error) -> Error {
    if failure.code == Code::FileUnreadable.code() {
        failure.hints.clear();
        return failure
            .hint("write into the file instead of replacing it, or start the server again");
    }
    failure
}
