//! Converts the ABI's values of one call to the types of a handler, and converts the handler's
//! result back.

use serde::de::DeserializeOwned;

use crate::bindings::toolward::driver::types as wit;
#[cfg(feature = "std")]
use crate::panics;
use crate::{Call, Error, IntoOutcome};

/// Runs `handler` on one call. The code that [`driver!`](crate::driver) generates calls this.
///
/// # Errors
/// The errors of the handler; `input_invalid` if the input does not match its type; `internal` if
/// the result can't be converted.
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
