//! Worlds of other hosts ([`ForeignWorld`]): one function, which takes and returns JSON as bytes.

use toolward_contract::driver::{ForeignResult, ForeignWorld};
use toolward_contract::json::{JsonErrorKind, parse_within};
use wasmtime::component::{ComponentExportIndex, InstancePre};
use wasmtime::{Engine, Result, Store};

use crate::invocation::{CallEnd, DriverEnd, DriverError, DriverOutput, Invocation};
use crate::limits::CallLimits;
use crate::state::State;
use crate::wit;

/// A component of such a world.
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
}

/// A call of such a component.
pub(crate) struct ToolCall<'a> {
    tool: &'a Tool,
    input: &'a str,
}

impl<'a> ToolCall<'a> {
    pub(crate) fn new(tool: &'a Tool, invocation: &'a Invocation) -> Self {
        Self {
            tool,
            input: &invocation.input,
        }
    }

    pub(crate) async fn execute(
        &self,
        store: &mut Store<State>,
        limits: &CallLimits,
    ) -> Result<DriverEnd> {
        let Tool {
            world,
            component,
            execute,
        } = self.tool;
        let instance = component.instantiate_async(&mut *store).await?;
        let function = instance
            .get_typed_func::<(&[u8],), (Result<Vec<u8>, String>,)>(&mut *store, execute)?;
        let (returned,) = function
            .call_async(&mut *store, (self.input.as_bytes(),))
            .await?;
        let result = match returned {
            Ok(bytes) => {
                let limiter = &mut store.data_mut().limiter;
                limiter.held.keep(bytes.len() as u64);
                limiter.settle()?;
                let mut left = limiter.memory_left();
                match parse_within(&bytes, &limits.json, &mut left) {
                    Err(error) if error.kind == JsonErrorKind::TooMuchMemory => {
                        return Err(wit::no_memory(store));
                    }
                    read => ForeignResult::Value(read),
                }
            }
            Err(message) => ForeignResult::Failed(message),
        };
        Ok(match (world.output)(result) {
            Ok(output) => CallEnd::Done(DriverOutput::new(output.to_string())),
            Err(error) => CallEnd::Failed(DriverError {
                code: error.code,
                message: error.message,
                retryable: false,
                retry_after_ms: None,
                cause: error.cause,
            }),
        })
    }

    pub(crate) fn engine(&self) -> &Engine {
        self.tool.component.engine()
    }
}
