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
    /// The output in what the function returned.
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

static REGISTERED: RwLock<Vec<&'static ForeignWorld>> = RwLock::new(Vec::new());

impl ForeignWorld {
    /// Makes this process know the world. Call it before any bundle is read.
    pub fn register(&'static self) {
        let mut known = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
        if !known.contains(&self) {
            known.push(self);
        }
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
