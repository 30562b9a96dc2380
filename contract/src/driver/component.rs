//! How a component carries a contract out (`metadata.component` of an entry): in which world, and
//! by which export. Not whether the component has that export.

use super::DriverKind;
use super::foreign::{self, ForeignWorld};
use crate::codes;
use crate::source::{FieldReader, MappingReader};

/// The world that a component is called in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum World {
    /// `toolward`: the handler of `toolward:driver`.
    #[default]
    Toolward,
    /// `wit`: a function with types that the component chose.
    Wit(WitCall),
    /// A world of another host, by the name that its adapter registered.
    Foreign(&'static ForeignWorld),
}

/// A call of a function with types that the component chose.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct WitCall {
    /// The function: `func`, or `ns:pkg/iface@1.0.0#func` inside an exported instance.
    pub export: String,
    /// How the input becomes its parameters.
    pub arguments: WitArguments,
    /// What becomes of a result.
    pub result: ResultForm,
    /// How `list<u8>` is written in JSON.
    pub bytes: BytesForm,
}

/// How an input becomes parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WitArguments {
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
    /// `utf8`: text; bytes that are not UTF-8 end the call.
    Utf8,
    /// `array`: an array of integers.
    Array,
}

impl World {
    /// Reads `metadata.component`, if it is present.
    pub(super) fn read(kind: Option<DriverKind>, field: Option<&FieldReader<'_>>) -> Option<World> {
        let (Some(field), Some(kind)) = (field, kind) else {
            return Some(World::default());
        };
        if !kind.is_run() {
            return Some(World::default());
        }
        if kind != DriverKind::Component {
            let message = format!(
                "expected `{}` with `kind: component` only, found it with another kind",
                field.name
            );
            field.note_at_key(&codes::COMPONENT_CALL_INVALID, message);
            return None;
        }
        let mut fields = field.fields()?;
        let mut words = vec![
            (foreign::TOOLWARD, World::Toolward),
            (foreign::WIT, World::Wit(WitCall::new(""))),
        ];
        let others = ForeignWorld::registered().into_iter();
        words.extend(others.map(|world| (world.name, World::Foreign(world))));
        let world = match fields.take("world") {
            Some(field) => field.word(&words, &codes::COMPONENT_WORLD_UNKNOWN)?,
            None => World::default(),
        };
        let world = match world {
            World::Wit(_) => World::Wit(wit(&mut fields)?),
            world => world,
        };
        fields.unknown();
        Some(world)
    }
}

fn wit(fields: &mut MappingReader<'_>) -> Option<WitCall> {
    let export = fields.require("export", |field| {
        let expected = "a function such as `read-file`, or `ns:pkg/iface@1.0.0#read-file`";
        field.text_as(&codes::COMPONENT_CALL_INVALID, expected, |found| {
            WitCall::is_export(found).then(|| found.to_owned())
        })
    });
    let arguments = [
        ("named", WitArguments::Named),
        ("whole", WitArguments::Whole),
    ];
    let arguments = choice(fields.take("arguments"), &arguments);
    let result = [("unwrap", ResultForm::Unwrap), ("keep", ResultForm::Keep)];
    let result = choice(fields.take("result"), &result);
    let bytes = [
        ("base64", BytesForm::Base64),
        ("utf8", BytesForm::Utf8),
        ("array", BytesForm::Array),
    ];
    let bytes = choice(fields.take("bytes"), &bytes);
    Some(WitCall {
        export: export?,
        arguments: arguments?,
        result: result?,
        bytes: bytes?,
    })
}

fn choice<T: Copy + Default>(field: Option<FieldReader<'_>>, words: &[(&str, T)]) -> Option<T> {
    match field {
        Some(field) => field.word(words, &codes::COMPONENT_CALL_INVALID),
        None => Some(T::default()),
    }
}

impl WitCall {
    /// A call of this function; arguments, result and bytes by their defaults.
    #[must_use]
    pub fn new(export: impl Into<String>) -> Self {
        Self {
            export: export.into(),
            arguments: WitArguments::default(),
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
