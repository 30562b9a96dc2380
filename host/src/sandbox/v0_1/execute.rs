//! Runs the handler of a component of this version.

use std::mem::take;

use wasmtime::{Engine, Result, Store};

use super::bindings::exports::toolward::driver::handler::Outcome;
use super::{DriverPre, convert, types};
use crate::invocation::{CallEnd, DriverEnd, Invocation};
use crate::sandbox::State;

/// A call in this version's types.
pub(crate) struct HandlerCall<'a> {
    driver: &'a DriverPre<State>,
    invocation: types::Invocation,
}

impl<'a> HandlerCall<'a> {
    /// Takes the texts of `call` until [`HandlerCall::give_back`].
    pub(crate) fn new(driver: &'a DriverPre<State>, call: &mut Invocation) -> Self {
        Self {
            driver,
            invocation: types::Invocation {
                idempotency_key: take(&mut call.idempotency_key),
                id: take(&mut call.id),
                tool: take(&mut call.tool),
                tool_version: take(&mut call.tool_version),
                input: take(&mut call.input),
                context: take(&mut call.context),
                attempt: call.attempt,
                remaining_ms: call.remaining_ms,
                resume: call.resume.as_ref().map(convert::resumption),
            },
        }
    }

    pub(crate) async fn execute(&self, store: &mut Store<State>) -> Result<DriverEnd> {
        let driver = self.driver.instantiate_async(&mut *store).await?;
        let handler = driver.toolward_driver_handler();
        let returned = handler.call_execute(store, &self.invocation).await?;
        Ok(match returned {
            Ok(Outcome::Done(output)) => CallEnd::Done(convert::output(output)),
            Ok(Outcome::NeedsInput(asked)) => CallEnd::Asks(convert::input_request(asked)),
            Err(error) => CallEnd::Failed(convert::error(error)),
        })
    }

    pub(crate) fn engine(&self) -> &Engine {
        self.driver.engine()
    }

    pub(crate) fn give_back(self, call: &mut Invocation) {
        let own = self.invocation;
        call.idempotency_key = own.idempotency_key;
        call.id = own.id;
        call.tool = own.tool;
        call.tool_version = own.tool_version;
        call.input = own.input;
        call.context = own.context;
    }
}
