//! `trust remove`: a publisher is trusted no longer. What it revoked stays revoked.

use serde_json::json;

use super::Subject;
use crate::failure::Failure;
use crate::output::Output;

impl Subject<'_> {
    pub(super) fn remove(
        &self,
        name: &str,
        forget: bool,
        output: &mut Output,
    ) -> Result<(), Failure> {
        let revoked = self.changes(output).remove(name, forget)?.revoked;
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
}
