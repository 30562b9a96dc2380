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

/// An enumeration whose values have names.
#[macro_export]
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $word:ident = $text:literal,)* }) => {
        $(#[$meta])*
        pub enum $name { $($(#[$doc])* $word,)* }

        impl $name {
            /// Its name.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$word => $text,)* }
            }
        }
    };
}
