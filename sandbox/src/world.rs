//! The worlds that this host serves: one module each, which alone knows that world's types. A
//! driver names the one in which its component is called ([`Target`]).

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;

use toolward_bundle::component::Function;
use toolward_contract::driver::World as Target;
use wasmtime::component::{InstancePre, Linker};
use wasmtime::{Engine, Result, Store};

use crate::invocation::{DriverEnd, Invocation};
use crate::limiter::ResultSize;
use crate::limits::CallLimits;
use crate::state::{InsecureSeed, State};
use crate::{files, foreign, http, keyvalue, sockets, v0_1, wit};

/// A component, bound to a world.
pub(crate) enum World {
    V0_1(v0_1::DriverPre<State>),
    Wit(wit::Exported),
    Foreign(foreign::Tool),
}

/// Why a component can't be served: it does not export what is called.
#[derive(Debug)]
pub(crate) struct NoExport {
    /// What it would have to export.
    pub(crate) export: String,
    /// More about it, if there is more to say.
    pub(crate) source: Option<wasmtime::Error>,
}

/// A linker with WASI 0.2 and the imports of all versions. Built once per engine.
pub(crate) fn linker(engine: &Engine) -> Result<Linker<State>> {
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    files::add_to_linker(&mut linker, State::files)?;
    keyvalue::add_to_linker(&mut linker, State::buckets)?;
    sockets::add_to_linker(&mut linker)?;
    add_insecure_seed(&mut linker)?;
    http::view::add_to_linker(&mut linker, State::http)?;
    v0_1::add_to_linker(&mut linker)?;
    Ok(linker)
}

impl World {
    /// Binds a component to a world.
    pub(crate) fn new(
        component: InstancePre<State>,
        target: &Target,
        functions: &BTreeMap<String, Arc<Function>>,
    ) -> Result<Self, NoExport> {
        let missing = |export: &str| NoExport {
            export: export.to_owned(),
            source: None,
        };
        match target {
            Target::Wit(call) => {
                let function = functions.get(&call.export).cloned();
                let exported = function
                    .and_then(|function| wit::Exported::new(component, function, call.clone()));
                exported.map(Self::Wit).ok_or_else(|| missing(&call.export))
            }
            Target::Foreign(world) => foreign::Tool::new(component, world)
                .map(Self::Foreign)
                .ok_or_else(|| missing(world.export())),
            _ => match v0_1::DriverPre::new(component) {
                Ok(driver) => Ok(Self::V0_1(driver)),
                Err(source) => Err(NoExport {
                    export: v0_1::HANDLER.to_owned(),
                    source: Some(source),
                }),
            },
        }
    }

    /// A call of the component, which may take the texts of `invocation` until [`WorldCall::give_back`].
    pub(crate) fn call<'a>(&'a self, invocation: &'a mut Invocation) -> WorldCall<'a> {
        match self {
            Self::V0_1(driver) => {
                WorldCall::V0_1(v0_1::HandlerCall::new(driver, invocation), invocation)
            }
            Self::Wit(exported) => WorldCall::Wit(wit::FunctionCall::new(exported, invocation)),
            Self::Foreign(tool) => WorldCall::Foreign(foreign::ToolCall::new(tool, invocation)),
        }
    }
}

/// A handler that runs. The outer error is what ended the guest.
pub(crate) type Execution<'a> = Pin<Box<dyn Future<Output = Result<DriverEnd>> + Send + 'a>>;

/// A call of a component in the types of its world.
pub(crate) enum WorldCall<'a> {
    V0_1(v0_1::HandlerCall<'a>, &'a mut Invocation),
    Wit(wit::FunctionCall<'a>),
    Foreign(foreign::ToolCall<'a>),
}

impl WorldCall<'_> {
    /// Instantiates the component and runs its handler. Start functions are guest
    /// code: the store must be armed.
    ///
    /// Boxed, since each version has a different future, and to keep the futures of
    /// wasmtime out of the types of everything above.
    pub(crate) fn execute<'s>(
        &'s self,
        store: &'s mut Store<State>,
        limits: &'s CallLimits,
    ) -> Execution<'s> {
        match self {
            Self::V0_1(call, _) => Box::pin(call.execute(store)),
            Self::Wit(call) => Box::pin(call.execute(store, limits)),
            Self::Foreign(call) => Box::pin(call.execute(store, limits)),
        }
    }

    /// How large its result may be.
    pub(crate) fn result_size(&self, limits: &CallLimits) -> ResultSize {
        match self {
            Self::Wit(call) => call.result_size(limits.output_bytes),
            _ => ResultSize::of_text(limits.output_bytes),
        }
    }

    pub(crate) fn engine(&self) -> &Engine {
        match self {
            Self::V0_1(call, _) => call.engine(),
            Self::Wit(call) => call.engine(),
            Self::Foreign(call) => call.engine(),
        }
    }

    /// Gives the texts of the invocation back, for another attempt.
    pub(crate) fn give_back(self) {
        if let Self::V0_1(call, invocation) = self {
            call.give_back(invocation);
        }
    }
}

/// Puts the host's own seed in the place of wasmtime-wasi's.
fn add_insecure_seed(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    wasmtime_wasi::p2::bindings::random::insecure_seed::add_to_linker::<_, InsecureSeed>(
        linker,
        |state| &mut state.import().insecure_seed,
    )?;
    linker.allow_shadowing(false);
    Ok(())
}
