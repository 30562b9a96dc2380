//! Fields of documents that people write: each value with its place, each key read once. Knows no document,
//! no code and no wording: what is wrong comes back as a [`FieldProblem`], which a reader puts in its own words.
//!
//! * [`Position`]: line and column of a byte offset;
//! * [`Node`]: a value with places, from TOML by [`parse_toml`], from other formats by their readers;
//! * [`Fields`], [`Field`]: the keys of a mapping, and a value of one type;
//! * [`without_mark`]: a document without the byte order mark before it;
//! * [`nearest`]: the key that a misspelt one may stand for.
//!
//! ```
//! use toolward_support::fields::{Field, Fields, Position, FieldProblem};
//!
//! let text = "name = \"notes\"\nsized = 3\n";
//! let document = toolward_support::fields::parse_toml(text).unwrap();
//! let mut fields = Fields::of(&Field::new("", &document)).unwrap();
//! assert_eq!(fields.required("name").unwrap().text().unwrap(), "notes");
//! assert!(fields.take("size").is_none());
//! for problem in fields.unknown() {
//!     let FieldProblem::Unknown { name, at, .. } = problem else { unreachable!() };
//!     assert_eq!(name, "sized");
//!     assert_eq!(Position::of_offset(text, at.start).to_string(), "2:1");
//! }
//! ```

mod mapping;
mod nearest;
mod node;
mod position;

pub use mapping::{Field, FieldProblem, Fields, Spelling};
pub use nearest::{NearNames, nearest};
pub use node::{Content, Kind, MappingEntry, Node, Span, parse_toml};
pub use position::{Position, without_mark, without_mark_bytes};
