//! Simulates the host's grants while a handler is tested.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::Value;

use crate::Error;

thread_local! {
    static CURRENT: RefCell<Vec<Grants>> = const { RefCell::new(Vec::new()) };
}

type Tool = Rc<dyn Fn(Value) -> Result<Value, Error>>;
#[cfg(feature = "http")]
type Server = Rc<dyn Fn(&crate::http::Request) -> Result<crate::http::Response, Error>>;

/// Secrets, tools, servers and buckets for the time of a test. Without them, everything is denied,
/// as without a host. Written values are kept, and clones share them.
///
/// ```
/// use toolward_guest::testing::Grants;
/// use toolward_guest::{secrets, tools, Error};
///
/// let grants = Grants::new()
///     .secret("token", "s3cret")
///     .tool("text.upper", |input| Ok(input.as_str().unwrap_or("").to_uppercase().into()));
/// let (placeholder, upper) = grants.during(|| {
///     (secrets::placeholder("token"), tools::call::<String>("text.upper", &"a"))
/// });
/// assert_eq!(placeholder.unwrap(), "placeholder:token");
/// assert_eq!(upper.unwrap(), "A");
/// assert_eq!(secrets::placeholder("token").unwrap_err().code(), "unauthorised");
/// ```
#[derive(Clone, Default)]
pub struct Grants(Rc<RefCell<Inner>>);

#[derive(Default)]
struct Inner {
    secrets: BTreeMap<String, Vec<u8>>,
    tools: BTreeMap<String, Tool>,
    #[cfg(feature = "http")]
    server: Option<Server>,
    #[cfg(feature = "keyvalue")]
    buckets: BTreeMap<String, super::bucket::TestBucket>,
}

impl Grants {
    /// Grants nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a secret that may be used, revealed and stored. Its placeholder is
    /// `placeholder:<slug>`.
    #[must_use]
    pub fn secret(self, slug: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        self.with(|inner| inner.secrets.insert(slug.into(), value.into()));
        self
    }

    /// Adds another tool, and the function that runs for its input.
    #[must_use]
    pub fn tool(
        self,
        id: impl Into<String>,
        does: impl Fn(Value) -> Result<Value, Error> + 'static,
    ) -> Self {
        self.with(|inner| inner.tools.insert(id.into(), Rc::new(does)));
        self
    }

    /// Sets the function that answers all requests.
    #[cfg(feature = "http")]
    #[must_use]
    pub fn http(
        self,
        server: impl Fn(&crate::http::Request) -> Result<crate::http::Response, Error> + 'static,
    ) -> Self {
        self.with(|inner| inner.server = Some(Rc::new(server)));
        self
    }

    /// Adds an empty bucket that may be written.
    #[cfg(feature = "keyvalue")]
    #[must_use]
    pub fn bucket(self, name: impl Into<String>) -> Self {
        self.with(|inner| inner.buckets.insert(name.into(), Default::default()));
        self
    }

    /// Adds a read-only bucket with these pairs.
    #[cfg(feature = "keyvalue")]
    #[must_use]
    pub fn read_only_bucket<'a>(
        self,
        name: impl Into<String>,
        pairs: impl IntoIterator<Item = (&'a str, &'a [u8])>,
    ) -> Self {
        let bucket = super::bucket::TestBucket::read_only(pairs);
        self.with(|inner| inner.buckets.insert(name.into(), bucket));
        self
    }

    /// Runs `body` with these grants, and no others.
    pub fn during<T>(&self, body: impl FnOnce() -> T) -> T {
        struct End;
        impl Drop for End {
            fn drop(&mut self) {
                CURRENT.with_borrow_mut(|current| current.pop());
            }
        }
        CURRENT.with_borrow_mut(|current| current.push(self.clone()));
        let _end = End;
        body()
    }

    fn with<T>(&self, change: impl FnOnce(&mut Inner) -> T) -> T {
        change(&mut self.0.borrow_mut())
    }
}

/// Picks a value from the current grants; `None` without grants.
fn current<T>(pick: impl FnOnce(&mut Inner) -> Option<T>) -> Option<T> {
    let grants = CURRENT.with_borrow(|current| current.last().cloned())?;
    grants.with(pick)
}

#[cfg(not(target_family = "wasm"))]
pub(crate) fn secret(slug: &str) -> Option<Vec<u8>> {
    current(|inner| inner.secrets.get(slug).cloned())
}

/// Stores a value, if the secret is granted.
#[cfg(not(target_family = "wasm"))]
pub(crate) fn store_secret(slug: &str, value: &[u8]) -> Option<()> {
    current(|inner| {
        let stored = inner.secrets.get_mut(slug)?;
        *stored = value.to_vec();
        Some(())
    })
}

/// Calls a tool, if it is granted.
#[cfg(not(target_family = "wasm"))]
pub(crate) fn call_tool(id: &str, input: Value) -> Option<Result<Value, Error>> {
    let tool = current(|inner| inner.tools.get(id).cloned())?;
    Some(tool(input))
}

#[cfg(feature = "http")]
pub(crate) fn answer(
    request: &crate::http::Request,
) -> Option<Result<crate::http::Response, Error>> {
    let server = current(|inner| inner.server.clone())?;
    Some(server(request))
}

#[cfg(feature = "keyvalue")]
pub(crate) fn bucket(name: &str) -> Option<super::bucket::TestBucket> {
    current(|inner| inner.buckets.get(name).cloned())
}
