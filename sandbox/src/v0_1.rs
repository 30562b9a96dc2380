//! The world `toolward:driver/driver@0.1.0`: calls its handler, and converts its types.

pub(crate) mod convert;

use wasmtime::Store;

use crate::bindings::DriverPre;
use crate::bindings::exports::toolward::driver::handler::Outcome;
use crate::invocation::CallEnd;
use crate::state::{Execution, State, World, WorldCall};

impl World for DriverPre<State> {
    fn execute<'s>(&'s self, store: &'s mut Store<State>, call: WorldCall<'s>) -> Execution<'s> {
        Box::pin(async move {
            let driver = self.instantiate_async(&mut *store).await?;
            let handler = driver.toolward_driver_handler();
            Ok(match handler.call_execute(store, call.invocation).await? {
                Ok(Outcome::Done(output)) => CallEnd::Done(convert::output(output)),
                Ok(Outcome::NeedsInput(asked)) => CallEnd::Asks(asked),
                Err(error) => CallEnd::Failed(error),
            })
        })
    }
}
