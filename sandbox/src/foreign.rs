//! Worlds of other hosts ([`ForeignWorld`]): they have one function, which takes and returns JSON
//! as bytes.

use toolward_contract::driver::{ForeignResult, ForeignWorld};
use toolward_contract::json::{JsonErrorKind, parse_within};
use wasmtime::component::{ComponentExportIndex, InstancePre};
use wasmtime::{Result, Store};

use crate::invocation::{CallEnd, DriverEnd, DriverOutput};
use crate::state::{Execution, State, World, WorldCall};
use crate::wit;

/// A component of a foreign world.
pub(crate) struct Tool {
    world: &'static ForeignWorld,
    component: InstancePre<State>,
    execute: ComponentExportIndex,
}

impl Tool {
    /// `None` if the component does not export the function.
    pub(crate) fn new(component: InstancePre<State>, world: &'static ForeignWorld) -> Option<Self> {
        let execute = wit::export(&component, world.export())?;
        Some(Self {
            world,
            component,
            execute,
        })
    }

    async fn run(&self, store: &mut Store<State>, call: WorldCall<'_>) -> Result<DriverEnd> {
        let instance = self.component.instantiate_async(&mut *store).await?;
        let function = instance
            .get_typed_func::<(&[u8],), (Result<Vec<u8>, String>,)>(&mut *store, &self.execute)?;
        let (returned,) = function
            .call_async(&mut *store, (call.invocation.input.as_bytes(),))
            .await?;
        let result = match returned {
            Ok(bytes) => {
                let limiter = &mut store.data_mut().limiter;
                limiter.held.keep(bytes.len() as u64);
                limiter.settle()?;
                let mut left = limiter.memory_left();
                match parse_within(&bytes, &call.limits.json, &mut left) {
                    Err(error) if error.kind == JsonErrorKind::TooMuchMemory => {
                        return Err(wit::no_memory(store));
                    }
                    read => ForeignResult::Value(read),
                }
            }
            Err(message) => ForeignResult::Failed(message),
        };
        Ok(match (self.world.output)(result) {
            Ok(output) => CallEnd::Done(DriverOutput::new(output.to_string())),
            Err(error) => wit::failed(&error.code, error.message, error.cause),
        })
    }
}

impl World for Tool {
    fn execute<'s>(&'s self, store: &'s mut Store<State>, call: WorldCall<'s>) -> Execution<'s> {
        Box::pin(self.run(store, call))
    }
}
