//! Checks whether a function can implement a contract: its parameters are inputs of the contract,
//! and some JSON value fits the types of both. The values themselves are checked at each call.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;
use toolward_contract::driver::{BytesForm, Implements, WitArguments, WitCall};
use toolward_contract::schema::Schema;
use toolward_contract::tool::Tool;

use super::{Function, Type};

/// Types of JSON, by their names in JSON Schema.
type Kinds = BTreeSet<&'static str>;

const ALL: [&str; 6] = ["array", "boolean", "null", "number", "object", "string"];

impl Function {
    /// Checks that the function can implement `tool` with this call.
    ///
    /// # Errors
    ///
    /// The reason, in words.
    pub fn fits(&self, call: &WitCall, entry: &Implements, tool: &Tool) -> Result<(), String> {
        match (call.arguments, &self.parameters[..]) {
            (WitArguments::Whole, [(name, only)]) => {
                let found = of_schema(tool.inputs.value());
                let whose = format!("the parameter `{name}`");
                alike(&whose, only, &found, call.bytes, "the input")?;
            }
            (WitArguments::Whole, parameters) => {
                return Err(format!(
                    "it has {} parameters, and `arguments: whole` is for one",
                    parameters.len()
                ));
            }
            (WitArguments::Named, parameters) => named(parameters, call.bytes, entry, tool)?,
        }
        let found = of_schema(tool.outputs.value());
        match self.returned(call) {
            Some(ty) => alike("its result", ty, &found, call.bytes, "the output"),
            None if found.contains("null") => Ok(()),
            None => Err("it returns nothing, and the contract's output is never null".to_owned()),
        }
    }
}

fn named(
    parameters: &[(String, Arc<Type>)],
    bytes: BytesForm,
    entry: &Implements,
    tool: &Tool,
) -> Result<(), String> {
    let shape = tool.inputs.shape();
    // The fields that the driver gets, each with its input.
    let mut fields: BTreeMap<&str, &str> = BTreeMap::new();
    let mut changed = BTreeSet::new();
    for (field, source) in entry.mapping.iter() {
        fields.insert(field, &source.from);
        if source.transform.is_some() {
            changed.insert(field);
        }
    }
    let renamed: BTreeSet<&str> = fields.values().copied().collect();
    for name in &shape.names {
        let dropped = entry.drop_inputs.contains(name);
        if !dropped && !renamed.contains(name.as_str()) {
            fields.entry(name).or_insert(name);
        }
    }
    for (name, ty) in parameters {
        let optional = matches!(**ty, Type::Option(_));
        let Some(input) = fields.remove(name.as_str()) else {
            if optional || shape.open {
                continue;
            }
            return Err(format!("its parameter `{name}` is no input of {}", tool.id));
        };
        if !optional && !shape.required.contains(input) {
            return Err(format!(
                "its parameter `{name}` is always needed, and the input `{input}` of {} is optional",
                tool.id
            ));
        }
        if changed.contains(name.as_str()) {
            continue;
        }
        let found = property(&tool.inputs, input).map_or_else(|| ALL.into(), of_schema);
        let ty = match &**ty {
            Type::Option(inner) => inner,
            _ => ty,
        };
        let whose = format!("its parameter `{name}`");
        alike(&whose, ty, &found, bytes, &format!("the input `{input}`"))?;
    }
    match fields.first_key_value() {
        None => Ok(()),
        Some((field, input)) if field == input => {
            Err(format!("it has no parameter for the input `{input}`"))
        }
        Some((field, input)) => Err(format!(
            "it has no parameter `{field}` for the input `{input}`"
        )),
    }
}

fn property<'s>(schema: &'s Schema, name: &str) -> Option<&'s Value> {
    schema.value().get("properties")?.get(name)
}

/// The types of JSON that a schema allows, by its `type`.
fn of_schema(schema: &Value) -> Kinds {
    let kind = |word: &Value| match word.as_str()? {
        "integer" => Some("number"),
        word => ALL.into_iter().find(|kind| *kind == word),
    };
    match schema.get("type") {
        Some(Value::Array(words)) => words.iter().filter_map(kind).collect(),
        Some(word) => kind(word).into_iter().collect(),
        None => ALL.into(),
    }
}

fn alike(
    whose: &str,
    ty: &Type,
    contract: &Kinds,
    bytes: BytesForm,
    of: &str,
) -> Result<(), String> {
    let own = of_type(ty, bytes);
    if own.is_disjoint(contract) {
        let own: Vec<&str> = own.into_iter().collect();
        let contract: Vec<&str> = contract.iter().copied().collect();
        return Err(format!(
            "{whose} is of type {} in JSON, and {of} of type {}",
            own.join(" or "),
            contract.join(" or ")
        ));
    }
    Ok(())
}

/// The JSON types that values of this type are converted to.
fn of_type(ty: &Type, bytes: BytesForm) -> Kinds {
    match ty {
        Type::Bool => ["boolean"].into(),
        Type::Unsigned(64) | Type::Signed(64) | Type::Float32 | Type::Float64 => {
            ["number", "string"].into()
        }
        Type::Unsigned(_) | Type::Signed(_) => ["number"].into(),
        Type::Char | Type::String | Type::Enum(_) => ["string"].into(),
        Type::List(_) if ty.is_bytes() && bytes != BytesForm::Array => ["string"].into(),
        Type::List(_) | Type::Tuple(_) | Type::Flags(_) => ["array"].into(),
        Type::Record(_) | Type::Variant(_) | Type::Result { .. } => ["object"].into(),
        Type::Option(inner) => {
            let mut kinds = match **inner {
                Type::Option(_) => ["object"].into(),
                _ => of_type(inner, bytes),
            };
            kinds.insert("null");
            kinds
        }
    }
}
