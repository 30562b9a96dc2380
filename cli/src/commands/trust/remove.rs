//! `trust remove`: a publisher that is trusted no more. What it revoked counts on.

use serde_json::json;

use super::{Subject, record, unknown};
use crate::failure::Failure;
use crate::output::Output;

impl Subject<'_> {
    pub(super) fn remove(
        &self,
        name: &str,
        forget: bool,
        output: &mut Output,
    ) -> Result<(), Failure> {
        let publishers = self.common.trust.publishers(self.environment)?;
        if !forget && !publishers.has(name) {
            return Err(unknown(name));
        }
        let transaction = publishers.exclusive()?;
        let gone = transaction.remove(name)?;
        let forgotten = forget && transaction.forget(name)?;
        drop(transaction);
        if gone.is_none() && !forgotten {
            return Err(unknown(name));
        }
        let mut revoked = 0;
        if let Some(gone) = gone {
            self.removed(name, "trust-remove", "the operator removed it", output);
            revoked = gone.revoked;
            for lost in gone.lost.iter().filter(|_| !forget) {
                output.warning(format!(
                    "what {name} revoked can't be read and is forgotten: {}",
                    lost.message
                ));
            }
        }
        if forgotten {
            revoked = 0;
            self.removed(name, "trust-forget", "with what it revoked", output);
        }
        if output.json() {
            return output.value(&json!({ "ok": true, "removed": name, "revoked": revoked }));
        }
        output.line(format!("{name} is trusted no more"))?;
        if revoked > 0 {
            output.note(format!(
                "{revoked} keys and bundles that it revoked stay so; \
                 to forget them: toolward trust remove {name} --forget-revocations"
            ));
        }
        Ok(())
    }

    /// Records it. That can fail, and the publisher is removed all the same.
    fn removed(&self, name: &str, action: &str, reason: &str, output: &Output) {
        let now = std::time::SystemTime::now();
        let store = self.common.store.open(self.environment);
        if let Err(failure) =
            store.and_then(|store| record(&store, action, name, None, reason, now))
        {
            output.warning(format!("this is not recorded: {}", failure.message));
        }
    }
}
