//! Runs the handler of a component of this version.

use wasmtime::{Engine, Result, Store};

use super::bindings::exports::toolward::driver::handler::Outcome;
use super::{DriverPre, convert, types};
use crate::invocation::{DriverError, Invocation, Returned};
use crate::sandbox::State;

/// A call in this version's types.
pub(crate) struct HandlerCall<'a> {
    driver: &'a DriverPre<State>,
    invocation: types::Invocation,
}

impl<'a> HandlerCall<'a> {
    pub(crate) fn new(driver: &'a DriverPre<State>, call: Invocation) -> Self {
        Self {
            driver,
            invocation: types::Invocation {
                idempotency_key: call.idempotency_key,
                id: call.id,
                tool: call.tool,
                tool_version: call.tool_version,
                input: call.input,
                context: call.context,
                attempt: 0,
                remaining_ms: 0,
                resume: call.resume.map(convert::resumption),
            },
        }
    }

    pub(crate) fn set_attempt(&mut self, number: u32, remaining_ms: u64) {
        self.invocation.attempt = number;
        self.invocation.remaining_ms = remaining_ms;
    }

    pub(crate) async fn execute(
        &self,
        store: &mut Store<State>,
    ) -> Result<Result<Returned, DriverError>> {
        let driver = self.driver.instantiate_async(&mut *store).await?;
        let handler = driver.toolward_driver_handler();
        let returned = handler.call_execute(store, &self.invocation).await?;
        Ok(match returned {
            Ok(Outcome::Done(output)) => Ok(Returned::Done(convert::output(output))),
            Ok(Outcome::NeedsInput(asked)) => {
                Ok(Returned::NeedsInput(convert::input_request(asked)))
            }
            Err(error) => Err(convert::error(error)),
        })
    }

    pub(crate) fn engine(&self) -> &Engine {
        self.driver.engine()
    }

    pub(crate) fn into_input(self) -> (String, String) {
        (self.invocation.input, self.invocation.context)
    }
}
