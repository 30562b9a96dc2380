//! A result, as JSON text.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use toolward_bundle::component::Type;
use toolward_contract::driver::BytesForm;
use wasmtime::component::Val;

/// The largest integer that all readers of JSON keep: 2^53 − 1.
const MAX_INTEGER: u64 = (1 << 53) - 1;

/// Why a result is not written.
#[derive(Debug, PartialEq)]
pub(super) enum Refused {
    /// The text would be longer than it may be.
    TooLarge,
    /// Bytes that are declared as UTF-8 are not.
    NotUtf8,
    /// The value is not of the type.
    Mismatch,
}

type Written = Result<(), Refused>;

/// JSON text that does not grow beyond a limit.
pub(super) struct JsonText {
    text: Vec<u8>,
    limit: usize,
    bytes: BytesForm,
}

impl std::io::Write for JsonText {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.raw(bytes)
            .map_err(|_| std::io::Error::from(std::io::ErrorKind::FileTooLarge))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl JsonText {
    /// Text of at most `limit` bytes.
    pub(super) fn new(limit: u64, bytes: BytesForm) -> Self {
        Self {
            text: Vec::new(),
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
            bytes,
        }
    }

    pub(super) fn into_string(self) -> String {
        String::from_utf8(self.text).unwrap_or_default()
    }

    fn raw(&mut self, bytes: &[u8]) -> Written {
        if bytes.len() > self.limit.saturating_sub(self.text.len()) {
            return Err(Refused::TooLarge);
        }
        self.text.extend_from_slice(bytes);
        Ok(())
    }

    fn json(&mut self, value: impl Serialize) -> Written {
        serde_json::to_writer(self, &value).map_err(|_| Refused::TooLarge)
    }

    fn key(&mut self, name: &str) -> Written {
        self.json(name)?;
        self.raw(b":")
    }

    fn list<T>(
        &mut self,
        items: impl Iterator<Item = T>,
        mut write: impl FnMut(&mut Self, T) -> Written,
    ) -> Written {
        self.raw(b"[")?;
        for (index, item) in items.enumerate() {
            if index > 0 {
                self.raw(b",")?;
            }
            write(self, item)?;
        }
        self.raw(b"]")
    }

    /// Writes a text.
    pub(super) fn text(&mut self, text: &str) -> Written {
        self.json(text)
    }

    /// What a case holds; `null` if nothing.
    pub(super) fn payload(&mut self, value: Option<(&Val, &Type)>) -> Written {
        match value {
            Some((value, ty)) => self.value(value, ty),
            None => self.raw(b"null"),
        }
    }

    /// Writes a value.
    pub(super) fn value(&mut self, value: &Val, ty: &Type) -> Written {
        match (value, ty) {
            (Val::Bool(value), _) => self.json(value),
            (Val::U8(value), _) => self.json(value),
            (Val::U16(value), _) => self.json(value),
            (Val::U32(value), _) => self.json(value),
            (Val::S8(value), _) => self.json(value),
            (Val::S16(value), _) => self.json(value),
            (Val::S32(value), _) => self.json(value),
            (Val::U64(value), _) => match *value <= MAX_INTEGER {
                true => self.json(value),
                false => self.json(value.to_string()),
            },
            (Val::S64(value), _) => match value.unsigned_abs() <= MAX_INTEGER {
                true => self.json(value),
                false => self.json(value.to_string()),
            },
            (Val::Float32(value), _) => match word(f64::from(*value)) {
                Some(word) => self.json(word),
                None => self.json(value),
            },
            (Val::Float64(value), _) => match word(*value) {
                Some(word) => self.json(word),
                None => self.json(value),
            },
            (Val::Char(value), _) => self.json(value),
            (Val::String(value) | Val::Enum(value), _) => self.json(value),
            (Val::List(values), Type::List(_))
                if ty.is_bytes() && self.bytes != BytesForm::Array =>
            {
                self.bytes(values)
            }
            (Val::List(values), Type::List(element)) => {
                self.list(values.iter(), |text, value| text.value(value, element))
            }
            (Val::Tuple(values), Type::Tuple(types)) => {
                let values = values.iter().zip(types);
                self.list(values, |text, (value, ty)| text.value(value, ty))
            }
            (Val::Record(values), Type::Record(fields)) => self.record(values, fields),
            (Val::Option(None), _) => self.raw(b"null"),
            (Val::Option(Some(value)), Type::Option(inner)) => match **inner {
                Type::Option(_) => {
                    self.raw(b"{\"some\":")?;
                    self.value(value, inner)?;
                    self.raw(b"}")
                }
                _ => self.value(value, inner),
            },
            (Val::Flags(names), _) => self.list(names.iter(), |text, name| text.json(name)),
            (Val::Variant(case, value), Type::Variant(cases)) => {
                self.raw(b"{\"tag\":")?;
                self.json(case)?;
                let found = cases.iter().find(|(name, _)| name == case);
                let (_, inner) = found.ok_or(Refused::Mismatch)?;
                if let Some((value, inner)) = value.as_deref().zip(inner.as_deref()) {
                    self.raw(b",\"val\":")?;
                    self.value(value, inner)?;
                }
                self.raw(b"}")
            }
            (Val::Result(value), Type::Result { ok, err }) => {
                let (key, value, ty) = match value {
                    Ok(value) => ("ok", value, ok),
                    Err(value) => ("err", value, err),
                };
                self.raw(b"{")?;
                self.key(key)?;
                self.payload(value.as_deref().zip(ty.as_deref()))?;
                self.raw(b"}")
            }
            _ => Err(Refused::Mismatch),
        }
    }

    /// A record, without the fields that are none.
    fn record(
        &mut self,
        values: &[(String, Val)],
        fields: &[(String, std::sync::Arc<Type>)],
    ) -> Written {
        self.raw(b"{")?;
        let mut first = true;
        for ((name, value), (_, ty)) in values.iter().zip(fields) {
            if matches!(value, Val::Option(None)) {
                continue;
            }
            if !std::mem::take(&mut first) {
                self.raw(b",")?;
            }
            self.key(name)?;
            self.value(value, ty)?;
        }
        self.raw(b"}")
    }

    fn bytes(&mut self, values: &[Val]) -> Written {
        if values.len() > self.limit {
            return Err(Refused::TooLarge);
        }
        let bytes = values.iter().map(|value| match value {
            Val::U8(byte) => Ok(*byte),
            _ => Err(Refused::Mismatch),
        });
        let bytes = bytes.collect::<Result<Vec<u8>, Refused>>()?;
        match self.bytes {
            BytesForm::Utf8 => {
                self.json(std::str::from_utf8(&bytes).map_err(|_| Refused::NotUtf8)?)
            }
            _ => self.json(STANDARD.encode(bytes)),
        }
    }
}

/// A number that has no digits.
fn word(number: f64) -> Option<&'static str> {
    match number {
        _ if number.is_nan() => Some("NaN"),
        f64::INFINITY => Some("Infinity"),
        f64::NEG_INFINITY => Some("-Infinity"),
        _ => None,
    }
}
