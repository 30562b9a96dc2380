//! The table of types in `docs/src/importing.md`, written a second time: as JSON values, without
//! limits, and in ways of writing that mean the same.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use toolward_bundle::component::Type;
use toolward_contract::driver::BytesForm;
use wasmtime::component::Val;

/// The largest integer that is written as a number.
const MAX_INTEGER: u64 = (1 << 53) - 1;

/// The JSON of a value; `None` where bytes that are to be text are not UTF-8.
pub(super) fn canonical(value: &Val, ty: &Type, bytes: BytesForm) -> Option<Value> {
    let inner = |value: &Option<Box<Val>>, ty: &Option<std::sync::Arc<Type>>| {
        let both = value.as_deref().zip(ty.as_deref());
        both.map(|(value, ty)| canonical(value, ty, bytes))
    };
    Some(match (value, ty) {
        (Val::Bool(value), Type::Bool) => json!(value),
        (Val::U8(value), Type::Unsigned(8)) => json!(value),
        (Val::U16(value), Type::Unsigned(16)) => json!(value),
        (Val::U32(value), Type::Unsigned(32)) => json!(value),
        (Val::U64(value), Type::Unsigned(64)) if *value > MAX_INTEGER => json!(value.to_string()),
        (Val::U64(value), Type::Unsigned(64)) => json!(value),
        (Val::S8(value), Type::Signed(8)) => json!(value),
        (Val::S16(value), Type::Signed(16)) => json!(value),
        (Val::S32(value), Type::Signed(32)) => json!(value),
        (Val::S64(value), Type::Signed(64)) if value.unsigned_abs() > MAX_INTEGER => {
            json!(value.to_string())
        }
        (Val::S64(value), Type::Signed(64)) => json!(value),
        (Val::Float32(value), Type::Float32) => float(f64::from(*value), &json_text(value)),
        (Val::Float64(value), Type::Float64) => float(*value, &json_text(value)),
        (Val::Char(value), Type::Char) => json!(value),
        (Val::String(value), Type::String) => json!(value),
        (Val::List(values), bytes_type) if bytes_type.is_bytes() => {
            let values: Vec<u8> = values.iter().map(byte).collect();
            match bytes {
                BytesForm::Base64 => json!(STANDARD.encode(values)),
                BytesForm::Utf8 => json!(String::from_utf8(values).ok()?),
                BytesForm::Array => json!(values),
            }
        }
        (Val::List(values), Type::List(element)) => {
            let values = values.iter().map(|value| canonical(value, element, bytes));
            Value::Array(values.collect::<Option<_>>()?)
        }
        (Val::Tuple(values), Type::Tuple(types)) => {
            let values = values.iter().zip(types);
            let values = values.map(|(value, ty)| canonical(value, ty, bytes));
            Value::Array(values.collect::<Option<_>>()?)
        }
        (Val::Record(values), Type::Record(fields)) => {
            let present = values.iter().zip(fields);
            let present = present.filter(|((_, value), _)| *value != Val::Option(None));
            let members = present
                .map(|((name, value), (_, ty))| Some((name.clone(), canonical(value, ty, bytes)?)));
            Value::Object(members.collect::<Option<_>>()?)
        }
        (Val::Option(None), Type::Option(_)) => Value::Null,
        (Val::Option(Some(value)), Type::Option(ty)) => {
            let some = canonical(value, ty, bytes)?;
            match **ty {
                Type::Option(_) => json!({ "some": some }),
                _ => some,
            }
        }
        (Val::Enum(case), Type::Enum(_)) => json!(case),
        (Val::Flags(names), Type::Flags(_)) => json!(names),
        (Val::Variant(case, value), Type::Variant(cases)) => {
            let (_, ty) = cases.iter().find(|(name, _)| name == case)?;
            match inner(value, ty) {
                Some(value) => json!({ "tag": case, "val": value? }),
                None => json!({ "tag": case }),
            }
        }
        (Val::Result(Ok(value)), Type::Result { ok, .. }) => {
            json!({ "ok": inner(value, ok).unwrap_or(Some(Value::Null))? })
        }
        (Val::Result(Err(value)), Type::Result { err, .. }) => {
            json!({ "err": inner(value, err).unwrap_or(Some(Value::Null))? })
        }
        (value, ty) => panic!("{value:?} is no {ty:?}"),
    })
}

fn byte(value: &Val) -> u8 {
    match value {
        Val::U8(byte) => *byte,
        other => panic!("{other:?} is no byte"),
    }
}

/// The shortest text that gives the number again in as many bits.
fn json_text(number: &impl serde::Serialize) -> String {
    serde_json::to_string(number).expect("a number")
}

fn float(number: f64, text: &str) -> Value {
    match number {
        f64::INFINITY => json!("Infinity"),
        f64::NEG_INFINITY => json!("-Infinity"),
        _ if number.is_nan() => json!("NaN"),
        _ => json!(text.parse::<f64>().expect("a number")),
    }
}

/// Whether all numbers in it have digits.
pub(super) fn is_finite(value: &Val) -> bool {
    let inside = |value: &Option<Box<Val>>| value.as_deref().is_none_or(is_finite);
    match value {
        Val::Float32(value) => value.is_finite(),
        Val::Float64(value) => value.is_finite(),
        Val::List(values) | Val::Tuple(values) => values.iter().all(is_finite),
        Val::Record(fields) => fields.iter().all(|(_, value)| is_finite(value)),
        Val::Variant(_, value) | Val::Option(value) | Val::Result(Ok(value) | Err(value)) => {
            inside(value)
        }
        _ => true,
    }
}

/// Choices between ways of writing, one for each bit.
pub(super) struct Spelling(pub(super) u64);

impl Spelling {
    fn other(&mut self) -> bool {
        self.0 = self.0.rotate_left(1);
        self.0 & 1 == 1
    }

    /// The same value, perhaps written in another way that is read.
    pub(super) fn of(&mut self, value: &Value, ty: &Type) -> Value {
        match (value, ty) {
            (Value::Number(number), Type::Unsigned(bits) | Type::Signed(bits)) => {
                match (self.other(), self.other()) {
                    (true, true) if *bits == 64 => json!(number.to_string()),
                    (true, _) => json!(number.as_f64()),
                    _ => value.clone(),
                }
            }
            (Value::Number(number), Type::Float32 | Type::Float64) if self.other() => {
                let number = number.as_f64().expect("a number");
                let whole = number as i64;
                // There is no integer −0, nor one beyond 2^53.
                let same = (whole as f64).to_bits() == number.to_bits();
                match same && whole.unsigned_abs() <= MAX_INTEGER {
                    true => json!(whole),
                    false => json!(number),
                }
            }
            (Value::Array(values), Type::List(element)) => {
                values.iter().map(|value| self.of(value, element)).collect()
            }
            (Value::Array(values), Type::Tuple(types)) => {
                let values = values.iter().zip(types);
                values.map(|(value, ty)| self.of(value, ty)).collect()
            }
            (Value::Array(names), Type::Flags(all)) => self.flags(names, all.len()),
            (Value::Object(members), Type::Record(fields)) => {
                let mut record = Map::new();
                for (name, ty) in fields {
                    match members.get(name) {
                        Some(value) => drop(record.insert(name.clone(), self.of(value, ty))),
                        // An option that is none may be left out or be null.
                        None if self.other() => drop(record.insert(name.clone(), Value::Null)),
                        None => {}
                    }
                }
                self.ordered(record)
            }
            (Value::Object(members), Type::Variant(cases)) => {
                let case = cases.iter().find(|(name, _)| members["tag"] == json!(name));
                let mut members = members.clone();
                match (members.get("val"), &case.expect("a case").1) {
                    (Some(value), Some(ty)) => {
                        let value = self.of(value, ty);
                        members.insert("val".to_owned(), value);
                    }
                    _ if self.other() => drop(members.insert("val".to_owned(), Value::Null)),
                    _ => {}
                }
                self.ordered(members)
            }
            (Value::Object(members), Type::Result { ok, err }) => {
                let members = members.iter().map(|(key, value)| {
                    let ty = if key == "ok" { ok } else { err };
                    let value = ty.as_deref().map_or(Value::Null, |ty| self.of(value, ty));
                    (key.clone(), value)
                });
                Value::Object(members.collect())
            }
            (Value::Null, Type::Option(_)) => Value::Null,
            (value, Type::Option(ty)) => match **ty {
                Type::Option(_) => json!({ "some": self.of(&value["some"], ty) }),
                _ => self.of(value, ty),
            },
            _ => value.clone(),
        }
    }

    /// In any order; the same word twice is one flag.
    fn flags(&mut self, names: &[Value], all: usize) -> Value {
        let mut names = names.to_vec();
        if self.other() {
            names.reverse();
        }
        if names.len() < all && self.other() {
            names.extend(names.first().cloned());
        }
        Value::Array(names)
    }

    fn ordered(&mut self, members: Map<String, Value>) -> Value {
        match self.other() {
            true => Value::Object(members.into_iter().rev().collect()),
            false => Value::Object(members),
        }
    }
}
