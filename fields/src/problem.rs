//! What is wrong with a field, without words for it.

use std::ops::RangeInclusive;

use crate::node::{Kind, Node};

/// What is wrong with a field: its name, its place, what was expected and found.
#[derive(Clone, Debug)]
pub enum Problem<'n, P> {
    /// A required field is not there.
    Missing {
        /// Its name.
        name: String,
        /// The name of the mapping.
        within: String,
        /// Where the mapping begins.
        at: P,
    },
    /// Nothing took the field.
    Unknown {
        /// Its key.
        key: &'n str,
        /// Its name.
        name: String,
        /// The name of the mapping.
        within: String,
        /// Where its key begins.
        at: P,
        /// The keys that were asked for.
        known: Vec<String>,
        /// The names of the fields that were asked for and are not there.
        absent: Vec<String>,
    },
    /// A value of another type.
    Type {
        /// Its name.
        name: String,
        /// What it should be.
        expected: Kind,
        /// What it is.
        found: &'n Node<P>,
    },
    /// Not an integer of a range: another type, or another number.
    Integer {
        /// Its name.
        name: String,
        /// What it should be in.
        range: RangeInclusive<u64>,
        /// What it is.
        found: &'n Node<P>,
    },
}
