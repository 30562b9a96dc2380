//! Tool search in a large catalogue: three tools of the server, with which a client
//! finds, loads and calls the others.

mod finder;
mod reference;
mod schemas;

pub(crate) use finder::{Asked, Finder, only_looks, tools};
