//! Approval: a person's yes to one call. Nobody can be asked yet, so what
//! needs a yes is denied.

use crate::grant::Granted;
use crate::policy::Grant;
use crate::result::{CallError, ErrorClass, ErrorCode};
use crate::validate::Call;

/// A call that needs no approval, or has it.
pub(crate) struct Approved<T> {
    call: T,
    grant: Grant,
}

impl<T> Approved<T> {
    pub(crate) fn into_parts(self) -> (T, Grant) {
        (self.call, self.grant)
    }
}

/// Obtains the approval that the decision asks for.
pub(crate) fn obtain(granted: Granted<Call>) -> Result<Approved<Call>, CallError> {
    let (call, grant, ask) = granted.into_parts();
    match ask {
        None => Ok(Approved { call, grant }),
        Some(reason) => Err(CallError::new(
            ErrorCode::APPROVAL_DENIED,
            ErrorClass::ApprovalRejected,
            format!(
                "`{}` needs approval ({reason}), and nobody can be asked",
                call.tool.major_id
            ),
        )
        .with_hint("this version of the host can't ask; only tools that need no approval run")),
    }
}
