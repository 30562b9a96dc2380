//! Stands in for `sqlite` in a build without that feature: a store and a bucket that no
//! value exists of. What uses them compiles unchanged, and never runs.

use std::convert::Infallible;
use std::time::Instant;

use crate::access::Access;
use crate::error::Error;
use crate::limits::Limits;
use crate::page::Page;

/// A store. There is none: the crate is built without the feature `sqlite`.
#[derive(Debug, Clone)]
pub struct Store(Infallible);

/// A bucket of a [`Store`].
#[derive(Debug, Clone)]
pub struct Bucket(Infallible);

#[expect(missing_docs, reason = "as with the feature `sqlite`")]
impl Store {
    pub fn bucket(&self, _: &str, _: &str, _: &str, _: Access, _: Limits) -> Bucket {
        match self.0 {}
    }
}

#[expect(missing_docs, reason = "as with the feature `sqlite`")]
impl Bucket {
    pub fn until(self, _: Instant) -> Self {
        match self.0 {}
    }

    pub fn name(&self) -> &str {
        match self.0 {}
    }

    pub fn access(&self) -> Access {
        match self.0 {}
    }

    pub fn get(&self, _: &str) -> Result<Option<Vec<u8>>, Error> {
        match self.0 {}
    }

    pub fn exists(&self, _: &str) -> Result<bool, Error> {
        match self.0 {}
    }

    pub fn get_many<K: AsRef<str>>(&self, _: &[K]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        match self.0 {}
    }

    pub fn list_keys(&self, _: Option<u64>) -> Result<Page, Error> {
        match self.0 {}
    }

    pub fn set(&self, _: &str, _: &[u8]) -> Result<(), Error> {
        match self.0 {}
    }

    pub fn set_many<K: AsRef<str>, V: AsRef<[u8]>>(&self, _: &[(K, V)]) -> Result<(), Error> {
        match self.0 {}
    }

    pub fn delete(&self, _: &str) -> Result<(), Error> {
        match self.0 {}
    }

    pub fn delete_many<K: AsRef<str>>(&self, _: &[K]) -> Result<(), Error> {
        match self.0 {}
    }

    pub fn increment(&self, _: &str, _: u64) -> Result<u64, Error> {
        match self.0 {}
    }
}
