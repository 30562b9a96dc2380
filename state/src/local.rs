//! State in this process and on this machine.

pub(crate) mod approvals;
#[cfg(feature = "sqlite")]
pub(crate) mod buckets;
mod calls;
mod keys;
pub(crate) mod leases;

use std::future::ready;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use self::approvals::{Denials, OpenQuestions, RememberedApprovals};
use self::calls::CallIds;
use self::keys::LocalKeys;
use self::leases::{ServedWatches, places_of_process};
use crate::BoxFuture;
use crate::approvals::{
    ApprovalKey, Approvals, Opening, PersonsAnswer, QuestionId, RememberedApproval,
};
use crate::calls::{Begun, CallEnding, CallId, Calls};
use crate::keys::{Binding, Keys, Unsealed};
use crate::leases::{Leases, PlaceLimits, Places, PlacesOf, ServedBundles, Withdrawal};
use crate::outcome::StateError;

/// The state of the hosts of one process. Its operations never end with [`StateError::Unknown`].
pub struct Local {
    calls: CallIds,
    keys: LocalKeys,
    questions: OpenQuestions,
    remembered: RememberedApprovals,
    served: ServedWatches,
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
            calls: CallIds::default(),
            keys: id_secret.map_or_else(LocalKeys::default, LocalKeys::with_ids),
            questions: OpenQuestions::new(denials),
            remembered: RememberedApprovals::default(),
            served: ServedWatches::default(),
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
        ending: CallEnding,
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

impl Leases for Local {
    /// Hosts of one process have their places in common already.
    fn places(&self, _of: PlacesOf<'_>, limits: PlaceLimits) -> Arc<dyn Places> {
        places_of_process(limits)
    }

    fn watch(&self, bundle: &str) -> Arc<Withdrawal> {
        self.served.watch(bundle)
    }

    fn withdraw(&self, bundles: ServedBundles<'_>, reason: &str) -> bool {
        self.served.withdraw(bundles, reason)
    }

    fn part(&self) {
        self.served.part();
    }
}
