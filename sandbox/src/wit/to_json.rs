//! Converts a result to JSON text.

use std::cell::Cell;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use toolward_bundle::component::Type;
use toolward_contract::driver::BytesForm;
use wasmtime::component::Val;

use crate::result::Limited;

/// The largest integer that all readers of JSON keep: 2^53 − 1.
const MAX_INTEGER: u64 = (1 << 53) - 1;

/// Why a result is not written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Refused {
    /// The text would be longer than the limit.
    TooLarge,
    /// Bytes that are declared as UTF-8 are not valid UTF-8.
    NotUtf8,
    /// The value is not of the type.
    Mismatch,
}

/// A value as JSON text of at most `limit` bytes; `null` without a value.
pub(super) fn written(
    value: Option<(&Val, &Type)>,
    bytes: BytesForm,
    limit: u64,
) -> Result<String, Refused> {
    let refused = Cell::new(Refused::TooLarge);
    let form = Form {
        bytes,
        limit,
        refused: &refused,
    };
    let json = value.map(|(value, ty)| form.json(value, ty));
    text(&json, limit).map_err(|_| refused.get())
}

/// JSON text of at most `limit` bytes.
pub(super) fn text(value: &impl Serialize, limit: u64) -> Result<String, Refused> {
    let mut text = Limited::new(limit);
    serde_json::to_writer(&mut text, value).map_err(|_| Refused::TooLarge)?;
    String::from_utf8(text.bytes).map_err(|_| Refused::NotUtf8)
}

/// Bytes as text, in the form that the driver declares.
pub(super) fn text_of(bytes: Vec<u8>, form: BytesForm) -> Result<String, Refused> {
    match form {
        BytesForm::Utf8 => String::from_utf8(bytes).map_err(|_| Refused::NotUtf8),
        _ => Ok(STANDARD.encode(bytes)),
    }
}

/// The form in which values are written, and the reason if a value was not written.
#[derive(Clone, Copy)]
struct Form<'a> {
    bytes: BytesForm,
    limit: u64,
    refused: &'a Cell<Refused>,
}

impl<'a> Form<'a> {
    fn json(self, value: &'a Val, ty: &'a Type) -> Json<'a> {
        let form = self;
        Json { value, ty, form }
    }

    fn refuse<T, E: serde::ser::Error>(self, why: Refused) -> Result<T, E> {
        self.refused.set(why);
        Err(E::custom("the result is refused"))
    }
}

struct Json<'a> {
    value: &'a Val,
    ty: &'a Type,
    form: Form<'a>,
}

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let form = self.form;
        match (self.value, self.ty) {
            (Val::Bool(value), _) => value.serialize(to),
            (Val::U8(value), _) => value.serialize(to),
            (Val::U16(value), _) => value.serialize(to),
            (Val::U32(value), _) => value.serialize(to),
            (Val::S8(value), _) => value.serialize(to),
            (Val::S16(value), _) => value.serialize(to),
            (Val::S32(value), _) => value.serialize(to),
            (Val::U64(value), _) if *value > MAX_INTEGER => to.collect_str(value),
            (Val::U64(value), _) => value.serialize(to),
            (Val::S64(value), _) if value.unsigned_abs() > MAX_INTEGER => to.collect_str(value),
            (Val::S64(value), _) => value.serialize(to),
            (Val::Float32(value), _) if let Some(word) = word(f64::from(*value)) => {
                word.serialize(to)
            }
            (Val::Float32(value), _) => value.serialize(to),
            (Val::Float64(value), _) if let Some(word) = word(*value) => word.serialize(to),
            (Val::Float64(value), _) => value.serialize(to),
            (Val::Char(value), _) => value.serialize(to),
            (Val::String(value) | Val::Enum(value), _) => value.serialize(to),
            (Val::List(values), ty) if ty.is_bytes() && form.bytes != BytesForm::Array => {
                match form.text_of(values) {
                    Ok(text) => text.serialize(to),
                    Err(why) => form.refuse(why),
                }
            }
            (Val::List(values), Type::List(element)) => {
                to.collect_seq(values.iter().map(|value| form.json(value, element)))
            }
            (Val::Tuple(values), Type::Tuple(types)) => {
                let values = values.iter().zip(types);
                to.collect_seq(values.map(|(value, ty)| form.json(value, ty)))
            }
            // Fields without a value are left out.
            (Val::Record(values), Type::Record(fields)) => {
                let members = values.iter().zip(fields);
                let members = members.filter(|((_, value), _)| !matches!(value, Val::Option(None)));
                to.collect_map(members.map(|((name, value), (_, ty))| (name, form.json(value, ty))))
            }
            (Val::Option(None), _) => to.serialize_unit(),
            (Val::Option(Some(value)), Type::Option(inner)) => match **inner {
                Type::Option(_) => to.collect_map([("some", form.json(value, inner))]),
                _ => form.json(value, inner).serialize(to),
            },
            (Val::Flags(names), _) => names.serialize(to),
            (Val::Variant(case, value), Type::Variant(cases)) => {
                let Some((_, inner)) = cases.iter().find(|(name, _)| name == case) else {
                    return form.refuse(Refused::Mismatch);
                };
                let mut map = to.serialize_map(None)?;
                map.serialize_entry("tag", case)?;
                if let Some((value, inner)) = value.as_deref().zip(inner.as_deref()) {
                    map.serialize_entry("val", &form.json(value, inner))?;
                }
                map.end()
            }
            (Val::Result(value), Type::Result { ok, err }) => {
                let (key, value, ty) = match value {
                    Ok(value) => ("ok", value, ok),
                    Err(value) => ("err", value, err),
                };
                let value = value.as_deref().zip(ty.as_deref());
                to.collect_map([(key, value.map(|(value, ty)| form.json(value, ty)))])
            }
            _ => form.refuse(Refused::Mismatch),
        }
    }
}

impl Form<'_> {
    fn text_of(self, values: &[Val]) -> Result<String, Refused> {
        if values.len() as u64 > self.limit {
            return Err(Refused::TooLarge);
        }
        let bytes = values.iter().map(|value| match value {
            Val::U8(byte) => Ok(*byte),
            _ => Err(Refused::Mismatch),
        });
        text_of(bytes.collect::<Result<_, _>>()?, self.bytes)
    }
}

/// The word for NaN or an infinity, for which JSON has no number.
fn word(number: f64) -> Option<&'static str> {
    match number {
        _ if number.is_nan() => Some("NaN"),
        f64::INFINITY => Some("Infinity"),
        f64::NEG_INFINITY => Some("-Infinity"),
        _ => None,
    }
}
