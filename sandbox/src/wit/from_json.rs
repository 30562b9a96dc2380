//! Converts an input to the parameters of a function.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Number, Value};
use toolward_bundle::component::{Function, Type};
use toolward_contract::driver::{BytesForm, WitArguments as Form, WitCall};
use toolward_contract::json;
use wasmtime::component::Val;

/// Why an input can't be passed.
#[derive(Debug, PartialEq)]
pub(super) enum Refused {
    /// The input is not a value of the parameter's type. The text describes where and why.
    Input(String),
    /// The values would take more memory than the call has left.
    Memory,
}

/// Converts an input for a function.
pub(super) struct Arguments<'a> {
    pub(super) function: &'a Function,
    pub(super) call: &'a WitCall,
    pub(super) limits: &'a json::Limits,
    /// The bytes that may still be taken. The memory of values is subtracted before they are
    /// created.
    pub(super) memory: &'a mut u64,
}

enum Stopped {
    /// A value does not fit. `place` is the path to it, from the innermost part outwards.
    Misfit {
        place: Vec<String>,
        expected: String,
    },
    Memory,
}

type Read<T = Val> = Result<T, Stopped>;

fn misfit<T>(expected: impl Into<String>) -> Read<T> {
    Err(Stopped::Misfit {
        place: Vec::new(),
        expected: expected.into(),
    })
}

fn at<T>(part: impl FnOnce() -> String, read: Read<T>) -> Read<T> {
    read.map_err(|mut stopped| {
        if let Stopped::Misfit { place, .. } = &mut stopped {
            place.push(part());
        }
        stopped
    })
}

/// The parameter of a function of texts and bytes.
#[derive(Debug, PartialEq)]
pub(super) enum Plain {
    Nothing,
    Text(String),
    Bytes(Vec<u8>),
}

/// The members of an object, all of which must be in `known`: parameters, or fields of a record.
fn members<'v>(
    value: &'v Value,
    known: &[(String, Arc<Type>)],
    kind: &str,
) -> Read<&'v Map<String, Value>> {
    let Value::Object(members) = value else {
        return misfit("an object");
    };
    let is_known = |name: &&String| known.iter().any(|(known, _)| known == *name);
    match members.keys().find(|name| !is_known(name)) {
        Some(name) => at(|| name.clone(), misfit(format!("no such {kind}"))),
        None => Ok(members),
    }
}

fn refused(stopped: Stopped) -> Refused {
    match stopped {
        Stopped::Memory => Refused::Memory,
        Stopped::Misfit { place, expected } => {
            let place: String = place.iter().rev().map(|part| format!("/{part}")).collect();
            Refused::Input(match place.is_empty() {
                true => format!("the driver takes {expected} as its input"),
                false => format!("the driver takes {expected} at {place:?} of its input"),
            })
        }
    }
}

impl Arguments<'_> {
    /// The parameters as values, from the validated input as JSON text.
    pub(super) fn values(mut self, input: &str) -> Result<Vec<Val>, Refused> {
        let input = self.parsed(input)?;
        self.parameters(&input).map_err(refused)
    }

    /// The one parameter of a function of texts and bytes.
    pub(super) fn plain(mut self, input: &str) -> Result<Plain, Refused> {
        let input = self.parsed(input)?;
        self.only(&input).map_err(refused)
    }

    fn only(&mut self, input: &Value) -> Read<Plain> {
        let (name, ty) = match &self.function.parameters[..] {
            [(name, ty)] => (name, ty),
            _ => return self.parameters(input).map(|_| Plain::Nothing),
        };
        if self.call.arguments == Form::Whole {
            return self.plain_value(input, ty);
        }
        let members = members(input, &self.function.parameters, "parameter")?;
        let read = match members.get(name) {
            Some(value) => self.plain_value(value, ty),
            None => misfit("a value"),
        };
        at(|| name.clone(), read)
    }

    fn plain_value(&mut self, value: &Value, ty: &Type) -> Read<Plain> {
        match (value, ty) {
            (Value::String(text), Type::String) => self.text(text).map(Plain::Text),
            (_, Type::String) => misfit("a text"),
            (value, _) => self.decoded(value).map(Plain::Bytes),
        }
    }

    fn parsed(&mut self, input: &str) -> Result<Value, Refused> {
        // The host has checked the input's size already; the limit on bytes is for outputs.
        let limits = json::Limits {
            bytes: usize::MAX,
            ..*self.limits
        };
        let read = json::parse_within(input.as_bytes(), &limits, self.memory);
        read.map_err(|error| match error.kind {
            json::JsonErrorKind::TooMuchMemory => Refused::Memory,
            _ => Refused::Input(error.to_string()),
        })
    }

    fn parameters(&mut self, input: &Value) -> Read<Vec<Val>> {
        let parameters = &self.function.parameters;
        if let (Form::Whole, [(_, only)]) = (self.call.arguments, &parameters[..]) {
            return Ok(vec![self.value(input, only)?]);
        }
        let members = members(input, parameters, "parameter")?;
        self.take(parameters.len(), size_of::<Val>())?;
        let parameters = parameters.iter();
        parameters
            .map(|(name, ty)| self.field(members, name, ty))
            .collect()
    }

    /// A member of an object, which may be left out if its type is an option.
    fn field(&mut self, members: &Map<String, Value>, name: &str, ty: &Type) -> Read {
        let read = match (members.get(name), ty) {
            (Some(value), _) => self.value(value, ty),
            (None, Type::Option(_)) => Ok(Val::Option(None)),
            (None, _) => misfit("a value"),
        };
        at(|| name.to_owned(), read)
    }

    /// Counts memory before it is taken.
    fn take(&mut self, count: usize, each: usize) -> Read<()> {
        // Counted twice, for the allocator's overhead and for flags, whose number is not known in
        // advance.
        let bytes = (count as u64).saturating_mul(each as u64).saturating_mul(2);
        match self.memory.checked_sub(bytes.saturating_add(32)) {
            Some(left) => *self.memory = left,
            None => return Err(Stopped::Memory),
        }
        Ok(())
    }

    fn text(&mut self, text: &str) -> Read<String> {
        self.take(text.len(), 1)?;
        Ok(text.to_owned())
    }

    fn each<'v>(
        &mut self,
        values: impl ExactSizeIterator<Item = (&'v Value, &'v Type)>,
    ) -> Read<Vec<Val>> {
        self.take(values.len(), size_of::<Val>())?;
        let mut read = Vec::with_capacity(values.len());
        for (index, (value, ty)) in values.enumerate() {
            read.push(at(|| index.to_string(), self.value(value, ty))?);
        }
        Ok(read)
    }

    fn boxed(&mut self, value: Option<&Value>, ty: Option<&Type>) -> Read<Option<Box<Val>>> {
        match (value, ty) {
            (Some(value), Some(ty)) => {
                self.take(1, size_of::<Val>())?;
                Ok(Some(Box::new(self.value(value, ty)?)))
            }
            (None | Some(Value::Null), None) => Ok(None),
            (Some(_), None) => misfit("no value"),
            (None, Some(_)) => misfit("a value"),
        }
    }

    fn value(&mut self, value: &Value, ty: &Type) -> Read {
        match (ty, value) {
            (Type::Bool, Value::Bool(value)) => Ok(Val::Bool(*value)),
            (Type::Bool, _) => misfit("a boolean"),
            (Type::Unsigned(bits), _) => sized(value, false, *bits),
            (Type::Signed(bits), _) => sized(value, true, *bits),
            (Type::Float32, _) => {
                let number = float(value)?;
                let narrow = nearest(number);
                match narrow.is_infinite() && number.is_finite() {
                    true => misfit("a number within the range of 32 bits"),
                    false => Ok(Val::Float32(narrow)),
                }
            }
            (Type::Float64, _) => Ok(Val::Float64(float(value)?)),
            (Type::Char, _) => {
                let mut letters = value.as_str().unwrap_or_default().chars();
                match (letters.next(), letters.next()) {
                    (Some(letter), None) => Ok(Val::Char(letter)),
                    _ => misfit("a single character"),
                }
            }
            (Type::String, Value::String(text)) => Ok(Val::String(self.text(text)?)),
            (Type::String, _) => misfit("a text"),
            (Type::List(_), _) if ty.is_bytes() && self.call.bytes != BytesForm::Array => {
                self.bytes(value)
            }
            (Type::List(element), Value::Array(values)) => {
                let values = values.iter().map(|value| (value, &**element));
                Ok(Val::List(self.each(values)?))
            }
            (Type::List(_), _) => misfit("an array"),
            (Type::Tuple(types), Value::Array(values)) if values.len() == types.len() => {
                let types = types.iter().map(|ty| &**ty);
                Ok(Val::Tuple(self.each(values.iter().zip(types))?))
            }
            (Type::Tuple(types), _) => misfit(format!("an array of {}", types.len())),
            (Type::Record(fields), _) => self.record(value, fields),
            (Type::Option(inner), _) => self.option(value, inner),
            (Type::Enum(cases), Value::String(text)) if cases.contains(text) => {
                Ok(Val::Enum(self.text(text)?))
            }
            (Type::Enum(cases), _) => misfit(format!("one of {}", list(cases))),
            (Type::Flags(names), _) => self.flags(value, names),
            (Type::Variant(cases), _) => {
                let tag = value.get("tag").and_then(Value::as_str);
                let case = cases.iter().find(|(name, _)| Some(name.as_str()) == tag);
                let (Some((name, inner)), Some(1..=2)) = (case, length(value)) else {
                    let tags = list(cases.iter().map(|(name, _)| name));
                    return misfit(format!("an object with `tag`, one of {tags}, and `val`"));
                };
                if length(value) == Some(2) && value.get("val").is_none() {
                    return misfit("no members but `tag` and `val`");
                }
                let inner = self.boxed(value.get("val"), inner.as_deref());
                let inner = at(|| "val".to_owned(), inner)?;
                Ok(Val::Variant(self.text(name)?, inner))
            }
            (Type::Result { ok, err }, _) => {
                match (value.get("ok"), value.get("err"), length(value)) {
                    (Some(value), None, Some(1)) => {
                        Ok(Val::Result(Ok(self.boxed(Some(value), ok.as_deref())?)))
                    }
                    (None, Some(value), Some(1)) => {
                        Ok(Val::Result(Err(self.boxed(Some(value), err.as_deref())?)))
                    }
                    _ => misfit("an object with `ok` or `err`"),
                }
            }
        }
    }

    fn bytes(&mut self, value: &Value) -> Read {
        let bytes = self.decoded(value)?;
        self.take(bytes.len(), size_of::<Val>())?;
        Ok(Val::List(bytes.into_iter().map(Val::U8).collect()))
    }

    /// Decodes bytes that are written as text.
    fn decoded(&mut self, value: &Value) -> Read<Vec<u8>> {
        let Value::String(text) = value else {
            return misfit("a text");
        };
        self.take(text.len(), 1)?;
        match self.call.bytes {
            BytesForm::Utf8 => Ok(text.clone().into_bytes()),
            _ => match STANDARD.decode(text) {
                Ok(bytes) => Ok(bytes),
                Err(_) => misfit("bytes in base64"),
            },
        }
    }

    fn record(&mut self, value: &Value, fields: &[(String, Arc<Type>)]) -> Read {
        let members = members(value, fields, "field")?;
        self.take(fields.len(), size_of::<(String, Val)>())?;
        let mut read = Vec::with_capacity(fields.len());
        for (name, ty) in fields {
            let value = self.field(members, name, ty)?;
            read.push((self.text(name)?, value));
        }
        Ok(Val::Record(read))
    }

    fn option(&mut self, value: &Value, inner: &Type) -> Read {
        let some = match (value, inner) {
            (Value::Null, _) => return Ok(Val::Option(None)),
            (value, Type::Option(_)) => match (value.get("some"), length(value)) {
                (Some(value), Some(1)) => value,
                _ => return misfit("null, or an object with `some`"),
            },
            (value, _) => value,
        };
        Ok(Val::Option(self.boxed(Some(some), Some(inner))?))
    }

    fn flags(&mut self, value: &Value, names: &[String]) -> Read {
        let Value::Array(values) = value else {
            return misfit("an array of its words");
        };
        // Each flag is compared with each name.
        if values.len() > names.len() {
            return misfit(format!("at most {} words", names.len()));
        }
        // A repeated word is one flag.
        let given = |name: &&String| values.iter().any(|value| value == name.as_str());
        let known = |value: &Value| names.iter().any(|name| value == name.as_str());
        if let Some(index) = values.iter().position(|value| !known(value)) {
            return at(
                || index.to_string(),
                misfit(format!("one of {}", list(names))),
            );
        }
        self.take(names.len(), size_of::<String>())?;
        let names = names.iter().filter(given);
        let names = names
            .map(|name| self.text(name))
            .collect::<Read<Vec<_>>>()?;
        Ok(Val::Flags(names))
    }
}

fn list<'a>(names: impl IntoIterator<Item = &'a String>) -> String {
    let names: Vec<&str> = names.into_iter().map(String::as_str).collect();
    toolward_bundle::text::list(&names)
}

fn length(value: &Value) -> Option<usize> {
    value.as_object().map(Map::len)
}

/// A number as an integer. 1.0 is also an integer.
fn integer(number: &Number) -> Option<i128> {
    number.as_i128().or_else(|| {
        let number = number.as_f64()?;
        let whole = number.fract() == 0.0 && number.abs() < 9_007_199_254_740_992.0;
        whole.then_some(number as i128)
    })
}

/// Reads an integer from a number, or from a decimal text if the type has 64 bits.
fn whole(value: &Value, bits: u32) -> Option<i128> {
    match value {
        Value::Number(number) => integer(number),
        Value::String(text) if bits == 64 => {
            let digits = text.strip_prefix('-').unwrap_or(text);
            let decimal = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            decimal.then(|| text.parse().ok())?
        }
        _ => None,
    }
}

/// An integer of a type with `bits` bits.
fn sized(value: &Value, signed: bool, bits: u32) -> Read {
    let most = i128::from(u64::MAX >> (64 - bits + u32::from(signed)));
    let least = if signed { -1 - most } else { 0 };
    let number = whole(value, bits).filter(|number| (least..=most).contains(number));
    let Some(number) = number else {
        return misfit(format!("an integer from {least} to {most}"));
    };
    // The integer is in the range of the type.
    Ok(match (signed, bits) {
        (false, 8) => Val::U8(number as u8),
        (false, 16) => Val::U16(number as u16),
        (false, 32) => Val::U32(number as u32),
        (false, _) => Val::U64(number as u64),
        (true, 8) => Val::S8(number as i8),
        (true, 16) => Val::S16(number as i16),
        (true, 32) => Val::S32(number as i32),
        (true, _) => Val::S64(number as i64),
    })
}

fn float(value: &Value) -> Read<f64> {
    match (value.as_f64(), value.as_str()) {
        (Some(number), _) => Ok(number),
        (_, Some("NaN")) => Ok(f64::NAN),
        (_, Some("Infinity")) => Ok(f64::INFINITY),
        (_, Some("-Infinity")) => Ok(f64::NEG_INFINITY),
        _ => misfit("a number"),
    }
}

/// The 32-bit number that is nearest to the text of `number`. Rounding first to 64 bits may end
/// halfway between two 32-bit numbers, and then choose the wrong one.
fn nearest(number: f64) -> f32 {
    let narrow = number as f32;
    match f64::from(narrow) == number {
        true => narrow,
        false => format!("{number:e}").parse().unwrap_or(narrow),
    }
}
