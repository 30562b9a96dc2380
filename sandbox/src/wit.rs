//! The world `wit`: a function with types that the component itself defines. Inputs become values
//! of these types, and results become JSON.

use std::sync::Arc;

use toolward_bundle::component::{Function, Type};
use toolward_contract::driver::{ResultForm, WitCall, domain_code};
use toolward_policy::LimitName;
use wasmtime::component::{ComponentExportIndex, InstancePre, Val};
use wasmtime::{Error, Result, Store};

use self::from_json::{Arguments, Refused};
use self::typed::{Returned, Typed};
use crate::exceeded::Exceeded;
use crate::invocation::{CallEnd, DriverEnd, DriverError, DriverOutput};
use crate::limiter::ResultSize;
use crate::limits::CallLimits;
use crate::result::WorldErrorCode;
use crate::state::{Execution, State, World, WorldCall};

mod from_json;
mod to_json;
mod typed;
mod weight;

#[cfg(test)]
mod tests;

/// A function that a component exports.
pub(crate) struct Exported {
    component: InstancePre<State>,
    index: ComponentExportIndex,
    function: Arc<Function>,
    call: WitCall,
    /// The typed call, if the function takes and returns only texts and bytes.
    typed: Option<Typed>,
    /// Bytes of the host's memory for each unit that wasmtime charges for a result.
    weight: u64,
}

impl Exported {
    /// The function that `call` names; `None` if the component has none by that name.
    pub(crate) fn new(
        component: InstancePre<State>,
        function: Arc<Function>,
        call: WitCall,
    ) -> Option<Self> {
        let index = export(&component, &call.export)?;
        let weight = function.result.as_ref().map_or(1, weight::of_type);
        Some(Self {
            typed: Typed::of(&function, &call),
            component,
            index,
            function,
            call,
            weight,
        })
    }
}

/// The index of a function, `func` or `ns:pkg/iface@1.0.0#func`.
pub(super) fn export(component: &InstancePre<State>, name: &str) -> Option<ComponentExportIndex> {
    let component = component.component();
    match name.split_once('#') {
        None => component.get_export_index(None, name),
        Some((instance, function)) => {
            let instance = component.get_export_index(None, instance)?;
            component.get_export_index(Some(&instance), function)
        }
    }
}

impl World for Exported {
    fn execute<'s>(&'s self, store: &'s mut Store<State>, call: WorldCall<'s>) -> Execution<'s> {
        match self.typed {
            Some(typed) => Box::pin(self.execute_typed(typed, store, call)),
            None => Box::pin(self.execute_values(store, call)),
        }
    }

    fn result_size(&self, limits: &CallLimits) -> ResultSize {
        match self.typed {
            Some(_) => ResultSize::of_text(limits.output_bytes),
            None => ResultSize::of_values(limits.output_bytes, self.weight),
        }
    }
}

impl Exported {
    /// Reads the parameters, and counts their memory. The inner error means that the function can't
    /// take the input.
    fn read<T>(
        &self,
        store: &mut Store<State>,
        call: WorldCall<'_>,
        read: impl FnOnce(Arguments<'_>, &str) -> Result<T, Refused>,
    ) -> Result<Result<T, DriverError>> {
        let before = store.data().limiter.memory_left();
        let mut left = before;
        let arguments = Arguments {
            function: &self.function,
            call: &self.call,
            limits: &call.limits.json,
            memory: &mut left,
        };
        match read(arguments, &call.invocation.input) {
            Ok(parameters) => {
                let held = before.saturating_sub(left);
                store.data_mut().limiter.held.keep(held);
                Ok(Ok(parameters))
            }
            Err(Refused::Memory) => Err(no_memory(store)),
            Err(Refused::Input(message)) => {
                Ok(Err(failure(WorldErrorCode::Input.code(), message, None)))
            }
        }
    }

    /// Calls a function that takes and returns only texts and bytes.
    async fn execute_typed(
        &self,
        typed: Typed,
        store: &mut Store<State>,
        call: WorldCall<'_>,
    ) -> Result<DriverEnd> {
        let parameter = match self.read(store, call, |arguments, input| arguments.plain(input))? {
            Ok(parameter) => parameter,
            Err(error) => return Ok(CallEnd::Failed(error)),
        };
        let instance = self.component.instantiate_async(&mut *store).await?;
        let returned = typed.call(&instance, store, &self.index, &parameter);
        let returned = returned.await?;
        let limiter = &mut store.data_mut().limiter;
        // Counts the returned value, its base64 and its JSON.
        limiter.held.keep(returned.bytes().saturating_mul(4));
        limiter.settle()?;
        let text = match returned {
            Returned::Text(text) => Ok(text),
            Returned::Bytes(bytes) => to_json::text_of(bytes, self.call.bytes),
            Returned::Failed(message) => {
                return Ok(failed(WorldErrorCode::WitError.code(), message, None));
            }
        };
        let allowed = call.limits.output_bytes;
        ended(text.and_then(|text| to_json::text(&text, allowed)), allowed)
    }

    /// Calls a function with any types.
    async fn execute_values(
        &self,
        store: &mut Store<State>,
        call: WorldCall<'_>,
    ) -> Result<DriverEnd> {
        let parameters = match self.read(store, call, |arguments, input| arguments.values(input))? {
            Ok(parameters) => parameters,
            Err(error) => return Ok(CallEnd::Failed(error)),
        };
        let instance = self.component.instantiate_async(&mut *store).await?;
        let func = instance.get_func(&mut *store, self.index);
        let func = func.ok_or_else(|| Error::msg("the function is gone"))?;
        let result_type = self.function.result.as_deref();
        let mut results = vec![Val::Bool(false); usize::from(result_type.is_some())];
        func.call_async(&mut *store, &parameters, &mut results)
            .await?;
        drop(parameters);

        let limiter = &mut store.data_mut().limiter;
        let held = results.iter().map(weight::of_value).sum();
        limiter.held.keep(held);
        limiter.settle()?;
        let value = results.first().zip(result_type);
        let (value, is_error) = match (self.call.result, value) {
            (ResultForm::Unwrap, Some((Val::Result(Ok(value)), Type::Result { ok, .. }))) => {
                (value.as_deref().zip(ok.as_deref()), false)
            }
            (ResultForm::Unwrap, Some((Val::Result(Err(value)), Type::Result { err, .. }))) => {
                (value.as_deref().zip(err.as_deref()), true)
            }
            (_, value) => (value, false),
        };
        let allowed = call.limits.output_bytes;
        match to_json::written(value, self.call.bytes, allowed) {
            Ok(json) if is_error => Ok(self.own_error(json, value)),
            json => ended(json, allowed),
        }
    }

    /// Converts an error that the function returned.
    fn own_error(&self, json: String, value: Option<(&Val, &Type)>) -> DriverEnd {
        let code = match value {
            Some((Val::Variant(case, _) | Val::Enum(case), _)) => domain_code("wit", case),
            _ => WorldErrorCode::WitError.code().to_owned(),
        };
        let message = match value {
            Some((Val::String(text), _)) => text.clone(),
            Some((Val::Variant(_, Some(held)), _)) if let Val::String(text) = &**held => {
                text.clone()
            }
            _ => format!("{} returned an error: {json}", self.call.export),
        };
        let said = matches!(value, Some((Val::String(_), _)));
        let cause = (value.is_some() && !said).then_some(json);
        failed(&code, message, cause)
    }
}

/// The error if a value takes more memory than the call has left.
pub(super) fn no_memory(store: &mut Store<State>) -> Error {
    let limiter = &mut store.data_mut().limiter;
    limiter.held.keep(limiter.memory_left().saturating_add(1));
    match limiter.settle() {
        Err(exceeded) => exceeded.into(),
        Ok(()) => Error::msg("it takes too much memory"),
    }
}

pub(super) fn failed(code: &str, message: String, cause: Option<String>) -> DriverEnd {
    CallEnd::Failed(failure(code, message, cause))
}

fn failure(code: &str, message: String, cause: Option<String>) -> DriverError {
    DriverError {
        code: code.to_owned(),
        message,
        retryable: false,
        retry_after_ms: None,
        cause,
    }
}

/// The end of a call, from its result as JSON or the reason why the result could not be written.
fn ended(json: Result<String, to_json::Refused>, allowed: u64) -> Result<DriverEnd> {
    match json {
        Ok(json) => Ok(CallEnd::Done(DriverOutput::new(json))),
        Err(to_json::Refused::TooLarge) => Err(Exceeded::over(LimitName::Output, allowed).into()),
        Err(to_json::Refused::NotUtf8) => {
            let message =
                "the result has bytes that are not UTF-8, and `bytes: utf8` says they are";
            let code = WorldErrorCode::NotUtf8.code();
            Ok(failed(code, message.to_owned(), None))
        }
        Err(to_json::Refused::Mismatch) => Err(Error::msg("the result is of another type")),
    }
}
