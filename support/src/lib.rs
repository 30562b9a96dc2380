//! What every crate of Toolward needs and none is about.
//!
//! * [`report`]: error codes, and reports of what went wrong;
//! * [`text`]: other people's text, made safe to show to a person;
//! * [`fields`]: fields of YAML, JSON and TOML documents, each with its place;
//! * [`files`]: private files and folders;
//! * [`json`]: JSON texts, written fast;
//! * [`helper`]: processes that a program starts to do one thing for it;
//! * [`search`]: tools by a few words;
//! * `sqlite`, a feature: SQLite files.

pub mod fields;
pub mod files;
pub mod helper;
pub mod json;
pub mod report;
pub mod search;
#[cfg(feature = "sqlite")]
pub mod sqlite;
pub mod text;

/// An enumeration whose values have a word each: all values, and their words, by `as_str` or a function of another name.
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

/// Types whose debug form is their name: they hold inputs, secrets or much state.
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
