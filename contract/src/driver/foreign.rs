//! Worlds of other hosts. Nothing here knows one: an adapter registers what it brings.

use std::hash::{Hash, Hasher};
use std::sync::{PoisonError, RwLock};

use serde_json::Value;

use crate::json::JsonError;

/// A world of another host: its components have a function that takes and returns JSON as bytes,
/// `func(list<u8>) -> result<list<u8>, string>`.
#[derive(Debug)]
pub struct ForeignWorld {
    /// The name in DRIVER.md.
    pub name: &'static str,
    /// How the interfaces of that host start, whether or not a component can be called.
    pub interfaces: &'static str,
    /// The functions that a component must export; the first is called.
    pub functions: &'static [&'static str],
    /// The name of that host in JSON, and of the subcommand of `import`.
    pub word: &'static str,
    /// What a component of that host is, for people.
    pub component: &'static str,
    /// What a component of this world is, for people.
    pub tool: &'static str,
    /// Why other components of that host can't be used.
    pub unusable: &'static str,
    /// The output in what the function returned, which is hostile: it must not panic, nor return much more than it got.
    pub output: fn(ForeignResult) -> Result<Value, ForeignError>,
}

/// What the function of a foreign world returned.
#[derive(Debug)]
pub enum ForeignResult {
    /// Bytes, read as JSON.
    Value(Result<Value, JsonError>),
    /// An error.
    Failed(String),
}

/// Why a call in a foreign world has no output.
#[derive(Debug)]
pub struct ForeignError {
    /// The code.
    pub code: String,
    /// What happened.
    pub message: String,
    /// JSON text.
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

/// Why a world of another host is not known to the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ForeignWorldError {
    /// Its name is empty, or one of Toolward.
    #[error("the world `{0}` has a reserved name")]
    Reserved(&'static str),
    /// It has no interfaces or no functions, so that it would match any component, or none could be called.
    #[error("the world `{0}` has no interfaces or no functions")]
    Empty(&'static str),
    /// Another world has its name.
    #[error("two worlds have the name `{0}`")]
    Taken(&'static str),
}

/// The names of our worlds in DRIVER.md.
pub(super) const TOOLWARD: &str = "toolward";
pub(super) const WIT: &str = "wit";

static REGISTERED: RwLock<Vec<&'static ForeignWorld>> = RwLock::new(Vec::new());

impl ForeignWorld {
    /// Makes this process know the world. Call it before any bundle is read; more than once is as good as once.
    ///
    /// # Errors
    /// A reserved name, nothing that a component must export, and a name that another world has. The world is then
    /// not known.
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

    /// All that are registered.
    #[must_use]
    pub fn registered() -> Vec<&'static Self> {
        let known = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
        known.clone()
    }

    /// The function that is called.
    #[must_use]
    pub fn export(&self) -> &'static str {
        self.functions.first().copied().unwrap_or_default()
    }
}

/// The code of an error that a component of this domain names, in the form of a code.
#[must_use]
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
