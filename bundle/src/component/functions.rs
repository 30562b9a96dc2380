//! The functions that a component exports, with the types of their parameters and results.
//! Resources, streams, futures and async are not supported, since each call gets a new instance.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use toolward_contract::driver::{ResultForm, WitCall};
use toolward_support::report::codes;
use wasmparser::component_types::{
    ComponentDefinedType, ComponentDefinedTypeId, ComponentEntityType, ComponentFuncTypeId,
    ComponentValType,
};
use wasmparser::types::{Types, TypesRef};
use wasmparser::{Parser, PrimitiveValType, ValidPayload, Validator};

use super::{Export, FEATURES, SurfaceError, explained};

mod fit;
mod schema;

/// How many functions of a component can be called.
pub const MAX_FUNCTIONS: usize = 512;

/// How many different compound types the functions of a component may have together.
pub const MAX_TYPES: usize = 2000;

/// How deep types may be nested.
pub const MAX_TYPE_DEPTH: usize = 32;

/// How many parameters a function may have.
pub const MAX_PARAMETERS: usize = 64;

/// How many fields, cases, flags or elements a type may have.
pub const MAX_FIELDS: usize = 256;

/// Longest name of a parameter, field, case or flag, in bytes.
pub const MAX_KEBAB: usize = 200;

/// A function that a component exports.
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    /// The parameters, in order.
    pub parameters: Vec<(String, Arc<Type>)>,
    /// The type of the result.
    pub result: Option<Arc<Type>>,
}

impl Function {
    /// The type of the output of a call.
    fn returned(&self, call: &WitCall) -> Option<&Arc<Type>> {
        match (call.result, self.result.as_deref()) {
            (ResultForm::Unwrap, Some(Type::Result { ok, .. })) => ok.as_ref(),
            _ => self.result.as_ref(),
        }
    }
}

/// The type of a value. A compound type that is used twice is shared.
#[derive(Debug, PartialEq)]
pub enum Type {
    /// `bool`
    Bool,
    /// `u8` to `u64`, by bits.
    Unsigned(u32),
    /// `s8` to `s64`, by bits.
    Signed(u32),
    /// `f32`
    Float32,
    /// `f64`
    Float64,
    /// `char`
    Char,
    /// `string`
    String,
    /// `list`
    List(Arc<Type>),
    /// `tuple`
    Tuple(Vec<Arc<Type>>),
    /// `record`, with its fields in order.
    Record(Vec<(String, Arc<Type>)>),
    /// `option`
    Option(Arc<Type>),
    /// `enum`, with its cases in order.
    Enum(Vec<String>),
    /// `flags`, in order.
    Flags(Vec<String>),
    /// `variant`, with its cases in order.
    Variant(Vec<(String, Option<Arc<Type>>)>),
    /// `result`
    Result {
        /// Its value after success.
        ok: Option<Arc<Type>>,
        /// Its value after failure.
        err: Option<Arc<Type>>,
    },
}

impl Type {
    /// Whether this is `list<u8>`.
    pub fn is_bytes(&self) -> bool {
        matches!(self, Self::List(element) if **element == Self::Unsigned(8))
    }

    /// The types directly inside.
    pub fn inner(&self) -> Vec<&Arc<Type>> {
        match self {
            Self::List(inner) | Self::Option(inner) => vec![inner],
            Self::Tuple(types) => types.iter().collect(),
            Self::Record(fields) => fields.iter().map(|(_, inner)| inner).collect(),
            Self::Variant(cases) => cases
                .iter()
                .filter_map(|(_, inner)| inner.as_ref())
                .collect(),
            Self::Result { ok, err } => ok.iter().chain(err).collect(),
            _ => Vec::new(),
        }
    }
}

codes! {
    /// Why a function that a component exports can't be called.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub enum WithheldFunction: Error {
        Unsupported(problem: &'static str) = "component-type-unsupported" ["1 or 3"], ("{problem}");
        /// It exceeds a limit of this module.
        TooLarge { what: &'static str, limit: usize } = "component-type-too-large" ["1 or 3"],
            ("{what}, the limit is {limit}");
    }
}

/// The functions that a component exports, by name: `func`, or `ns:pkg/iface@1.0.0#func`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Functions {
    /// The functions that can be called.
    pub offered: BTreeMap<String, Function>,
    /// The functions that can't, each with the reason.
    pub withheld: BTreeMap<String, WithheldFunction>,
    /// How many further functions can't be called and are not in `withheld`, because their names
    /// are too long or `withheld` is full.
    pub uncounted: usize,
}

impl Functions {
    /// Reads the functions of a component that exports these names. The code of its modules is
    /// skipped.
    ///
    /// # Errors
    ///
    /// [`SurfaceError::Async`]; [`SurfaceError::Malformed`] if its types are invalid or need a
    /// WebAssembly proposal that this host does not support.
    pub fn read(wasm: &[u8], exports: &[Export]) -> Result<Self, SurfaceError> {
        let types = types(wasm).map_err(|error| explained(wasm, error))?;
        let types = types.as_ref();
        let mut reader = Reader {
            types,
            known: HashMap::new(),
        };
        let mut functions = Self::default();
        for export in exports {
            let name = &export.name;
            let Some(item) = types.component_item_for_export(name) else {
                continue;
            };
            match item.ty {
                ComponentEntityType::Func(id) => functions.add(None, name, id, &mut reader),
                ComponentEntityType::Instance(id) => {
                    let Some(instance) = types.get(id) else {
                        continue;
                    };
                    for (function, item) in &instance.exports {
                        if let ComponentEntityType::Func(id) = item.ty {
                            functions.add(Some(name), function, id, &mut reader);
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(functions)
    }

    /// Adds the function of an instance, or of the component itself.
    fn add(
        &mut self,
        instance: Option<&str>,
        function: &str,
        id: ComponentFuncTypeId,
        reader: &mut Reader<'_>,
    ) {
        // One instance can be exported many times, each time with all its functions, so a name's
        // length is checked before the name is stored.
        if function.len() > MAX_KEBAB || self.withheld.len() >= MAX_FUNCTIONS {
            self.uncounted += 1;
            return;
        }
        let name = match instance {
            Some(instance) => format!("{instance}#{function}"),
            None => function.to_owned(),
        };
        let read = match self.offered.len() < MAX_FUNCTIONS {
            false => Err(too_large("the component has more functions", MAX_FUNCTIONS)),
            true if !WitCall::is_export(&name) => Err(WithheldFunction::Unsupported(
                "its name can't be written in DRIVER.md: it is a method's, or too long",
            )),
            true => reader.function(id),
        };
        match read {
            Ok(function) => drop(self.offered.insert(name, function)),
            Err(reason) => drop(self.withheld.insert(name, reason)),
        }
    }
}

/// The types of a component.
fn types(wasm: &[u8]) -> Result<Types, SurfaceError> {
    let mut validator = Validator::new_with_features(FEATURES);
    let mut last = None;
    for payload in Parser::new(0).parse_all(wasm) {
        // The bodies of functions are not validated.
        if let ValidPayload::End(types) = validator.payload(&payload?)? {
            last = Some(types);
        }
    }
    last.ok_or_else(|| super::truncated(wasm))
}

/// The reason if the validator does not know a type of a function. A validated component has no
/// such type.
const UNKNOWN: WithheldFunction = WithheldFunction::Unsupported("one of its types is not there");

struct Reader<'a> {
    types: TypesRef<'a>,
    /// The compound types read so far, each with its number of levels.
    known: HashMap<ComponentDefinedTypeId, (Arc<Type>, usize)>,
}

impl Reader<'_> {
    fn function(&mut self, id: ComponentFuncTypeId) -> Result<Function, WithheldFunction> {
        let types = self.types;
        let function = types.get(id).ok_or(UNKNOWN)?;
        if function.async_ {
            return unsupported("it is async");
        }
        let count = function.params.len();
        bounded(count, "it has too many parameters", MAX_PARAMETERS)?;
        let parameters = function.params.iter();
        Ok(Function {
            parameters: parameters
                .map(|(parameter, ty)| Ok((name(parameter)?, self.value(*ty, 0)?.0)))
                .collect::<Result<_, WithheldFunction>>()?,
            result: match function.result {
                Some(ty) => Some(self.value(ty, 0)?.0),
                None => None,
            },
        })
    }

    /// Converts a type at this depth, and returns it with its number of levels.
    fn value(
        &mut self,
        ty: ComponentValType,
        depth: usize,
    ) -> Result<(Arc<Type>, usize), WithheldFunction> {
        let deepest = || too_large("its types lie too deep in each other", MAX_TYPE_DEPTH);
        if depth >= MAX_TYPE_DEPTH {
            return Err(deepest());
        }
        let id = match ty {
            ComponentValType::Primitive(ty) => return Ok((Arc::new(primitive(ty)?), 1)),
            ComponentValType::Type(id) => id,
        };
        if let Some(known) = self.known.get(&id) {
            let levels = known.1;
            return match levels + depth <= MAX_TYPE_DEPTH {
                true => Ok(known.clone()),
                false => Err(deepest()),
            };
        }
        let count = self.known.len() + 1;
        let what = "all functions have too many types together";
        bounded(count, what, MAX_TYPES)?;
        let mut levels = 0;
        let types = self.types;
        let mut inner = |ty: &ComponentValType| {
            let (ty, below) = self.value(*ty, depth + 1)?;
            levels = levels.max(below);
            Ok::<_, WithheldFunction>(ty)
        };
        let read = match types.get(id).ok_or(UNKNOWN)? {
            ComponentDefinedType::Primitive(ty) => primitive(*ty)?,
            ComponentDefinedType::List { element, .. } => Type::List(inner(element)?),
            ComponentDefinedType::Option { ty, .. } => Type::Option(inner(ty)?),
            ComponentDefinedType::Tuple(tuple) => {
                fields(tuple.types.len(), "a tuple has too many elements")?;
                Type::Tuple(tuple.types.iter().map(inner).collect::<Result<_, _>>()?)
            }
            ComponentDefinedType::Record(record) => {
                fields(record.fields.len(), "a record has too many fields")?;
                let all = record.fields.iter();
                let all = all.map(|(field, ty)| Ok((name(field)?, inner(ty)?)));
                Type::Record(all.collect::<Result<_, WithheldFunction>>()?)
            }
            ComponentDefinedType::Variant(variant) => {
                fields(variant.cases.len(), "a type has too many cases")?;
                let cases = variant.cases.iter();
                let cases = cases.map(|(case, of)| {
                    let of = of.ty.as_ref().map(&mut inner).transpose()?;
                    Ok((name(case)?, of))
                });
                Type::Variant(cases.collect::<Result<_, WithheldFunction>>()?)
            }
            ComponentDefinedType::Enum(cases) => {
                fields(cases.len(), "a type has too many cases")?;
                Type::Enum(cases.iter().map(name).collect::<Result<_, _>>()?)
            }
            ComponentDefinedType::Flags(flags) => {
                fields(flags.len(), "a type has too many flags")?;
                Type::Flags(flags.iter().map(name).collect::<Result<_, _>>()?)
            }
            ComponentDefinedType::Result { ok, err, .. } => Type::Result {
                ok: ok.as_ref().map(&mut inner).transpose()?,
                err: err.as_ref().map(inner).transpose()?,
            },
            ComponentDefinedType::Own(_) | ComponentDefinedType::Borrow(_) => {
                return unsupported("it takes or returns a resource");
            }
            ComponentDefinedType::Future { .. } | ComponentDefinedType::Stream { .. } => {
                return unsupported("it takes or returns a stream or future");
            }
            ComponentDefinedType::Map { .. } | ComponentDefinedType::FixedLengthList { .. } => {
                return unsupported("it takes or returns a map, or a list of fixed length");
            }
        };
        let read = (Arc::new(read), levels + 1);
        self.known.insert(id, read.clone());
        Ok(read)
    }
}

fn primitive(ty: PrimitiveValType) -> Result<Type, WithheldFunction> {
    Ok(match ty {
        PrimitiveValType::Bool => Type::Bool,
        PrimitiveValType::U8 => Type::Unsigned(8),
        PrimitiveValType::U16 => Type::Unsigned(16),
        PrimitiveValType::U32 => Type::Unsigned(32),
        PrimitiveValType::U64 => Type::Unsigned(64),
        PrimitiveValType::S8 => Type::Signed(8),
        PrimitiveValType::S16 => Type::Signed(16),
        PrimitiveValType::S32 => Type::Signed(32),
        PrimitiveValType::S64 => Type::Signed(64),
        PrimitiveValType::F32 => Type::Float32,
        PrimitiveValType::F64 => Type::Float64,
        PrimitiveValType::Char => Type::Char,
        PrimitiveValType::String => Type::String,
        PrimitiveValType::ErrorContext => {
            return unsupported("it takes or returns an error context");
        }
    })
}

fn name(kebab: &impl fmt::Display) -> Result<String, WithheldFunction> {
    let name = kebab.to_string();
    bounded(name.len(), "one of its names has too many bytes", MAX_KEBAB)?;
    Ok(name)
}

fn bounded(found: usize, what: &'static str, limit: usize) -> Result<(), WithheldFunction> {
    match found <= limit {
        true => Ok(()),
        false => Err(too_large(what, limit)),
    }
}

fn fields(found: usize, what: &'static str) -> Result<(), WithheldFunction> {
    bounded(found, what, MAX_FIELDS)
}

fn unsupported<T>(problem: &'static str) -> Result<T, WithheldFunction> {
    Err(WithheldFunction::Unsupported(problem))
}

fn too_large(what: &'static str, limit: usize) -> WithheldFunction {
    WithheldFunction::TooLarge { what, limit }
}

#[cfg(test)]
mod tests;
