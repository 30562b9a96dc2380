//! Basics for all crates of Toolward.
//!
//! * [`report`]: error codes, and reports of errors;
//! * [`text`]: making untrusted text safe to show to a person;
//! * [`fields`]: fields of YAML, JSON and TOML documents, each with its place;
//! * [`files`]: private files and folders;
//! * [`json`]: JSON texts, written fast;
//! * [`helper`]: processes that a program starts for one task;
//! * [`program_pages`]: the pages of the program in memory;
//! * [`search`]: finding tools by a few words;
//! * `sqlite`, a feature: SQLite files.

pub mod fields;
pub mod files;
pub mod helper;
pub mod json;
pub mod program_pages;
pub mod report;
pub mod search;
#[cfg(feature = "sqlite")]
pub mod sqlite;
pub mod text;

/// Declares an enumeration in which each value has a word. Generates a list of all values, and a
/// function that returns the word. The function is `as_str`, unless another name is given.
#[macro_export]
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($values:tt)* }) => {
        $crate::words! { $(#[$meta])* $name, as_str { $($values)* } }
    };
    ($(#[$meta:meta])* $name:ident, $function:ident {
        $($(#[$doc:meta])* $value:ident = $word:literal,)+
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name { $($(#[$doc])* $value,)+ }

        impl $name {
            /// All values.
            pub const ALL: &[Self] = &[$(Self::$value),+];

            /// Its word.
            pub const fn $function(self) -> &'static str {
                match self { $(Self::$value => $word,)+ }
            }
        }
    };
}

/// Implements a `Debug` form that shows only the type's name, for types with inputs, secrets or
/// much state.
#[macro_export]
macro_rules! opaque {
    ($($type:ident),*) => {
        $(impl std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(concat!(stringify!($type), "(..)"))
            }
        })*
    };
}
