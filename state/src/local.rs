//! State in this process and on this machine.

pub(crate) mod approvals;
#[cfg(feature = "sqlite")]
pub(crate) mod buckets;
mod calls;
mod keys;

use std::future::ready;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use self::approvals::{Denials, Questions, RememberedApprovals};
use self::calls::CallMemory;
use self::keys::LocalKeys;
use crate::BoxFuture;
use crate::approvals::{
    ApprovalKey, Approvals, Opening, PersonsAnswer, QuestionId, RememberedApproval,
};
use crate::calls::{Begun, CallId, Calls, Ending};
use crate::keys::{Binding, Keys, Unsealed};
use crate::outcome::StateError;

/// The state of the hosts of one process. Its operations never end with [`StateError::Unknown`].
pub struct Local {
    calls: CallMemory,
    keys: LocalKeys,
    questions: Questions,
    remembered: RememberedApprovals,
}

impl Default for Local {
    fn default() -> Self {
        Self::new(None, None)
    }
}

impl Local {
    /// With the installation's secret for [ids](Keys::id_hash), which all processes of an installation should share; by
    /// default it is random. Denials are remembered as long as the process runs, and in `denials` beyond it.
    #[must_use]
    pub fn new(id_secret: Option<[u8; 32]>, denials: Option<Denials>) -> Self {
        Self {
            calls: CallMemory::default(),
            keys: id_secret.map_or_else(LocalKeys::default, LocalKeys::with_ids),
            questions: Questions::new(denials),
            remembered: RememberedApprovals::default(),
        }
    }
}

impl Calls for Local {
    fn begin(&self, call: CallId, deadline: Instant) -> BoxFuture<'_, Result<Begun, StateError>> {
        Box::pin(async move { Ok(self.calls.begin(call, deadline).await) })
    }

    fn end(
        &self,
        call: CallId,
        ending: Ending,
        _deadline: Instant,
    ) -> BoxFuture<'static, Result<(), StateError>> {
        self.calls.end(&call, ending);
        Box::pin(ready(Ok(())))
    }
}

impl Keys for Local {
    fn seal<'a>(
        &'a self,
        binding: Binding<'a>,
        text: Vec<u8>,
        until: Instant,
        _deadline: Instant,
    ) -> BoxFuture<'a, Result<String, StateError>> {
        Box::pin(ready(self.keys.seal(binding, text, until)))
    }

    fn unseal<'a>(
        &'a self,
        binding: Binding<'a>,
        token: &'a str,
        _deadline: Instant,
    ) -> BoxFuture<'a, Result<Unsealed, StateError>> {
        Box::pin(ready(Ok(self.keys.open(binding, token))))
    }

    fn id_hash(
        &self,
        message: Vec<u8>,
        _deadline: Instant,
    ) -> BoxFuture<'_, Result<[u8; 32], StateError>> {
        Box::pin(ready(Ok(self.keys.id_hash(&message))))
    }
}

impl Approvals for Local {
    fn open(
        &self,
        question: QuestionId,
        also: ApprovalKey,
        until: Instant,
        _deadline: Instant,
    ) -> BoxFuture<'_, Result<Opening, StateError>> {
        Box::pin(ready(Ok(self.questions.open(&question, &also, until))))
    }

    fn answer(
        &self,
        question: QuestionId,
        answer: PersonsAnswer,
        _deadline: Instant,
    ) -> BoxFuture<'static, Result<bool, StateError>> {
        Box::pin(ready(Ok(self.questions.answer(&question, answer))))
    }

    fn remember(
        &self,
        principal: Arc<str>,
        tool: ApprovalKey,
        _deadline: Instant,
    ) -> BoxFuture<'_, Result<Option<SystemTime>, StateError>> {
        Box::pin(ready(Ok(self.remembered.add(&principal, tool))))
    }

    fn remembered<'a>(
        &'a self,
        principal: &'a str,
        tool: ApprovalKey,
        _deadline: Instant,
    ) -> BoxFuture<'a, Result<Option<RememberedApproval>, StateError>> {
        Box::pin(ready(Ok(self.remembered.find(principal, &tool))))
    }
}
