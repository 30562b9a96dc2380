//! The mark of what was verified: a type that only this crate makes.

use std::ops::Deref;

/// Something that was verified. Only this crate makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified<T>(T);

impl<T> Verified<T> {
    /// For what was just verified.
    pub(crate) fn new(value: T) -> Self {
        Self(value)
    }

    /// Gives the value away; its type no longer says that it was verified.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> Deref for Verified<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
