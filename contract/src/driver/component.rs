//! Reads how a component carries out a contract (`metadata.component` of an entry): the world and
//! the export. Whether the component has that export is checked elsewhere. This module knows no
//! worlds of other hosts: the adapter for a host registers that host's world.

use std::hash::{Hash, Hasher};
use std::sync::{PoisonError, RwLock};

use serde_json::Value;

use crate::codes;
use crate::json::JsonError;
use crate::source::{FieldReader, MappingReader};

/// The world in which a component is called.
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
    /// The function: `func`, or for a function of an exported instance `ns:pkg/iface@1.0.0#func`.
    pub export: String,
    /// How the input becomes its parameters.
    pub arguments: WitArguments,
    /// How a `result` becomes the output.
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

/// How a function's `result` becomes the output.
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
    /// `utf8`: text; the call fails if the bytes are not UTF-8.
    Utf8,
    /// `array`: an array of integers.
    Array,
}

impl World {
    /// Reads `metadata.component`.
    pub(super) fn read(field: &FieldReader<'_>) -> Option<World> {
        let mut fields = field.fields()?;
        let mut words = vec![
            (TOOLWARD, World::Toolward),
            (WIT, World::Wit(WitCall::new(""))),
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
    /// A call of this function, with the default forms of arguments, result and bytes.
    pub fn new(export: impl Into<String>) -> Self {
        Self {
            export: export.into(),
            arguments: WitArguments::default(),
            result: ResultForm::default(),
            bytes: BytesForm::default(),
        }
    }

    /// Whether a text is a valid `export`: the name of a function of a component.
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

/// A world of another host: its components have a function that takes and returns JSON as bytes,
/// `func(list<u8>) -> result<list<u8>, string>`.
#[derive(Debug)]
pub struct ForeignWorld {
    /// The name in DRIVER.md.
    pub name: &'static str,
    /// The prefix in the names of all of that host's interfaces, also of interfaces whose
    /// components can't be called.
    pub interfaces: &'static str,
    /// The functions that a component must export; the first is called.
    pub functions: &'static [&'static str],
    /// The name of that host in JSON, and of the subcommand of `import`.
    pub word: &'static str,
    /// The description of that host's components, for people.
    pub component: &'static str,
    /// The description of this world's components, for people.
    pub tool: &'static str,
    /// The reason, for people, why components of that host can't be used if they are not of this
    /// world.
    pub unusable: &'static str,
    /// Converts the function's result to the output. The result is hostile: this function must not
    /// panic, and must not return much more than it got.
    pub output: fn(ForeignResult) -> Result<Value, ForeignError>,
}

/// The result of the function of a foreign world.
#[derive(Debug)]
pub enum ForeignResult {
    /// Bytes, read as JSON.
    Value(Result<Value, JsonError>),
    /// An error.
    Failed(String),
}

/// The error of a call in a foreign world.
#[derive(Debug)]
pub struct ForeignError {
    /// The error's code.
    pub code: String,
    /// The message.
    pub message: String,
    /// The cause, as JSON text.
    pub cause: Option<String>,
}

impl PartialEq for ForeignWorld {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for ForeignWorld {}

impl Hash for ForeignWorld {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

/// The reason why a world of another host can't be registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ForeignWorldError {
    /// Its name is empty, or the name of one of Toolward's worlds.
    #[error("the world `{0}` has a reserved name")]
    Reserved(&'static str),
    /// It has no prefix of interfaces, so it would match any component; or it has no function, or
    /// one without a name, so no component could be called.
    #[error("the world `{0}` has no interfaces or no functions")]
    Empty(&'static str),
    /// Another world has its name.
    #[error("two worlds have the name `{0}`")]
    Taken(&'static str),
}

/// The names of Toolward's own worlds in DRIVER.md.
const TOOLWARD: &str = "toolward";
const WIT: &str = "wit";

static REGISTERED: RwLock<Vec<&'static ForeignWorld>> = RwLock::new(Vec::new());

impl ForeignWorld {
    /// Registers the world for this process. Call it before any bundle is read; repeated calls have
    /// no further effect.
    ///
    /// # Errors
    /// The name is reserved, another world has it, or interfaces or functions are missing. The
    /// world is then not registered.
    pub fn register(&'static self) -> Result<(), ForeignWorldError> {
        if ["", TOOLWARD, WIT].contains(&self.name) {
            return Err(ForeignWorldError::Reserved(self.name));
        }
        let empty = |text: &&str| text.is_empty();
        if self.interfaces.is_empty()
            || self.functions.is_empty()
            || self.functions.iter().any(empty)
        {
            return Err(ForeignWorldError::Empty(self.name));
        }
        let mut known = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
        match known.iter().find(|known| known.name == self.name) {
            Some(known) if std::ptr::eq(*known, self) => {}
            Some(_) => return Err(ForeignWorldError::Taken(self.name)),
            None => known.push(self),
        }
        Ok(())
    }

    /// All registered worlds.
    pub fn registered() -> Vec<&'static Self> {
        let known = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
        known.clone()
    }

    /// The function that is called.
    pub fn export(&self) -> &'static str {
        self.functions.first().copied().unwrap_or_default()
    }
}

/// The code for an error that a component names: `domain:name`. The domain is a word for the
/// component's world, such as `wit`. The name is cut to 60 bytes and in lower case; characters
/// other than letters, digits, `-` and `_` become `_`.
pub fn domain_code(domain: &str, name: &str) -> String {
    const LONGEST: usize = 60;
    let form = |byte: u8| match byte.to_ascii_lowercase() {
        byte @ (b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_') => char::from(byte),
        _ => '_',
    };
    let name: String = name.bytes().take(LONGEST).map(form).collect();
    format!("{domain}:{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn world(
        name: &'static str,
        interfaces: &'static str,
        functions: &'static [&'static str],
    ) -> ForeignWorld {
        ForeignWorld {
            name,
            interfaces,
            functions,
            word: "other",
            component: "a module",
            tool: "a tool",
            unusable: "",
            output: |_| Ok(Value::Null),
        }
    }

    #[test]
    fn a_world_is_registered_once_under_a_name_that_is_free() {
        static RESERVED: [ForeignWorld; 3] = [
            world("", "a:b/", &["f"]),
            world("wit", "a:b/", &["f"]),
            world("toolward", "a:b/", &["f"]),
        ];
        static EMPTY: [ForeignWorld; 3] = [
            world("test-empty", "", &["f"]),
            world("test-empty", "a:b/", &[]),
            world("test-empty", "a:b/", &[""]),
        ];
        static FIRST: ForeignWorld = world("test-world", "test-host:a/", &["f"]);
        static OTHER: ForeignWorld = world("test-world", "test-host:b/", &["f"]);
        for refused in &RESERVED {
            let error = ForeignWorldError::Reserved(refused.name);
            assert_eq!(refused.register(), Err(error));
        }
        for refused in &EMPTY {
            let error = ForeignWorldError::Empty("test-empty");
            assert_eq!(refused.register(), Err(error));
        }
        assert_eq!(FIRST.register(), Ok(()));
        assert_eq!(FIRST.register(), Ok(()));
        assert_eq!(
            OTHER.register(),
            Err(ForeignWorldError::Taken("test-world"))
        );
        let known = ForeignWorld::registered();
        assert_eq!(
            known
                .iter()
                .filter(|world| world.name.starts_with("test-"))
                .count(),
            1
        );
    }
}
