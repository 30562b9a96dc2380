//! How a component carries a contract out (`metadata.component` of an entry): in which world, and
//! by which export. Not whether the component has that export.

use super::DriverKind;
use crate::codes;
use crate::diagnostic::Report;
use crate::shared::word;
use crate::source::{Field, Fields};

/// The world that a component is called in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum World {
    /// `toolward`: the handler of `toolward:driver`.
    #[default]
    Toolward,
    /// `wit`: a function with types of its own.
    Wit(WitCall),
    /// `amplifier-tool`: `amplifier:modules/tool@1.0.0`.
    AmplifierTool,
}

/// A call of a function with types of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct WitCall {
    /// The function: `func`, or `ns:pkg/iface@1.0.0#func` inside an exported instance.
    pub export: String,
    /// How the input becomes its parameters.
    pub arguments: Arguments,
    /// What becomes of a result.
    pub result: ResultForm,
    /// How `list<u8>` is written in JSON.
    pub bytes: BytesForm,
}

/// How an input becomes parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Arguments {
    /// `named`: each parameter is a property of the input.
    #[default]
    Named,
    /// `whole`: the input is the only parameter.
    Whole,
}

/// What becomes of a function's `result`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ResultForm {
    /// `unwrap`: the value of `ok` is the output, `err` an error of the tool.
    #[default]
    Unwrap,
    /// `keep`: the output is `{"ok": …}` or `{"err": …}`.
    Keep,
}

/// How `list<u8>` is written in JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BytesForm {
    /// `base64`: text, with padding (RFC 4648, section 4).
    #[default]
    Base64,
    /// `utf8`: text; bytes that are no UTF-8 end the call.
    Utf8,
    /// `array`: an array of integers.
    Array,
}

impl BytesForm {
    const ALL: &[(&str, Self)] = &[
        ("base64", Self::Base64),
        ("utf8", Self::Utf8),
        ("array", Self::Array),
    ];
}

const WORLDS: &[&str] = &["toolward", "wit", "amplifier-tool"];

impl World {
    /// Reads `metadata.component`, where there is one.
    pub(super) fn read(
        kind: Option<&DriverKind>,
        field: Option<&Field<'_>>,
        report: &mut Report<'_>,
    ) -> Option<World> {
        let (Some(field), Some(kind)) = (field, kind) else {
            return Some(World::default());
        };
        if let DriverKind::Other(_) = kind {
            return Some(World::default());
        }
        if *kind != DriverKind::Component {
            let message = format!(
                "expected `{}` with `kind: component` only, found it with another kind",
                field.name
            );
            report.add(&codes::COMPONENT_CALL_INVALID, field.key_at, message);
            return None;
        }
        let mut fields = report.read(Fields::of(field))?;
        let known = |found: &str| WORLDS.iter().find(|world| **world == found).copied();
        let world = match fields.take("world") {
            Some(field) => word(
                &field,
                WORLDS,
                known,
                &codes::COMPONENT_WORLD_UNKNOWN,
                report,
            )?,
            None => "toolward",
        };
        let world = match world {
            "wit" => World::Wit(wit(&mut fields, report)?),
            "amplifier-tool" => World::AmplifierTool,
            _ => World::Toolward,
        };
        report.unknown(fields);
        Some(world)
    }
}

fn wit(fields: &mut Fields<'_>, report: &mut Report<'_>) -> Option<WitCall> {
    let export = report.read(fields.required("export")).and_then(|field| {
        let found = report.read(field.text())?;
        if !WitCall::is_export(found) {
            let message = format!(
                "expected `{}` to be a function such as `read-file`, or `ns:pkg/iface@1.0.0#read-file`, found {found:?}",
                field.name
            );
            report.add(&codes::COMPONENT_CALL_INVALID, field.at, message);
            return None;
        }
        Some(found.to_owned())
    });
    let arguments = choice(
        fields.take("arguments"),
        &[("named", Arguments::Named), ("whole", Arguments::Whole)],
        report,
    );
    let result = choice(
        fields.take("result"),
        &[("unwrap", ResultForm::Unwrap), ("keep", ResultForm::Keep)],
        report,
    );
    let bytes = choice(fields.take("bytes"), BytesForm::ALL, report);
    Some(WitCall {
        export: export?,
        arguments: arguments?,
        result: result?,
        bytes: bytes?,
    })
}

fn choice<T: Copy + Default>(
    field: Option<Field<'_>>,
    all: &[(&str, T)],
    report: &mut Report<'_>,
) -> Option<T> {
    let Some(field) = field else {
        return Some(T::default());
    };
    let known: Vec<&str> = all.iter().map(|(word, _)| *word).collect();
    let read = |found: &str| {
        let found = all.iter().find(|(word, _)| *word == found);
        found.map(|(_, value)| *value)
    };
    word(&field, &known, read, &codes::COMPONENT_CALL_INVALID, report)
}

impl WitCall {
    /// A call of this function; arguments, result and bytes as where DRIVER.md says nothing.
    #[must_use]
    pub fn new(export: impl Into<String>) -> Self {
        Self {
            export: export.into(),
            arguments: Arguments::default(),
            result: ResultForm::default(),
            bytes: BytesForm::default(),
        }
    }

    /// Whether `export` can name this function of a component.
    #[must_use]
    pub fn is_export(text: &str) -> bool {
        let kebab = |text: &str| {
            !text.is_empty()
                && text.len() <= 200
                && text
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        };
        let interface = |text: &str| {
            let (name, version) = text.split_once('@').unwrap_or((text, "1"));
            let printable = version.bytes().all(|byte| byte.is_ascii_graphic());
            name.split([':', '/']).all(kebab) && !version.is_empty() && printable
        };
        match text.split_once('#') {
            Some((instance, function)) => {
                text.len() <= 1024 && interface(instance) && kebab(function)
            }
            None => kebab(text),
        }
    }
}
