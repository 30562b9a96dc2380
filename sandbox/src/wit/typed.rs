//! Calls functions that take and return only texts and bytes, without intermediate values. wasmtime
//! copies such a result directly, while a list of bytes as values takes 48 times as much memory.

use toolward_bundle::component::{Function, Type};
use toolward_contract::driver::{BytesForm, ResultForm, WitCall};
use wasmtime::component::{
    ComponentExportIndex, ComponentNamedList, ComponentType, Instance, Lift, Lower,
};
use wasmtime::{Result, Store};

use super::from_json::Plain;
use crate::state::State;

/// A function that is called without intermediate values. It has at most one parameter, and its
/// parameter and result are texts or bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Typed {
    result: Kind,
    /// Whether the result may be an error, which is a text.
    fails: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Bytes,
}

impl Kind {
    fn of(ty: &Type) -> Option<Self> {
        match ty {
            Type::String => Some(Self::Text),
            ty if ty.is_bytes() => Some(Self::Bytes),
            _ => None,
        }
    }
}

/// The result of such a function: its output, or the text of its error.
pub(super) enum Returned {
    Text(String),
    Bytes(Vec<u8>),
    Failed(String),
}

impl Returned {
    /// Its length.
    pub(super) fn bytes(&self) -> u64 {
        let bytes = match self {
            Self::Text(text) | Self::Failed(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
        };
        bytes as u64
    }
}

impl Typed {
    /// Creates the typed call. `None` if the function has other types, or if bytes must be written
    /// as an array.
    pub(super) fn of(function: &Function, call: &WitCall) -> Option<Self> {
        let parameter = match &function.parameters[..] {
            [] => None,
            [(_, only)] => Some(Kind::of(only)?),
            _ => return None,
        };
        let (result, fails) = match function.result.as_deref()? {
            Type::Result {
                ok: Some(ok),
                err: Some(err),
            } if call.result == ResultForm::Unwrap && **err == Type::String => {
                (Kind::of(ok)?, true)
            }
            other => (Kind::of(other)?, false),
        };
        let bytes = result == Kind::Bytes || parameter == Some(Kind::Bytes);
        let as_values = bytes && call.bytes == BytesForm::Array;
        (!as_values).then_some(Self { result, fails })
    }

    /// Calls the function.
    pub(super) async fn call(
        self,
        instance: &Instance,
        store: &mut Store<State>,
        index: &ComponentExportIndex,
        parameter: &Plain,
    ) -> Result<Returned> {
        match parameter {
            Plain::Nothing => self.with(instance, store, index, ()).await,
            Plain::Text(text) => {
                let parameters = (text.as_str(),);
                self.with(instance, store, index, parameters).await
            }
            Plain::Bytes(bytes) => {
                let parameters = (bytes.as_slice(),);
                self.with(instance, store, index, parameters).await
            }
        }
    }

    async fn with<P>(
        self,
        instance: &Instance,
        store: &mut Store<State>,
        index: &ComponentExportIndex,
        parameters: P,
    ) -> Result<Returned>
    where
        P: ComponentNamedList + Lower + Send + Sync,
    {
        match (self.result, self.fails) {
            (Kind::Text, false) => {
                let text = returned(instance, store, index, parameters).await?;
                Ok(Returned::Text(text))
            }
            (Kind::Bytes, false) => {
                let bytes = returned(instance, store, index, parameters).await?;
                Ok(Returned::Bytes(bytes))
            }
            (Kind::Text, true) => {
                let text: Result<_, _> = returned(instance, store, index, parameters).await?;
                Ok(text.map_or_else(Returned::Failed, Returned::Text))
            }
            (Kind::Bytes, true) => {
                let bytes: Result<_, _> = returned(instance, store, index, parameters).await?;
                Ok(bytes.map_or_else(Returned::Failed, Returned::Bytes))
            }
        }
    }
}

async fn returned<P, R>(
    instance: &Instance,
    store: &mut Store<State>,
    index: &ComponentExportIndex,
    parameters: P,
) -> Result<R>
where
    P: ComponentNamedList + Lower + Send + Sync,
    R: ComponentType + Lift + Send + Sync + 'static,
{
    let function = instance.get_typed_func::<P, (R,)>(&mut *store, index)?;
    let (result,) = function.call_async(&mut *store, parameters).await?;
    Ok(result)
}
