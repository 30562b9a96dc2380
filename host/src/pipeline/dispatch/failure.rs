//! Why a driver did not serve a call, and whether another one may.

use crate::api::result::{CallError, ErrorCode};
use crate::catalogue::Route;
use crate::pipeline::validate::RoutedCall;

/// The error of a driver's last attempt, or of what keeps it from one.
pub(crate) struct DriverFailure {
    pub(crate) error: CallError,
    /// Whether anything of the call may have left the host, or the driver's code ran.
    pub(crate) dispatched: bool,
    /// Whether another driver may do better. Else the call itself is at fault, its limits
    /// are reached, or policy ended it.
    pub(crate) is_drivers: bool,
}

/// Codes, without what stands behind the colon, that say of the driver or of the service
/// behind it that it failed. What else a driver answers, `not_found` for example, is its
/// answer.
const OF_DRIVERS: &[&str] = &[
    "upstream_error",
    "rate_limited",
    "auth_required",
    "cap_denied",
    "dependency_unavailable",
];

/// Limits of one driver, which may be below those of the whole call.
const OF_ATTEMPTS: &[ErrorCode] = &[
    ErrorCode::MEMORY_EXCEEDED,
    ErrorCode::RESULT_TOO_LARGE,
    ErrorCode::FUEL_EXHAUSTED,
    ErrorCode::TIMEOUT,
];

impl DriverFailure {
    /// The end of an attempt.
    pub(crate) fn of_driver(error: CallError, dispatched: bool) -> Self {
        let code = error.code.as_str();
        let kind = code.split_once(':').map_or(code, |(kind, _)| kind);
        let is_drivers =
            error.retryable || OF_DRIVERS.contains(&kind) || OF_ATTEMPTS.contains(&error.code);
        Self {
            error,
            dispatched,
            is_drivers,
        }
    }

    /// The driver can't be used at all.
    pub(crate) fn before_attempts(error: CallError) -> Self {
        Self {
            error,
            dispatched: false,
            is_drivers: true,
        }
    }
}

/// What ends the call, whichever driver serves it.
impl From<CallError> for DriverFailure {
    fn from(error: CallError) -> Self {
        Self {
            error,
            dispatched: true,
            is_drivers: false,
        }
    }
}

/// The drivers that failed after something of the call may have left the host. What they may have done stays
/// uncertain, even if a later driver succeeds.
#[derive(Default)]
pub(super) struct Started {
    any: bool,
    changes: bool,
    /// Whether what one of them may have done is not done again.
    once: bool,
}

impl Started {
    fn add(&mut self, route: &Route) {
        self.any = true;
        self.changes |= route.changes;
        self.once |= !route.repeats;
    }

    /// Whether a driver may serve the call after them. A change is not made twice, even if the contract is
    /// idempotent: two services know nothing of each other. Only the operator can allow it.
    fn admits(&self, next: &Route) -> bool {
        let repeats = next.repeats && !self.once;
        !self.any || repeats || !(self.changes || next.changes)
    }

    /// Turns to the next driver, if one may serve the call after this failure. `spent` says that the call's fuel is
    /// consumed.
    pub(super) fn falls(
        &mut self,
        call: &mut RoutedCall,
        failure: &DriverFailure,
        spent: bool,
    ) -> bool {
        if failure.dispatched {
            self.add(&call.route);
        }
        let next = call.fall(|next| {
            let too_late = spent && next.driver.features().uses_fuel;
            self.admits(next) && !too_late && next.driver.withdrawal.withdrawn().is_none()
        });
        next.is_some()
    }
}
