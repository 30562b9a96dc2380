//! The JSON Schema of a function's parameters and result. A compound type that occurs more than
//! once is written once, below `$defs`.

use std::collections::BTreeMap;
use std::ptr;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use toolward_contract::driver::{BytesForm, WitArguments, WitCall};

use super::{Function, Type};

/// The largest integer that all readers of JSON preserve: 2^53 − 1.
const MAX_INTEGER: i64 = (1 << 53) - 1;

/// The names of the non-finite numbers in an output.
const WORDS: [&str; 3] = ["NaN", "Infinity", "-Infinity"];

impl Function {
    /// The JSON Schema of the input of this call.
    pub fn inputs(&self, call: &WitCall) -> Value {
        let parameters = self.parameters.iter().map(|(_, ty)| ty);
        let mut schemas = Schemas::of(parameters, call.bytes, Direction::Input);
        let schema = match (call.arguments, &self.parameters[..]) {
            (WitArguments::Whole, [(_, only)]) => schemas.of_type(only),
            _ => schemas.object(&self.parameters),
        };
        schemas.close(schema)
    }

    /// The JSON Schema of the output of this call.
    pub fn outputs(&self, call: &WitCall) -> Value {
        let ty = self.returned(call);
        let mut schemas = Schemas::of(ty, call.bytes, Direction::Output);
        let schema = schemas.payload(ty);
        schemas.close(schema)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Input,
    Output,
}

/// The schemas of one document.
struct Schemas {
    bytes: BytesForm,
    direction: Direction,
    /// How often each type occurs, by its address.
    uses: BTreeMap<usize, usize>,
    /// The names of the types below `$defs`.
    names: BTreeMap<usize, String>,
    defs: Map<String, Value>,
}

fn address(ty: &Arc<Type>) -> usize {
    ptr::from_ref::<Type>(ty).addr()
}

impl Schemas {
    fn of<'t>(
        types: impl IntoIterator<Item = &'t Arc<Type>>,
        bytes: BytesForm,
        direction: Direction,
    ) -> Self {
        let mut uses = BTreeMap::new();
        let mut open: Vec<&Arc<Type>> = types.into_iter().collect();
        while let Some(ty) = open.pop() {
            let count = uses.entry(address(ty)).or_insert(0);
            *count += 1;
            // The types inside are counted only at the first use.
            if *count == 1 {
                open.extend(ty.inner());
            }
        }
        Self {
            bytes,
            direction,
            uses,
            names: BTreeMap::new(),
            defs: Map::new(),
        }
    }

    /// The schema of a type, or a reference to it below `$defs`.
    fn of_type(&mut self, ty: &Arc<Type>) -> Value {
        let address = address(ty);
        if let Some(name) = self.names.get(&address) {
            return reference(name);
        }
        let schema = self.written(ty);
        let compound = match &**ty {
            Type::Enum(_) | Type::Flags(_) => true,
            ty => !ty.inner().is_empty() && !ty.is_bytes(),
        };
        if !compound || self.uses.get(&address).is_none_or(|uses| *uses < 2) {
            return schema;
        }
        let name = format!("t{}", self.names.len() + 1);
        let reference = reference(&name);
        self.defs.insert(name.clone(), schema);
        self.names.insert(address, name);
        reference
    }

    fn payload(&mut self, ty: Option<&Arc<Type>>) -> Value {
        match ty {
            Some(ty) => self.of_type(ty),
            None => json!({"type": "null"}),
        }
    }

    fn written(&mut self, ty: &Type) -> Value {
        match ty {
            Type::Bool => json!({"type": "boolean"}),
            Type::Unsigned(64) => integer_or_text(0, "^(0|[1-9][0-9]{0,19})$"),
            Type::Signed(64) => integer_or_text(-MAX_INTEGER, "^(0|-?[1-9][0-9]{0,18})$"),
            Type::Unsigned(bits) => {
                let maximum = (1_u64 << bits) - 1;
                json!({"type": "integer", "minimum": 0, "maximum": maximum})
            }
            Type::Signed(bits) => {
                let half = 1_i64 << (bits - 1);
                json!({"type": "integer", "minimum": -half, "maximum": half - 1})
            }
            Type::Float32 | Type::Float64 => match self.direction {
                Direction::Input => json!({"type": "number"}),
                Direction::Output => json!({"anyOf": [{"type": "number"}, {"enum": WORDS}]}),
            },
            Type::Char => json!({"type": "string", "minLength": 1, "maxLength": 1}),
            Type::String => json!({"type": "string"}),
            Type::List(_) if ty.is_bytes() && self.bytes == BytesForm::Base64 => {
                json!({"type": "string", "contentEncoding": "base64"})
            }
            Type::List(_) if ty.is_bytes() && self.bytes == BytesForm::Utf8 => {
                json!({"type": "string"})
            }
            Type::List(element) => json!({"type": "array", "items": self.of_type(element)}),
            Type::Tuple(types) => {
                let items: Vec<Value> = types.iter().map(|ty| self.of_type(ty)).collect();
                let length = items.len();
                match length {
                    0 => json!({"type": "array", "maxItems": 0}),
                    _ => json!({
                        "type": "array",
                        "minItems": length,
                        "maxItems": length,
                        "prefixItems": items,
                    }),
                }
            }
            Type::Record(fields) => self.object(fields),
            Type::Option(inner) => match **inner {
                // The inner option is wrapped in an object. If an empty inner option were `null`,
                // the outer option would look empty.
                Type::Option(_) => {
                    let some = closed_object(member("some", self.of_type(inner)), None);
                    json!({"anyOf": [some, {"type": "null"}]})
                }
                _ => json!({"anyOf": [self.of_type(inner), {"type": "null"}]}),
            },
            Type::Enum(cases) => json!({"type": "string", "enum": cases}),
            Type::Flags(flags) => {
                json!({"type": "array", "items": {"enum": flags}, "uniqueItems": true})
            }
            Type::Variant(cases) => {
                let cases = cases.iter().map(|(tag, inner)| {
                    let mut properties = member("tag", json!({ "const": tag }));
                    if let Some(inner) = inner {
                        properties.insert("val".to_owned(), self.of_type(inner));
                    }
                    closed_object(properties, None)
                });
                json!({"oneOf": cases.collect::<Vec<_>>()})
            }
            Type::Result { ok, err } => {
                let ok = member("ok", self.payload(ok.as_ref()));
                let err = member("err", self.payload(err.as_ref()));
                json!({"oneOf": [closed_object(ok, None), closed_object(err, None)]})
            }
        }
    }

    /// An object with these fields; fields with an `option` may be omitted.
    fn object(&mut self, fields: &[(String, Arc<Type>)]) -> Value {
        let required: Vec<&str> = fields
            .iter()
            .filter(|(_, ty)| !matches!(**ty, Type::Option(_)))
            .map(|(name, _)| name.as_str())
            .collect();
        let properties: Map<String, Value> = fields
            .iter()
            .map(|(name, ty)| {
                // A field without a value is omitted, so its schema does not allow `null`.
                let ty = match &**ty {
                    Type::Option(inner) if !matches!(**inner, Type::Option(_)) => inner,
                    _ => ty,
                };
                (name.clone(), self.of_type(ty))
            })
            .collect();
        closed_object(properties, Some(required))
    }

    fn close(self, mut schema: Value) -> Value {
        if !self.defs.is_empty()
            && let Value::Object(members) = &mut schema
        {
            members.insert("$defs".to_owned(), Value::Object(self.defs));
        }
        schema
    }
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/$defs/{name}")})
}

fn integer_or_text(minimum: i64, pattern: &str) -> Value {
    json!({"anyOf": [
        {"type": "integer", "minimum": minimum, "maximum": MAX_INTEGER},
        {"type": "string", "pattern": pattern},
    ]})
}

/// The schema of an object with exactly these properties. If `required` is `None`, all are
/// required.
fn closed_object(properties: Map<String, Value>, required: Option<Vec<&str>>) -> Value {
    let all = || properties.keys().map(String::as_str).collect();
    let required = json!(required.unwrap_or_else(all));
    let mut schema = Map::new();
    schema.insert("type".to_owned(), json!("object"));
    if required != json!([]) {
        schema.insert("required".to_owned(), required);
    }
    if !properties.is_empty() {
        schema.insert("properties".to_owned(), Value::Object(properties));
    }
    schema.insert("additionalProperties".to_owned(), Value::Bool(false));
    Value::Object(schema)
}

fn member(name: &str, schema: Value) -> Map<String, Value> {
    Map::from_iter([(name.to_owned(), schema)])
}
