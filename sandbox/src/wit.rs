//! The world `wit`: a function that the component itself defines, with its types. Inputs become
//! values of those types, and results JSON.

use std::sync::Arc;

use toolward_bundle::component::{Function, Type};
use toolward_contract::driver::{BytesForm, ResultForm, WitCall, domain_code};
use toolward_policy::LimitName;
use wasmtime::component::{ComponentExportIndex, Func, InstancePre, Val};
use wasmtime::{Engine, Error, Result, Store};

use self::from_json::{Arguments, Refused};
use self::to_json::JsonText;
use self::typed::Typed;
use crate::exceeded::Exceeded;
use crate::invocation::{CallEnd, DriverEnd, DriverError, DriverOutput, Invocation};
use crate::limiter::ResultSize;
use crate::limits::CallLimits;
use crate::result::WorldErrorCode;
use crate::state::State;

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
    /// How it is called where it takes and returns texts and bytes only.
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

/// The place of a function, `func` or `ns:pkg/iface@1.0.0#func`.
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

/// A call of a function.
pub(crate) struct FunctionCall<'a> {
    exported: &'a Exported,
    input: &'a str,
}

impl<'a> FunctionCall<'a> {
    pub(crate) fn new(exported: &'a Exported, invocation: &'a Invocation) -> Self {
        Self {
            exported,
            input: &invocation.input,
        }
    }

    /// How large its result may be.
    pub(crate) fn result_size(&self, output_bytes: u64) -> ResultSize {
        match self.exported.typed {
            Some(_) => ResultSize::of_text(output_bytes),
            None => ResultSize::of_values(output_bytes, self.exported.weight),
        }
    }

    pub(crate) async fn execute(
        &self,
        store: &mut Store<State>,
        limits: &CallLimits,
    ) -> Result<DriverEnd> {
        match self.exported.typed {
            Some(typed) => self.execute_typed(typed, store, limits).await,
            None => self.execute_values(store, limits).await,
        }
    }

    /// The parameters, counted; the inner error is the function's that can't take the input.
    fn read<T>(
        &self,
        store: &mut Store<State>,
        limits: &CallLimits,
        read: impl FnOnce(Arguments<'_>, &str) -> Result<T, Refused>,
    ) -> Result<Result<T, DriverError>> {
        let before = store.data().limiter.memory_left();
        let mut left = before;
        let arguments = Arguments {
            function: &self.exported.function,
            call: &self.exported.call,
            limits: &limits.json,
            memory: &mut left,
        };
        match read(arguments, self.input) {
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

    /// Calls a function of texts and bytes.
    async fn execute_typed(
        &self,
        typed: Typed,
        store: &mut Store<State>,
        limits: &CallLimits,
    ) -> Result<DriverEnd> {
        let parameter = match self.read(store, limits, |arguments, input| arguments.plain(input))? {
            Ok(parameter) => parameter,
            Err(error) => return Ok(CallEnd::Failed(error)),
        };
        let Exported {
            component, index, ..
        } = self.exported;
        let instance = component.instantiate_async(&mut *store).await?;
        let returned = typed.call(&instance, store, index, &parameter).await?;
        let limiter = &mut store.data_mut().limiter;
        // As it came, in base64, and as JSON.
        limiter.held.keep(returned.bytes().saturating_mul(4));
        limiter.settle()?;
        written(returned, self.exported.call.bytes, limits.output_bytes)
    }

    /// Calls a function of any types.
    async fn execute_values(
        &self,
        store: &mut Store<State>,
        limits: &CallLimits,
    ) -> Result<DriverEnd> {
        let parameters =
            match self.read(store, limits, |arguments, input| arguments.values(input))? {
                Ok(parameters) => parameters,
                Err(error) => return Ok(CallEnd::Failed(error)),
            };
        let Exported {
            component,
            index,
            function,
            call,
            ..
        } = self.exported;
        let instance = component.instantiate_async(&mut *store).await?;
        let func: Func = instance
            .get_func(&mut *store, index)
            .ok_or_else(|| Error::msg("the function is gone"))?;
        let mut results = vec![Val::Bool(false); usize::from(function.result.is_some())];
        func.call_async(&mut *store, &parameters, &mut results)
            .await?;
        drop(parameters);

        let limiter = &mut store.data_mut().limiter;
        limiter
            .held
            .keep(results.iter().map(weight::of_value).sum());
        limiter.settle()?;
        let allowed = limits.output_bytes;
        let mut text = JsonText::new(allowed, call.bytes);
        let value = results.first().zip(function.result.as_deref());
        let Some((value, ty)) = value else {
            return Ok(done("null".to_owned()));
        };
        let written = match (call.result, value, ty) {
            (ResultForm::Unwrap, Val::Result(Err(value)), Type::Result { err, .. }) => {
                let value = value.as_deref().zip(err.as_deref());
                let written = text.payload(value);
                return self.own_error(written.map(|()| text.into_string()), value, allowed);
            }
            (ResultForm::Unwrap, Val::Result(Ok(value)), Type::Result { ok, .. }) => {
                text.payload(value.as_deref().zip(ok.as_deref()))
            }
            _ => text.value(value, ty),
        };
        match written {
            Ok(()) => Ok(done(text.into_string())),
            Err(refused) => unwritten(&refused, allowed),
        }
    }

    /// The function returned its own error.
    fn own_error(
        &self,
        written: Result<String, to_json::Refused>,
        value: Option<(&Val, &Type)>,
        allowed: u64,
    ) -> Result<DriverEnd> {
        let json = match written {
            Ok(json) => json,
            Err(refused) => return unwritten(&refused, allowed),
        };
        let code = match value {
            Some((Val::Variant(case, _) | Val::Enum(case), _)) => domain_code("wit", case),
            _ => WorldErrorCode::WitError.code().to_owned(),
        };
        let message = match value {
            Some((Val::String(text), _)) => text.clone(),
            Some((Val::Variant(_, Some(held)), _)) if let Val::String(text) = &**held => {
                text.clone()
            }
            _ => format!("{} returned an error: {json}", self.exported.call.export),
        };
        let said = matches!(value, Some((Val::String(_), _)));
        let cause = (value.is_some() && !said).then_some(json);
        Ok(failed(&code, message, cause))
    }

    pub(crate) fn engine(&self) -> &Engine {
        self.exported.component.engine()
    }
}

/// The error for what takes more memory than the call has left.
pub(super) fn no_memory(store: &mut Store<State>) -> Error {
    let limiter = &mut store.data_mut().limiter;
    limiter.held.keep(limiter.memory_left().saturating_add(1));
    match limiter.settle() {
        Err(exceeded) => exceeded.into(),
        Ok(()) => Error::msg("it takes too much memory"),
    }
}

/// What a function of texts and bytes returned.
fn written(returned: typed::Returned, bytes: BytesForm, allowed: u64) -> Result<DriverEnd> {
    let text = match returned {
        typed::Returned::Text(text) => Some(text),
        typed::Returned::Bytes(found) => typed::text_of(found, bytes),
        typed::Returned::Failed(message) => {
            return Ok(failed(WorldErrorCode::WitError.code(), message, None));
        }
    };
    let mut json = JsonText::new(allowed, bytes);
    match text.map(|text| json.text(&text)) {
        Some(Ok(())) => Ok(done(json.into_string())),
        Some(Err(refused)) => unwritten(&refused, allowed),
        None => unwritten(&to_json::Refused::NotUtf8, allowed),
    }
}

fn done(structured: String) -> DriverEnd {
    CallEnd::Done(DriverOutput::new(structured))
}

fn failed(code: &str, message: String, cause: Option<String>) -> DriverEnd {
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

/// A result that isn't an output.
fn unwritten(refused: &to_json::Refused, allowed: u64) -> Result<DriverEnd> {
    match refused {
        to_json::Refused::TooLarge => {
            let used = allowed.saturating_add(1);
            Err(Exceeded::new(LimitName::Output, used, allowed).into())
        }
        to_json::Refused::NotUtf8 => {
            let message =
                "the result has bytes that are not UTF-8, and `bytes: utf8` says they are";
            Ok(failed(
                WorldErrorCode::NotUtf8.code(),
                message.to_owned(),
                None,
            ))
        }
        to_json::Refused::Mismatch => Err(Error::msg("the result is of another type")),
    }
}
