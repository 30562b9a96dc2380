//! Carries one call from the ABI's values to a typed handler and back.

use serde::de::DeserializeOwned;

use crate::bindings::toolward::driver::types as wit;
#[cfg(feature = "std")]
use crate::panics;
use crate::{Call, Error, IntoOutcome};

/// Runs `handler` on one call. Called by what [`driver!`](crate::driver) writes.
///
/// # Errors
/// Those of the handler; `input_invalid` where its input type does not fit.
pub fn run<I, O, E>(
    call: wit::Invocation,
    handler: impl FnOnce(Call<I>) -> Result<O, E>,
) -> Result<wit::Outcome, wit::ToolError>
where
    I: DeserializeOwned,
    O: IntoOutcome,
    E: Into<Error>,
{
    #[cfg(feature = "std")]
    panics::install();
    Call::read(call)
        .and_then(|call| handler(call).map_err(Into::into))
        .and_then(IntoOutcome::into_outcome)
        .map_err(Into::into)
}
