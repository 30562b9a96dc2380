//! Finding tools in a large catalogue: the index, and the three tools of the
//! server's own through which a client finds, loads and calls the others.

mod finder;
mod index;
mod reference;
mod schemas;
mod words;

pub(crate) use finder::{Asked, Finder, tools};
pub use index::{Document, Hit, Index};
