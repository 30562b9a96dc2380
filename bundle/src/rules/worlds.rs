//! That a component has the functions by which it carries contracts out, where it is called in
//! another world than the driver's own.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolward_contract::diagnostic::{Diagnostic, Position};
use toolward_contract::driver::{Driver, Implements, WitCall, World};
use toolward_fields::nearest;
use toolward_report::Code;

use crate::codes;
use crate::component::{AMPLIFIER_EXECUTE, Component, Function, Functions, Type, Withheld};
use crate::documents::{Documents, Located};
use crate::text::list;

/// The functions that a driver calls in the world `wit`, by name.
pub(super) fn called(
    component: &Component,
    driver: &Located<Driver>,
    documents: &Documents,
) -> Result<BTreeMap<String, Arc<Function>>, Box<Diagnostic>> {
    let mut called = BTreeMap::new();
    let entries = &driver.value.implements;
    if entries.iter().all(|entry| entry.world == World::Toolward) {
        return Ok(called);
    }
    let looked = Looked { driver, component };
    let functions = Functions::read(&component.bytes, &component.surface.exports)
        .map_err(|error| looked.error(0, &codes::COMPONENT_INVALID, error.to_string()))?;
    for (index, entry) in entries.iter().enumerate() {
        match &entry.world {
            World::Wit(call) => {
                let function = looked.function(index, &call.export, &functions)?;
                looked.fits(index, function, (call, entry), documents)?;
                called.insert(call.export.clone(), Arc::new(function.clone()));
            }
            World::AmplifierTool => {
                let function = looked.function(index, AMPLIFIER_EXECUTE, &functions)?;
                if !is_execute(function) {
                    let message = format!(
                        "{AMPLIFIER_EXECUTE} of {} is no func(list<u8>) -> result<list<u8>, string>",
                        component.path
                    );
                    return Err(looked.error(index, &codes::COMPONENT_SIGNATURE, message));
                }
            }
            _ => {}
        }
    }
    Ok(called)
}

/// Whether this is `func(input: list<u8>) -> result<list<u8>, string>`.
fn is_execute(function: &Function) -> bool {
    let result = match function.result.as_deref() {
        Some(Type::Result {
            ok: Some(ok),
            err: Some(err),
        }) => ok.is_bytes() && **err == Type::String,
        _ => false,
    };
    result && matches!(&function.parameters[..], [(_, input)] if input.is_bytes())
}

/// A component, and the driver that it belongs to.
struct Looked<'a> {
    driver: &'a Located<Driver>,
    component: &'a Component,
}

impl Looked<'_> {
    fn error(&self, index: usize, code: &Code, message: String) -> Box<Diagnostic> {
        let at = self
            .driver
            .value
            .implements
            .get(index)
            .map(|entry| entry.at);
        let at = at.unwrap_or(Position::START);
        Box::new(Diagnostic::new(code, &self.driver.path, at, message))
    }

    fn function<'f>(
        &self,
        index: usize,
        name: &str,
        functions: &'f Functions,
    ) -> Result<&'f Function, Box<Diagnostic>> {
        let path = &self.component.path;
        if let Some(function) = functions.offered.get(name) {
            return Ok(function);
        }
        if let Some(reason) = functions.withheld.get(name) {
            let code = match reason {
                Withheld::Unsupported(_) => &codes::COMPONENT_TYPE_UNSUPPORTED,
                Withheld::TooLarge { .. } => &codes::COMPONENT_TYPE_TOO_LARGE,
            };
            let message = format!("{path} exports {name}, which can't be called: {reason}");
            return Err(self.error(index, code, message));
        }
        let all: Vec<&str> = functions.offered.keys().map(String::as_str).collect();
        let found = match all[..] {
            [] => "no function that can be called".to_owned(),
            _ => list(&all),
        };
        let message = format!("{path} has no function {name}; it exports {found}");
        let mut problem = self.error(index, &codes::COMPONENT_EXPORT_MISSING, message);
        let near = nearest(name, all);
        problem.hint = near.map(|near| format!("did you mean {near}?"));
        Err(problem)
    }

    /// Holds a function to the contract that it carries out, if that is at hand.
    fn fits(
        &self,
        index: usize,
        function: &Function,
        (call, entry): (&WitCall, &Implements),
        documents: &Documents,
    ) -> Result<(), Box<Diagnostic>> {
        let driver = &self.driver.value;
        for tool in documents.tools.iter().map(|tool| &tool.value) {
            let serving = driver.implements_tool(tool.id.as_str(), &tool.version);
            if serving.is_none_or(|serving| serving.at != entry.at) {
                continue;
            }
            function.fits(call, entry, tool).map_err(|reason| {
                let (path, export) = (&self.component.path, &call.export);
                let message = format!("{export} of {path} does not fit {}: {reason}", tool.id);
                self.error(index, &codes::COMPONENT_SIGNATURE, message)
            })?;
        }
        Ok(())
    }
}
